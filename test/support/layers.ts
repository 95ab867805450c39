// The layers of the product as data and pure functions: which folders may import which. Used by test/architecture.test.ts with the real
// files and with examples that must fail.
import { dirname, extname, join } from "node:path/posix";

// Imports point down. A folder may import itself, the folders listed here, and everything those may import.
const LAYERS: Readonly<Record<string, readonly string[]>> = {
  "src/main.ts": ["src/cli"],
  "src/cli": ["src/server.ts", "src/daemon", "src/client.ts"],
  "src/server.ts": ["src/context", "src/api", "src/web"],
  "src/context": ["src/api", "src/telemetry"],
  "src/cluster": ["src/domain"],
  "src/api": ["src/domain", "src/web", "src/cluster"],
  "src/domain": ["actors", "src/authentication", "src/starter"],
  actors: [
    "db",
    "src/llm",
    "src/mcp",
    "src/acp",
    "src/tools",
    "src/provisioners",
    "src/identity",
    "src/git",
    "src/home-backups",
    "src/hooks",
    "src/notify",
    "src/tailnet",
    "src/wire",
  ],
  db: ["src/schema"],
  "src/llm": ["src/schema"],
  "src/mcp": ["src/schema"],
  "src/acp": ["src/schema"],
  "src/tools": ["src/schema"],
  "src/provisioners": ["src/schema"],
  "src/identity": ["src/schema"],
  "src/git": ["src/schema"],
  "src/home-backups": ["src/schema"],
  "src/hooks": ["src/schema"],
  "src/notify": ["src/schema"],
  "src/tailnet": ["src/wire"],
  "src/wire": ["src/base"],
  "src/authentication": ["src/schema"],
  "src/starter": ["src/base"],
  "src/telemetry": ["src/base"],
  "src/schema": ["src/base"],
  "src/base": [],
  // The daemon, which is the other side of the protocol, and standalone parts.
  "src/daemon": ["src/client.ts", "src/mcp", "src/tailnet"],
  // The app uses schema types and pure code of the base; src/web/browser contains what it shares with the plain pages.
  "src/web": ["src/client.ts"],
  "src/client.ts": ["src/schema"],
  "src/release": ["src/build.ts"],
  "src/build.ts": ["src/supply-chain.ts", "src/web", "db"],
  "src/supply-chain.ts": ["src/base"],
  "src/bootstrap.mjs": [],
};

/**
 * Product-independent folders that could be extracted, with what other folders may import from them. They import only each other, in the
 * order of LAYERS, and LIBRARY_BASE.
 */
const LIBRARIES: Readonly<Record<string, readonly string[]>> = {
  "src/wire": ["src/wire/index.ts", "src/wire/gen/"],
  "src/tailnet": ["src/tailnet/index.ts"],
};

/** Files of the base that the libraries may import: time, randomness, IDs, log, errors and JSON. */
const LIBRARY_BASE = ["clock", "errors", "ids", "json/cost", "json/read", "log", "random"].map(
  (name) => `src/base/${name}.ts`,
);

