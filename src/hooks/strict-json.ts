// Detects JSON texts that parsers interpret differently. Parsers differ in which of two equal keys they keep, and in case sensitivity, so a
// policy could check one path while a tool opens another. Pure.

/** Returns the first duplicate key of any object in the JSON text; undefined if all keys are unique. The text must be valid JSON. */
export const findRepeatedKey = (text: string): string | undefined => {
  // The keys of each open object; undefined for an open list.
  const openKeys: (Set<string> | undefined)[] = [];
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index];
    if (character === "{") openKeys.push(new Set());
    else if (character === "[") openKeys.push(undefined);
    else if (character === "}" || character === "]") openKeys.pop();
    else if (character === '"') {
      const end = findStringEnd(text, index);
      const keys = openKeys.at(-1);
      if (keys && isKey(text, end)) {
        const key = JSON.parse(text.slice(index, end)) as string;
        if (keys.has(key)) return key;
        keys.add(key);
      }
      index = end - 1;
    }
  }
  return undefined;
};

/** Returns the position after the closing quote of the string at `from`. */
const findStringEnd = (text: string, from: number): number => {
  let index = from + 1;
  while (index < text.length && text[index] !== '"') index += text[index] === "\\" ? 2 : 1;
  return index + 1;
};

const isKey = (text: string, end: number): boolean => {
  let index = end;
  while (index < text.length && (text[index] ?? "").trim() === "") index += 1;
  return text[index] === ":";
};

type Schema = {
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly items?: unknown;
  readonly anyOf?: readonly unknown[];
};

/** Returns a key that differs from one in the schema only in letter case; undefined if all keys match. */
export const findMiscasedKey = (schema: unknown, value: unknown): string | undefined => {
  if (typeof schema !== "object" || schema === null || typeof value !== "object" || value === null) return undefined;
  const { properties = {}, items, anyOf = [] } = schema as Schema;
  if (Array.isArray(value)) return findFirst(value.map((one) => () => findMiscasedKey(items, one)));
  const namesByLowerCase = new Map(Object.keys(properties).map((name) => [name.toLowerCase(), name]));
  const keys = Object.keys(value);
  const miscased = keys.find((key) => (namesByLowerCase.get(key.toLowerCase()) ?? key) !== key);
  if (miscased !== undefined) return miscased;
  const nested = keys.map((key) => () => findMiscasedKey(properties[key], (value as Record<string, unknown>)[key]));
  return findFirst([...nested, ...anyOf.map((one) => () => findMiscasedKey(one, value))]);
};

const findFirst = (finders: readonly (() => string | undefined)[]): string | undefined => {
  for (const find of finders) {
    const key = find();
    if (key !== undefined) return key;
  }
  return undefined;
};
