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

const COMMON = {
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
 * and `moved` maps old paths to new ones. `dress` applies the deployment's appearance to a file. `first` returns a reader of a user's
 * initial data; such a page is never cached.
 */
export const webPages = (
  { pages, roots, moved }: { readonly pages: Names; readonly roots: Names; readonly moved: Names },
  files: WebFiles,
  dress: (file: ServedFile) => Promise<ServedFile>,
  first: (request: Request) => LoadInitialData | undefined,
): AnyElysia => {
  const hidden = { detail: { hide: true } };
  // A page's initial data is read on the node that owns the resource in its path.
  const toPageOptions = (path: string) => {
    const [way] = PLACEMENTS.find(([, variable]) => path.split("/").includes(variable)) ?? [];
    return { detail: operation({ hide: true, placement: way }) };
  };
  const file = async (name: string, isPage: boolean): Promise<ServedFile> => {
    const found = (await files()).get(name);
    if (!found || (found.isPage ?? false) !== isPage) throw notFound();
    return found;
  };
  let app: AnyElysia = routes();
  for (const [path, name] of Object.entries(pages)) {
    app = app.get(
      path,
      async ({ request }) => {
        const page = await dress(await file(name, true));
        const headers = { ...COMMON, "content-security-policy": makePolicy(page), "cache-control": "no-cache" };
        const tell = first(request);
        return (tell && streamPage(request, page, { tell, headers })) ?? fileResponse(request, page, headers);
      },
      toPageOptions(path),
    );
  }
  for (const [path, name] of Object.entries(roots)) {
    const headers = { ...COMMON, "cache-control": "no-cache" };
    app = app.get(
      path,
      async ({ request }) => fileResponse(request, await dress(await file(name, false)), headers),
      hidden,
    );
  }
  for (const [path, to] of Object.entries(moved)) {
    const headers = { ...COMMON, location: to, "cache-control": "no-cache" };
    app = app.get(path, () => new Response(null, { status: 302, headers }), hidden);
  }
  return app.get(
    `${PREFIX}:file`,
    async ({ request }) => {
      const asset = await file(getPath(request.url).slice(PREFIX.length), false);
      return fileResponse(request, asset, { ...COMMON, "cache-control": CACHE_FOREVER });
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
