// Strictly parses the Prometheus text format (version 0.0.4).

export type Sample = { name: string; labels: Record<string, string>; value: number };
export type Family = { type: string; samples: Sample[] };

const NAME = "[a-zA-Z_:][a-zA-Z0-9_:]*";
const SAMPLE = new RegExp(`^(${NAME})(?:\\{(.*)\\})? (\\S+)$`);
const LABEL = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/;
const NUMBER = /^(?:[+-]?(?:\d+\.?\d*(?:e[+-]?\d+)?|Inf)|NaN)$/i;
const TYPES = ["counter", "gauge", "histogram", "summary", "untyped"];

/** Returns the families by name. Throws for anything malformed, duplicated, or against the rules of its type. */
export const parseMetrics = (text: string): Map<string, Family> => {
  if (!text.endsWith("\n")) throw new Error("the last line has no line end");
  const families = new Map<string, Family>();
  const helped = new Set<string>();
  let current = "";
  for (const line of text.slice(0, -1).split("\n")) {
    if (line === "") continue;
    const [, keyword, name = "", rest = ""] = /^# (HELP|TYPE) (\S+) ?(.*)$/.exec(line) ?? [];
    if (keyword === "HELP") {
      if (helped.has(name) || families.has(name)) throw new Error(`${name} has a second or late HELP line`);
      helped.add(name);
    } else if (keyword === "TYPE") {
      if (families.has(name) || !TYPES.includes(rest)) throw new Error(`the type of ${name} is wrong: ${rest}`);
      families.set(name, { type: rest, samples: [] });
      current = name;
    } else {
      const family = families.get(current);
      const sample = parseSample(line);
      if (!family || !belongsTo(sample.name, current, family.type))
        throw new Error(`${line} does not belong to ${current}`);
      if (family.samples.some(({ name, labels }) => name === sample.name && Bun.deepEquals(labels, sample.labels))) {
        throw new Error(`duplicate: ${line}`);
      }
      family.samples.push(sample);
    }
  }
  for (const [name, family] of families) checkFamily(name, family);
  return families;
};

const parseSample = (line: string): Sample => {
  const [, name = "", text = "", value = ""] = SAMPLE.exec(line) ?? [];
  if (name === "" || !NUMBER.test(value)) throw new Error(`not a sample: ${line}`);
  const labels: Record<string, string> = {};
  for (let rest = text; rest !== ""; ) {
    const [match, label = "", quoted = ""] = LABEL.exec(rest) ?? [];
    if (match === undefined || label in labels) throw new Error(`invalid labels: ${line}`);
    labels[label] = quoted.replace(/\\(.)/g, (_, char) => (char === "n" ? "\n" : char));
    rest = rest.slice(match.length);
  }
  return { name, labels, value: Number(value.replace(/Inf$/i, "Infinity")) };
};

const belongsTo = (sample: string, family: string, type: string): boolean => {
  if (type === "histogram") return ["_bucket", "_sum", "_count"].some((suffix) => sample === family + suffix);
  if (type === "summary") return [family, `${family}_sum`, `${family}_count`].includes(sample);
  return sample === family;
};

const checkFamily = (name: string, { type, samples }: Family): void => {
  if (type === "counter" && samples.some(({ value }) => !(value >= 0))) throw new Error(`${name} has a negative value`);
  if (type !== "histogram") return;
  const groups = Map.groupBy(samples, ({ labels: { le: _, ...rest } }) => JSON.stringify(rest));
  for (const group of groups.values()) {
    const buckets = group.filter((sample) => sample.name === `${name}_bucket`);
    const count = group.find((sample) => sample.name === `${name}_count`)?.value;
    if (buckets.some(({ value }, i) => value < (buckets[i - 1]?.value ?? 0)))
      throw new Error(`${name}: the buckets are not cumulative`);
    if (buckets.at(-1)?.labels.le !== "+Inf" || buckets.at(-1)?.value !== count) throw new Error(`${name}: no +Inf`);
  }
};
