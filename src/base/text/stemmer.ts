// Stems English words with the Snowball "English" (Porter 2) algorithm, so that `deploys`, `deployed` and `deployments` match. Used by
// src/base/text/words.ts for the search index of chats and for searches. Pure; takes words in lower case.

const DOUBLE_CONSONANT = /(bb|dd|ff|gg|mm|nn|pp|rr|tt)$/;
const SHORT_SYLLABLE = /([^aeiouy][aeiouy][^aeiouywxY]|^[aeiouy][^aeiouy])$/;

/** Stems of words for which the rules give a wrong stem. */
const EXCEPTIONS: ReadonlyMap<string, string> = new Map(
  "skis:ski skies:sky dying:die lying:lie tying:tie idly:idl gently:gentl ugly:ugli early:earli only:onli singly:singl sky:sky news:news howe:howe atlas:atlas cosmos:cosmos bias:bias andes:andes"
    .split(" ")
    .map((pair) => pair.split(":") as [string, string]),
);
/** Words that stay unchanged after a plural's s has been removed. */
const UNCHANGED_WORDS = new Set("inning outing canning herring earring proceed exceed succeed".split(" "));
/** Prefixes after which the first region starts, although it would start earlier by the rule. */
const REGION_PREFIX = /^(gener|commun|arsen)/;

/** Parses suffix rules `ending>replacement`, longest first. */
const parseSuffixRules = (text: string): readonly (readonly [string, string])[] =>
  text
    .split(" ")
    .map((pair) => pair.split(">") as [string, string])
    .sort(([a], [b]) => b.length - a.length);

const SECOND_RULES = parseSuffixRules(
  "tional>tion enci>ence anci>ance abli>able entli>ent izer>ize ization>ize ational>ate ation>ate ator>ate alism>al aliti>al alli>al fulness>ful ousli>ous ousness>ous iveness>ive iviti>ive biliti>ble bli>ble ogi>og fulli>ful lessli>less li>",
);
const THIRD_RULES = parseSuffixRules("tional>tion ational>ate alize>al icate>ic iciti>ic ical>ic ful> ness> ative>");
const FOURTH_RULES = parseSuffixRules(
  "al> ance> ence> er> ic> able> ible> ant> ement> ment> ent> ism> ate> iti> ous> ive> ize> ion>",
);
/** Suffixes that are removed only after certain letters. */
const CONDITIONAL_SUFFIXES: Readonly<Record<string, RegExp>> = { ogi: /l$/, li: /[cdeghkmnrt]$/, ion: /[st]$/ };

/** Returns the stem of one word; words with letters other than a to z stay unchanged. */
export const stemWord = (word: string): string => {
  if (word.length <= 2 || !/^[a-z]+$/.test(word)) return word;
  const exception = EXCEPTIONS.get(word);
  if (exception) return exception;
  // Marks a consonant y as Y.
  const marked = word.replace(/^y/, "Y").replace(/([aeiouy])y/g, "$1Y");
  const r1 = REGION_PREFIX.exec(marked)?.[0].length ?? findRegion(marked, 0);
  const r2 = findRegion(marked, r1);
  const singular = stripPlural(marked);
  if (UNCHANGED_WORDS.has(singular)) return singular;
  const plain = stripTense(singular, r1).replace(/(?<=.[^aeiouy])[yY]$/, "i");
  const second = applySuffixRules(plain, SECOND_RULES, () => r1);
  const third = applySuffixRules(second, THIRD_RULES, (ending) => (ending === "ative" ? r2 : r1));
  return stripFinalLetter(
    applySuffixRules(third, FOURTH_RULES, () => r2),
    r1,
    r2,
  ).toLowerCase();
};

/** Returns the position after the first consonant that follows a vowel, searching from `start`. */
const findRegion = (word: string, start: number): number => {
  const match = /[aeiouy][^aeiouy]/.exec(word.slice(start));
  return match ? start + match.index + 2 : word.length;
};

const stripPlural = (word: string): string => {
  if (word.endsWith("sses")) return word.slice(0, -2);
  if (/ie[ds]$/.test(word)) return word.slice(0, word.length > 4 ? -2 : -1);
  if (/(us|ss)$/.test(word) || !word.endsWith("s")) return word;
  return /[aeiouy]./.test(word.slice(0, -1)) ? word.slice(0, -1) : word;
};

const stripTense = (word: string, r1: number): string => {
  const eed = /eed(ly)?$/.exec(word);
  if (eed) return eed.index >= r1 ? `${word.slice(0, eed.index)}ee` : word;
  const tense = /(ed|ing)(ly)?$/.exec(word);
  if (!tense) return word;
  const stem = word.slice(0, tense.index);
  if (!/[aeiouy]/.test(stem)) return word;
  if (/(at|bl|iz)$/.test(stem)) return `${stem}e`;
  if (DOUBLE_CONSONANT.test(stem)) return stem.slice(0, -1);
  return stem.length <= r1 && SHORT_SYLLABLE.test(stem) ? `${stem}e` : stem;
};

/** Applies the rule with the longest matching suffix, if the suffix is in the region of the rule and follows the required letters. */
const applySuffixRules = (
  word: string,
  rules: readonly (readonly [string, string])[],
  getRegion: (ending: string) => number,
): string => {
  const rule = rules.find(([ending]) => word.endsWith(ending));
  if (!rule) return word;
  const [ending, replacement] = rule;
  const stem = word.slice(0, -ending.length);
  if (stem.length < getRegion(ending) || CONDITIONAL_SUFFIXES[ending]?.test(stem) === false) return word;
  return stem + replacement;
};

const stripFinalLetter = (word: string, r1: number, r2: number): string => {
  const stem = word.slice(0, -1);
  if (word.endsWith("e")) {
    const isRemoved = stem.length >= r2 || (stem.length >= r1 && !SHORT_SYLLABLE.test(stem));
    return isRemoved ? stem : word;
  }
  return word.endsWith("ll") && stem.length >= r2 ? stem : word;
};
