// A small static page with one message, such as that an app cannot be shown or an address does not exist. It loads nothing from elsewhere
// and contains no script.
import { sha256 } from "#base/ids.ts";

const STYLE = `
:root { color-scheme: light dark; --ground: #f6f7f9; --ink: #1b1f24; --faint: #59636e; --accent: #0b5cad; font: 16px/1.5 system-ui, sans-serif; }
@media (prefers-color-scheme: dark) { :root { --ground: #14171b; --ink: #e6e9ed; --faint: #9aa5b1; --accent: #7ab7f5; } }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; background: var(--ground); color: var(--ink); overflow-wrap: anywhere; }
main { max-width: 28rem; padding: 2rem; }
h1 { font-size: 1.25rem; margin: 0 0 .5rem; }
p { margin: 0 0 .75rem; color: var(--faint); }
a { display: inline-block; padding: .5rem 0; color: var(--accent); margin-right: 1.25rem; }
ol { list-style: none; margin: 0 0 1rem; padding: 0; color: var(--faint); }
li::before { content: "\\25CB"; display: inline-block; width: 1.5rem; }
li.done::before { content: "\\2713"; }
li.now { color: var(--ink); font-weight: 600; }
li.now::before { content: "\\25CF"; color: var(--accent); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
`;

const POLICY = `default-src 'none'; style-src 'sha256-${Buffer.from(sha256(STYLE), "hex").toString("base64")}'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

/** Returns whether a browser is asking for a page. */
export const acceptsPage = ({ method, headers }: Request): boolean =>
  (method === "GET" || method === "HEAD") && (headers.get("accept")?.includes("text/html") ?? false);

export type PlainPage = {
  readonly status: number;
  readonly title: string;
  readonly text: string;
  readonly home: string;
  /** What a person can do instead of retrying. */
  readonly action?: { readonly href: string; readonly text: string };
};

/**
 * Returns the page, with the given headers and its own. `home` is the target of the link back; for transient errors, the page offers a
 * retry.
 */
export const renderPlainPage = ({ status, title, text, home, action }: PlainPage, headers: Headers): Response => {
  setHeaders(headers);
  const { href, text: linkText } = action ?? { href: "", text: "Try again" };
  const retryLink = status === 404 ? "" : `<a href="${Bun.escapeHTML(href)}">${Bun.escapeHTML(linkText)}</a>`;
  const body = `<h1>${Bun.escapeHTML(title)}</h1><p>${Bun.escapeHTML(text)}</p>${retryLink}<a href="${Bun.escapeHTML(home)}">Home</a>`;
  return new Response(renderDocument(title, "", body), { status, headers });
};

export type Step = { readonly text: string; readonly state: "done" | "now" | "later" };

/** Seconds after which the waiting page reloads. */
const RELOAD_SECONDS = 2;

/** Returns a page that shows progress and reloads itself until it gets a different response. */
export const renderWaitingPage = (
  { title, steps, note }: { readonly title: string; readonly steps: readonly Step[]; readonly note: string },
  headers: Headers,
): Response => {
  setHeaders(headers);
  const items = steps.map(
    ({ text, state }) =>
      `<li class="${state}"${state === "now" ? ' aria-current="step"' : ""}>${Bun.escapeHTML(text)}</li>`,
  );
  const body = `<h1>${Bun.escapeHTML(title)}</h1><ol>${items.join("")}</ol><p role="status">${Bun.escapeHTML(note)}</p>`;
  const reloadTag = `<meta http-equiv="refresh" content="${RELOAD_SECONDS}">`;
  return new Response(renderDocument(title, reloadTag, body), { status: 503, headers });
};

const setHeaders = (headers: Headers): void => {
  headers.set("content-type", "text/html; charset=utf-8");
  headers.set("content-security-policy", POLICY);
  headers.set("referrer-policy", "no-referrer");
};

const renderDocument = (title: string, head: string, body: string): string => `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">${head}<title>${Bun.escapeHTML(title)} · Slipway</title><link rel="icon" href="data:,"><style>${STYLE}</style></head>
<body><main>${body}</main></body>
</html>
`;
