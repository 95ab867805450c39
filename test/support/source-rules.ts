// Patterns that source may contain only in certain places, and its maximum length: pure functions for test/architecture.test.ts.

interface SourceRule {
  /** The reason, and what to use instead. */
  says: string;
  pattern: RegExp;
  /** Files and folders where it is allowed. */
  places: readonly string[];
  /** The only folder where it is forbidden. */
  within?: string;
}

// Workers get no clock passed in, and pages run in a browser.
const WORKERS_AND_PAGES = [
  "db/engine/checkpoint.worker.ts",
  "db/engine/reader.worker.ts",
  "src/api/http/document/swagger-page.ts",
  "src/web/",
];

const RULES: readonly SourceRule[] = [
  {
    says: "time comes from Clock (src/base/clock.ts)",
    pattern: /\b(Date\.now\(|new Date\(\)|performance\.now\(|Bun\.nanoseconds\()/,
    places: ["src/base/clock.ts", ...WORKERS_AND_PAGES],
  },
  {
    says: "timers come from Clock (src/base/clock.ts)",
    pattern: /(?<![.\w]|typeof )(setTimeout|setInterval)\(|\b(Bun\.sleep(Sync)?|AbortSignal\.timeout)\(/,
    places: ["src/base/clock.ts", ...WORKERS_AND_PAGES],
  },
  {
    says: "ids and randomness come from src/base/",
    pattern: /\b(Math\.random|crypto\.randomUUID|getRandomValues|randomBytes|randomUUIDv7)\b/,
    places: ["src/base/", "src/web/"],
  },
  {
    says: "the environment is read in src/main.ts and handed in",
    pattern: /\b(process|Bun|import\.meta)\.env\b/,
    places: ["src/main.ts", "src/build.ts", "src/release/release.ts", "src/web/build.ts"],
  },
  {
    says: "only src/main.ts ends the process and listens to signals (and what makes a release)",
    pattern: /\bprocess\.(exit|exitCode|on|once|abort)\b/,
    places: ["src/main.ts", "src/release/release.ts"],
  },
  {
    says: "a worker lies next to its caller: inside the binary all code counts as lying in one folder",
    pattern: /new Worker\(\s*new URL\("(?!\.\/[^/"]+")/,
    places: [],
  },
  {
    says: "bytes are copied by `new Uint8Array(bytes)`: `from` takes them one after the other, 250 times as slowly",
    pattern: /\bUint8Array\.from\((?![[{])[^,]*\)/,
    places: [],
  },
  {
    says: "the log is log(area) of src/base/log.ts",
    pattern: /(?<![.\w])console\./,
    places: [],
  },
  {
    says: "there are no interactive transactions: submit a batch to the store",
    pattern: /\.transaction\(/,
    places: ["db/"],
  },
  {
    says: "a handler writes nothing: it asks a use case of src/domain",
    pattern: /\.commit\(/,
    places: [],
    within: "src/api/",
  },
];

/** Generated code, and data tables that are not read as code. */
const MAY_BE_LONG = ["src/schema/routes.ts", "src/wire/gen/", "test/api/edge/matrix-table.ts"];

/** A longer file gets a warning; its reviewer decides whether it still has a single purpose. */
export const MAX_LINES = 600;

/** Returns every rule that the source breaks, with its line (rule RP-3). */
export const findSourceProblems = (file: string, source: string): string[] => {
  const lines = removeComments(source).split("\n");
  const applies = ({ within = "", places }: SourceRule): boolean =>
    file.startsWith(within) && !places.some((place) => file === place || file.startsWith(place));
  return RULES.filter(applies).flatMap((rule) =>
    lines.flatMap((line, index) => (rule.pattern.test(line) ? [`${file}:${index + 1}: ${rule.says}`] : [])),
  );
};

/** Returns a warning about a file that is too long (rule RP-2). */
export const findLengthProblem = (file: string, source: string): string | undefined => {
  const lines = countLines(source);
  const free = MAY_BE_LONG.some((place) => file.startsWith(place));
  return lines > MAX_LINES && !free ? `${file} has ${lines} lines, more than ${MAX_LINES}` : undefined;
};

export const countLines = (source: string): number => source.split("\n").length - (source.endsWith("\n") ? 1 : 0);

// Keeps the line numbers. A `//` after a colon is part of a URL.
function removeComments(source: string): string {
  return source
    .replace(/\/\*[\s\S]*?\*\//g, (comment) => comment.replace(/[^\n]/g, " "))
    .replace(/(^|[^:"'`])\/\/.*$/gm, "$1");
}
