// Reads the report of `bun test --reporter=junit`. Used by test/run.ts for the counts and the reasons of skipped tests.

export interface TestCase {
  file: string;
  title: string;
  outcome: "passed" | "failed" | "skipped";
  seconds: number;
  /** The first lines of a failure, on one line. */
  reason?: string;
}

const REASON_CHARACTERS = 1_000;

/** Returns every test of the report, in order. */
export const readJunit = (xml: string): TestCase[] =>
  [...xml.matchAll(/<testcase ([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g)].map(([, attributes = "", body = ""]) => ({
    file: parseAttribute(attributes, "file"),
    title: parseAttribute(attributes, "name"),
    outcome: /<(failure|error)\b/.test(body) ? "failed" : /<skipped\b/.test(body) ? "skipped" : "passed",
    seconds: Number(parseAttribute(attributes, "time")) || 0,
    ...parseFailureReason(body),
  }));

/** Returns the slowest files with the sum of their tests' seconds. */
export const listSlowestFiles = (cases: readonly TestCase[], count: number): [file: string, seconds: number][] => {
  const sums = new Map<string, number>();
  for (const { file, seconds } of cases) sums.set(file, (sums.get(file) ?? 0) + seconds);
  return [...sums].sort(([, a], [, b]) => b - a).slice(0, count);
};

export const NO_REASON = "no reason given";

/** Returns the reason that testNeeding() or testSingleServer() put into the title. */
export const findSkipReason = (testCase: TestCase): string =>
  /\(skipped: (.*)\)$/.exec(testCase.title)?.[1] ?? NO_REASON;

function parseFailureReason(body: string): Pick<TestCase, "reason"> {
  const [, attributes = ""] = /<(?:failure|error) ([^>]*)>/.exec(body) ?? [];
  const message = parseAttribute(attributes, "message").replaceAll(/\s+/g, " ").trim();
  return message === "" ? {} : { reason: message.slice(0, REASON_CHARACTERS) };
}

function parseAttribute(text: string, name: string): string {
  const raw = new RegExp(`(?:^|\\s)${name}="([^"]*)"`).exec(text)?.[1] ?? "";
  const entities: Record<string, string> = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" };
  return raw.replace(/&(#x[\da-f]+|#\d+|[a-z]+);/gi, (entity, code: string) => {
    if (code.startsWith("#x")) return String.fromCodePoint(Number.parseInt(code.slice(2), 16));
    return code.startsWith("#") ? String.fromCodePoint(Number(code.slice(1))) : (entities[code] ?? entity);
  });
}
