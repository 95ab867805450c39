// Serves the pages of src/web with their scripts and styles: compressed, with ETags, and under names with a content hash. Nothing is loaded
// from elsewhere, and inline content must match a hash in the page's policy (rules PG-1, WB-1 to WB-4).
import type { AnyElysia } from "elysia";
import { notFound } from "#base/errors.ts";
import type { ServedFile } from "#src/web/files.ts";
import { fileResponse } from "./encoding.ts";
import { getPath } from "./errors.ts";
import { operation } from "./operation.ts";
import { routes } from "./routes.ts";
import { type LoadInitialData, streamPage } from "./streamed-page.ts";

const PAGE_HEADERS = {
  "x-content-type-options": "nosniff",
  // The setup link has a token in its query.
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
} as const;

/**
 * Returns the page's content security policy. `inline` are the hashes of the page's inline scripts. Trusted Types are required; their only
 * policy lets the app register its service worker (src/web/app/shell/install.ts).
 */
const makePolicy = ({ inline = [], types = [], pictures }: Pick<ServedFile, "inline" | "types" | "pictures">): string =>
  [
    "default-src 'none'",
    `script-src ${["'self'", ...inline].join(" ")}`,
    "style-src 'self'",
    `img-src 'self' data: blob:${pictures === undefined ? "" : ` ${pictures}`}`,
    "font-src 'self'",
    "connect-src 'self'",
    "worker-src 'self'",
    "manifest-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    `trusted-types ${types.length > 0 ? types.join(" ") : "'none'"}`,
  ].join("; ");

const PREFIX = "/assets/";
const CACHE_FOREVER = "public, max-age=31536000, immutable";

export type WebFiles = () => Promise<ReadonlyMap<string, ServedFile>>;

type Names = Readonly<Record<string, string>>;

const PLACEMENTS = [
  ["workspace", ":workspace"],
  ["chat", ":chat"],
  ["agent", ":agent"],
] as const;

/**
 * Adds a route for each page and one for the files they load. `pages` maps paths to files, `roots` maps paths to files next to the pages,
 * and `redirects` maps old paths to new ones. `applyAppearance` changes a file to the deployment's appearance. `findDataLoader` returns a
 * reader of a user's initial data; such a page is never cached.
 */
export const webPages = (
  { pages, roots, redirects }: { readonly pages: Names; readonly roots: Names; readonly redirects: Names },
  files: WebFiles,
  applyAppearance: (file: ServedFile) => Promise<ServedFile>,
  findDataLoader: (request: Request) => LoadInitialData | undefined,
): AnyElysia => {
  const hidden = { detail: { hide: true } };
  // A page's initial data is read on the node that owns the resource in its path.
  const toPageOptions = (path: string) => {
    const [way] = PLACEMENTS.find(([, variable]) => path.split("/").includes(variable)) ?? [];
    return { detail: operation({ hide: true, placement: way }) };
  };
  const loadFile = async (name: string, isPage: boolean): Promise<ServedFile> => {
    const file = (await files()).get(name);
    if (!file || (file.isPage ?? false) !== isPage) throw notFound();
    return file;
  };
  let app: AnyElysia = routes();
  for (const [path, name] of Object.entries(pages)) {
    app = app.get(
      path,
      async ({ request }) => {
        const page = await applyAppearance(await loadFile(name, true));
        const headers = { ...PAGE_HEADERS, "content-security-policy": makePolicy(page), "cache-control": "no-cache" };
        const loadData = findDataLoader(request);
        return (loadData && streamPage(request, page, { loadData, headers })) ?? fileResponse(request, page, headers);
      },
      toPageOptions(path),
    );
  }
  for (const [path, name] of Object.entries(roots)) {
    const headers = { ...PAGE_HEADERS, "cache-control": "no-cache" };
    app = app.get(
      path,
      async ({ request }) => fileResponse(request, await applyAppearance(await loadFile(name, false)), headers),
      hidden,
    );
  }
  for (const [path, newPath] of Object.entries(redirects)) {
    const headers = { ...PAGE_HEADERS, location: newPath, "cache-control": "no-cache" };
    app = app.get(path, () => new Response(null, { status: 302, headers }), hidden);
  }
  return app.get(
    `${PREFIX}:file`,
    async ({ request }) => {
      const asset = await loadFile(getPath(request.url).slice(PREFIX.length), false);
      return fileResponse(request, asset, { ...PAGE_HEADERS, "cache-control": CACHE_FOREVER });
    },
    hidden,
  );
};

/** Loads the files once; after a failure, the next request retries. */
export const loadOnce = (load: WebFiles): WebFiles => {
  let loaded: ReturnType<WebFiles> | undefined;
  return () => {
    loaded ??= load().catch((error) => {
      loaded = undefined;
      throw error;
    });
    return loaded;
  };
};
