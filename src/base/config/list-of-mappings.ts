// A setting that is a list of mappings, each with its own ID: YAML in the settings file, JSON elsewhere.
import type { Kind } from "./kinds.ts";

export const isText = (value: unknown): value is string =>
  typeof value === "string" && value !== "" && value.length <= 4096;

export const isTextList = (value: unknown): boolean => Array.isArray(value) && value.every(isText);

export const isMapping = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const parseList = (text: string): unknown => {
  if (text.trim() === "") return [];
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

/** `members` lists the required members of each mapping; `findMistake` describes what is wrong with a mapping, without its values. */
export const listOfMappings = <T extends { readonly id: string }>(
  members: string,
  findMistake: (entry: unknown) => string | undefined,
): Kind<readonly T[]> => {
  const findListMistake = (list: unknown): string | undefined => {
    if (!Array.isArray(list)) return "it is not a list";
    for (const [i, entry] of list.entries()) {
      const mistake = findMistake(entry);
      if (mistake !== undefined) return `entry ${i + 1} ${mistake}`;
    }
    const ids = list.map(({ id }: T) => id);
    const duplicate = ids.find((id, i) => ids.indexOf(id) < i);
    return duplicate === undefined ? undefined : `two entries have the id ${duplicate}`;
  };
  return {
    accepts: `a list of providers (in the settings file a YAML list, elsewhere JSON), each with ${members}`,
    placeholder: "JSON",
    structured: true,
    parse(text) {
      const list = parseList(text);
      return findListMistake(list) === undefined ? (list as T[]) : undefined;
    },
    mistake: (text) => findListMistake(parseList(text)),
    print: (value) => (value.length === 0 ? "" : JSON.stringify(value)),
  };
};
