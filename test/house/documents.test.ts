// Every page of the repository: its links and the files that it names exist, and citations in comments can be resolved. README stays short.
import { expect, test } from "bun:test";
import { dirname, join, normalize } from "node:path";
import { pathExists, ROOT, readPage } from "#test/support/documents.ts";

const listGitFiles = (...patterns: string[]): string[] =>
  Bun.spawnSync(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", ...patterns], {
    cwd: ROOT,
  })
    .stdout.toString()
    .split("\0")
    .filter((path) => path !== "" && pathExists(path));

const PAGES = listGitFiles("*.md");
const SOURCES = listGitFiles(
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

const stripCode = (markdown: string): string => markdown.replace(/^```[\s\S]*?^```$/gm, "").replace(/`[^`\n]*`/g, "");

/** Returns a heading's anchor, as repository hosts create it. */
const toAnchor = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[`*_]|\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/[^\p{L}\p{N}\- ]/gu, "")
    .trim()
    .replaceAll(" ", "-");

const listAnchors = (path: string): Set<string> =>
  new Set(
    [
      ...readPage(path)
        .replace(/^```[\s\S]*?^```$/gm, "")
        .matchAll(/^#+ (.*)$/gm),
    ].map(([, heading = ""]) => toAnchor(heading)),
  );

const findBrokenLinks = (path: string): string[] => {
  const broken: string[] = [];
  for (const [, target = ""] of stripCode(readPage(path)).matchAll(/\]\(([^)\s]+)\)/g)) {
    if (/^[a-z]+:/.test(target)) continue;
    const [file = "", anchor] = target.split("#");
    const linkedFile = file === "" ? path : normalize(join(dirname(path), file));
    if (!pathExists(linkedFile)) broken.push(`${path}: ${target} does not exist`);
    else if (anchor && !listAnchors(linkedFile).has(anchor)) broken.push(`${path}: ${target} has no such heading`);
  }
  return broken;
};

/** Returns the text of a source file with line breaks removed, so that citations are not split. */
const joinLines = (path: string): string => readPage(path).replace(/\s*\n\s*(?:\/\/|\*|--)?\s*/g, " ");

