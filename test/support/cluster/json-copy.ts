// Passes messages to actors and their replies through JSON, as another node would receive them over a link.

/** Values that were not plain JSON, in order. */
const nonJsonValues: string[] = [];

/** Returns and removes the recorded values that were not plain JSON. */
export const takeNonJsonValues = (): readonly string[] => nonJsonValues.splice(0);

/** Returns the value after a round trip through JSON. Records what would be lost: the test then fails when its server stops. */
export const copyAsJson = <T>(value: T): T => {
  if (value === undefined) return value;
  const problems = findProblems(value, "");
  if (problems.length === 0) return JSON.parse(JSON.stringify(value)) as T;
  const description =
    typeof value === "object" && value !== null ? `{ ${Object.keys(value).join(", ")} }` : typeof value;
  nonJsonValues.push(`${problems.join(", ")} of ${description}`);
  return structuredClone(value);
};

/** Returns the paths of values that are not JSON. Undefined members count as absent; undefined list elements do not. */
export const findProblems = (value: unknown, path: string): string[] => {
  if (value === null || typeof value === "string" || typeof value === "boolean") return [];
  if (typeof value === "number") return Number.isFinite(value) ? [] : [`${path}: ${value}`];
  if (Array.isArray(value)) return value.flatMap((element, index) => findProblems(element, `${path}[${index}]`));
  if (typeof value !== "object") return [`${path}: ${typeof value}`];
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return [`${path}: ${value.constructor?.name}`];
  if ("toJSON" in value) return [`${path}: toJSON`];
  return Object.entries(value).flatMap(([name, member]) =>
    member === undefined ? [] : findProblems(member, `${path}.${name}`),
  );
};
