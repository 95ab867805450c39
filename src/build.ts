// `bun run build [-- --target=bun-linux-arm64] [--outfile=dist/slipway]`, `bun run build --targets` for all systems of agents: builds the
// single binary, including pages, migrations, an empty database and workers. Not minified: the router reads the source of handlers. `.env`
// and bunfig.toml are ignored (rule RP-6).
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { VERSION } from "#base/version.ts";
import { IMAGE, makeImage } from "#db/engine/image.ts";
import { toBillOfMaterials } from "./supply-chain.ts";
import { buildWeb } from "./web/build.ts";
import { PACK, pack, withTwins } from "./web/files.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

// Started with `new Worker(new URL("./x.worker.ts", import.meta.url).href)`, which the bundler does not follow. Inside the binary, all code
// is in one folder, so the workers get names without folders.
const WORKERS = [
  "db/engine/checkpoint.worker.ts",
  "db/engine/flush.worker.ts",
  "db/engine/reader.worker.ts",
  "src/domain/users/strength.worker.ts",
];

/** Factor by which code runs longer than usual before it is optimized, in a program that has just started. */
const START_JIT_POLICY = 100;

/**
 * The systems for which the program is built, by the names under which machines download it from a server (docs/templates-terraform.md).
 */
export const TARGETS = {
  "linux-amd64": "bun-linux-x64-baseline",
  "linux-arm64": "bun-linux-arm64",
  "linux-musl-amd64": "bun-linux-x64-musl-baseline",
  "linux-musl-arm64": "bun-linux-arm64-musl",
  "darwin-amd64": "bun-darwin-x64",
  "darwin-arm64": "bun-darwin-arm64",
  // Client only: a server does not run on Windows.
  "windows-amd64": "bun-windows-x64-baseline",
} as const;
export type TargetSystem = keyof typeof TARGETS;

/** `slipway-windows-amd64.exe` */
export const getProgramName = (system: TargetSystem): string =>
  `slipway-${system}${system.startsWith("windows") ? ".exe" : ""}`;

/** The result of a build. */
export interface BuildResult {
  file: string;
  bytes: number;
}

export interface BuildOptions {
  outfile?: string;
  /** Bun's name of the system, such as `bun-linux-arm64`; defaults to this system. */
  target?: string;
  /** The result of `packWeb`, to share it between several builds. */
  web?: string;
  /** The public keys that the program trusts for releases, as minisign prints them, separated by spaces. */
  releaseKey?: string;
}

/** Compiles the program and writes its bill of materials next to it (`<file>.cdx.json`). Throws with the bundler's messages if it fails. */
export const build = async (options: BuildOptions = {}): Promise<BuildResult> => {
  const outfile = resolve(ROOT, options.outfile ?? "dist/slipway");
  const workers = WORKERS.filter((file) => existsSync(join(ROOT, file)));
  const web = options.web ?? (await packWeb(dirname(outfile)));
  // A temporary folder, because the bundler also writes the source map of each chunk, which the program already contains.
  const folder = mkdtempSync(`${outfile}.parts-`);
  const builtFile = join(folder, basename(outfile));
  const image = join(folder, IMAGE);
  writeFileSync(image, makeImage());
  const command = [
    ...[process.execPath, "build", "--compile", "--no-compile-autoload-dotenv", "--no-compile-autoload-bunfig"],
    // Without bytecode, a start takes 110 ms longer (300 ms of CPU time instead of 190, test/bench).
    ...["--bytecode", "--format=esm"],
    // In chunks, so that a command loads only the code that it needs. In one chunk, `--version` takes three times as long.
    "--splitting",
    // A command that ends immediately gains nothing from optimized code. src/main.ts restores the normal policy for long-running commands.
    `--compile-jit-policy=${START_JIT_POLICY}`,
    ...["--sourcemap=inline", "--entry-naming=[name].[ext]", "--asset-naming=[name].[ext]", `--outfile=${builtFile}`],
    `--tsconfig-override=${join(ROOT, "src/build.tsconfig.json")}`,
    ...["--define", `SLIPWAY_BUILD_VERSION=${JSON.stringify(VERSION)}`],
    ...["--define", `SLIPWAY_BUILD_COMMIT=${JSON.stringify(await readCommit())}`],
    ...["--define", `SLIPWAY_BUILD_RELEASE_KEY=${JSON.stringify(options.releaseKey ?? "")}`],
    ...(options.target ? [`--target=${options.target}`] : []),
    ...["src/main.ts", ...workers, web, image],
  ];
  try {
    const child = Bun.spawn(command, { cwd: ROOT, stdout: "pipe", stderr: "pipe" });
    const [output, errors, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    if (code !== 0) throw new Error(`the build failed:\n${output}${errors}`);
    renameSync(builtFile, outfile);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  writeFileSync(`${outfile}.cdx.json`, `${JSON.stringify(toBillOfMaterials(), undefined, 2)}\n`);
  return { file: outfile, bytes: statSync(outfile).size };
};

/**
 * Writes all files for the browser, compressed as much as possible, to one file in `folder`. The program finds this file in the binary by
 * its name.
 */
export async function packWeb(folder: string): Promise<string> {
  const files = await Promise.all((await buildWeb()).map((file) => withTwins(file, "best")));
  mkdirSync(folder, { recursive: true });
  const file = join(folder, PACK);
  writeFileSync(file, pack(files));
  return file;
}

// Docker builds from a copy without Git, and passes the commit as a variable.
async function readCommit(): Promise<string> {
  const buildCommit = process.env.BUILD_COMMIT;
  if (buildCommit) return buildCommit;
  try {
    const child = Bun.spawn(["git", "rev-parse", "HEAD"], { cwd: ROOT, stdout: "pipe", stderr: "ignore" });
    const text = await child.stdout.text();
    return (await child.exited) === 0 ? text.trim() : "";
  } catch {
    return "";
  }
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: { target: { type: "string" }, outfile: { type: "string" }, targets: { type: "boolean" } },
  });
  const systems = Object.keys(TARGETS) as TargetSystem[];
  const builds = values.targets
    ? systems.map((system) => ({ target: TARGETS[system], outfile: `dist/${getProgramName(system)}` }))
    : [values];
  for (const options of builds) {
    const { file, bytes } = await build(options);
    process.stdout.write(`${file}  ${(bytes / 1024 / 1024).toFixed(1)} MiB\n`);
  }
}
