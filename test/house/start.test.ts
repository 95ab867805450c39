// Packages that are loaded at startup: packages that only some settings or requests need are loaded later, because each costs milliseconds
// of every start.
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { imports as aliases } from "../../package.json";

const ROOT = resolve(import.meta.dir, "../..");
/** The entry, and the files that `serve` imports when it starts. */
const ENTRIES = ["src/main.ts", "src/cli/server/serve.ts", "src/context/open.ts", "src/server.ts"];

const transpilers = { ts: new Bun.Transpiler({ loader: "ts" }), tsx: new Bun.Transpiler({ loader: "tsx" }) };

const resolveAlias = (path: string): string => {
  const [alias, target] = Object.entries(aliases).find(([name]) => path.startsWith(name.slice(0, -1))) ?? [];
  if (!alias || !target) throw new Error(`package.json has no alias for ${path}`);
  return join(ROOT, target.slice(0, -1), path.slice(alias.length - 1));
};

/** Collects the packages that a file reaches by static imports. */
const collectPackages = async (file: string, visited: Set<string>, packages: Set<string>): Promise<void> => {
  if (visited.has(file) || !/\.tsx?$/.test(file) || !existsSync(file)) return;
  visited.add(file);
  const text = await Bun.file(file).text();
  for (const { kind, path } of transpilers[file.endsWith("x") ? "tsx" : "ts"].scanImports(text)) {
    if (kind === "dynamic-import") continue;
    if (path.startsWith("#")) await collectPackages(resolveAlias(path), visited, packages);
    else if (path.startsWith(".")) await collectPackages(resolve(dirname(file), path), visited, packages);
    else if (!/^(node|bun)(:|$)/.test(path)) packages.add(/^(@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? path);
  }
};

test("[RP-45] at its start, the server loads no package that only some deployments or requests need", async () => {
  const packages = new Set<string>();
  const visited = new Set<string>();
  for (const entry of ENTRIES) await collectPackages(join(ROOT, entry), visited, packages);
  expect([...packages].sort()).toEqual([
    "@ai-sdk/provider",
    "@bufbuild/protobuf",
    "@logtape/logtape",
    "@noble/ciphers",
    "@noble/hashes",
    "@sinclair/typebox",
    "croner",
    "drizzle-orm",
    "elysia",
    "fflate",
    "nanoid",
    "p-queue",
    "unbash",
  ]);
});
