// The time limits of tests and hooks grow on slow machines: they are the default of test/support/pace.ts, or use `scaleTimeout`.
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import typescript from "typescript-5";
import { ROOT, readPage } from "#test/support/documents.ts";
import { TEST_TIMEOUT_MS } from "#test/support/pace.ts";
import { tempDirectory } from "#test/support/server.ts";

/** `test` with its variants and wrappers (support/needs.ts, support/in-process.ts, support/one-server.ts), and hooks. */
const REGISTRATION = /^(?:test\w*|describe|describeInProcess|(?:before|after)(?:All|Each))$/;
const LIMIT = /^[\d_]+$|^[A-Z][A-Z_]+$|[*+]/;
/** A last argument that could be a limit. Only such files are parsed, because parsing all files takes seconds. */
const CANDIDATE =
  /,\s*(?:\/\/.*\s*)*(?:\d[\d_]{3,}|TIME|[A-Z][A-Z_]+_MS|[\w.]+ [*+] [^,()\n]+|scaleTimeout\((?:1[012])?\d?\d_000\)),?\s*\);/;
const SCALED_LITERAL = /^scaleTimeout\(([\d_]+)\)$/;

/** Returns the leftmost name of a callee: `test` of `test.each(rows)(...)`. */
const findName = (callee: typescript.Expression): string => {
  if (typescript.isCallExpression(callee) || typescript.isPropertyAccessExpression(callee))
    return findName(callee.expression);
  return typescript.isIdentifier(callee) ? callee.text : "";
};

/** Returns each limit that does not grow on slow machines, or that is no longer than the default. */
const findLimits = (file: string, text: string): string[] => {
  const source = typescript.createSourceFile(file, text, typescript.ScriptTarget.Latest);
  const found: string[] = [];
  const visit = (node: typescript.Node): void => {
    typescript.forEachChild(node, visit);
    if (!typescript.isCallExpression(node) || !REGISTRATION.test(findName(node.expression))) return;
    const last = node.arguments.length > 1 ? node.arguments.at(-1) : undefined;
    if (!last || typescript.isFunctionLike(last) || typescript.isStringLiteralLike(last)) return;
    const limit = last.getText(source);
    const scaled = SCALED_LITERAL.exec(limit)?.[1]?.replaceAll("_", "");
    const isNeeded = scaled === undefined ? limit.startsWith("scaleTimeout(") : Number(scaled) > TEST_TIMEOUT_MS;
    if (isNeeded || (scaled === undefined && !LIMIT.test(limit))) return;
    found.push(`${file}:${source.getLineAndCharacterOfPosition(last.getStart(source)).line + 1}: ${limit}`);
  };
  visit(source);
  return found;
};

const files = [...new Bun.Glob("test/**/*.{ts,tsx}").scanSync({ cwd: ROOT })];

test("[RP-48] a test or hook has the default limit, or a longer one with scaleTimeout", () => {
  expect(files.length).toBeGreaterThan(1_000);
  const sources = files.map((file) => [file, readPage(file)] as const).filter(([, text]) => CANDIDATE.test(text));
  expect(sources.flatMap(([file, text]) => findLimits(file, text))).toEqual([]);
});

test("[RP-48] only test/support/default-timeout.ts sets the default", () => {
  const setters = files.filter((file) => /(?<!["`.\w])setDefaultTimeout\(/.test(readPage(file)));
  expect(setters).toEqual(["test/support/default-timeout.ts"]);
});

// biome-ignore format: a table of cases
const limits: [call: string, found: number][] = [
  ['test("a", async () => {}, 60_000)', 1], ['test("a", run, 5000)', 1], ['test("a", () => {}, 3 * MINUTE_MS)', 1],
  ['test.each([1, 2])("a", () => {}, TIMEOUT_MS)', 1], ['test.if(linux)("a", () => {}, 60_000 + N * 20)', 1],
  ['testNeeding([needs.git], "a", async () => {}, 300_000)', 1], ['testSingleServer("local")("a", () => {}, 30_000)', 1],
  ["beforeAll(async () => {}, 60_000)", 1], ["afterAll(close, 60_000)", 1], ['test("a", run, scaleTimeout(120_000))', 1],
  ['test("a", run, scaleTimeout(240_000))', 0], ['test("a", run, scaleTimeout(N * 1000))', 0], ["afterAll(() => sleep(60_000))", 0],
  ['test("a", () => { schedule(end, 60_000); })', 0], ["await until(isDone, { timeoutMs: 120_000 })", 0],
];
test.each(limits)("[RP-48] %s: %i", (call, found) => {
  expect(findLimits("x.ts", call)).toHaveLength(found);
});

test("[RP-48] `bun test` of one file has the default limit", async () => {
  using folder = tempDirectory();
  const path = `${folder.path}/fixture.test.ts`;
  writeFileSync(
    path,
    'import { beforeAll, test } from "bun:test"; import { setTimeout as rest } from "node:timers/promises"; beforeAll(() => rest(50)); test("t", () => rest(50));',
  );
  // The flag alone would make the test and the hook time out.
  const command = [process.execPath, "--no-env-file", "test", "--timeout=1", path];
  await using child = Bun.spawn(command, { cwd: ROOT, stdio: ["ignore", "ignore", "pipe"] });
  expect(await child.stderr.text()).toContain(" 1 pass");
  expect(await child.exited).toBe(0);
});
