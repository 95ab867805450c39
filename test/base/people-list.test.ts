// Pasted lists of people.
import { expect, test } from "bun:test";
import { readPeople } from "#base/people-list.ts";

const read = (text: string): string[] =>
  readPeople(text).people.map(({ email, name }) => (name ? `${name}: ${email}` : email));

test("[IV-8] addresses separated by commas, semicolons, spaces and lines are found; each address once", () => {
  expect(read("ada@example.com, bob@example.com;eve@example.com")).toEqual([
    "ada@example.com",
    "bob@example.com",
    "eve@example.com",
  ]);
  expect(read("ada@example.com bob@example.com\r\nADA@example.com\n\n")).toEqual([
    "ada@example.com",
    "bob@example.com",
  ]);
  expect(read("mailto:ada@example.com")).toEqual(["ada@example.com"]);
});

test("[IV-8] names are parsed from address books and CSV, in either order and with headings", () => {
  expect(read('Ada Lovelace <ada@example.com>, "Hopper, Grace" <grace@example.com>')).toEqual([
    "Ada Lovelace: ada@example.com",
    "Hopper, Grace: grace@example.com",
  ]);
  expect(read("Name,Email\nAda Lovelace,ada@example.com\nGrace;grace@example.com")).toEqual([
    "Ada Lovelace: ada@example.com",
    "Grace: grace@example.com",
  ]);
  expect(read('email\tfirst\tlast\nada@example.com\t"Ada"\tLovelace')).toEqual(["Ada Lovelace: ada@example.com"]);
});

test("[IV-8] lines without an address are reported, and no address is invented", () => {
  expect(readPeople("ada@example.com\nbob at example.com\na\u202e@example.com")).toEqual({
    people: [{ email: "ada@example.com", name: "" }],
    unreadable: ["bob at example.com", "a\u202e@example.com"],
  });
  expect(
    readPeople("ada@example.com, bob@, eve@example.com\nivy@example.com uma@\njo@example.com, @example.com").unreadable,
  ).toEqual(["bob@", "uma@", "@example.com"]);
  expect(readPeople("")).toEqual({ people: [], unreadable: [] });
});
