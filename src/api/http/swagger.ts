// /swagger: the API's documentation as a page, from files inside the binary. Nothing is fetched from elsewhere.
import { type AnyElysia, Elysia } from "elysia";
import uiCss from "swagger-ui-dist/swagger-ui.css" with { type: "file" };
import uiScript from "swagger-ui-dist/swagger-ui-bundle.js" with { type: "file" };
import { openApiDocument } from "./openapi.ts";
import { PAGE, PAGE_CSS, PAGE_SCRIPT } from "./swagger-page.ts";

// Swagger UI sets styles in the elements it makes, and shows small pictures as data URLs.
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; font-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";

const answer = (body: string | Blob, type: string): Response =>
  new Response(body, {
    headers: {
      "content-type": `${type}; charset=utf-8`,
      "content-security-policy": POLICY,
      "x-content-type-options": "nosniff",
      "cache-control": "no-cache",
    },
  });

/** The page, its files, and the document of `routes` at /swagger/json (made on the first request, then kept). */
export const swaggerPage = (routes: () => AnyElysia) => {
  let document: Promise<string> | undefined;
  const hidden = { detail: { hide: true } };
  return new Elysia({ prefix: "/swagger" })
    .get("", () => answer(PAGE, "text/html"), hidden)
    .get("/page.css", () => answer(PAGE_CSS, "text/css"), hidden)
    .get("/page.js", () => answer(PAGE_SCRIPT, "text/javascript"), hidden)
    .get("/ui.css", () => answer(Bun.file(uiCss), "text/css"), hidden)
    .get("/ui.js", () => answer(Bun.file(uiScript as unknown as string), "text/javascript"), hidden)
    .get(
      "/json",
      async () => {
        document ??= openApiDocument(routes()).then((made) => JSON.stringify(made));
        return answer(await document, "application/json");
      },
      hidden,
    );
};
