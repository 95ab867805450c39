// A setting that is a list of mappings, each with its own ID: YAML in the settings file, JSON elsewhere.
import type { Kind } from "./kinds.ts";

const listIn = (text: string): unknown => {
  if (text.trim() === "") return [];
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

/** `members` lists the required members of each mapping; `mistakeIn` returns what is wrong with one, without its values. */
export const listOfMappings = <T extends { readonly id: string }>(
  members: string,
  mistakeIn: (entry: unknown) => string | undefined,
): Kind<readonly T[]> => {
  const findListMistake = (list: unknown): string | undefined => {
    if (!Array.isArray(list)) return "it is not a list";
    for (const [i, entry] of list.entries()) {
      const mistake = mistakeIn(entry);
      if (mistake !== undefined) return `entry ${i + 1} ${mistake}`;
    }
    const ids = list.map(({ id }: T) => id);
    const twice = ids.find((id, i) => ids.indexOf(id) < i);
    return twice === undefined ? undefined : `two entries have the id ${twice}`;
  };
  return {
    accepts: `a list of providers (in the settings file a YAML list, elsewhere JSON), each with ${members}`,
    placeholder: "JSON",
    structured: true,
    parse(text) {
      const list = listIn(text);
      return findListMistake(list) === undefined ? (list as T[]) : undefined;
    },
    mistake: (text) => findListMistake(listIn(text)),
    print: (value) => (value.length === 0 ? "" : JSON.stringify(value)),
  };
};
