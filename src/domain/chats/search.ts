// Parses `search:` in lists of chats (facts/chats 4.2): words that must all occur, quoted phrases, `or`, and `-word` for words that must
// not occur. Every text is valid; a text without words finds nothing. Also chooses how a search is executed.
import type { SearchQuery } from "#base/query.ts";
import { splitWords } from "#base/text/words.ts";
import {
  type ChatFilter,
  type ChatPage,
  countHits,
  listMatching,
  listPage,
  searchAllHits,
  searchFewHits,
} from "#db/chats/list.ts";
import { type Alternative, type Matching, toMatching } from "#db/chats/search.ts";
import type { Store } from "#db/engine/store.ts";

/** More words than anyone types; the index accepts only searches of limited size. */
const MAX_WORDS = 100;
const EXCLUSIVE_KEYS = ["title", "pr_title", "pr"] as const;

/** Returns the index search for `search:`; undefined if the query has none. Adds mistakes to the query's problems. */
export const toSearch = (query: SearchQuery): Matching | undefined => {
  if (!query.has("search")) return undefined;
  const text = query.text("search")?.trim() ?? "";
  if (text === "") query.addProblem("search", "There is nothing to search for.");
  if (splitWords(text).length > MAX_WORDS) query.addProblem("search", `A search has at most ${MAX_WORDS} words.`);
  for (const key of EXCLUSIVE_KEYS) {
    if (query.has(key)) query.addProblem("search", `It cannot be combined with ${key}.`);
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

/** Maximum chats at the top of the list that are examined one by one before all hits of frequent words are read. */
const WINDOW_ROWS = 256;
/** Number of these chats that are sampled to estimate how frequent the words are. */
const SAMPLE_ROWS = 16;
/** Up to this many hits, reading all of them is faster than examining chats that rarely match. */
const MAX_COUNTED_HITS = 30_000;

/**
 * Returns the IDs of a page of matching chats. With few hits, examines only chats with hits. With frequent words, examines the top of the
 * list until the page is full. Otherwise reads every hit.
 */
export const searchChats = async (
  { store }: { readonly store: Store },
  filter: ChatFilter,
  search: Matching,
  page: ChatPage,
): Promise<string[]> => {
  // A single null means that there are many hits.
  const fewHits = await store.scan(searchFewHits(filter, search, page));
  if (fewHits[0] !== null) return fewHits as string[];
  return (await searchTop(store, filter, search, page)) ?? store.scan(searchAllHits(filter, search, page));
};

/** Returns the page if the top of the list fills it or is the whole list; undefined if reading every hit is faster. */
const searchTop = async (
  store: Store,
  filter: ChatFilter,
  search: Matching,
  { limit, offset, after }: ChatPage,
): Promise<string[] | undefined> => {
  const neededCount = offset + limit;
  if (neededCount > WINDOW_ROWS) return undefined;
  const top = await store.scan(listPage(filter, { limit: WINDOW_ROWS, offset: 0, after }));
  const found: string[] = [];
  for (let examinedCount = 0; examinedCount < top.length && found.length < neededCount; ) {
    if (examinedCount === SAMPLE_ROWS && found.length < SAMPLE_ROWS / 2) {
      const [hits = 0] = await store.scan(countHits(search, MAX_COUNTED_HITS));
      if (hits < MAX_COUNTED_HITS) return undefined;
    }
    // Enough to fill the page at the match rate so far.
    const step = Math.max(
      SAMPLE_ROWS,
      Math.ceil(((neededCount - found.length) * examinedCount) / Math.max(1, found.length)),
    );
    const requested = top.slice(examinedCount, examinedCount === 0 ? SAMPLE_ROWS : examinedCount + step);
    const matching = new Set(await store.scan(listMatching(requested, search)));
    found.push(...requested.filter((id) => matching.has(id)));
    examinedCount += requested.length;
  }
  return found.length >= neededCount || top.length < WINDOW_ROWS ? found.slice(offset, neededCount) : undefined;
};
