// `bun run release [-- --only PART,...] [--target SYSTEM]... [--key FILE | --unsigned] [--trust FILE]... [--url URL] [--out FOLDER]`:
// builds and signs everything that is published for a version, in dist/release (docs/releasing.md).
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { digestFile, parsePublicKey, printPublicKey, type SigningKey, signDigest } from "#base/minisign.ts";
import { formatTrustedComment, RELEASE_FILE, type Release, toReleaseFileName } from "#base/release.ts";
import { VERSION } from "#base/version.ts";
import { build, getProgramName, packWeb, TARGETS, type TargetSystem } from "#src/build.ts";
import { toBillOfMaterials } from "#src/supply-chain.ts";
import { readDocument } from "./clients/document.ts";
import { makePythonClient } from "./clients/python.ts";
import { makeTypeScriptClient } from "./clients/typescript.ts";
import { type Bases, makeImage } from "./image.ts";
import type { ReleaseInputs } from "./inputs.ts";
import { makeNpmPackages } from "./npm.ts";
import { makePackages } from "./packages.ts";
import { openSigningKey } from "./signing-key.ts";
import { gzipFile, hashFile, packFolder, runTool, UnavailableError } from "./tools.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const PARTS = ["programs", "packages", "npm", "clients", "image", "chart", "scripts"] as const;
export type ReleasePart = (typeof PARTS)[number];
/** Parts that do not contain the program. */
const PARTS_WITHOUT_PROGRAM: readonly ReleasePart[] = ["clients", "chart"];

export type ReleaseOptions = {
  out: string;
  version: string;
  /** The parts to build; all by default. A part that is named here must succeed. */
  only?: readonly ReleasePart[] | undefined;
  /** The systems that must succeed. */
  targets?: readonly TargetSystem[] | undefined;
  /** Undefined for an unsigned release. */
  key: SigningKey | undefined;
  /** Additional keys that the programs trust, as minisign prints them. */
  trust?: readonly string[] | undefined;
  url?: string | undefined;
  epoch: number;
  env: Readonly<Record<string, string | undefined>>;
  /** Existing programs to use instead of building them. */
  programs?: ReleaseInputs["programs"] | undefined;
  bases?: Bases | undefined;
  printLine(line: string): void;
};

