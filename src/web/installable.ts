// The files that make the app installable: the manifest with its icons, the service worker, and the offline page.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { sha256 } from "#base/ids.ts";
import type { WebFile } from "./files.ts";

const FOLDER = import.meta.dirname;
export const PREFIX = "/assets/";
const OFFLINE = "/offline";
/** The light-mode values of `--accent` and `--bg` in tokens.css. */
const [ACCENT, GROUND] = ["#0a6870", "#fffffe"];

export const encode = (words: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(words);

/** Returns the hashes of the page's inline scripts. The page's policy lists them, so that no other inline script runs. */
export const hashInlineScripts = (html: string): string[] =>
  [...html.matchAll(/<script>([\s\S]*?)<\/script>/g)].map(
    ([, script = ""]) => `'sha256-${Buffer.from(sha256(script), "hex").toString("base64")}'`,
  );

/** Images under names that contain their hashes. */
export type Pictures = {
  readonly files: readonly WebFile[];
  address(name: string): string;
  /** Returns the image as a data URL: browsers fetch a page's icon again on every navigation. */
  inline(name: string): string;
};

export const loadPictures = async (folder: string): Promise<Pictures> => {
  const pictures = await Promise.all(
    readdirSync(join(FOLDER, folder)).map(async (name) => {
      const body = await Bun.file(join(FOLDER, folder, name)).bytes();
      const hash = sha256(body).slice(0, 10);
      const type = name.endsWith(".svg") ? "image/svg+xml" : "image/png";
      return { name, file: { name: name.replace(/\.(\w+)$/, `-${hash}.$1`), type, body } };
    }),
  );
  const getPicture = (name: string): WebFile => {
    const found = pictures.find((one) => one.name === name);
    if (!found) throw new Error(`there is no picture ${name} in ${folder}`);
    return found.file;
  };
  return {
    files: pictures.map(({ file }) => file),
    address: (name) => PREFIX + getPicture(name).name,
    inline(name) {
      const { type, body } = getPicture(name);
      return `data:${type};base64,${Buffer.from(body).toString("base64")}`;
    },
  };
};

const makeManifest = ({ address }: Pictures): object => ({
  id: "/",
  name: "Slipway",
  short_name: "Slipway",
  start_url: "/",
  scope: "/",
  display: "standalone",
  description: "Workspaces, chats and terminals",
  background_color: GROUND,
  theme_color: ACCENT,
  icons: [
    { src: address("icon-192.png"), sizes: "192x192", type: "image/png" },
    { src: address("icon-512.png"), sizes: "512x512", type: "image/png" },
    { src: address("icon-maskable-512.png"), sizes: "512x512", type: "image/png", purpose: "maskable" },
  ],
  shortcuts: [
    { name: "New workspace", url: "/new" },
    { name: "New chat", url: "/chats" },
    { name: "Terminals", url: "/terminals" },
  ],
});

type BuildOutput = { readonly css: string; readonly scripts: readonly { name: string }[]; readonly pictures: Pictures };

/** Builds the files. The worker's text changes with every file of the app, so that browsers update it. */
export const buildInstallFiles = async ({ css, scripts, pictures }: BuildOutput): Promise<WebFile[]> => {
  const template = await Bun.file(join(FOLDER, "offline.html")).text();
  const offline = template.replace("<!-- loads -->", `<link rel="stylesheet" href="${PREFIX}${css}">`);
  const files = [css, ...scripts.map(({ name }) => name)].map((name) => PREFIX + name);
  const built = await Bun.build({
    entrypoints: [join(FOLDER, "app/sw.ts")],
    minify: true,
    target: "browser",
    format: "iife",
    define: {
      FILES: JSON.stringify(files),
      PICTURE: JSON.stringify(pictures.address("icon-192.png")),
      OFFLINE: JSON.stringify({ path: OFFLINE, needs: [PREFIX + css] }),
      VERSION: JSON.stringify(sha256(files.join() + offline).slice(0, 10)),
    },
  });
  const [worker] = built.outputs;
  if (!worker) throw new Error("the service worker was not built");
  return [
    { name: "sw.js", type: "text/javascript", body: encode(await worker.text()) },
    {
      name: "manifest.webmanifest",
      type: "application/manifest+json",
      body: encode(JSON.stringify(makeManifest(pictures))),
    },
    {
      name: "offline.html",
      type: "text/html",
      body: encode(offline),
      isPage: true,
      inline: hashInlineScripts(offline),
    },
    ...pictures.files,
  ];
};
