// Reads the report `bun test --reporter=junit` writes. Used by test/run.ts for the counts and for the reasons of skipped tests.

export interface TestCase {
  file: string;
  title: string;
  outcome: "passed" | "failed" | "skipped";
}

/** Every test of the report, in its order. */
export const readJunit = (xml: string): TestCase[] =>
  [...xml.matchAll(/<testcase ([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g)].map(([, attributes = "", inside = ""]) => ({
    file: attribute(attributes, "file"),
    title: attribute(attributes, "name"),
    outcome: /<(failure|error)\b/.test(inside) ? "failed" : /<skipped\b/.test(inside) ? "skipped" : "passed",
  }));

/** What testNeeding() put into the title. */
export const skipReason = (one: TestCase): string => /\(skipped: (.*)\)$/.exec(one.title)?.[1] ?? "no reason given";

function attribute(text: string, name: string): string {
  const raw = new RegExp(`(?:^|\\s)${name}="([^"]*)"`).exec(text)?.[1] ?? "";
  const entities: Record<string, string> = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" };
  return raw.replace(/&(#x[\da-f]+|#\d+|[a-z]+);/gi, (whole, code: string) => {
    if (code.startsWith("#x")) return String.fromCodePoint(Number.parseInt(code.slice(2), 16));
    return code.startsWith("#") ? String.fromCodePoint(Number(code.slice(1))) : (entities[code] ?? whole);
  });
}
