// Syntax highlighting with highlight.js, each language loaded when first used. It runs on the main thread while the browser is idle:
// Trusted Types allow a Worker only with a policy, and the pages have none for it (rule WB-4).
import core from "highlight.js/lib/core";
import { loadCode } from "../../data/load-code.ts";

type Node = string | { readonly scope?: string; readonly children: readonly Node[] };
/** A piece of code and its class in app.css, which is empty for plain text. */
export type Piece = readonly [text: string, name: string];

const LANGUAGES = {
  bash: () => import("highlight.js/lib/languages/bash"),
  c: () => import("highlight.js/lib/languages/c"),
  cpp: () => import("highlight.js/lib/languages/cpp"),
  csharp: () => import("highlight.js/lib/languages/csharp"),
  css: () => import("highlight.js/lib/languages/css"),
  diff: () => import("highlight.js/lib/languages/diff"),
  dockerfile: () => import("highlight.js/lib/languages/dockerfile"),
  go: () => import("highlight.js/lib/languages/go"),
  ini: () => import("highlight.js/lib/languages/ini"),
  java: () => import("highlight.js/lib/languages/java"),
  javascript: () => import("highlight.js/lib/languages/javascript"),
  json: () => import("highlight.js/lib/languages/json"),
  kotlin: () => import("highlight.js/lib/languages/kotlin"),
  lua: () => import("highlight.js/lib/languages/lua"),
  makefile: () => import("highlight.js/lib/languages/makefile"),
  markdown: () => import("highlight.js/lib/languages/markdown"),
  php: () => import("highlight.js/lib/languages/php"),
  python: () => import("highlight.js/lib/languages/python"),
  ruby: () => import("highlight.js/lib/languages/ruby"),
  rust: () => import("highlight.js/lib/languages/rust"),
  sql: () => import("highlight.js/lib/languages/sql"),
  swift: () => import("highlight.js/lib/languages/swift"),
  typescript: () => import("highlight.js/lib/languages/typescript"),
  xml: () => import("highlight.js/lib/languages/xml"),
  yaml: () => import("highlight.js/lib/languages/yaml"),
};

const ALIASES: Readonly<Record<string, keyof typeof LANGUAGES>> = {
  sh: "bash",
  shell: "bash",
  zsh: "bash",
  console: "bash",
  js: "javascript",
  jsx: "javascript",
  mjs: "javascript",
  ts: "typescript",
  tsx: "typescript",
  py: "python",
  rb: "ruby",
  rs: "rust",
  yml: "yaml",
  html: "xml",
  svg: "xml",
  md: "markdown",
  toml: "ini",
  tf: "ini",
  hcl: "ini",
  docker: "dockerfile",
  "c++": "cpp",
  cs: "csharp",
  kt: "kotlin",
  make: "makefile",
  patch: "diff",
  golang: "go",
  jsonc: "json",
};

/** Highlighting a file of this length takes a few frames. Longer files stay plain. */
const MAX_LENGTH = 50_000;

const CLASSES: readonly (readonly [RegExp, string])[] = [
  [/^(comment|quote|meta)/, "c"],
  [/^(string|regexp|addition|attr$|attribute)/, "s"],
  [/^(number|literal|symbol|bullet)/, "n"],
  [/^(title|function|section|name|selector)/, "f"],
  [/^(keyword|built_in|type|tag|operator|deletion)/, "k"],
];

const toClass = (scope = ""): string => CLASSES.find(([pattern]) => pattern.test(scope))?.[1] ?? "";

const addPieces = (node: Node, className: string, pieces: Piece[]): void => {
  if (typeof node === "string") pieces.push([node, className]);
  else for (const child of node.children) addPieces(child, toClass(node.scope) || className, pieces);
};

/** On a busy machine, and in a tab in the background, browsers may never be idle. */
const MAX_IDLE_WAIT_MS = 500;

const waitForIdle = (): Promise<unknown> =>
  new Promise((resolve) =>
    "requestIdleCallback" in window
      ? requestIdleCallback(resolve, { timeout: MAX_IDLE_WAIT_MS })
      : setTimeout(resolve, 20),
  );

/** Returns undefined for unknown languages and texts that are too long. */
export const highlight = async (text: string, language: string): Promise<readonly Piece[] | undefined> => {
  const requested =
    language
      .trim()
      .split(/[\s{:,]/)[0]
      ?.toLowerCase() ?? "";
  const name = ALIASES[requested] ?? (requested in LANGUAGES ? (requested as keyof typeof LANGUAGES) : undefined);
  if (name === undefined || text.length > MAX_LENGTH) return undefined;
  if (!core.getLanguage(name)) core.registerLanguage(name, (await loadCode(LANGUAGES[name])).default);
  await waitForIdle();
  const { _emitter } = core.highlight(text, { language: name, ignoreIllegals: true }) as unknown as {
    _emitter: { rootNode: Node };
  };
  const pieces: Piece[] = [];
  addPieces(_emitter.rootNode, "", pieces);
  return pieces;
};
