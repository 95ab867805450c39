// The pages of docs/ for the app: one file per page, and an index of all headings that is built into the app.
import { join } from "node:path";
import { Glob } from "bun";
import { sha256 } from "#base/ids.ts";
import type { WebFile } from "./files.ts";

const DOCS = join(import.meta.dirname, "../../docs");

export type DocsPage = {
  /** The page's path: `chats` for docs/chats.md. README is the first page. */
  readonly name: string;
  readonly title: string;
  /** The page's file below /assets. */
  readonly file: string;
  readonly headings: readonly { readonly id: string; readonly text: string }[];
};

/** Removes the parts that readers do not see: notes for authors, and images, which are not included. */
const removeHidden = (markdown: string): string =>
  markdown.replace(/<!--[\s\S]*?-->\n?/g, "").replace(/^!\[[^\]]*\]\([^)]*\)\n*/gm, "");

const listHeadings = (markdown: string): string[] => {
  const outside = markdown.replace(/^```[\s\S]*?^```/gm, "");
  return [...outside.matchAll(/^#{1,4} +(.+)$/gm)].map(([, text = ""]) => text.replace(/[`*]/g, ""));
};

/** Returns all pages: README first, then by title. */
export const buildDocs = async (): Promise<{ pages: DocsPage[]; files: WebFile[] }> => {
  const built = await Promise.all(
    (await Array.fromAsync(new Glob("*.md").scan(DOCS))).map(async (path) => {
      const text = removeHidden(await Bun.file(join(DOCS, path)).text());
      const name = path.replace(/\.md$/, "");
      const file = `docs-${name}-${sha256(text).slice(0, 10)}.md`;
      const [title = name, ...headings] = listHeadings(text);
      const ids = makeSlugs([title, ...headings]).slice(1);
      const page = { name, title, file, headings: headings.map((text, index) => ({ id: ids[index] ?? "", text })) };
      return { page, file: { name: file, type: "text/markdown", body: new TextEncoder().encode(text) } };
    }),
  );
  const rankPage = ({ name }: DocsPage): number => (name === "README" ? 0 : 1);
  built.sort((a, b) => rankPage(a.page) - rankPage(b.page) || a.page.title.localeCompare(b.page.title));
  return { pages: built.map(({ page }) => page), files: built.map(({ file }) => file) };
};

// The anchors of headings, in GitHub's format, so that links in the files work on GitHub and here.

const toSlug = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replace(/\s/g, "-");

/** Returns one slug per heading, in order. Repeated headings get a number. */
const makeSlugs = (headings: readonly string[]): string[] => {
  const taken = new Map<string, number>();
  return headings.map((text) => {
    const base = toSlug(text);
    const count = taken.get(base) ?? 0;
    taken.set(base, count + 1);
    return count === 0 ? base : `${base}-${count}`;
  });
};
