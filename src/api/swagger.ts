// /swagger: the API's documentation as a page, from files inside the binary. Nothing is fetched from elsewhere.
import { type AnyElysia, Elysia } from "elysia";
import uiCss from "swagger-ui-dist/swagger-ui.css" with { type: "file" };
import uiScript from "swagger-ui-dist/swagger-ui-bundle.js" with { type: "file" };
import { openApiDocument } from "./openapi.ts";

// Swagger UI sets styles in the elements it makes, and shows small pictures as data URLs.
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; font-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Slipway API</title>
<link rel="stylesheet" href="/swagger/ui.css">
<link rel="stylesheet" href="/swagger/page.css">
</head>
<body>
<div id="swagger-ui"></div>
<script src="/swagger/ui.js"></script>
<script src="/swagger/page.js"></script>
</body>
</html>
`;

const PAGE_CSS = `html { background: #fafafa; }
body { margin: 0; }
.swagger-ui .topbar { display: none; }
.swagger-ui .info { margin: 32px 0 24px; }
.swagger-ui .scheme-container { background: none; box-shadow: none; padding: 0 0 8px; }
html:not(.dark-mode) .swagger-ui .btn.authorize { color: #0b7a43; border-color: #0b7a43; }
html:not(.dark-mode) .swagger-ui .btn.authorize svg { fill: #0b7a43; }
html:not(.dark-mode) .swagger-ui .info a { color: #2a6cb5; }
.swagger-ui .opblock .opblock-summary-method { text-shadow: none; }
.swagger-ui .opblock .opblock-summary-path { word-break: normal; overflow-wrap: anywhere; }
@media (max-width: 640px) {
  .swagger-ui .wrapper, .swagger-ui .info { padding: 0 8px; }
  .swagger-ui .info .title { font-size: 28px; }
  .swagger-ui .opblock .opblock-summary-method { min-width: 58px; padding: 6px 0; }
  .swagger-ui .opblock .opblock-summary-description { display: none; }
  .swagger-ui .opblock-tag small { display: none; }
}
`;

// Swagger UI has a dark mode of its own; it follows the system's wish.
const PAGE_SCRIPT = `const wish = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", wish.matches);
follow();
wish.addEventListener("change", follow);
window.ui = SwaggerUIBundle({
  url: "/swagger/json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  persistAuthorization: false,
  displayRequestDuration: true,
  docExpansion: "none",
  defaultModelsExpandDepth: -1,
  tryItOutEnabled: true,
  validatorUrl: null,
});
`;

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
