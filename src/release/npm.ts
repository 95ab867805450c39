// Builds the npm packages: `slipway`, which selects the binary for the machine, and one package with the binary for each system.
import { chmodSync, copyFileSync, linkSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { getProgramName, type TargetSystem } from "#src/build.ts";
import type { ReleaseInputs } from "./inputs.ts";
import { gzipFile, packFolder } from "./tools.ts";

type Platform = { readonly os: string; readonly cpu: string; readonly libc?: string };

const PLATFORMS: Readonly<Record<TargetSystem, Platform>> = {
  "linux-amd64": { os: "linux", cpu: "x64", libc: "glibc" },
  "linux-arm64": { os: "linux", cpu: "arm64", libc: "glibc" },
  "linux-musl-amd64": { os: "linux", cpu: "x64", libc: "musl" },
  "linux-musl-arm64": { os: "linux", cpu: "arm64", libc: "musl" },
  "darwin-amd64": { os: "darwin", cpu: "x64" },
  "darwin-arm64": { os: "darwin", cpu: "arm64" },
  "windows-amd64": { os: "win32", cpu: "x64" },
};

/** Builds the archives for `npm publish`. Returns their paths. */
export const makeNpmPackages = async (made: ReleaseInputs): Promise<string[]> => {
  const systems = Object.keys(made.programs) as TargetSystem[];
  const files: string[] = [];
  for (const system of systems) files.push(await packSystem(made, system));
  files.push(await packLauncher(made, systems));
  return files;
};

const toPlatformSuffix = ({ os, cpu, libc }: Platform): string => `${os}-${cpu}${libc === "musl" ? "-musl" : ""}`;

const packSystem = (made: ReleaseInputs, system: TargetSystem): Promise<string> => {
  const platform = PLATFORMS[system];
  const suffix = toPlatformSuffix(platform);
  const { os, cpu, libc } = platform;
  return packForNpm(made, `slipway-${suffix}`, (folder) => {
    mkdirSync(join(folder, "bin"));
    const file = join(folder, "bin", getProgramName(system).replace(system, "").replace("-", ""));
    linkSync(made.programs[system] as string, file);
    writeFileSync(join(folder, "bin", "installed-by"), "npm\n");
    return {
      ...describePackage(made, `@slipway/${suffix}`, `The Slipway binary for ${suffix}.`),
      os: [os],
      cpu: [cpu],
      ...(libc === undefined ? {} : { libc: [libc] }),
    };
  });
};

const packLauncher = (made: ReleaseInputs, systems: readonly TargetSystem[]): Promise<string> =>
  packForNpm(made, "slipway", (folder) => {
    for (const name of ["slipway.mjs", "README.md"])
      copyFileSync(join(made.root, "deploy/npm", name), join(folder, name));
    chmodSync(join(folder, "slipway.mjs"), 0o755);
    const description = "Self-hosted control plane for remote development workspaces and AI coding-agent chats.";
    return {
      ...describePackage(made, "slipway", description),
      bin: { slipway: "slipway.mjs" },
      engines: { node: ">=20" },
      optionalDependencies: Object.fromEntries(
        systems.map((system) => [`@slipway/${toPlatformSuffix(PLATFORMS[system])}`, made.version]),
      ),
    };
  });

const describePackage = ({ version }: ReleaseInputs, name: string, description: string) => ({
  name,
  version,
  description,
  license: "Apache-2.0",
});

/** Packs `package/`, with the files that `fill` creates and its package.json, as `npm/<name>-<version>.tgz`. */
export const packForNpm = async (
  made: ReleaseInputs,
  name: string,
  fill: (folder: string) => object | Promise<object>,
): Promise<string> => {
  const place = join(made.scratch, "npm", name);
  const folder = join(place, "package");
  mkdirSync(folder, { recursive: true });
  const manifest = await fill(folder);
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, undefined, 2)}\n`);
  copyFileSync(join(made.root, "LICENSE"), join(folder, "LICENSE"));
  const tar = `${place}.tar`;
  await packFolder(place, tar, made.epoch);
  mkdirSync(join(made.out, "npm"), { recursive: true });
  const file = join(made.out, "npm", `${name}-${made.version}.tgz`);
  await gzipFile(tar, file);
  rmSync(tar);
  return file;
};
