// The size of the scripts and styles of pages.
import { expect, test } from "bun:test";
import { buildWeb } from "#src/web/build.ts";

const KIB = 1024;
const getGzippedSize = (body: Uint8Array<ArrayBuffer>): number => Bun.gzipSync(body, { level: 9 }).length;

test("[WB-5] scripts are at most 45 KiB for the first page, 35 for a chat, 30 for insights, 132 for a terminal, 60 for a desktop; styles are at most 11", async () => {
  const files = new Map((await buildWeb()).map((file) => [file.name, file]));
  const html = new TextDecoder().decode(files.get("app.html")?.body);
  const firstFiles = [...new Set([...html.matchAll(/(?:src|href)="\/assets\/([^"]+)"/g)].map(([, name = ""]) => name))];
  expect(firstFiles.length).toBeGreaterThan(1);
  const sumGzippedSizes = (ending: string, names: readonly string[]): number =>
    names
      .filter((name) => name.endsWith(ending))
      .reduce((total, name) => total + getGzippedSize(files.get(name)?.body ?? new Uint8Array()), 0);
  // The home page is part of the app's script.
  expect([...files.keys()].filter((name) => name.startsWith("home-"))).toEqual([]);
  expect(sumGzippedSizes(".js", firstFiles)).toBeLessThan(45 * KIB);
  expect(sumGzippedSizes(".css", firstFiles)).toBeLessThan(11 * KIB);
  // A chat: its own code, and the Markdown parser that its first message needs.
  const belongsTo = (page: string) => (name: string) => name.startsWith(`${page}-`);
  const chat = [...files.keys()].filter((name) => belongsTo("chat")(name) || belongsTo("blocks")(name));
  expect(chat.length).toBe(2);
  expect(sumGzippedSizes(".js", chat)).toBeLessThan(35 * KIB);
  // The terminal and the desktop, each with its rendering code.
  const sumScriptsOfPages = (...pages: string[]) =>
    sumGzippedSizes(
      ".js",
      [...files.keys()].filter((name) => pages.some((page) => belongsTo(page)(name))),
    );
  expect(sumScriptsOfPages("terminal", "addon-webgl")).toBeLessThan(132 * KIB);
  expect(sumScriptsOfPages("desktop-session")).toBeLessThan(60 * KIB);
  expect(sumScriptsOfPages("desktop-session")).toBeGreaterThan(20 * KIB);
  // Insights: its own code, and the plotting code.
  const insights = [...files.keys()].filter((name) => belongsTo("insights")(name) || belongsTo("plot-drawing")(name));
  expect(insights.length).toBeGreaterThan(1);
  expect(sumGzippedSizes(".js", insights)).toBeLessThan(30 * KIB);
  expect([...files.values()].filter(({ name }) => /-[a-z0-9]+\.(js|css)$/.test(name)).length).toBeGreaterThan(5);
});
