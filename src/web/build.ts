// Builds everything the browser loads: the app, the remaining plain pages, and Swagger UI. src/build.ts packs the result into the binary; a
// server that runs from source builds it on the first request. It is separate from the server's build because it is minified and split,
// which the server must not be (the router reads the source of handlers).
import { readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { sha256 } from "#base/ids.ts";
import { ICONS } from "./app/icons.ts";
import { docsPages } from "./docs.ts";
import { buildEarlyScript, listImports } from "./early.ts";
import type { WebFile } from "./files.ts";
import { terminalFonts } from "./fonts.ts";
import { hashesOfInline, installable, loadPictures, type Pictures, PREFIX, text } from "./installable.ts";
import { buildLogos } from "./logos.ts";
import { PAGES } from "./pages.ts";
import { buildPlainPage } from "./plain-page.ts";

const HERE = import.meta.dirname;
/** Pages that belong to the app's build. */
const APP_PAGES = new Set(["app.html", "offline.html"]);
const SWAGGER = ["swagger-ui.css", "swagger-ui-bundle.js"];

/** Builds all files as they are served, before compression. Throws with the bundler's messages if the build fails. */
export const buildWeb = async (): Promise<WebFile[]> => {
  const parts = await Promise.all([
    app(),
    ...[...new Set(Object.values(PAGES))].filter((page) => !APP_PAGES.has(page)).map(buildPlainPage),
    swagger(),
  ]);
  const byName = new Map(parts.flat().map((file) => [file.name, file]));
  return [...byName.values()];
};

/** Returns a file name with a hash of the content, so that it can be cached forever. */
const toHashedName = (stem: string, extension: string, words: string): string =>
  `${stem}-${sha256(words).slice(0, 10)}.${extension}`;

const app = async (): Promise<WebFile[]> => {
  const docs = await docsPages();
  const fonts = await terminalFonts();
  const logos = await buildLogos();
  const result = await Bun.build({
    entrypoints: [join(HERE, "app/main.tsx")],
    minify: true,
    splitting: true,
    target: "browser",
    format: "esm",
    naming: { entry: "[name]-[hash].[ext]", chunk: "[name]-[hash].[ext]" },
    define: {
      "process.env.NODE_ENV": '"production"',
      SLIPWAY_DOCS: JSON.stringify(docs.pages),
      SLIPWAY_FONTS: JSON.stringify(fonts.addresses),
      SLIPWAY_LOGOS: JSON.stringify(logos.address),
    },
    publicPath: PREFIX,
  });
  const scripts = await Promise.all(
    result.outputs.map(async (output) => ({
      name: basename(output.path),
      kind: output.kind,
      body: await output.text(),
    })),
  );
  const main = scripts.find(({ kind }) => kind === "entry-point");
  if (!main) throw new Error("the web app has no entry");
  const sheet = await styles("app/styles");
  const css = toHashedName("app", "css", sheet);
  const pictures = await loadPictures("app/pictures");
  const chunks = listImports(main, scripts).map(({ name }) => name);
  const html = await shell({ main: main.name, css, chunks, pictures, early: await buildEarlyScript(main, scripts) });
  return [
    {
      name: "app.html",
      type: "text/html",
      body: text(html),
      isPage: true,
      inline: hashesOfInline(html),
      types: ["slipway-worker"],
    },
    ...(await installable({ css, scripts, pictures })),
    { name: css, type: "text/css", body: text(sheet) },
    ...docs.files,
    ...fonts.files,
    logos.file,
    ...scripts.map(({ name, body }) => ({ name, type: "text/javascript", body: text(body) })),
  ];
};

/**
 * Joins all style sheets of a folder. Browsers that support light-dark() also support nesting, so only whitespace and comments are removed.
 */
const styles = async (folder: string): Promise<string> => {
  const names = readdirSync(join(HERE, folder)).filter((name) => name.endsWith(".css"));
  // The order of layers must be declared first.
  names.sort((a, b) => Number(b === "tokens.css") - Number(a === "tokens.css") || a.localeCompare(b));
  const sheets = await Promise.all(names.map((name) => Bun.file(join(HERE, folder, name)).text()));
  return sheets
    .join("\n")
    .replace(/\/\*[\s\S]*?\*\//g, "")
    .replace(/\s+/g, " ")
    .replace(/ ?([{};,]) ?/g, "$1")
    .replace(/: /g, ":")
    .replaceAll(";}", "}");
};

const shell = async ({
  main,
  css,
  chunks,
  pictures,
  early,
}: {
  main: string;
  css: string;
  chunks: string[];
  pictures: Pictures;
  early: string;
}): Promise<string> => {
  const template = await Bun.file(join(HERE, "app/app.html")).text();
  const symbols = Object.entries(ICONS).map(
    ([id, shape]) => `<symbol id="i-${id}" viewBox="0 0 16 16">${shape}</symbol>`,
  );
  // The browser fetches these while the server loads the page's first data.
  const ahead = [
    `<link rel="preload" as="style" href="${PREFIX}${css}">`,
    ...[main, ...chunks].map((name) => `<link rel="modulepreload" href="${PREFIX}${name}">`),
  ];
  const loads = [
    '<link rel="manifest" href="/manifest.webmanifest">',
    `<link rel="icon" type="image/svg+xml" href="${pictures.inline("icon.svg")}">`,
    `<link rel="apple-touch-icon" href="${pictures.address("icon-touch-180.png")}">`,
    `<link rel="stylesheet" href="${PREFIX}${css}">`,
    // Without `blocking`, the browser paints an empty page first, which takes time.
    `<script type="module" src="${PREFIX}${main}" blocking="render"></script>`,
  ];
  return template
    .replace("<!-- ahead -->", ahead.join("\n"))
    .replace("<!-- early -->", () => `<script>${early}</script>`)
    .replace("<!-- loads -->", loads.join("\n"))
    .replace("<!-- icons -->", symbols.join(""));
};

const swagger = (): Promise<WebFile[]> =>
  Promise.all(
    SWAGGER.map(async (name) => {
      const body = await Bun.file(Bun.resolveSync(`swagger-ui-dist/${name}`, HERE)).bytes();
      return { name: `swagger/${name}`, type: name.endsWith(".css") ? "text/css" : "text/javascript", body };
    }),
  );