// Packages that only some folders may import, so that each can be replaced by changing one folder.
const PACKAGES: readonly { name: RegExp; allowed: readonly string[] }[] = [
  // Bun has no file lock other than SQLite's.
  { name: /^bun:sqlite$/, allowed: ["db", "src/base/lock-file.ts"] },
  { name: /^drizzle-/, allowed: ["db"] },
  { name: /^(elysia|@elysiajs\/.*)$/, allowed: ["src/api", "src/server.ts"] },
  { name: /^@zxcvbn-ts\//, allowed: ["src/domain"] },
  { name: /^p-queue$/, allowed: ["actors", "db"] },
  { name: /^(ai|@ai-sdk\/.*)$/, allowed: ["src/llm"] },
  { name: /^jose$/, allowed: ["src/identity", "src/hooks"] },
  { name: /^(pkijs|asn1js)$/, allowed: ["src/identity"] },
  { name: /^(@simplewebauthn\/.*|openid-client|uqr)$/, allowed: ["src/authentication"] },
  { name: /^nodemailer$/, allowed: ["src/notify"] },
  { name: /^unbash$/, allowed: ["src/tools"] },
  { name: /^@modelcontextprotocol\//, allowed: ["src/mcp"] },
  { name: /^@agentclientprotocol\//, allowed: ["src/acp"] },
  { name: /^@bufbuild\//, allowed: ["src/wire", "src/tailnet"] },
  { name: /^@noble\//, allowed: ["src/tailnet"] },
  { name: /^(preact|preact-iso|@preact\/.*|@tanstack\/.*)($|\/)/, allowed: ["src/web"] },
  // The daemon stores a terminal's screen with the library that displays it in browsers.
  { name: /^@xterm\/(headless|addon-serialize)\//, allowed: ["src/daemon"] },
  { name: /^@xterm\/(?!headless\/|addon-serialize\/)/, allowed: ["src/web"] },
  { name: /^@opentelemetry\//, allowed: ["src/telemetry"] },
  { name: /^ssh2$/, allowed: ["src/daemon", "src/cli"] },
  { name: /^(croner|nanoid|@logtape\/.*|prom-client)$/, allowed: ["src/base"] },
];

const ALIASES: Readonly<Record<string, string>> = {
  "#base/": "src/base/",
  "#schema/": "src/schema/",
  "#actors/": "actors/",
  "#db/": "db/",
  "#domain/": "src/domain/",
  "#src/": "src/",
  "#test/": "test/",
};

/** Returns every module that a file imports, including types: values by Bun's scanner, types by text search. */
export const findImports = (source: string, loader: "ts" | "tsx" = "ts"): string[] => {
  const scanned = new Bun.Transpiler({ loader }).scanImports(source).map((imported) => imported.path);
  const declared = [...source.matchAll(/^\s*(?:import|export)\b[^;'"]*?\bfrom\s*"([^"]+)"/gm)].map(
    ([, path = ""]) => path,
  );
  const dynamic = [...source.matchAll(/\bimport\("([^"]+)"\)/g)].map(([, path = ""]) => path);
  return [...new Set([...scanned, ...declared, ...dynamic])];
};

/** Returns what is wrong with `file` importing `specifier`; undefined if allowed (rule RP-1). */
export const findImportProblem = (file: string, specifier: string): string | undefined => {
  const from = findLayer(file);
  if (from === undefined) return `${file} is in no layer: add it to test/support/layers.ts`;
  const alias = Object.keys(ALIASES).find((prefix) => specifier.startsWith(prefix));
  if (alias === undefined && !specifier.startsWith(".")) return findPackageProblem(file, from, specifier);
  const target = resolveImport(file, specifier) ?? "";
  if (target === "package.json") return undefined;
  if (extname(target) === "") return `${file} imports ${specifier} without its extension`;
  const to = findLayer(target);
  if (target.startsWith("test/")) return `${file} imports ${specifier}: the product must not import tests`;
  if (to === undefined) return `${file} imports ${specifier}, which is in no layer`;
  if (to === from) return undefined;
  if (!listReachable(from).has(to)) return `${file} imports ${specifier}: ${from} may not import ${to}`;
  const api = LIBRARIES[to];
  if (api && !api.some((folder) => target.startsWith(folder)))
    return `${file} imports ${specifier}: other folders import ${api[0]}`;
  if (LIBRARIES[from] && !LIBRARIES[to] && !LIBRARY_BASE.includes(target))
    return `${file} imports ${specifier}: ${from} must not depend on the product`;
  return alias === undefined && isOutsideFolder(file, target)
    ? `${file} imports ${specifier}: between folders use an alias`
    : undefined;
};

/** Returns the repository file of a specifier; undefined for a package. */
export const resolveImport = (file: string, specifier: string): string | undefined => {
  const alias = Object.keys(ALIASES).find((prefix) => specifier.startsWith(prefix));
  if (alias !== undefined) return `${ALIASES[alias]}${specifier.slice(alias.length)}`;
  return specifier.startsWith(".") ? join(dirname(file), specifier) : undefined;
};

/**
 * Returns the strongly connected components of an import graph: groups of files that import each other (rule RP-1). `imports` maps every
 * file to the files it imports, including types; imports that are not keys are ignored. Uses Tarjan's algorithm.
 */
export const findImportCycles = (imports: ReadonlyMap<string, readonly string[]>): string[][] => {
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const stack: string[] = [];
  const cycles: string[][] = [];
  const visit = (file: string): void => {
    order.set(file, order.size);
    lowest.set(file, order.get(file) ?? 0);
    stack.push(file);
    const targets = (imports.get(file) ?? []).filter((target) => imports.has(target));
    for (const target of targets) {
      if (!order.has(target)) visit(target);
      if (stack.includes(target)) lowest.set(file, Math.min(lowest.get(file) ?? 0, lowest.get(target) ?? 0));
    }
    if (lowest.get(file) !== order.get(file)) return;
    const cycle = stack.splice(stack.indexOf(file));
    if (cycle.length > 1 || targets.includes(file)) cycles.push(cycle.sort());
  };
  for (const file of imports.keys()) if (!order.has(file)) visit(file);
  return cycles;
};

/** Returns the longest entry of LAYERS that contains the file. */
export function findLayer(file: string): string | undefined {
  return Object.keys(LAYERS)
    .filter((folder) => file === folder || file.startsWith(`${folder}/`))
    .sort((a, b) => b.length - a.length)[0];
}

function findPackageProblem(file: string, from: string, specifier: string): string | undefined {
  const rule = PACKAGES.find(({ name }) => name.test(specifier));
  if (!rule || rule.allowed.some((folder) => folder === from || folder === file)) return undefined;
  return `${file} imports ${specifier}: only ${rule.allowed.join(", ")} may`;
}

// True if the alias is needed: from src/main.ts, `./cli/help.ts` is below the file's own folder, so it needs none.
const isOutsideFolder = (file: string, target: string): boolean => !target.startsWith(`${dirname(file)}/`);

function listReachable(layer: string, reached = new Set<string>()): Set<string> {
  for (const imported of LAYERS[layer] ?? []) {
    if (reached.has(imported)) continue;
    reached.add(imported);
    listReachable(imported, reached);
  }
  return reached;
}
