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
export const makeNpmPackages = async (inputs: ReleaseInputs): Promise<string[]> => {
  const systems = Object.keys(inputs.programs) as TargetSystem[];
  const files: string[] = [];
  for (const system of systems) files.push(await packSystem(inputs, system));
  files.push(await packLauncher(inputs, systems));
  return files;
};

const toPlatformSuffix = ({ os, cpu, libc }: Platform): string => `${os}-${cpu}${libc === "musl" ? "-musl" : ""}`;

const packSystem = (inputs: ReleaseInputs, system: TargetSystem): Promise<string> => {
  const platform = PLATFORMS[system];
  const suffix = toPlatformSuffix(platform);
  const { os, cpu, libc } = platform;
  return packForNpm(inputs, `slipway-${suffix}`, (folder) => {
    mkdirSync(join(folder, "bin"));
    const file = join(folder, "bin", getProgramName(system).replace(system, "").replace("-", ""));
    linkSync(inputs.programs[system] as string, file);
    writeFileSync(join(folder, "bin", "installed-by"), "npm\n");
    return {
      ...describePackage(inputs, `@slipway/${suffix}`, `The Slipway binary for ${suffix}.`),
      os: [os],
      cpu: [cpu],
      ...(libc === undefined ? {} : { libc: [libc] }),
    };
  });
};

const packLauncher = (inputs: ReleaseInputs, systems: readonly TargetSystem[]): Promise<string> =>
  packForNpm(inputs, "slipway", (folder) => {
    for (const name of ["slipway.mjs", "README.md"])
      copyFileSync(join(inputs.root, "deploy/npm", name), join(folder, name));
    chmodSync(join(folder, "slipway.mjs"), 0o755);
    const description = "Self-hosted control plane for remote development workspaces and AI coding-agent chats.";
    return {
      ...describePackage(inputs, "slipway", description),
      bin: { slipway: "slipway.mjs" },
      engines: { node: ">=20" },
      optionalDependencies: Object.fromEntries(
        systems.map((system) => [`@slipway/${toPlatformSuffix(PLATFORMS[system])}`, inputs.version]),
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
  inputs: ReleaseInputs,
  name: string,
  fill: (folder: string) => object | Promise<object>,
): Promise<string> => {
  const packageFolder = join(inputs.scratch, "npm", name);
  const folder = join(packageFolder, "package");
  mkdirSync(folder, { recursive: true });
  const manifest = await fill(folder);
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, undefined, 2)}\n`);
  copyFileSync(join(inputs.root, "LICENSE"), join(folder, "LICENSE"));
  const tar = `${packageFolder}.tar`;
  await packFolder(packageFolder, tar, inputs.epoch);
  mkdirSync(join(inputs.out, "npm"), { recursive: true });
  const file = join(inputs.out, "npm", `${name}-${inputs.version}.tgz`);
  await gzipFile(tar, file);
  rmSync(tar);
  return file;
};
