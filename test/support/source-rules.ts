// Patterns that source may contain only in certain files, and the maximum length of a file: pure functions for test/architecture.test.ts.

interface SourceRule {
  /** The reason, and what to use instead. */
  reason: string;
  pattern: RegExp;
  /** Files and folders where it is allowed. */
  allowedIn: readonly string[];
  /** If set, the pattern is forbidden only in this folder. */
  onlyIn?: string;
}

// Workers are not passed a clock, and pages run in a browser.
const WORKERS_AND_PAGES = [
  "db/engine/checkpoint.worker.ts",
  "db/engine/reader.worker.ts",
  "src/api/http/document/swagger-page.ts",
  "src/web/",
];

const RULES: readonly SourceRule[] = [
  {
    reason: "time comes from Clock (src/base/clock.ts)",
    pattern: /\b(Date\.now\(|new Date\(\)|performance\.now\(|Bun\.nanoseconds\()/,
    allowedIn: ["src/base/clock.ts", ...WORKERS_AND_PAGES],
  },
  {
    reason: "timers come from Clock (src/base/clock.ts)",
    pattern: /(?<![.\w]|typeof )(setTimeout|setInterval)\(|\b(Bun\.sleep(Sync)?|AbortSignal\.timeout)\(/,
    allowedIn: ["src/base/clock.ts", ...WORKERS_AND_PAGES],
  },
  {
    reason: "IDs and randomness come from src/base/",
    pattern: /\b(Math\.random|crypto\.randomUUID|getRandomValues|randomBytes|randomUUIDv7)\b/,
    allowedIn: ["src/base/", "src/web/"],
  },
  {
    reason: "the environment is read in src/main.ts and passed as an argument",
    pattern: /\b(process|Bun|import\.meta)\.env\b/,
    allowedIn: ["src/main.ts", "src/build.ts", "src/release/release.ts", "src/web/build.ts"],
  },
  {
    reason: "only src/main.ts and src/release/release.ts end the process and handle signals",
    pattern: /\bprocess\.(exit|exitCode|on|once|abort)\b/,
    allowedIn: ["src/main.ts", "src/release/release.ts"],
  },
  {
    reason: "a worker must be in its caller's folder: in the binary, all code is in one folder",
    pattern: /new Worker\(\s*new URL\("(?!\.\/[^/"]+")/,
    allowedIn: [],
  },
  {
    reason: "copy bytes with `new Uint8Array(bytes)`: `from` iterates over them and is 250 times slower",
    pattern: /\bUint8Array\.from\((?![[{])[^,]*\)/,
    allowedIn: [],
  },
  {
    reason: "logging uses log(area) of src/base/log.ts",
    pattern: /(?<![.\w])console\./,
    allowedIn: [],
  },
  {
    reason: "there are no interactive transactions: submit a batch to the store",
    pattern: /\.transaction\(/,
    allowedIn: ["db/"],
  },
  {
    reason: "a handler does not write: it calls a use case of src/domain",
    pattern: /\.commit\(/,
    allowedIn: [],
    onlyIn: "src/api/",
  },
];

/** Generated code, and tables of data. */
const EXEMPT_FROM_LENGTH = ["src/schema/routes.ts", "src/wire/gen/", "test/api/edge/matrix-table.ts"];

/** A longer file gets a warning; its reviewer decides whether it still has a single purpose. */
export const MAX_LINES = 600;

/** Returns every rule that the source breaks, with its line (rule RP-3). */
export const findSourceProblems = (file: string, source: string): string[] => {
  const lines = removeComments(source).split("\n");
  const applies = ({ onlyIn = "", allowedIn }: SourceRule): boolean =>
    file.startsWith(onlyIn) && !allowedIn.some((place) => file === place || file.startsWith(place));
  return RULES.filter(applies).flatMap((rule) =>
    lines.flatMap((line, index) => (rule.pattern.test(line) ? [`${file}:${index + 1}: ${rule.reason}`] : [])),
  );
};

/** Returns a warning about a file that is too long (rule RP-2). */
export const findLengthProblem = (file: string, source: string): string | undefined => {
  const lines = countLines(source);
  const isExempt = EXEMPT_FROM_LENGTH.some((place) => file.startsWith(place));
  return lines > MAX_LINES && !isExempt ? `${file} has ${lines} lines, more than ${MAX_LINES}` : undefined;
};

export const countLines = (source: string): number => source.split("\n").length - (source.endsWith("\n") ? 1 : 0);

// Line numbers stay the same. A `//` after a colon is part of a URL.
function removeComments(source: string): string {
  return source
    .replace(/\/\*[\s\S]*?\*\//g, (comment) => comment.replace(/[^\n]/g, " "))
    .replace(/(^|[^:"'`])\/\/.*$/gm, "$1");
}