/** Builds a release in `out`, which is emptied first. Returns true if everything that was requested by name was built. */
export const makeRelease = async (options: ReleaseOptions): Promise<boolean> => {
  const { out, version, epoch, env, url, key, printLine } = options;
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const scratch = mkdtempSync(join(dirname(out), ".release-"));
  const publicKey = key === undefined ? "" : printPublicKey(key);
  let isComplete = true;
  const reportMissing = (what: string, isRequested: boolean, error: unknown): void => {
    if (isRequested) isComplete = false;
    printLine(
      `${isRequested ? "failed" : "left out"}: ${what}: ${error instanceof Error ? error.message : String(error)}`,
    );
  };
  try {
    const baseInputs = { root: ROOT, out, scratch, version, epoch, env, publicKey, url };
    const needsPrograms = options.only?.some((part) => !PARTS_WITHOUT_PROGRAM.includes(part)) ?? true;
    const noPrograms = needsPrograms ? undefined : {};
    const programs =
      options.programs ??
      noPrograms ??
      (await buildPrograms(
        options,
        join(out, ".."),
        [publicKey, ...(options.trust ?? [])].join(" ").trim(),
        reportMissing,
      ));
    const inputs: ReleaseInputs = { ...baseInputs, programs };
    for (const part of PARTS.filter((one) => options.only?.includes(one) ?? true)) {
      try {
        for (const file of await BUILDERS[part](inputs, options)) printLine(relative(out, file));
      } catch (error) {
        if (!(error instanceof UnavailableError)) throw error;
        reportMissing(part, options.only !== undefined, error);
      }
    }
    await describeRelease(inputs, key);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  return isComplete;
};

type ReportMissing = (what: string, isRequested: boolean, error: unknown) => void;

/** Builds the program for each system whose runtime can be downloaded. */
const buildPrograms = async (
  { targets, env }: ReleaseOptions,
  folder: string,
  releaseKey: string,
  reportMissing: ReportMissing,
): Promise<ReleaseInputs["programs"]> => {
  const web = await packWeb(folder);
  const programs: Partial<Record<TargetSystem, string>> = {};
  for (const system of targets ?? (Object.keys(TARGETS) as TargetSystem[])) {
    const outfile = join(folder, getProgramName(system));
    try {
      await build({ outfile, target: TARGETS[system], web, releaseKey });
      programs[system] = outfile;
    } catch (error) {
      // If the runtime of one system is missing, the other systems are built. An error in the source affects all systems.
      if (Object.keys(programs).length === 0 && env.CI === undefined && targets === undefined) throw error;
      reportMissing(system, targets !== undefined, error);
    }
  }
  return programs;
};

const BUILDERS: Readonly<Record<ReleasePart, (inputs: ReleaseInputs, options: ReleaseOptions) => Promise<string[]>>> = {
  async programs(inputs) {
    const files: string[] = [];
    for (const [system, program] of Object.entries(inputs.programs)) {
      const file = join(inputs.out, toReleaseFileName(system));
      await gzipFile(program, file);
      files.push(file);
    }
    const bom = join(inputs.out, `slipway-${inputs.version}.cdx.json`);
    writeFileSync(bom, `${JSON.stringify(toBillOfMaterials(), undefined, 2)}\n`);
    return [...files, bom];
  },
  async packages(inputs) {
    const command = [
      process.execPath,
      "--no-env-file",
      join(ROOT, "src/main.ts"),
      "systemd",
      "--program",
      "/usr/bin/slipway",
    ];
    const unit = await runTool(command, { env: { PATH: inputs.env.PATH } });
    return makePackages(inputs, unit.replace(/^# \/etc\/systemd\/.*\n/, ""));
  },
  npm: makeNpmPackages,
  async clients(inputs) {
    const document = await readDocument(inputs);
    return [await makeTypeScriptClient(inputs, document), makePythonClient(inputs, document)];
  },
  image: async (inputs, { bases }) => [await makeImage(inputs, bases)],
  async chart(inputs) {
    const folder = join(inputs.scratch, "chart");
    cpSync(join(ROOT, "deploy/helm"), folder, { recursive: true });
    const chart = join(folder, "slipway/Chart.yaml");
    const text = readFileSync(chart, "utf8").replace(/^(version|appVersion): .*/gm, `$1: ${inputs.version}`);
    writeFileSync(chart, text);
    mkdirSync(join(inputs.out, "helm"), { recursive: true });
    const file = join(inputs.out, "helm", `slipway-${inputs.version}.tgz`);
    await packFolder(folder, `${folder}.tar`, inputs.epoch);
    await gzipFile(`${folder}.tar`, file);
    return [file];
  },
  async scripts(inputs) {
    const install = join(inputs.out, "install.sh");
    const script = readFileSync(join(ROOT, "deploy/install.sh"), "utf8");
    writeFileSync(install, fillTemplate(script, { URL: inputs.url ?? "", PUBLIC_KEY: inputs.publicKey }), {
      mode: 0o755,
    });
    if (inputs.url === undefined) return [install];
    const formula = join(inputs.out, "slipway.rb");
    const template = readFileSync(join(ROOT, "deploy/homebrew/slipway.rb"), "utf8");
    const values: Record<string, string> = { URL: inputs.url, VERSION: inputs.version };
    for (const [, name = ""] of template.matchAll(/@SHA256:([^@]+)@/g)) {
      const file = join(inputs.out, name);
      if (!(await Bun.file(file).exists())) throw new UnavailableError(`the Homebrew formula needs ${name}`);
      values[`SHA256:${name}`] = await hashFile(file);
    }
    writeFileSync(formula, fillTemplate(template, values));
    return [install, formula];
  },
};

const fillTemplate = (template: string, values: Readonly<Record<string, string>>): string =>
  template.replace(/@([A-Z0-9_]+(?::[^@\s]+)?)@/g, (whole, name: string) => values[name] ?? whole);

/** Writes the description of the release, the digests, and a signature for each file. */
const describeRelease = async ({ out, version }: ReleaseInputs, key: SigningKey | undefined): Promise<void> => {
  const names = [...new Bun.Glob("**/*").scanSync({ cwd: out })].sort();
  const files: Release["files"][number][] = [];
  for (const name of names) {
    const path = join(out, name);
    files.push({ name, size: Bun.file(path).size, sha256: await hashFile(path) });
  }
  const release: Release = { version, files };
  writeFileSync(join(out, RELEASE_FILE), `${JSON.stringify(release, undefined, 2)}\n`);
  writeFileSync(join(out, "SHA256SUMS"), files.map(({ name, sha256 }) => `${sha256}  ${name}\n`).join(""));
  if (key === undefined) return;
  writeFileSync(
    join(out, "slipway.pub"),
    `untrusted comment: minisign public key of releases\n${printPublicKey(key)}\n`,
  );
  for (const name of [...names, RELEASE_FILE, "SHA256SUMS"]) {
    const path = join(out, name);
    writeFileSync(`${path}.minisig`, signDigest(await digestFile(path), formatTrustedComment(version, name), key));
  }
};

/** Returns the time of the last commit, so that the same source gives the same archives. */
const readCommitTime = async (): Promise<number> =>
  Number((await runTool(["git", "log", "-1", "--format=%ct"], { cwd: ROOT })).trim());

const isPart = (name: string): name is ReleasePart => (PARTS as readonly string[]).includes(name);
const isSystem = (name: string): name is TargetSystem => name in TARGETS;

const parseParts = (text: string): ReleasePart[] => {
  const names = text.split(",");
  const unknown = names.find((name) => !isPart(name));
  if (unknown !== undefined) throw new Error(`--only: "${unknown}" is not one of ${PARTS.join(", ")}`);
  return names.filter(isPart);
};

const parseSystems = (names: readonly string[]): TargetSystem[] => {
  const unknown = names.find((name) => !isSystem(name));
  if (unknown !== undefined) throw new Error(`--target: "${unknown}" is not one of ${Object.keys(TARGETS).join(", ")}`);
  return names.filter(isSystem);
};

/** Returns the key line of a `.pub` file. Throws SignatureError if it is invalid. */
const getKeyLine = (text: string): string => {
  parsePublicKey(text);
  return text.trim().split("\n").at(-1)?.trim() ?? "";
};

/** The command-line entry point. Returns the exit code. */
const main = async (
  env: Readonly<Record<string, string | undefined>>,
  printLine: (line: string) => void,
): Promise<number> => {
  const { values } = parseArgs({
    options: {
      only: { type: "string" },
      target: { type: "string", multiple: true },
      key: { type: "string" },
      unsigned: { type: "boolean" },
      trust: { type: "string", multiple: true, default: [] },
      url: { type: "string" },
      out: { type: "string", default: join(ROOT, "dist/release") },
    },
  });
  const only = values.only === undefined ? undefined : parseParts(values.only);
  const targets = values.target === undefined ? undefined : parseSystems(values.target);
  const file = values.key ?? join(env.XDG_CONFIG_HOME ?? join(homedir(), ".config"), "slipway/release.key");
  const opened = values.unsigned ? undefined : openSigningKey(file, env.SLIPWAY_RELEASE_KEY_PASSWORD);
  if (opened?.isNew)
    printLine(`Created the key ${file}. Keep it secret and back it up: programs of this release trust only this key.`);
  const trust = values.trust.map((path) => getKeyLine(readFileSync(path, "utf8")));
  const epoch = env.SOURCE_DATE_EPOCH === undefined ? await readCommitTime() : Number(env.SOURCE_DATE_EPOCH);
  const out = resolve(values.out);
  const url = values.url?.replace(/\/+$/, "");
  const isComplete = await makeRelease({
    out,
    version: VERSION,
    only,
    targets,
    key: opened?.key,
    trust,
    url,
    epoch,
    env,
    printLine,
  });
  printLine(`${out}: Slipway ${VERSION}, ${opened ? `signed with ${printPublicKey(opened.key)}` : "not signed"}`);
  return isComplete ? 0 : 1;
};

if (import.meta.main) {
  const printLine = (line: string): void => void process.stdout.write(`${line}\n`);
  try {
    process.exitCode = await main(process.env, printLine);
  } catch (error) {
    process.stderr.write(`release: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
}
