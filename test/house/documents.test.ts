// Every page of the repository: its links and the files it names are there, and what comments cite can be read. README stays a first page.
import { expect, setDefaultTimeout, test } from "bun:test";
import { dirname, join, normalize } from "node:path";
import { isThere, page, ROOT } from "#test/support/documents.ts";
import { scaled } from "#test/support/pace.ts";

// On a machine with much else to do.
setDefaultTimeout(scaled(60_000));

const git = (...words: string[]): string[] =>
  Bun.spawnSync(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", ...words], { cwd: ROOT })
    .stdout.toString()
    .split("\0")
    .filter((path) => path !== "" && isThere(path));

const PAGES = git("*.md");
const SOURCES = git(
  "src/**/*.ts",
  "actors/**/*.ts",
  "db/**/*.ts",
  "test/**/*.ts",
  "src/**/*.tsx",
  "src/**/*.md",
  "actors/**/*.md",
  "db/**/*.md",
  "test/**/*.md",
  "docs/*.md",
);

const withoutCode = (markdown: string): string => markdown.replace(/^```[\s\S]*?^```$/gm, "").replace(/`[^`\n]*`/g, "");

/** What a heading is called in a link, as the usual hosts of repositories make it. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[`*_]|\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/[^\p{L}\p{N}\- ]/gu, "")
    .trim()
    .replaceAll(" ", "-");

const anchorsOf = (path: string): Set<string> =>
  new Set(
    [
      ...page(path)
        .replace(/^```[\s\S]*?^```$/gm, "")
        .matchAll(/^#+ (.*)$/gm),
    ].map(([, heading = ""]) => anchorOf(heading)),
  );

const brokenLinks = (path: string): string[] => {
  const broken: string[] = [];
  for (const [, target = ""] of withoutCode(page(path)).matchAll(/\]\(([^)\s]+)\)/g)) {
    if (/^[a-z]+:/.test(target)) continue;
    const [file = "", anchor] = target.split("#");
    const to = file === "" ? path : normalize(join(dirname(path), file));
    if (!isThere(to)) broken.push(`${path}: ${target} is not there`);
    else if (anchor && !anchorsOf(to).has(anchor)) broken.push(`${path}: ${target} has no such heading`);
  }
  return broken;
};

/** Text of a source file in which a citation is not torn apart by the end of a line. */
const flowing = (path: string): string => page(path).replace(/\s*\n\s*(?:\/\/|\*|--)?\s*/g, " ");

