// "Did you mean ...?" for misspelled settings, commands and names.
import { trimEnd } from "#base/text/trim.ts";

/** Wrong names that people try, by the setting that they mean. */
const SETTING_ALIASES: Readonly<Record<string, readonly string[]>> = {
  address: "port host listen bind addr http_address http_port listen_address bind_address".split(" "),
  access_url: "url public_url base_url external_url".split(" "),
  wildcard_access_url: "wildcard wildcard_url apps_url app_hostname".split(" "),
  data_dir: "data dir home folder data_directory data_path".split(" "),
  database_url: "database db db_url postgres postgres_url pg_connection_url".split(" "),
  tls_cert_file: "tls_cert cert cert_file certificate".split(" "),
  tls_key_file: "tls_key key_file private_key".split(" "),
  log_level: "verbose debug loglevel level".split(" "),
};

/** Returns the known name closest to `name`, if at most a third of its letters differ. */
export const findNearest = (name: string, knownNames: readonly string[]): string | undefined => {
  const ranked = knownNames.map((knownName) => ({
    knownName,
    distance: computeEditDistance(name.toLowerCase(), knownName.toLowerCase()),
  }));
  const best = ranked
    .filter(({ knownName, distance }) => distance <= Math.ceil(name.length / 3) && hasSimilarWords(name, knownName))
    .sort((a, b) => a.distance - b.distance)[0];
  return best?.knownName;
};

/** Returns ` Did you mean X?`, or an empty string. */
export const suggestName = (name: string, knownNames: readonly string[]): string => {
  const best = findNearest(name, knownNames);
  return best === undefined ? "" : ` Did you mean ${best}?`;
};

/** Like `suggestName`, for settings. `format` turns a key into the suggested text. Also knows the names that other programs use. */
export const suggestSetting = (
  name: string,
  keys: readonly string[],
  format: (key: string) => string = (key) => key,
): string => {
  const normalize = (text: string): string => text.toLowerCase().replaceAll("-", "_").replace(/^_+/, "");
  const prefix = trimEnd(normalize(format("")), "_");
  const key = normalize(name).replace(new RegExp(`^${prefix}_`), "");
  const best = keys.find((candidate) => SETTING_ALIASES[candidate]?.includes(key)) ?? findNearest(key, keys);
  return best === undefined ? "" : ` Did you mean ${format(best)}?`;
};

/** Names with the same number of words match only if each pair of words is similar: `http_address` is not a misspelled `node_address`. */
const hasSimilarWords = (a: string, b: string): boolean => {
  const [wordsA, wordsB] = [a, b].map((name) => name.toLowerCase().split(/[-_ .]+/));
  if (!wordsA || !wordsB || wordsA.length !== wordsB.length || wordsA.length === 1) return true;
  return wordsA.every((word, i) => computeEditDistance(word, wordsB[i] ?? "") <= Math.ceil(word.length / 2));
};

/** Returns how many letters must be changed, added or removed to turn one name into the other. */
export function computeEditDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const nextRow = [i];
    for (let j = 1; j <= b.length; j++) {
      const replace = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      nextRow.push(Math.min(replace, (row[j] ?? 0) + 1, (nextRow[j - 1] ?? 0) + 1));
    }
    row = nextRow;
  }
  return row[b.length] ?? 0;
}
