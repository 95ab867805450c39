// Stems English words with the Snowball "English" (Porter 2) algorithm, so that `deploys`, `deployed` and `deployments` match. Used by
// src/base/words.ts for the search index of chats and for searches. Pure; takes words in lower case.

const DOUBLE = /(bb|dd|ff|gg|mm|nn|pp|rr|tt)$/;
const SHORT_SYLLABLE = /([^aeiouy][aeiouy][^aeiouywxY]|^[aeiouy][^aeiouy])$/;

/** Words the rules get wrong, with their stems. */
const EXCEPTIONS: ReadonlyMap<string, string> = new Map(
  "skis:ski skies:sky dying:die lying:lie tying:tie idly:idl gently:gentl ugly:ugli early:earli only:onli singly:singl sky:sky news:news howe:howe atlas:atlas cosmos:cosmos bias:bias andes:andes"
    .split(" ")
    .map((pair) => pair.split(":") as [string, string]),
);
/** Words that stay unchanged after a plural's s has been removed. */
const UNCHANGED_WORDS = new Set("inning outing canning herring earring proceed exceed succeed".split(" "));
/** Prefixes after which the first region starts, although the rule would have it start earlier. */
const BEGINNING = /^(gener|commun|arsen)/;

/** Parses suffix rules `ending>replacement`, longest first. */
const parseSuffixRules = (text: string): readonly (readonly [string, string])[] =>
  text
    .split(" ")
    .map((pair) => pair.split(">") as [string, string])
    .sort(([a], [b]) => b.length - a.length);

const SECOND = parseSuffixRules(
  "tional>tion enci>ence anci>ance abli>able entli>ent izer>ize ization>ize ational>ate ation>ate ator>ate alism>al aliti>al alli>al fulness>ful ousli>ous ousness>ous iveness>ive iviti>ive biliti>ble bli>ble ogi>og fulli>ful lessli>less li>",
);
const THIRD = parseSuffixRules("tional>tion ational>ate alize>al icate>ic iciti>ic ical>ic ful> ness> ative>");
const FOURTH = parseSuffixRules(
  "al> ance> ence> er> ic> able> ible> ant> ement> ment> ent> ism> ate> iti> ous> ive> ize> ion>",
);
/** Suffixes that are removed only after certain letters. */
const CONDITIONAL_SUFFIXES: Readonly<Record<string, RegExp>> = { ogi: /l$/, li: /[cdeghkmnrt]$/, ion: /[st]$/ };

/** Returns the stem of one word; words with letters other than a to z stay unchanged. */
export const stemWord = (word: string): string => {
  if (word.length <= 2 || !/^[a-z]+$/.test(word)) return word;
  const known = EXCEPTIONS.get(word);
  if (known) return known;
  // Marks a consonant y as Y.
  const marked = word.replace(/^y/, "Y").replace(/([aeiouy])y/g, "$1Y");
  const r1 = BEGINNING.exec(marked)?.[0].length ?? findRegion(marked, 0);
  const r2 = findRegion(marked, r1);
  const singular = stripPlural(marked);
  if (UNCHANGED_WORDS.has(singular)) return singular;
  const plain = stripTense(singular, r1).replace(/(?<=.[^aeiouy])[yY]$/, "i");
  const second = applySuffixRules(plain, SECOND, () => r1);
  const third = applySuffixRules(second, THIRD, (ending) => (ending === "ative" ? r2 : r1));
  return stripFinalLetter(
    applySuffixRules(third, FOURTH, () => r2),
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
  return /[aeiouy].+s$/.test(word) ? word.slice(0, -1) : word;
};

const stripTense = (word: string, r1: number): string => {
  const agreed = /eed(ly)?$/.exec(word);
  if (agreed) return agreed.index >= r1 ? `${word.slice(0, agreed.index)}ee` : word;
  const ended = /(ed|ing)(ly)?$/.exec(word);
  if (!ended) return word;
  const rest = word.slice(0, ended.index);
  if (!/[aeiouy]/.test(rest)) return word;
  if (/(at|bl|iz)$/.test(rest)) return `${rest}e`;
  if (DOUBLE.test(rest)) return rest.slice(0, -1);
  return rest.length <= r1 && SHORT_SYLLABLE.test(rest) ? `${rest}e` : rest;
};

/** Applies the longest matching suffix, which is replaced if it lies in its region and after the right letters. */
const applySuffixRules = (
  word: string,
  rules: readonly (readonly [string, string])[],
  regionOf: (ending: string) => number,
): string => {
  const found = rules.find(([ending]) => word.endsWith(ending));
  if (!found) return word;
  const [ending, becomes] = found;
  const rest = word.slice(0, -ending.length);
  if (rest.length < regionOf(ending) || CONDITIONAL_SUFFIXES[ending]?.test(rest) === false) return word;
  return rest + becomes;
};

const stripFinalLetter = (word: string, r1: number, r2: number): string => {
  const rest = word.slice(0, -1);
  if (word.endsWith("e")) {
    const goes = rest.length >= r2 || (rest.length >= r1 && !SHORT_SYLLABLE.test(rest));
    return goes ? rest : word;
  }
  return word.endsWith("ll") && rest.length >= r2 ? rest : word;
};
