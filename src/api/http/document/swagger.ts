// /swagger: the API's documentation as a page, from files inside the binary. Nothing is fetched from elsewhere.
import type { AnyElysia } from "elysia";
import { notFound } from "#base/errors.ts";
import { type ServedFile, withTwins } from "#src/web/files.ts";
import { fileResponse } from "../encoding.ts";
import type { WebFiles } from "../pages.ts";
import { routes } from "../routes.ts";
import { openApiDocument } from "./openapi.ts";
import { PAGE, PAGE_CSS, PAGE_SCRIPT } from "./swagger-page.ts";

// Swagger UI sets inline styles on its elements and uses data URLs for icons.
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; font-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

const HEADERS = {
  "content-security-policy": POLICY,
  "x-content-type-options": "nosniff",
  // Cached but revalidated each time; most visits transfer only ETags.
  "cache-control": "no-cache",
};

/** Files generated here instead of in the web build; compressed on first request. */
const makeLazyFile = (
  name: string,
  type: string,
  generate: () => string | Promise<string>,
): (() => Promise<ServedFile>) => {
  let file: Promise<ServedFile> | undefined;
  const make = async (): Promise<ServedFile> =>
    withTwins({ name, type, body: new TextEncoder().encode(await generate()) }, "fast");
  return () => {
    file ??= make();
    return file;
  };
};

/** Serves the page, its files, and the document of `makeApp` at /swagger/json (generated on the first request, then cached). */
export const swaggerPage = (makeApp: () => AnyElysia, files: WebFiles) => {
  const hidden = { detail: { hide: true } };
  const findBuilt = (name: string) => async (): Promise<ServedFile> => {
    const file = (await files()).get(name);
    if (!file) throw notFound();
    return file;
  };
  const filesByPath: Record<string, () => Promise<ServedFile>> = {
    "": makeLazyFile("swagger", "text/html", () => PAGE),
    "/page.css": makeLazyFile("page.css", "text/css", () => PAGE_CSS),
    "/page.js": makeLazyFile("page.js", "text/javascript", () => PAGE_SCRIPT),
    "/ui.css": findBuilt("swagger/swagger-ui.css"),
    "/ui.js": findBuilt("swagger/swagger-ui-bundle.js"),
    "/json": makeLazyFile("json", "application/json", async () => JSON.stringify(await openApiDocument(makeApp()))),
  };
  let app: AnyElysia = routes({ prefix: "/swagger" });
  for (const [path, file] of Object.entries(filesByPath)) {
    app = app.get(path, async ({ request }) => fileResponse(request, await file(), HEADERS), hidden);
  }
  return app;
};
