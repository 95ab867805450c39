// Builds everything the browser loads: the app, the remaining plain pages, and Swagger UI. src/build.ts packs the result into the binary; a
// server that runs from source builds it on the first request. It is separate from the server's build because it is minified and split,
// which the server must not be (the router reads the source of handlers).
import { readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { sha256 } from "#base/ids.ts";
import { ICONS } from "./app/icons.ts";
import { buildDocs } from "./docs.ts";
import { buildEarlyScript, listImports } from "./early.ts";
import type { WebFile } from "./files.ts";
import { loadTerminalFonts } from "./fonts.ts";
import { buildInstallFiles, encode, hashInlineScripts, loadPictures, type Pictures, PREFIX } from "./installable.ts";
import { buildLogos } from "./logos.ts";
import { PAGES } from "./pages.ts";
import { buildPlainPage } from "./plain-page.ts";

const FOLDER = import.meta.dirname;
/** Pages that belong to the app's build. */
const APP_PAGES = new Set(["app.html", "offline.html"]);
const SWAGGER_FILES = ["swagger-ui.css", "swagger-ui-bundle.js"];

/** Builds all files as they are served, before compression. Throws with the bundler's messages if the build fails. */
export const buildWeb = async (): Promise<WebFile[]> => {
  const fileGroups = await Promise.all([
    buildApp(),
    ...[...new Set(Object.values(PAGES))].filter((page) => !APP_PAGES.has(page)).map(buildPlainPage),
    buildSwagger(),
  ]);
  const byName = new Map(fileGroups.flat().map((file) => [file.name, file]));
  return [...byName.values()];
};

/** Returns a file name with a hash of the content, so that it can be cached forever. */
const toHashedName = (stem: string, extension: string, content: string): string =>
  `${stem}-${sha256(content).slice(0, 10)}.${extension}`;

const buildApp = async (): Promise<WebFile[]> => {
  const docs = await buildDocs();
  const fonts = await loadTerminalFonts();
  const logos = await buildLogos();
  const result = await Bun.build({
    entrypoints: [join(FOLDER, "app/main.tsx")],
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
  const stylesheet = await joinStylesheets("app/styles");
  const css = toHashedName("app", "css", stylesheet);
  const pictures = await loadPictures("app/pictures");
  const chunks = listImports(main, scripts).map(({ name }) => name);
  const html = await renderAppPage({
    main: main.name,
    css,
    chunks,
    pictures,
    early: await buildEarlyScript(main, scripts),
  });
  return [
    {
      name: "app.html",
      type: "text/html",
      body: encode(html),
      isPage: true,
      inline: hashInlineScripts(html),
      types: ["slipway-worker"],
    },
    ...(await buildInstallFiles({ css, scripts, pictures })),
    { name: css, type: "text/css", body: encode(stylesheet) },
    ...docs.files,
    ...fonts.files,
    logos.file,
    ...scripts.map(({ name, body }) => ({ name, type: "text/javascript", body: encode(body) })),
  ];
};

/**
 * Joins all style sheets of a folder. Browsers that support light-dark() also support nesting, so only whitespace and comments are removed.
 */
const joinStylesheets = async (folder: string): Promise<string> => {
  const names = readdirSync(join(FOLDER, folder)).filter((name) => name.endsWith(".css"));
  // The order of layers must be declared first.
  names.sort((a, b) => Number(b === "tokens.css") - Number(a === "tokens.css") || a.localeCompare(b));
  const sheets = await Promise.all(names.map((name) => Bun.file(join(FOLDER, folder, name)).text()));
  return sheets
    .join("\n")
    .replace(/\/\*[\s\S]*?\*\//g, "")
    .replace(/\s+/g, " ")
    .replace(/ ?([{};,]) ?/g, "$1")
    .replace(/: /g, ":")
    .replaceAll(";}", "}");
};

const renderAppPage = async ({
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
  const template = await Bun.file(join(FOLDER, "app/app.html")).text();
  const symbols = Object.entries(ICONS).map(
    ([id, shape]) => `<symbol id="i-${id}" viewBox="0 0 16 16">${shape}</symbol>`,
  );
  // The browser fetches these while the server loads the page's first data.
  const preloads = [
    `<link rel="preload" as="style" href="${PREFIX}${css}">`,
    ...[main, ...chunks].map((name) => `<link rel="modulepreload" href="${PREFIX}${name}">`),
  ];
  const tags = [
    '<link rel="manifest" href="/manifest.webmanifest">',
    `<link rel="icon" type="image/svg+xml" href="${pictures.inline("icon.svg")}">`,
    `<link rel="apple-touch-icon" href="${pictures.address("icon-touch-180.png")}">`,
    `<link rel="stylesheet" href="${PREFIX}${css}">`,
    // Without `blocking`, the browser paints an empty page first, which takes time.
    `<script type="module" src="${PREFIX}${main}" blocking="render"></script>`,
  ];
  return template
    .replace("<!-- ahead -->", preloads.join("\n"))
    .replace("<!-- early -->", () => `<script>${early}</script>`)
    .replace("<!-- loads -->", tags.join("\n"))
    .replace("<!-- icons -->", symbols.join(""));
};

const buildSwagger = (): Promise<WebFile[]> =>
  Promise.all(
    SWAGGER_FILES.map(async (name) => {
      const body = await Bun.file(Bun.resolveSync(`swagger-ui-dist/${name}`, FOLDER)).bytes();
      return { name: `swagger/${name}`, type: name.endsWith(".css") ? "text/css" : "text/javascript", body };
    }),
  );
