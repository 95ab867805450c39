// Serves the pages of src/web with their scripts and styles: compressed, tagged, and under names that hold a hash of what they are.
// Nothing comes from elsewhere and nothing inline but what the page's policy names by its hash (rules PG-1, WB-1 to WB-4).
import type { AnyElysia } from "elysia";
import { notFound } from "#base/errors.ts";
import type { ServedFile } from "#src/web/files.ts";
import { fileAnswer } from "./encoding.ts";
import { getPath } from "./errors.ts";
import { operation } from "./operation.ts";
import { routes } from "./routes.ts";
import { streamedPage, type Tell } from "./streamed-page.ts";

const COMMON = {
  "x-content-type-options": "nosniff",
  // The setup link carries a token in its query.
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
} as const;

/**
 * `inline` are the hashes of the page's own scripts. Only what scripts make themselves may run or be shown as HTML; the app may name its
 * service worker, by the one policy of Trusted Types there is (src/web/app/shell/install.ts).
 */
const policy = ({ inline = [], types = [], pictures }: Pick<ServedFile, "inline" | "types" | "pictures">): string =>
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
const FOR_EVER = "public, max-age=31536000, immutable";

export type WebFiles = () => Promise<ReadonlyMap<string, ServedFile>>;

type Names = Readonly<Record<string, string>>;

const PLACES = [
  ["workspace", ":workspace"],
  ["chat", ":chat"],
  ["agent", ":agent"],
] as const;

/**
 * One route for each page, and one for what they load. `pages` names the file shown at a path, `roots` a file alongside the pages, `moved`
 * the path where a page is now that was at another. `dress` gives a file the face of the deployment. `first` gives what tells the
 * page's beginning, where that is someone's own; nobody may keep such a page.
 */
export const webPages = (
  { pages, roots, moved }: { readonly pages: Names; readonly roots: Names; readonly moved: Names },
  files: WebFiles,
  dress: (file: ServedFile) => Promise<ServedFile>,
  first: (request: Request) => Tell | undefined,
): AnyElysia => {
  const hidden = { detail: { hide: true } };
  // What a page begins with is read where the thing of its path is.
  const placed = (path: string) => {
    const [way] = PLACES.find(([, variable]) => path.split("/").includes(variable)) ?? [];
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
        const headers = { ...COMMON, "content-security-policy": policy(page), "cache-control": "no-cache" };
        const tell = first(request);
        return (tell && streamedPage(request, page, { tell, headers })) ?? fileAnswer(request, page, headers);
      },
      placed(path),
    );
  }
  for (const [path, name] of Object.entries(roots)) {
    const headers = { ...COMMON, "cache-control": "no-cache" };
    app = app.get(
      path,
      async ({ request }) => fileAnswer(request, await dress(await file(name, false)), headers),
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
      return fileAnswer(request, asset, { ...COMMON, "cache-control": FOR_EVER });
    },
    hidden,
  );
};

/** Asks for the files once; after a failure the next request tries again. */
export const onceLoaded = (load: WebFiles): WebFiles => {
  let loaded: ReturnType<WebFiles> | undefined;
  return () => {
    loaded ??= load().catch((error) => {
      loaded = undefined;
      throw error;
    });
    return loaded;
  };
};
