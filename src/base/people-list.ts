// Parses a pasted list of people: addresses separated by commas, semicolons or lines, `Ada Lovelace <ada@example.com>`, and CSV with a name
// and an address per line. Pure; shared by the page and the command line.
import { isEmailAddress, toEmailKey } from "./email-address.ts";

export type ListedPerson = { readonly email: string; readonly name: string };
export type PeopleList = {
  readonly people: readonly ListedPerson[];
  /** Lines without an address. */
  readonly unreadable: readonly string[];
};

/** More than anyone invites; further lines are ignored. */
const MAX_LINES = 10_000;
const MAX_NAME = 128;

/** Returns the cells of a line; separators inside quotes belong to the cell. */
const splitCells = (line: string): string[] =>
  [...line.matchAll(/\s*"((?:[^"]|"")*)"([^,;\t]*)|[^,;\t]+/g)]
    .map(([all, quoted, rest]) => (quoted === undefined ? all : `${quoted.replaceAll('""', '"')}${rest ?? ""}`).trim())
    .filter((cell) => cell !== "");

const parsePerson = (cell: string): ListedPerson | undefined => {
  const [, name = "", inside] = /^([^<>]*)<([^<>\s]+)>$/.exec(cell) ?? [];
  const email = (inside ?? cell).replace(/^mailto:/i, "");
  return isEmailAddress(email) ? { email, name: name.trim().slice(0, MAX_NAME) } : undefined;
};

const readLine = (line: string): readonly ListedPerson[] => {
  const cells = splitCells(line);
  const people = cells.flatMap((cell) => parsePerson(cell) ?? []);
  const [only] = people;
  // Addresses separated by whitespace.
  if (!only && !line.includes("<")) return line.split(/[\s,;]+/).flatMap((word) => parsePerson(word) ?? []);
  if (people.length !== 1 || !only || only.name !== "") return people;
  const name = cells.filter((cell) => !parsePerson(cell)).join(" ");
  return [{ email: only.email, name: name.slice(0, MAX_NAME) }];
};

/** Returns each person in the list once, in order. Skips a header line. */
export const readPeople = (text: string): PeopleList => {
  const lines = text
    .split(/\r\n|[\r\n]/, MAX_LINES)
    .map((line) => line.trim())
    .filter((line) => line !== "");
  const found = new Map<string, ListedPerson>();
  const unreadable: string[] = [];
  for (const [index, line] of lines.entries()) {
    const people = readLine(line);
    for (const one of people) if (!found.has(toEmailKey(one.email))) found.set(toEmailKey(one.email), one);
    const isHeading = index === 0 && lines.length > 1 && /mail/i.test(line);
    if (people.length === 0 && !isHeading) unreadable.push(line);
  }
  return { people: [...found.values()], unreadable };
};
