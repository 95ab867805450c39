// Builds the Debian and RPM packages with nfpm: the program, a unit that runs it as a separate user, and a settings file.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TargetSystem } from "#src/build.ts";
import type { ReleaseInputs } from "./inputs.ts";
import { runTool } from "./tools.ts";

/** Systems with packages, and nfpm's names for their architectures. */
const MACHINES = { "linux-amd64": "amd64", "linux-arm64": "arm64" } as const satisfies Partial<
  Record<TargetSystem, string>
>;
const KINDS = ["deb", "rpm"] as const;

export type PackageOptions = {
  kinds?: readonly (typeof KINDS)[number][];
  compression?: "zstd" | "none";
};

/** Builds a `.deb` and an `.rpm` for each Linux program with glibc. Returns their paths. Throws UnavailableError without nfpm. */
export const makePackages = async (
  inputs: ReleaseInputs,
  unit: string,
  { kinds = KINDS, compression = "zstd" }: PackageOptions = {},
): Promise<string[]> => {
  const { root, out, scratch, version, epoch, env } = inputs;
  const files: string[] = [];
  const folder = join(scratch, "packages");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "slipway.service"), unit);
  for (const [system, arch] of Object.entries(MACHINES)) {
    const program = inputs.programs[system as TargetSystem];
    if (program === undefined) continue;
    for (const kind of kinds) {
      writeFileSync(join(folder, `installed-by-${kind}`), `${kind}\n`);
      const config = join(folder, `${kind}-${arch}.json`);
      writeFileSync(
        config,
        JSON.stringify(toPackageConfig({ root, folder, program, version, kind, arch, epoch, compression })),
      );
      const target = join(out, toFileName(kind, version, arch));
      await runTool(["nfpm", "package", "--config", config, "--packager", kind, "--target", target], {
        env: { ...env, SOURCE_DATE_EPOCH: String(epoch) },
      });
      files.push(target);
    }
  }
  return files;
};

const toFileName = (kind: (typeof KINDS)[number], version: string, arch: "amd64" | "arm64"): string =>
  kind === "deb"
    ? `slipway_${version}_${arch}.deb`
    : `slipway-${version}-1.${{ amd64: "x86_64", arm64: "aarch64" }[arch]}.rpm`;

type PackageDescription = {
  root: string;
  folder: string;
  program: string;
  version: string;
  kind: (typeof KINDS)[number];
  arch: string;
  epoch: number;
  compression: string;
};

/** nfpm reads YAML, of which JSON is a subset. */
const toPackageConfig = ({ root, folder, program, version, kind, arch, epoch, compression }: PackageDescription) => {
  const mtime = new Date(epoch * 1000).toISOString();
  const scripts = join(root, "deploy/packages");
  return {
    name: "slipway",
    arch,
    platform: "linux",
    version,
    section: "devel",
    priority: "optional",
    maintainer: "Slipway maintainers <slipway@localhost>",
    description: "Self-hosted control plane for remote development workspaces and AI coding-agent chats.",
    license: "Apache-2.0",
    mtime,
    // Workspaces of the template `local` use git and ssh.
    recommends: ["ca-certificates", "git", kind === "deb" ? "openssh-client" : "openssh-clients"],
    depends: [kind === "deb" ? "passwd" : "shadow-utils"],
    contents: [
      { src: program, dst: "/usr/lib/slipway/slipway", file_info: { mode: 0o755, mtime } },
      // `slipway upgrade` leaves upgrades to the package manager named in this file.
      {
        src: join(folder, `installed-by-${kind}`),
        dst: "/usr/lib/slipway/installed-by",
        file_info: { mode: 0o644, mtime },
      },
      { src: "/usr/lib/slipway/slipway", dst: "/usr/bin/slipway", type: "symlink", file_info: { mtime } },
      {
        src: join(folder, "slipway.service"),
        dst: "/usr/lib/systemd/system/slipway.service",
        file_info: { mode: 0o644, mtime },
      },
      {
        src: join(scripts, "env"),
        dst: "/etc/slipway/env",
        type: "config|noreplace",
        file_info: { mode: 0o640, mtime },
      },
      { src: join(root, "LICENSE"), dst: "/usr/share/doc/slipway/copyright", file_info: { mode: 0o644, mtime } },
      {
        src: join(root, "THIRD_PARTY.md"),
        dst: "/usr/share/doc/slipway/THIRD_PARTY.md",
        file_info: { mode: 0o644, mtime },
      },
    ],
    scripts: {
      postinstall: join(scripts, "after-install.sh"),
      preremove: join(scripts, "before-remove.sh"),
      postremove: join(scripts, "after-remove.sh"),
    },
    deb: { compression },
    rpm: { compression, buildhost: "localhost" },
  };
};
