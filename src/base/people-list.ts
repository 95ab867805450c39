// Parses a pasted list of people: addresses separated by commas, semicolons or lines, `Ada Lovelace <ada@example.com>`, and CSV with a name
// and an address per line. Pure; shared by the page and the command line.
import { isEmailAddress, toEmailKey } from "./email-address.ts";

export type ListedPerson = { readonly email: string; readonly name: string };
export type PeopleList = {
  readonly people: readonly ListedPerson[];
  /** Lines without an address, and parts of other lines that look like mistyped addresses. */
  readonly unreadable: readonly string[];
};

/** Further lines are ignored. */
const MAX_LINES = 10_000;
const MAX_NAME_LENGTH = 128;

/** Returns the cells of a line; separators inside quotes belong to the cell. */
const splitCells = (line: string): string[] =>
  [...line.matchAll(/[^\S\t]*"((?:[^"]|"")*)"([^,;\t]*)|[^,;\t]+/g)]
    .map(([all, quoted, rest]) => (quoted === undefined ? all : `${quoted.replaceAll('""', '"')}${rest ?? ""}`).trim())
    .filter((cell) => cell !== "");

const parsePerson = (cell: string): ListedPerson | undefined => {
  const [, name = "", inside] = /^([^<>]*)<([^<>\s]+)>$/.exec(cell) ?? [];
  const email = (inside ?? cell).replace(/^mailto:/i, "");
  return isEmailAddress(email) ? { email, name: name.trim().slice(0, MAX_NAME_LENGTH) } : undefined;
};

const readLine = (line: string): PeopleList => {
  const cells = splitCells(line);
  const people = cells.flatMap((cell) => parsePerson(cell) ?? []);
  const otherCells = cells.filter((cell) => !parsePerson(cell));
  const [only] = people;
  if (!only && !line.includes("<")) {
    // Addresses separated by whitespace.
    const words = line.split(/[\s,;]+/);
    const named = words.flatMap((word) => parsePerson(word) ?? []);
    const isMistyped = (word: string): boolean => word.includes("@") && !parsePerson(word);
    return { people: named, unreadable: named.length === 0 ? [] : words.filter(isMistyped) };
  }
  // In a line with several addresses, other cells are not names.
  if (people.length !== 1 || !only || only.name !== "") return { people, unreadable: only ? otherCells : [] };
  const name = otherCells.filter((cell) => !cell.includes("@")).join(" ");
  return {
    people: [{ email: only.email, name: name.slice(0, MAX_NAME_LENGTH) }],
    unreadable: otherCells.filter((cell) => cell.includes("@")),
  };
};

/** Returns each person in the list once, in order. Skips a header line. */
export const readPeople = (text: string): PeopleList => {
  const lines = text
    .split(/\r\n|[\r\n]/, MAX_LINES)
    .map((line) => line.trim())
    .filter((line) => line !== "");
  const peopleByEmail = new Map<string, ListedPerson>();
  const unreadable: string[] = [];
  for (const [index, line] of lines.entries()) {
    const { people, unreadable: parts } = readLine(line);
    unreadable.push(...parts);
    for (const person of people) {
      const key = toEmailKey(person.email);
      if (!peopleByEmail.has(key)) peopleByEmail.set(key, person);
    }
    const isHeading = index === 0 && lines.length > 1 && /mail/i.test(line);
    if (people.length === 0 && !isHeading) unreadable.push(line);
  }
  return { people: [...peopleByEmail.values()], unreadable };
};
