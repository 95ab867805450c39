// Splits text into search words: letters and digits in lower case. For chats, the words are reduced to stems, without English stop words.
// Used by the index and by searches, so that both agree. Pure.
import { stemWord } from "./stemmer.ts";

/** Words too common to search for. */
const STOP_WORDS = new Set(
  (
    "i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers herself it its itself " +
    "they them their theirs themselves what which who whom this that these those am is are was were be been being have has had " +
    "having do does did doing a an the and but if or because as until while of at by for with about against between into through " +
    "during before after above below to from up down in out on off over under again further then once here there when where why " +
    "how all any both each few more most other some such no nor not only own same so than too very s t can will just don should now"
  ).split(" "),
);
/** Maximum words that one message adds to the index, so that a write stays short. */
const MAX_INDEX_WORDS = 10_000;
/** Longer words, such as encoded data, are truncated. */
const MAX_WORD_LENGTH = 128;
const MAX_CACHED_STEMS = 50_000;

const stems = new Map<string, string>();

/** Caches stems, because a chat uses the same few thousand words repeatedly. */
const stemCached = (word: string): string => {
  let stem = stems.get(word);
  if (stem === undefined) {
    if (stems.size >= MAX_CACHED_STEMS) stems.clear();
    stem = stemWord(word);
    stems.set(word, stem);
  }
  return stem;
};

/** Returns the words of a text, without stemming; at most `limit`. */
export const splitWords = (text: string, limit = Number.POSITIVE_INFINITY): string[] => {
  const words: string[] = [];
  for (const [word] of text
    .normalize("NFKC")
    .toLowerCase()
    .matchAll(/[\p{L}\p{N}\p{M}]+/gu)) {
    if (words.length >= limit) break;
    words.push(word.slice(0, MAX_WORD_LENGTH));
  }
  return words;
};

/** Returns the stems of the words that are not stop words, in order; only the first ones of a long text. */
export const listStems = (text: string): string[] =>
  splitWords(text, MAX_INDEX_WORDS)
    .filter((word) => !STOP_WORDS.has(word))
    .map(stemCached);
