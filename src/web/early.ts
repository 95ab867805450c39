// Builds the script in the head of the app's page (app/early.ts) with its data: the files of each page, and its first requests.
import { join } from "node:path";
import { FIRST_DATA, FIRST_FILES, SESSION, SIGNED_OUT_PAGES, STREAMS } from "./app/shell/first-data.ts";
import { EAGER_PATH, PATHS } from "./app/shell/page-list.ts";
import { PREFIX } from "./installable.ts";

export type Script = { readonly name: string; readonly kind: string; readonly body: string };

/** Returns the chunks that a script imports statically. The page names them, so that they are fetched in parallel. */
export const listImports = (script: Script, scripts: readonly Script[]): Script[] => {
  const imports = new Set<Script>();
  const collectImports = ({ body }: Script): void => {
    for (const candidate of scripts) {
      if (imports.has(candidate) || !new RegExp(`(?:from|import)\\s?"[^"]*${candidate.name}"`).test(body)) continue;
      imports.add(candidate);
      collectImports(candidate);
    }
  };
  collectImports(script);
  imports.delete(script);
  return [...imports];
};

/** Matches the bundler's output for `lazyPage(() => import("..."))`, as the value of a path or of a variable that several paths share. */
const LAZY_PAGE_PATTERN = /(?:"(\/[^"]*)":|([\w$]+)=)[\w$]+\(\(\)=>(?:\([\w$]+\("[^"]*"\),)?import\("([^"]+)"\)/g;
const SHARED_PAGE_PATTERN = /"(\/[^"]*)":([\w$]+)[,}]/g;

/** Returns the chunk of each page, from the dynamic imports of the entry. */
const findPageChunks = (main: Script, scripts: readonly Script[]): ReadonlyMap<string, Script> => {
  const byPath = new Map<string, Script>([[EAGER_PATH, main]]);
  for (const [, path, name, address] of main.body.matchAll(LAZY_PAGE_PATTERN)) {
    const chunk = scripts.find((one) => PREFIX + one.name === address);
    if (chunk) byPath.set(path ?? name ?? "", chunk);
  }
  const shared = [...main.body.matchAll(SHARED_PAGE_PATTERN)].flatMap(([, path = "", name = ""]) => {
    const chunk = byPath.get(name);
    return chunk ? [[path, chunk] as const] : [];
  });
  const chunks = new Map([...byPath, ...shared]);
  for (const path of [...PATHS, ...Object.keys(SIGNED_OUT_PAGES)])
    if (!chunks.has(path)) throw new Error(`the web app imports no page for ${path}`);
  return new Map([...chunks].filter(([path]) => path.startsWith("/")));
};

const findExtraFiles = (path: string, scripts: readonly Script[]): Script[] =>
  (FIRST_FILES[path] ?? []).map((name) => {
    const found = scripts.find((one) => one.name.startsWith(`${name}-`));
    if (!found) throw new Error(`there is no file ${name}, which ${path} needs`);
    return found;
  });

/** Sorts paths with fewer variables first. */
const compareVariables = (a: string, b: string): number => a.split(":").length - b.split(":").length;

/** Returns the script to embed in the page. `main` is the app's entry, which the page references itself. */
export const buildEarlyScript = async (main: Script, scripts: readonly Script[]): Promise<string> => {
  const chunks = findPageChunks(main, scripts);
  const alreadyLoaded = new Set([main, ...listImports(main, scripts)]);
  const addresses: string[] = [];
  const toIndex = ({ name }: Script): number => {
    const index = addresses.indexOf(PREFIX + name);
    return index >= 0 ? index : addresses.push(PREFIX + name) - 1;
  };
  /** `/account/tokens` is a page of the route `/account/:tab`. */
  const findChunk = (path: string): Script | undefined => {
    const segments = path.split("/");
    const matchesRoute = (route: string): boolean => {
      const routeSegments = route.split("/");
      return (
        routeSegments.length === segments.length &&
        routeSegments.every((name, index) => name === segments[index] || name.startsWith(":"))
      );
    };
    return chunks.get([...chunks.keys()].filter(matchesRoute).sort(compareVariables)[0] ?? "");
  };
  const pages = [...new Set([...chunks.keys(), ...Object.keys(FIRST_DATA)])].sort(compareVariables).map((path) => {
    const chunk = findChunk(path);
    if (!chunk) throw new Error(`there is no page ${path} to prefetch data for`);
    const needed = [chunk, ...findExtraFiles(path, scripts)].flatMap((one) => [one, ...listImports(one, scripts)]);
    const files = [...new Set(needed)].filter((one) => !alreadyLoaded.has(one));
    return [path, files.map(toIndex), FIRST_DATA[path] ?? []];
  });
  const { outputs } = await Bun.build({
    entrypoints: [join(import.meta.dirname, "app/early.ts")],
    minify: true,
    target: "browser",
    format: "iife",
    define: {
      PAGES: JSON.stringify(pages),
      FILES: JSON.stringify(addresses),
      SIGNED_OUT_PAGES: JSON.stringify(SIGNED_OUT_PAGES),
      SESSION: JSON.stringify(SESSION),
      STREAMS: JSON.stringify(STREAMS),
    },
  });
  const [script] = outputs;
  if (!script) throw new Error("the script of the page's head was not built");
  return (await script.text()).trim().replaceAll("</", "<\\/");
};