const headingsOf = (path: string): Set<string> =>
  new Set([...page(path).matchAll(/^#+ ([0-9]+(?:\.[0-9]+)*|[A-Z][0-9]*)\.?\s/gm)].map(([, number = ""]) => number));

/** `facts/chats 2.11`, with further numbers after commas: the page and each number. */
const factCitations = (text: string): { name: string; number: string }[] =>
  [
    ...text.matchAll(
      /\bfacts\/([a-z-]+?) ((?:[A-Z] ?)?\d+(?:\.\d+)*(?:(?:, | and | to )(?:[A-Z] ?)?\d+(?:\.\d+)*(?![\w-]))*)/g,
    ),
  ].flatMap(([, name = "", numbers = ""]) =>
    numbers.split(/, | and | to /).map((number) => ({ name, number: number.replace(/ (?=\d)/, "") })),
  );

/** Whether a page of facts has the section; items are numbered, too, those of agents.md through all of a lettered section. */
const hasFact = (name: string, number: string): boolean => {
  const path = `docs/spec/facts/${name}.md`;
  if (!isThere(path)) return false;
  if (headingsOf(path).has(number)) return true;
  const item = number.replace(/^[A-Z]/, "").replaceAll(".", "\\.");
  return new RegExp(`^(?:\\| )?${item}(?:\\.| |$)`, "m").test(page(path));
};

test("[RP-11] every link of every page leads somewhere, also to its heading", () => {
  expect(PAGES.length).toBeGreaterThan(40);
  expect(PAGES.flatMap(brokenLinks)).toEqual([]);
});

test("[RP-11] what comments and pages cite of the facts and of the design can be read", () => {
  const missing = SOURCES.flatMap((path) => {
    const text = flowing(path);
    const facts = factCitations(text).filter(({ name, number }) => !hasFact(name, number));
    const design = [...text.matchAll(/docs\/spec\/design\.md (\d+)/g)].filter(
      ([, number = ""]) => !headingsOf("docs/spec/design.md").has(number),
    );
    return [
      ...facts.map(({ name, number }) => `${path}: facts/${name} ${number}`),
      ...design.map(([cited]) => `${path}: ${cited}`),
    ];
  });
  expect(missing).toEqual([]);
});

/** What is not code of a file: all of a page, the comments of a source. */
const prose = (path: string): string =>
  path.endsWith(".md") ? page(path) : (page(path).match(/(?<![:"'`])\/\/.*|\/\*\*[\s\S]*?\*\//g) ?? []).join("\n");

const FOREIGN = /\b(?:DESIGN|ANCHORS|CLUSTER|PERFORMANCE|RELIABILITY|LIBRARIES|WEB)\.md\b|\bDESIGN section/g;
const FILES = /(?<![\w/.#-])(?:docs|src|actors|db|test)\/[\w./-]*\w\.(?:md|tsx?|mjs|txt|json|sql)\b/g;

/** Printed by `bun run routes`, and not committed: a checkout may be without it. */
const PRINTED = "src/schema/routes.ts";

test("[RP-11] comments and pages name no document and no file that is not in the repository", () => {
  const strangers = SOURCES.flatMap((path) => {
    const words = prose(path);
    // Pages of the tests name them from there.
    const files = (words.match(FILES) ?? []).filter(
      (name) => name !== PRINTED && !isThere(name) && !isThere(`test/${name}`),
    );
    return [...(words.match(FOREIGN) ?? []), ...files].map((name) => `${path}: ${name}`);
  });
  expect(strangers).toEqual([]);
});

test("[RP-11] the files that a folder's page lists are there", () => {
  const files = git(".");
  const listed = PAGES.filter((path) => path.endsWith("README.md")).flatMap((path) =>
    [...page(path).matchAll(/`(?:\.\.\/)*([\w./-]+\.(?:tsx?|mjs|sql))`/g)].map(([, name = ""]) => ({ path, name })),
  );
  expect(listed.length).toBeGreaterThan(100);
  const missing = listed.filter(({ name }) => !files.some((file) => file === name || file.endsWith(`/${name}`)));
  expect(missing.map(({ path, name }) => `${path}: ${name}`)).toEqual([]);
});

test("[RP-12] README is a first page of 150 lines at most, and docs/README.md lists every page of docs/", () => {
  expect(page("README.md").split("\n").length).toBeLessThanOrEqual(150);
  const index = page("docs/README.md");
  const unlisted = PAGES.filter((path) => /^docs\/[\w-]+\.md$/.test(path) && path !== "docs/README.md").filter(
    (path) => !index.includes(`](${path.slice("docs/".length)})`),
  );
  expect(unlisted).toEqual([]);
});

test("[RP-12] docs/packages.md names every package with its reason, and none that is not used", () => {
  const { dependencies, devDependencies } = JSON.parse(page("package.json"));
  const rows = [...page("docs/packages.md").matchAll(/^\| (.+?) \| .+ \|$/gm)].flatMap(([, names = ""]) =>
    names.split(", "),
  );
  const listed = rows.filter((name) => !/^(package|-+)$/.test(name));
  expect(listed.sort()).toEqual(Object.keys({ ...dependencies, ...devDependencies }).sort());
  expect(
    Object.values<string>({ ...dependencies, ...devDependencies }).filter(
      (version) => !/^(npm:[^@]+@)?\d/.test(version),
    ),
  ).toEqual([]);
});

test("[RP-11] the reading of citations finds what it should", () => {
  const cited = (text: string): string[] => factCitations(text).map(({ name, number }) => `${name} ${number}`);
  expect(cited("(facts/chats 2.11, 2.12). See facts/agents D 60 to 62, facts/platform 3.1 and 4, rules LG-1")).toEqual([
    ...["chats 2.11", "chats 2.12", "agents D60", "agents 62", "platform 3.1", "platform 4"],
  ]);
  expect(hasFact("chats", "1.3")).toBeTrue();
  expect(hasFact("chats", "77.1")).toBeFalse();
  expect(hasFact("agents", "A33")).toBeTrue();
  expect(hasFact("nobody", "1")).toBeFalse();
  expect(anchorOf("A workspace's life, by `curl`")).toBe("a-workspaces-life-by-curl");
});
