// English word stems by the published Snowball "English" (Porter 2) algorithm: what `deploys`, `deployed` and `deployments` have in
// common. Used by src/base/words.ts for the index of what was said and for searches in it. Pure; takes words in lower case.

const DOUBLE = /(bb|dd|ff|gg|mm|nn|pp|rr|tt)$/;
const SHORT_SYLLABLE = /([^aeiouy][aeiouy][^aeiouywxY]|^[aeiouy][^aeiouy])$/;

/** Words that the rules get wrong, with their stems. */
const EXCEPTIONS: ReadonlyMap<string, string> = new Map(
  "skis:ski skies:sky dying:die lying:lie tying:tie idly:idl gently:gentl ugly:ugli early:earli only:onli singly:singl sky:sky news:news howe:howe atlas:atlas cosmos:cosmos bias:bias andes:andes"
    .split(" ")
    .map((pair) => pair.split(":") as [string, string]),
);
/** Words that stay as they are once a plural's s no longer exists. */
const KEPT = new Set("inning outing canning herring earring proceed exceed succeed".split(" "));
/** Beginnings after which the first region begins, though the rule would have it begin earlier. */
const BEGINNING = /^(gener|commun|arsen)/;

/** Endings with what they become, the longest first: `ending>replacement`. */
const endings = (text: string): readonly (readonly [string, string])[] =>
  text
    .split(" ")
    .map((pair) => pair.split(">") as [string, string])
    .sort(([a], [b]) => b.length - a.length);

const SECOND = endings(
  "tional>tion enci>ence anci>ance abli>able entli>ent izer>ize ization>ize ational>ate ation>ate ator>ate alism>al aliti>al alli>al fulness>ful ousli>ous ousness>ous iveness>ive iviti>ive biliti>ble bli>ble ogi>og fulli>ful lessli>less li>",
);
const THIRD = endings("tional>tion ational>ate alize>al icate>ic iciti>ic ical>ic ful> ness> ative>");
const FOURTH = endings("al> ance> ence> er> ic> able> ible> ant> ement> ment> ent> ism> ate> iti> ous> ive> ize> ion>");
/** Endings that go only behind certain letters. */
const BEHIND: Readonly<Record<string, RegExp>> = { ogi: /l$/, li: /[cdeghkmnrt]$/, ion: /[st]$/ };

/** The stem of one word; words that are not plain a to z stay as they are. */
export const stemWord = (word: string): string => {
  if (word.length <= 2 || !/^[a-z]+$/.test(word)) return word;
  const known = EXCEPTIONS.get(word);
  if (known) return known;
  // A y that is a consonant is written Y in the meantime.
  const marked = word.replace(/^y/, "Y").replace(/([aeiouy])y/g, "$1Y");
  const r1 = BEGINNING.exec(marked)?.[0].length ?? regionFrom(marked, 0);
  const r2 = regionFrom(marked, r1);
  const singular = withoutPlural(marked);
  if (KEPT.has(singular)) return singular;
  const plain = withoutTense(singular, r1).replace(/(?<=.[^aeiouy])[yY]$/, "i");
  const second = shortened(plain, SECOND, () => r1);
  const third = shortened(second, THIRD, (ending) => (ending === "ative" ? r2 : r1));
  return withoutFinal(
    shortened(third, FOURTH, () => r2),
    r1,
    r2,
  ).toLowerCase();
};

/** The place behind the first consonant that follows a vowel, from `start` on. */
const regionFrom = (word: string, start: number): number => {
  const match = /[aeiouy][^aeiouy]/.exec(word.slice(start));
  return match ? start + match.index + 2 : word.length;
};

const withoutPlural = (word: string): string => {
  if (word.endsWith("sses")) return word.slice(0, -2);
  if (/ie[ds]$/.test(word)) return word.slice(0, word.length > 4 ? -2 : -1);
  if (/(us|ss)$/.test(word) || !word.endsWith("s")) return word;
  return /[aeiouy].+s$/.test(word) ? word.slice(0, -1) : word;
};

const withoutTense = (word: string, r1: number): string => {
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

/** The longest ending that the word has decides; it is replaced when it lies in its region and behind the right letters. */
const shortened = (
  word: string,
  rules: readonly (readonly [string, string])[],
  regionOf: (ending: string) => number,
): string => {
  const found = rules.find(([ending]) => word.endsWith(ending));
  if (!found) return word;
  const [ending, becomes] = found;
  const rest = word.slice(0, -ending.length);
  if (rest.length < regionOf(ending) || BEHIND[ending]?.test(rest) === false) return word;
  return rest + becomes;
};

const withoutFinal = (word: string, r1: number, r2: number): string => {
  const rest = word.slice(0, -1);
  if (word.endsWith("e")) {
    const goes = rest.length >= r2 || (rest.length >= r1 && !SHORT_SYLLABLE.test(rest));
    return goes ? rest : word;
  }
  return word.endsWith("ll") && rest.length >= r2 ? rest : word;
};
