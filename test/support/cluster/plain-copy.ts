// Messages to actors and their replies as another node would get them: JSON and nothing else, since they may go over a link between nodes.

/** What was no JSON, in the order in which it came. */
const found: string[] = [];

/** What was no JSON since the last call. */
export const takeNotPlain = (): readonly string[] => found.splice(0);

/** The same from JSON. What would be lost on the way is remembered, and the test fails when its server stops. */
export const plainCopy = <T>(value: T): T => {
  if (value === undefined) return value;
  const problems = problemsIn(value, "");
  if (problems.length === 0) return JSON.parse(JSON.stringify(value)) as T;
  const named = typeof value === "object" && value !== null ? `{ ${Object.keys(value).join(", ")} }` : typeof value;
  found.push(`${problems.join(", ")} of ${named}`);
  return structuredClone(value);
};

/** Where something is no JSON, and what. Members that are undefined are as good as absent; elements of lists are not. */
export const problemsIn = (value: unknown, path: string): string[] => {
  if (value === null || typeof value === "string" || typeof value === "boolean") return [];
  if (typeof value === "number") return Number.isFinite(value) ? [] : [`${path}: ${value}`];
  if (Array.isArray(value)) return value.flatMap((one, at) => problemsIn(one, `${path}[${at}]`));
  if (typeof value !== "object") return [`${path}: ${typeof value}`];
  const shape = Object.getPrototypeOf(value);
  if (shape !== Object.prototype && shape !== null) return [`${path}: ${value.constructor?.name}`];
  if ("toJSON" in value) return [`${path}: toJSON`];
  return Object.entries(value).flatMap(([name, one]) => (one === undefined ? [] : problemsIn(one, `${path}.${name}`)));
};
