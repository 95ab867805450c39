// Parses `search:` in lists of chats (facts/chats 4.2): words that must all occur, phrases in double quotes, `or`, and `-word` for
// exclusions. Every text is a valid search; one without words finds nothing. Used only by list.ts.
import type { SearchQuery } from "#base/query.ts";
import { splitWords } from "#base/words.ts";
import { type Alternative, type Matching, toMatching } from "#db/chats/search.ts";

/** More words than anyone types; the index accepts only bounded searches. */
const WORDS_LIMIT = 100;
const ALONE = ["title", "pr_title", "pr"] as const;

/** Returns the search for the index; undefined if none exists. Records mistakes. */
export const toSearch = (query: SearchQuery): Matching | undefined => {
  if (!query.has("search")) return undefined;
  const text = query.text("search")?.trim() ?? "";
  if (text === "") query.refuse("search", "There is nothing to search for.");
  if (splitWords(text).length > WORDS_LIMIT) query.refuse("search", `A search has at most ${WORDS_LIMIT} words.`);
  for (const key of ALONE) {
    if (query.has(key)) query.refuse("search", `It cannot be combined with ${key}.`);
  }
  return toMatching(parseAlternatives(text));
};

/** Parses `a "b c" -d or e` as: either a and the phrase but not d; or e. An unclosed quote extends to the end. */
export const parseAlternatives = (text: string): Alternative[] => {
  const alternatives: { wanted: string[]; unwanted: string[] }[] = [{ wanted: [], unwanted: [] }];
  for (const [, minus, phrase, word] of text.matchAll(/(-?)(?:"([^"]*)"?|([^\s"]+))/g)) {
    if (minus === "" && word?.toLowerCase() === "or") {
      alternatives.push({ wanted: [], unwanted: [] });
      continue;
    }
    const last = alternatives.at(-1);
    (minus === "-" ? last?.unwanted : last?.wanted)?.push(phrase ?? word ?? "");
  }
  return alternatives;
};
