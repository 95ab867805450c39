// The four code paths that docs/architecture.md draws are correct and short.
import { expect, test } from "bun:test";
import { join } from "node:path";
import { pathExists, readPage } from "#test/support/documents.ts";

/** Maximum number of server files per path. */
const MAX_FILES: Readonly<Record<string, number>> = {
  "Lines of a log, from a script to a reader": 12,
  "A message in a chat": 17,
  "A build": 14,
  "Reading a workspace": 8,
};

type DocumentedPath = { readonly name: string; readonly count: number; readonly lines: readonly string[] };

const parseDocumentedPaths = (): DocumentedPath[] => {
  const [, text = ""] = readPage("docs/architecture.md").split("## Four ways");
  const [pathsText = ""] = text.split(/^## /m);
  return pathsText
    .split(/^### /m)
    .slice(1)
    .map((section) => {
      const [name = "", ...sectionLines] = section.split("\n");
      const count = Number(/^(\d+) files on the server/m.exec(sectionLines.join("\n"))?.[1]);
      return { name, count, lines: /^```\n([\s\S]*?)^```/m.exec(section)?.[1]?.trimEnd().split("\n") ?? [] };
    });
};

/** Returns the file that a line is about. */
const parseFile = (line: string): string | undefined => /^(?: *-> )?((?:src|actors|db)\/\S+\.ts)/.exec(line)?.[1];

const isDaemonFile = (file: string): boolean => file.startsWith("src/daemon/");

/** Returns a file's imports, as repository paths. */
const listImports = (file: string): Set<string> => {
  const imports = [...readPage(file).matchAll(/from "([^"]+)"/g)].map(([, path = ""]) => path);
  const folders: Readonly<Record<string, string>> = {
    "#src/": "src/",
    "#domain/": "src/domain/",
    "#actors/": "actors/",
  };
  return new Set(
    imports.map((path) => {
      const alias = Object.keys(folders).find((name) => path.startsWith(name));
      return alias ? folders[alias] + path.slice(alias.length) : join(file, "..", path);
    }),
  );
};

test("[RP-17] the four drawn paths consist of existing files, are counted, and stay below their maximum length", () => {
  expect(parseDocumentedPaths().map(({ name }) => name)).toEqual(Object.keys(MAX_FILES));
  for (const { name, count, lines } of parseDocumentedPaths()) {
    const files = lines.map(parseFile).filter((file) => file !== undefined);
    expect(files.filter((file) => !pathExists(file))).toEqual([]);
    const server = new Set(files.filter((file) => !isDaemonFile(file)));
    expect([name, server.size]).toEqual([name, count]);
    expect(server.size).toBeLessThanOrEqual(MAX_FILES[name] as number);
  }
});

test("[RP-17] each file of a path is connected to an earlier file by an import, or by a connection that the drawing names", () => {
  const unconnected = parseDocumentedPaths().flatMap(({ name, lines }) => {
    const files = lines.map(parseFile).filter((file) => file !== undefined);
    const imports = new Map(files.map((file) => [file, listImports(file)]));
    return lines.flatMap((line, i) => {
      const file = parseFile(line);
      if (file === undefined || i === 0 || lines[i - 1]?.trimStart().startsWith("=>")) return [];
      const earlier = files.slice(0, files.indexOf(file));
      const isConnected = earlier.some(
        (earlierFile) => imports.get(earlierFile)?.has(file) || imports.get(file)?.has(earlierFile),
      );
      return isConnected ? [] : [`${name}: no earlier file is connected to ${file}`];
    });
  });
  expect(unconnected).toEqual([]);
});
