// `bun run test:postgres [FOLDER...]`: the API's tests on the PostgreSQL of SLIPWAY_TEST_POSTGRES, folder by folder; what came of each is
// noted in README.md beside this file.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { needs } from "../support/needs.ts";
import { readJunit } from "../support/run/junit.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const README = fileURLToPath(new URL("README.md", import.meta.url));
const LIMIT_MS = 15 * 60_000;
const ROW = /^\| `([\w-]+)` \|/;

if (!needs.postgres.found) {
  process.stderr.write(`${needs.postgres.reason}\n`);
  process.exit(2);
}

const all = readdirSync(join(ROOT, "test/api"), { withFileTypes: true }).flatMap((one) =>
  one.isDirectory() ? [one.name] : [],
);
const wanted = process.argv.length > 2 ? process.argv.slice(2) : all;
const scratch = mkdtempSync(join(tmpdir(), "slipway-suite-"));
for (const folder of wanted) await note(await runFolder(folder));
rmSync(scratch, { recursive: true, force: true });

type Result = { folder: string; passed: number; failed: string[]; skipped: number; whole: boolean };

async function runFolder(folder: string): Promise<Result> {
  const report = join(scratch, `${folder}.xml`);
  const flags = ["--timeout=60000", "--only-failures", "--reporter=junit", `--reporter-outfile=${report}`];
  const child = Bun.spawn([process.execPath, "--no-env-file", "test", ...flags, `test/api/${folder}`], {
    cwd: ROOT,
    env: { ...process.env, SLIPWAY_TEST_DATABASE: "postgres" },
    stdio: ["ignore", "ignore", "ignore"],
    timeout: LIMIT_MS,
  });
  await child.exited;
  const cases = (() => {
    try {
      return readJunit(readFileSync(report, "utf8"));
    } catch {
      return undefined;
    }
  })();
  const of = (outcome: string) => (cases ?? []).filter((one) => one.outcome === outcome);
  const failed = of("failed").map(({ file, title }) => `${file.replace(/^.*\//, "")}: ${title}`);
  return { folder, passed: of("passed").length, failed, skipped: of("skipped").length, whole: cases !== undefined };
}

async function note({ folder, passed, failed, skipped, whole }: Result): Promise<void> {
  const text = readFileSync(README, "utf8");
  const [before = "", rest = ""] = text.split(/(?<=<!-- result: [^\n]*\n)/);
  const after = rest.slice(rest.indexOf("<!-- end of result -->"));
  const rows = new Map(
    rest.split("\n").flatMap((row) => (ROW.test(row) ? [[ROW.exec(row)?.[1] ?? "", row] as const] : [])),
  );
  const day = new Date().toISOString().slice(0, 10);
  const ids = failed.map((one) => one.replaceAll("|", "/").slice(0, 110)).join("; ");
  rows.set(
    folder,
    `| \`${folder}\` | ${day} | ${whole ? `${passed} of ${passed + failed.length}` : "did not end"} | ${skipped} | ${ids} |`,
  );
  const table = [...rows].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
  const head = ["| folder | last run | passed | skipped | failed |", "|---|---|---|---|---|"];
  await Bun.write(README, `${before}${[...head, ...table].join("\n")}\n${after}`);
  process.stdout.write(`${folder}: ${passed} passed, ${failed.length} failed\n`);
}
