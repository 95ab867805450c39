// The page around Swagger UI: its frame, its colors, and a script that fixes shortcomings of Swagger UI: control names, focus handling, and
// streams, which it cannot display. swagger.ts serves all three.

import { SESSION_COOKIE } from "../cookies.ts";
import { SESSION_HEADER } from "../identify.ts";
import { ANY_ID, ANY_TIME, loadIds, withIds } from "./example-ids.ts";

export const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Slipway API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/swagger/ui.css">
<link rel="stylesheet" href="/swagger/page.css">
</head>
<body>
<header class="bar"><a class="brand" href="/">Slipway</a><nav aria-label="Main"><a href="/settings/tokens">API tokens</a></nav></header>
<noscript><p class="bar">This page needs JavaScript. The document itself is at /swagger/json.</p></noscript>
<main id="swagger-ui"></main>
<script src="/swagger/ui.js"></script>
<script src="/swagger/page.js"></script>
</body>
</html>
`;

export const PAGE_CSS = `html { background: #fafafa; }
html.dark-mode { background: #1c2022; }
body { margin: 0; }
.bar { display: flex; flex-wrap: wrap; justify-content: space-between; align-items: center; gap: 0 20px; max-width: 1420px; margin: 0 auto; padding: 6px 20px; font: 16px/1.5 system-ui, sans-serif; color: #1b1f24; }
.bar a { display: inline-block; padding: 8px 0; font-size: 16px; color: #0b5cad; text-decoration: none; }
.bar a:hover { text-decoration: underline; }
.bar .brand { color: inherit; font-weight: 650; font-size: 17.6px; }
.dark-mode .bar { color: #e6e9ed; }
.dark-mode .bar nav a { color: #7ab7f5; }
:focus-visible { outline: 2px solid #2a6cb5; outline-offset: 2px; }
.dark-mode :focus-visible { outline-color: #7ab7f5; }
.swagger-ui :is(.topbar, .response-col_links) { display: none; }
.swagger-ui .info { margin: 16px 0 24px; }
.swagger-ui #servers { max-width: calc(100vw - 64px); }
.swagger-ui .scheme-container { background: none; box-shadow: none; padding: 0 0 8px; }
.swagger-ui .info .title small { background: #5b6470; }
.swagger-ui .info .title small.version-stamp { background: #41700c; }
html:not(.dark-mode) .swagger-ui .btn.authorize { color: #0b7a43; border-color: #0b7a43; }
html:not(.dark-mode) .swagger-ui .btn.authorize svg { fill: #0b7a43; }
html:not(.dark-mode) .swagger-ui .btn.try-out__btn.cancel { color: #b3261e; border-color: #b3261e; }
html.dark-mode .swagger-ui .btn.try-out__btn.cancel { color: #ff9b93; border-color: #ff9b93; }
html:not(.dark-mode) .swagger-ui .info a { color: #2a6cb5; }
html:not(.dark-mode) .swagger-ui .parameter__in { color: #59636e; }
html:not(.dark-mode) .swagger-ui .parameter__name.required::after, html:not(.dark-mode) .swagger-ui .parameter__name.required span { color: #b3261e; }
.swagger-ui .btn.execute { color: #fff; background: #2a6cb5; border-color: #2a6cb5; }
.swagger-ui .download-contents { background: #59636e; }
.swagger-ui .opblock .opblock-summary-method { text-shadow: none; }
html:not(.dark-mode) .swagger-ui .opblock-get .opblock-summary-method { background: #1f66b3; }
html:not(.dark-mode) .swagger-ui .opblock-post .opblock-summary-method { background: #17774a; }
html:not(.dark-mode) .swagger-ui .opblock-put .opblock-summary-method { background: #9a5a00; }
html:not(.dark-mode) .swagger-ui .opblock-patch .opblock-summary-method { background: #0d716a; }
html:not(.dark-mode) .swagger-ui .opblock-delete .opblock-summary-method { background: #b3261e; }
html:not(.dark-mode) .swagger-ui :is(input[type="text"], textarea, select) { border-color: #59636e; }
html.dark-mode .swagger-ui :is(input[type="text"], textarea, select) { border-color: #7d8794; }
.swagger-ui .highlight-code span[style*="211, 99, 99"] { color: #f3a5a5 !important; }
.swagger-ui .opblock .opblock-summary-path { word-break: normal; overflow-wrap: anywhere; }
@media (prefers-reduced-motion: reduce) { .swagger-ui * { transition: none !important; animation-duration: 0s !important; } }
@media (max-width: 640px) {
  .bar { padding: 6px 8px; }
  .swagger-ui .wrapper, .swagger-ui .info { padding: 0 8px; }
  .swagger-ui .info .title { font-size: 28px; }
  .swagger-ui .opblock .opblock-summary-method { min-width: 58px; padding: 6px 0; }
  .swagger-ui .opblock .opblock-summary-description { display: none; }
  .swagger-ui .opblock-tag small { display: none; }
}
`;

// Swagger UI has its own dark mode; make it follow the system setting.
export const PAGE_SCRIPT = `const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
follow();
dark.addEventListener("change", follow);

// Swagger UI shows a response only when it is complete and does not support WebSockets, so a stream is shown by its first seconds.
const STREAM_SECONDS = 3;
const STREAM_CONTINUES = ": The stream continues. This page shows its first " + STREAM_SECONDS + " seconds.";
const HEADER = "${SESSION_HEADER}";

const startOfStream = async (response) => {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const timeout = AbortSignal.timeout(STREAM_SECONDS * 1000);
  timeout.addEventListener("abort", () => reader.cancel());
  let text = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) text += part.value;
  return timeout.aborted ? text + STREAM_CONTINUES : text;
};

const startOfSocket = (url, token) => {
  const address = new URL(url);
  address.protocol = address.protocol.replace("http", "ws");
  if (token) address.searchParams.set("${SESSION_COOKIE}", token);
  const socket = new WebSocket(address);
  const timeout = AbortSignal.timeout(STREAM_SECONDS * 1000);
  timeout.addEventListener("abort", () => socket.close());
  let text = "";
  socket.onmessage = ({ data }) => {
    text += (typeof data === "string" ? data : "(" + data.size + " bytes)") + "\\n";
  };
  return new Promise((resolve) => {
    socket.onclose = ({ code, reason }) => resolve(text + (timeout.aborted ? STREAM_CONTINUES : ": The server closed it: " + code + " " + reason));
  });
};

const ask = async (url, options) => {
  // Uses the credentials authorized on this page, not the browser's session.
  const token = options.headers?.[HEADER];
  const response = await fetch(url, token ? { ...options, credentials: "omit" } : options);
  const { status, statusText, headers } = response;
  if ((headers.get("content-type") ?? "").startsWith("text/event-stream")) {
    return new Response(await startOfStream(response), { status, statusText, headers });
  }
  if (status !== 400 || !(await response.clone().text()).includes("send an upgrade request")) return response;
  return new Response(await startOfSocket(url, token), { headers: { "content-type": "text/plain" } });
};

const nameAll = (selector, nameOf) => {
  for (const one of document.querySelectorAll(selector + ":not([aria-label])")) one.setAttribute("aria-label", nameOf(one));
};
let dialog = null;
let before = null;
const repairLabels = () => {
  nameAll(".close-modal", () => "Close");
  nameAll(".auth-container input", (one) => one.closest(".auth-container").querySelector("h4 code").textContent);
  nameAll("[data-param-name] :is(input, select, textarea)", (one) => one.closest("[data-param-name]").dataset.paramName);
  nameAll(".body-param__text", () => "Request body");
  nameAll(".opblock-section-request-body select, .response-control-media-type select", () => "Media type");
  const shown = document.querySelector(".modal-ux");
  if (shown === dialog) return;
  dialog = shown;
  if (!dialog) return before?.focus();
  dialog.setAttribute("role", "dialog");
  dialog.setAttribute("aria-modal", "true");
  dialog.setAttribute("aria-label", "Authorize");
  // Every field has autofocus and the last one wins; the first one should have it.
  dialog.querySelector(".auth-container :is(input, button)").focus();
};
document.addEventListener("focusin", ({ target }) => {
  if (!target.closest(".modal-ux")) before = target;
});
// Keep Tab inside the open dialog.
document.addEventListener("keydown", (event) => {
  if (!dialog || event.key !== "Tab") return;
  const stops = [...dialog.querySelectorAll("input, button")];
  const next = stops.indexOf(document.activeElement) + (event.shiftKey ? -1 : 1);
  stops.at(next % stops.length).focus();
  event.preventDefault();
});
new MutationObserver(repairLabels).observe(document.body, { childList: true, subtree: true });

const idsOf = ${loadIds};
const withIds = ${withIds};
const read = async (path) => {
  const response = await fetch(path);
  return response.ok ? response.json() : undefined;
};

const show = (spec) => SwaggerUIBundle({
  spec,
  dom_id: "#swagger-ui",
  deepLinking: true,
  persistAuthorization: false,
  displayRequestDuration: true,
  docExpansion: "none",
  defaultModelsExpandDepth: -1,
  tryItOutEnabled: true,
  validatorUrl: null,
  requestInterceptor: (request) => {
    request.userFetch = ask;
    return request;
  },
});

Promise.all([read("/swagger/json"), idsOf(read, Date.now()).catch(() => ({}))]).then(([document, ids]) => {
  window.ui = show(withIds(document, ids, ["${ANY_ID}", "${ANY_TIME}"]));
});
`;
