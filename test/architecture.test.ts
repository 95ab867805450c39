// The structure of the source: layers, lengths, and restricted patterns. This file applies the rules of test/support/layers.ts and
// test/support/source-rules.ts to every file of the product, and to examples that must fail.
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { findImportCycles, findImportProblem, findImports, findLayer, resolveImport } from "./support/layers.ts";
import { countLines, findLengthProblem, findSourceProblems } from "./support/source-rules.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const TARGET_MEDIAN_LINES = 100;

const readFilesUnder = (...folders: string[]): { file: string; source: string }[] =>
  folders
    .flatMap((folder) => [...new Bun.Glob(`${folder}/**/*.{ts,tsx}`).scanSync({ cwd: ROOT })])
    .filter((file) => !file.endsWith(".d.ts"))
    .sort()
    .map((file) => ({ file, source: readFileSync(ROOT + file, "utf8") }));

const product = readFilesUnder("src", "actors", "db");
const tests = readFilesUnder("test");

/** Parsed once, when the file loads: on a busy machine, this takes longer than a test's timeout. */
const imports = product.map(
  ({ file, source }) => [file, findImports(source, file.endsWith("x") ? "tsx" : "ts")] as const,
);

describe("the current source", () => {
  test("[RP-1] imports point down, by alias between folders", () => {
    expect(product.length).toBeGreaterThan(20);
    const problems = imports.flatMap(([file, specifiers]) =>
      specifiers.flatMap((specifier) => findImportProblem(file, specifier) ?? []),
    );
    expect(problems).toEqual([]);
  });

  test("[RP-1] no file imports itself, directly or through others, including types", () => {
    const graph = new Map(
      imports.map(([file, specifiers]) => [
        file,
        specifiers.flatMap((specifier) => resolveImport(file, specifier) ?? []),
      ]),
    );
    expect(findImportCycles(graph)).toEqual([]);
  });

  test("[RP-2] warns about files above 600 lines", () => {
    const warnings = [...product, ...tests].flatMap(({ file, source }) => findLengthProblem(file, source) ?? []);
    for (const warning of warnings) process.stderr.write(`${warning}\n`);
    expect(warnings.length).toBeLessThan(product.length / 100);
    const lengths = product.map(({ source }) => countLines(source)).sort((a, b) => a - b);
    const median = lengths[Math.floor(lengths.length / 2)] ?? 0;
    if (median > TARGET_MEDIAN_LINES)
      process.stderr.write(`the median file has ${median} lines; aim below ${TARGET_MEDIAN_LINES}\n`);
  });

  test("[RP-3] clock, randomness, environment, process, transactions and commits are used only where they are allowed", () => {
    expect(product.flatMap(({ file, source }) => findSourceProblems(file, source))).toEqual([]);
  });
});