const listHeadings = (path: string): Set<string> =>
  new Set(
    [...readPage(path).matchAll(/^#+ ([0-9]+(?:\.[0-9]+)*|[A-Z][0-9]*)\.?\s/gm)].map(([, number = ""]) => number),
  );

/** Parses `facts/chats 2.11`, with further numbers after commas: the page and each number. */
const parseFactCitations = (text: string): { name: string; number: string }[] =>
  [
    ...text.matchAll(
      /\bfacts\/([a-z-]+?) ((?:[A-Z] ?)?\d+(?:\.\d+)*(?:(?:, | and | to )(?:[A-Z] ?)?\d+(?:\.\d+)*(?![\w-]))*)/g,
    ),
  ].flatMap(([, name = "", numbers = ""]) =>
    numbers.split(/, | and | to /).map((number) => ({ name, number: number.replace(/ (?=\d)/, "") })),
  );

/** Returns true if a page of facts has the section. Items are also numbered, in agents.md throughout a lettered section. */
const hasFact = (name: string, number: string): boolean => {
  const path = `docs/spec/facts/${name}.md`;
  if (!pathExists(path)) return false;
  if (listHeadings(path).has(number)) return true;
  const item = number.replace(/^[A-Z]/, "").replaceAll(".", "\\.");
  return new RegExp(`^(?:\\| )?${item}(?:\\.| |$)`, "m").test(readPage(path));
};

test("[RP-11] every link of every page resolves, including its heading", () => {
  expect(PAGES.length).toBeGreaterThan(40);
  expect(PAGES.flatMap(findBrokenLinks)).toEqual([]);
});

test("[RP-11] every citation of the facts and of the design in comments and pages resolves", () => {
  const missing = SOURCES.flatMap((path) => {
    const text = joinLines(path);
    const facts = parseFactCitations(text).filter(({ name, number }) => !hasFact(name, number));
    const design = [...text.matchAll(/docs\/spec\/design\.md (\d+)/g)].filter(
      ([, number = ""]) => !listHeadings("docs/spec/design.md").has(number),
    );
    return [
      ...facts.map(({ name, number }) => `${path}: facts/${name} ${number}`),
      ...design.map(([cited]) => `${path}: ${cited}`),
    ];
  });
  expect(missing).toEqual([]);
});

/** Returns a file's text without code: the whole text of a page, the comments of a source file. */
const readProse = (path: string): string =>
  path.endsWith(".md")
    ? readPage(path)
    : (readPage(path).match(/(?<![:"'`])\/\/.*|\/\*\*[\s\S]*?\*\//g) ?? []).join("\n");

const OTHER_DOCUMENTS = /\b(?:DESIGN|ANCHORS|CLUSTER|PERFORMANCE|RELIABILITY|LIBRARIES|WEB)\.md\b|\bDESIGN section/g;
const FILE_PATHS = /(?<![\w/.#-])(?:docs|src|actors|db|test)\/[\w./-]*\w\.(?:md|tsx?|mjs|txt|json|sql)\b/g;

/** `bun run routes` generates it and it is not committed, so a checkout may lack it. */
const GENERATED = "src/schema/routes.ts";

test("[RP-11] comments and pages name only documents and files of the repository", () => {
  const unknownNames = SOURCES.flatMap((path) => {
    const text = readProse(path);
    // Test pages name files relative to their own folder.
    const files = (text.match(FILE_PATHS) ?? []).filter(
      (name) => name !== GENERATED && !pathExists(name) && !pathExists(`test/${name}`),
    );
    return [...(text.match(OTHER_DOCUMENTS) ?? []), ...files].map((name) => `${path}: ${name}`);
  });
  expect(unknownNames).toEqual([]);
});

test("[RP-11] the files that a folder's page lists exist", () => {
  const files = listGitFiles(".");
  const listed = PAGES.filter((path) => path.endsWith("README.md")).flatMap((path) =>
    [...readPage(path).matchAll(/`(?:\.\.\/)*([\w./-]+\.(?:tsx?|mjs|sql))`/g)].map(([, name = ""]) => ({ path, name })),
  );
  expect(listed.length).toBeGreaterThan(100);
  const missing = listed.filter(({ name }) => !files.some((file) => file === name || file.endsWith(`/${name}`)));
  expect(missing.map(({ path, name }) => `${path}: ${name}`)).toEqual([]);
});

test("[RP-12] README has at most 150 lines, and docs/README.md lists every page of docs/", () => {
  expect(readPage("README.md").split("\n").length).toBeLessThanOrEqual(150);
  const index = readPage("docs/README.md");
  const unlisted = PAGES.filter((path) => /^docs\/[\w-]+\.md$/.test(path) && path !== "docs/README.md").filter(
    (path) => !index.includes(`](${path.slice("docs/".length)})`),
  );
  expect(unlisted).toEqual([]);
});

test("[RP-12] docs/packages.md lists every package with its reason, and no unused package", () => {
  const { dependencies, devDependencies } = JSON.parse(readPage("package.json"));
  const rows = [...readPage("docs/packages.md").matchAll(/^\| (.+?) \| .+ \|$/gm)].flatMap(([, names = ""]) =>
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

test("[RP-11] the citation parser finds every form of citation", () => {
  const listCitations = (text: string): string[] =>
    parseFactCitations(text).map(({ name, number }) => `${name} ${number}`);
  expect(
    listCitations("(facts/chats 2.11, 2.12). See facts/agents D 60 to 62, facts/platform 3.1 and 4, rules LG-1"),
  ).toEqual([...["chats 2.11", "chats 2.12", "agents D60", "agents 62", "platform 3.1", "platform 4"]]);
  expect(hasFact("chats", "1.3")).toBeTrue();
  expect(hasFact("chats", "77.1")).toBeFalse();
  expect(hasFact("agents", "A33")).toBeTrue();
  expect(hasFact("unknown", "1")).toBeFalse();
  expect(toAnchor("A workspace's life, by `curl`")).toBe("a-workspaces-life-by-curl");
});
