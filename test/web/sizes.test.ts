// The size of the scripts and styles of pages.
import { expect, test } from "bun:test";
import { buildWeb } from "#src/web/build.ts";

const KB = 1024;
const getGzippedSize = (body: Uint8Array<ArrayBuffer>): number => Bun.gzipSync(body, { level: 9 }).length;

test("[WB-5] the first page loads 45 KB of scripts and 11 KB of styles at most, a chat 35 KB more, insights 30 KB, a terminal 132 KB, a desktop 60 KB", async () => {
  const files = new Map((await buildWeb()).map((file) => [file.name, file]));
  const html = new TextDecoder().decode(files.get("app.html")?.body);
  const firstFiles = [...new Set([...html.matchAll(/(?:src|href)="\/assets\/([^"]+)"/g)].map(([, name = ""]) => name))];
  expect(firstFiles.length).toBeGreaterThan(1);
  const sum = (ending: string, names: readonly string[]): number =>
    names
      .filter((name) => name.endsWith(ending))
      .reduce((total, name) => total + getGzippedSize(files.get(name)?.body ?? new Uint8Array()), 0);
  // The home page is part of the app's script.
  expect([...files.keys()].filter((name) => name.startsWith("home-"))).toEqual([]);
  expect(sum(".js", firstFiles)).toBeLessThan(45 * KB);
  expect(sum(".css", firstFiles)).toBeLessThan(11 * KB);
  // A chat: its own code, and the Markdown parser that its first message needs.
  const belongsTo = (page: string) => (name: string) => name.startsWith(`${page}-`);
  const chat = [...files.keys()].filter((name) => belongsTo("chat")(name) || belongsTo("blocks")(name));
  expect(chat.length).toBe(2);
  expect(sum(".js", chat)).toBeLessThan(35 * KB);
  // The terminal and the desktop, each with its rendering code.
  const sumSizes = (...pages: string[]) =>
    sum(
      ".js",
      [...files.keys()].filter((name) => pages.some((page) => belongsTo(page)(name))),
    );
  expect(sumSizes("terminal", "addon-webgl")).toBeLessThan(132 * KB);
  expect(sumSizes("desktop-session")).toBeLessThan(60 * KB);
  expect(sumSizes("desktop-session")).toBeGreaterThan(20 * KB);
  // Insights: its own code, and the plotting code.
  const insights = [...files.keys()].filter((name) => belongsTo("insights")(name) || belongsTo("plot-drawing")(name));
  expect(insights.length).toBeGreaterThan(1);
  expect(sum(".js", insights)).toBeLessThan(30 * KB);
  expect([...files.values()].filter(({ name }) => /-[a-z0-9]+\.(js|css)$/.test(name)).length).toBeGreaterThan(5);
});