describe("the rules detect violations", () => {
  // biome-ignore format: a table of cases
  const forbidden: [string, string][] = [
    ["src/base/ids.ts", "#schema/users/user.ts"], ["src/schema/users/user.ts", "#db/users/users.ts"], ["src/schema/users/user.ts", "../../api/users.ts"],
    ["db/users/users.ts", "#actors/chat/chat.ts"], ["db/users/users.ts", "#src/wire/yamux.ts"], ["src/llm/openai.ts", "#src/provisioners/local.ts"],
    ["src/wire/yamux.ts", "#src/tailnet/derp.ts"], ["actors/agent/agent.ts", "#src/api/http/errors.ts"], ["actors/runtime/actor.ts", "#src/context/context.ts"],
    ["src/api/users.ts", "#src/server.ts"], ["src/api/users.ts", "#src/cli/server/serve.ts"], ["src/server.ts", "#src/daemon/daemon.ts"],
    ["src/daemon/daemon.ts", "#db/users/users.ts"], ["src/daemon/daemon.ts", "#actors/runtime/actor.ts"], ["src/web/page.tsx", "#src/api/users.ts"],
    ["src/client.ts", "#actors/runtime/actor.ts"], ["src/api/users.ts", "../../actors/actor.ts"], ["src/api/users.ts", "#test/support/server.ts"],
    ["src/api/users.ts", "#base/errors"], ["src/api/users.ts", "#src/nowhere/x.ts"], ["src/new-folder/x.ts", "#base/errors.ts"],
    ["src/api/users.ts", "bun:sqlite"], ["actors/runtime/actor.ts", "drizzle-orm"], ["actors/runtime/actor.ts", "elysia"], ["actors/chat/turn/turn.ts", "ai"],
    ["src/domain/agents/dialer.ts", "#src/wire/yamux.ts"], ["src/daemon/daemon.ts", "#src/tailnet/relay.ts"], ["src/tailnet/derp.ts", "#src/wire/yamux.ts"],
    ["src/wire/yamux.ts", "#base/shards.ts"], ["src/tailnet/relay.ts", "#base/config.ts"], ["src/tailnet/derp-map.ts", "#schema/agents/derp-map.ts"],
    ["src/api/users.ts", "p-queue"], ["actors/runtime/actor.ts", "@bufbuild/protobuf"], ["db/users/users.ts", "nanoid"],
  ];
  test.each(forbidden)("[RP-1] %s may not import %s", (file, specifier) => {
    const problem = findImportProblem(file, specifier);
    expect(problem).toContain(file);
    if (findLayer(file)) expect(problem).toContain(specifier);
  });

  // biome-ignore format: a table of cases
  const allowed: [string, string][] = [
    ["src/main.ts", "./cli/verbs.ts"], ["src/cli/server/serve.ts", "#src/context/context.ts"], ["src/cli/server/agent.ts", "#src/daemon/daemon.ts"],
    ["src/server.ts", "#db/engine/open.ts"], ["src/api/organizations/index.ts", "../caller.ts"], ["src/api/users.ts", "#db/users/users.ts"],
    ["actors/agent/agent.ts", "#src/wire/index.ts"], ["db/users/users.ts", "#schema/users/user.ts"], ["db/users/users.ts", "drizzle-orm"],
    ["src/tailnet/derp.ts", "#src/wire/gen/tailnet_pb.ts"], ["src/daemon/daemon.ts", "#src/client.ts"], ["db/users/users.ts", "node:fs"],
    ["src/base/version.ts", "../../package.json"], ["src/base/config.ts", "./config/kinds.ts"],
    ["src/daemon/daemon.ts", "#src/tailnet/index.ts"], ["src/tailnet/derp.ts", "#src/wire/index.ts"], ["src/wire/yamux.ts", "#base/clock.ts"],
  ];
  test.each(allowed)("[RP-1] %s may import %s", (file, specifier) => {
    expect(findImportProblem(file, specifier)).toBeUndefined();
  });

  test("[RP-1] cycles of one, two and more files are detected; a diamond is not a cycle", () => {
    const graph = (edges: Readonly<Record<string, string[]>>) => findImportCycles(new Map(Object.entries(edges)));
    expect(graph({ a: ["b"], b: ["a"], c: ["a"] })).toEqual([["a", "b"]]);
    expect(graph({ d: ["a"], a: ["b"], b: ["c"], c: ["a", "e"], e: ["f"], f: ["e"] })).toEqual([
      ["e", "f"],
      ["a", "b", "c"],
    ]);
    expect(graph({ a: ["a"] })).toEqual([["a"]]);
    expect(graph({ a: ["b", "c"], b: ["d"], c: ["d"], d: ["elsewhere"] })).toEqual([]);
  });

  test("[RP-1] every form of import is detected", () => {
    const source = [
      'import a from "one";',
      'import type { B } from "two";',
      'import { type C } from "three";',
      'export type { D } from "four";',
      'export * from "five";',
      'import "six";',
      'const e = await import("seven");',
      'import {\n  type F,\n  g,\n} from "eight";',
      'type H = import("nine").H;',
    ].join("\n");
    expect(findImports(source).sort()).toEqual("one two three four five six seven eight nine".split(" ").sort());
  });

  test("[RP-2] reports a file of 601 lines, but not generated code", () => {
    expect(findLengthProblem("db/users/users.ts", "x\n".repeat(601))).toContain("601 lines");
    expect(findLengthProblem("db/users/users.ts", "x\n".repeat(600))).toBeUndefined();
    expect(findLengthProblem("src/wire/gen/agent_pb.ts", "x\n".repeat(4000))).toBeUndefined();
  });

  // biome-ignore format: a table of cases
  const forbiddenLines: string[] = [
    "const t = Date.now();", "const t = new Date();", "performance.now();", "setTimeout(f, 1);", "setInterval(f, 1);", "await Bun.sleep(1);",
    "AbortSignal.timeout(5)", "Math.random()", "crypto.randomUUID()", "process.env.HOME", "Bun.env.HOME", "process.exit(1)",
    'process.on("SIGTERM", f)', 'console.log("x")', "db.transaction(() => {})",
    "Uint8Array.from(chunk)",
  ];
  test.each(forbiddenLines)("[RP-3] an actor may not use %s", (line) => {
    expect(findSourceProblems("actors/x.ts", `// first\n${line}\n`)).toEqual([
      expect.stringContaining("actors/x.ts:2: "),
    ]);
  });

  test("[RP-3] a handler may not commit, a use case may", () => {
    const line = "await ctx.store\n  .commit([statement]);\n";
    expect(findSourceProblems("src/api/users/one.ts", line)).toEqual([
      expect.stringContaining("src/api/users/one.ts:2: "),
    ]);
    expect(findSourceProblems("src/domain/users/change.ts", line)).toEqual([]);
  });

  test("[RP-3] comments and the modules with an exception may use any word", () => {
    expect(findSourceProblems("actors/x.ts", "// Date.now() is not for us\n/* nor\nprocess.exit() */\n")).toEqual([]);
    expect(findSourceProblems("src/base/clock.ts", "Date.now(); setTimeout(f, 1);")).toEqual([]);
    expect(findSourceProblems("src/main.ts", "process.exit(process.env.X)")).toEqual([]);
    expect(findSourceProblems("actors/x.ts", "Uint8Array.from([1, 2]); Uint8Array.from({ length: 2 }, f)")).toEqual([]);
    expect(findSourceProblems("db/engine/writer.ts", "this.raw.transaction(run)")).toEqual([]);
    expect(
      findSourceProblems("actors/x.ts", 'const a = new Date(ms); clock.setTimeout(f); const u = "http://x";'),
    ).toEqual([]);
  });
});
