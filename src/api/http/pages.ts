// Serves the pages of src/web with their scripts and styles. In the compiled binary they lie inside it; from source they are bundled
// when the first page is asked for. Nothing is inline and nothing comes from elsewhere, and the headers say so (rule PG-1).
import { basename } from "node:path";
import { type AnyElysia, Elysia } from "elysia";
import { notFound } from "#base/errors.ts";
import { pathOf } from "./errors.ts";

const HEADERS = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  // The setup link carries a token in its query.
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
} as const;

type File = { readonly body: string; readonly type: string };
type Bundled = { readonly pages: ReadonlyMap<string, File>; readonly assets: ReadonlyMap<string, File> };
type Output = { name: string; type: string; body: string; isPage: boolean };

const PREFIX = "/assets/";

/** What `import page from "./page.html"` gives: a manifest in the binary, only the place of the source elsewhere. */
export type Page = { readonly index: string; readonly files?: readonly { path: string; loader: string }[] };

const TYPES: Record<string, string> = { js: "text/javascript", css: "text/css", html: "text/html" };

const fromBinary = async (page: Page): Promise<Output[]> => {
  const files = page.files ?? [];
  return Promise.all(
    files.map(async ({ path, loader }) => ({
      name: basename(path),
      type: TYPES[loader] ?? "application/octet-stream",
      body: await Bun.file(path).text(),
      isPage: loader === "html",
    })),
  );
};

const fromSource = async (page: Page): Promise<Output[]> => {
  const { outputs } = await Bun.build({ entrypoints: [page.index], publicPath: "/", minify: true });
  return Promise.all(
    outputs.map(async (output) => ({
      name: basename(output.path),
      type: (output.type.split(";")[0] ?? "").trim(),
      body: await output.text(),
      isPage: output.path.endsWith(".html"),
    })),
  );
};

const bundle = async (pages: Readonly<Record<string, Page>>): Promise<Bundled> => {
  const made: Bundled & { pages: Map<string, File>; assets: Map<string, File> } = {
    pages: new Map(),
    assets: new Map(),
  };
  for (const [path, page] of Object.entries(pages)) {
    const outputs = await (page.files ? fromBinary(page) : fromSource(page));
    const assets = outputs.filter((one) => !one.isPage);
    for (const { name, type, body } of assets) made.assets.set(name, { body, type });
    for (const { body, type } of outputs.filter((one) => one.isPage)) {
      const html = assets.reduce((text, { name }) => text.replaceAll(`"/${name}"`, `"${PREFIX}${name}"`), body);
      made.pages.set(path, { body: html, type });
    }
  }
  return made;
};

const answer = (file: File | undefined, cache: string): Response => {
  if (!file) throw notFound();
  return new Response(file.body, {
    headers: { ...HEADERS, "content-type": `${file.type}; charset=utf-8`, "cache-control": cache },
  });
};

/** One route for each page, and one for what they load. */
export const webPages = (pages: Readonly<Record<string, Page>>): AnyElysia => {
  let bundled: Promise<Bundled> | undefined;
  const ready = (): Promise<Bundled> => {
    bundled ??= bundle(pages).catch((error) => {
      // The next request may try again.
      bundled = undefined;
      throw error;
    });
    return bundled;
  };
  const hidden = { detail: { hide: true } };
  let app: AnyElysia = new Elysia();
  for (const path of Object.keys(pages)) {
    app = app.get(path, async () => answer((await ready()).pages.get(path), "no-store"), hidden);
  }
  // Their names hold a hash of what they are.
  return app.get(
    `${PREFIX}:file`,
    async ({ request }) =>
      answer((await ready()).assets.get(basename(pathOf(request.url))), "public, max-age=31536000, immutable"),
    hidden,
  );
};
