// What is said when an app cannot be shown: a small quiet page for people, the generic body for programs. Nothing on it comes from
// elsewhere, and nothing of what was asked for is repeated (rule AX-5).
import { sha256 } from "#base/ids.ts";
import { COMMON_HEADERS } from "../errors.ts";

export type Trouble =
  | "signed_out"
  | "not_found"
  | "dormant"
  | "stopped"
  | "starting"
  | "failed"
  | "no_address"
  | "agent_away"
  | "silent"
  | "late"
  | "broken"
  | "foreign"
  | "spent"
  | "malformed";

type Words = { status: number; title: string; text: string };

const WORDS: Record<Trouble, Words> = {
  signed_out: { status: 401, title: "Sign in first", text: "You are signed out or your session has expired." },
  not_found: { status: 404, title: "Nothing to open here", text: "There is no such app, or you may not open it." },
  dormant: {
    status: 503,
    title: "The workspace sleeps",
    text: "It has not been used for long. Wake it up, then start it.",
  },
  stopped: { status: 503, title: "The workspace is stopped", text: "Start it, then open the app again." },
  starting: { status: 503, title: "The workspace is starting", text: "Try again in a moment." },
  failed: { status: 503, title: "The workspace did not start", text: "Its last build has failed; the log says why." },
  no_address: { status: 404, title: "The app has no address", text: "It does not listen inside the workspace." },
  agent_away: { status: 503, title: "The workspace cannot be reached", text: "Its agent is not connected right now." },
  silent: { status: 502, title: "The app does not answer", text: "Nothing listens at its address in the workspace." },
  late: { status: 504, title: "The app does not answer", text: "It has taken the request and says nothing." },
  broken: {
    status: 502,
    title: "The app's answer broke off",
    text: "What came from the app makes no sense, or it went away.",
  },
  foreign: { status: 403, title: "Forbidden", text: "The request came from a page of another site." },
  spent: {
    status: 400,
    title: "This link was used",
    text: "The sign-in link was used already or is too old. Open the app again.",
  },
  malformed: { status: 400, title: "The request is malformed", text: "It cannot be passed on to an app." },
};

const STYLE = `
:root { color-scheme: light dark; --ground: #f6f7f9; --ink: #1b1f24; --faint: #59636e; --accent: #0b5cad; font: 16px/1.5 system-ui, sans-serif; }
@media (prefers-color-scheme: dark) { :root { --ground: #14171b; --ink: #e6e9ed; --faint: #9aa5b1; --accent: #7ab7f5; } }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; background: var(--ground); color: var(--ink); }
main { max-width: 28rem; padding: 2rem; }
h1 { font-size: 1.25rem; margin: 0 0 .5rem; }
p { margin: 0 0 1.25rem; color: var(--faint); }
a { color: var(--accent); margin-right: 1.25rem; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
`;

const POLICY = `default-src 'none'; style-src 'sha256-${Buffer.from(sha256(STYLE), "hex").toString("base64")}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

/** True when a person is looking: a browser that asks for a page. */
export const wantsPage = ({ method, headers }: Request): boolean =>
  (method === "GET" || method === "HEAD") && (headers.get("accept")?.includes("text/html") ?? false);

/** The answer; `home` is where the way back leads. */
export const troubleAnswer = (request: Request, trouble: Trouble, home: URL): Response => {
  const { status, title, text } = WORDS[trouble];
  const headers = new Headers(COMMON_HEADERS);
  headers.set("referrer-policy", "no-referrer");
  if (status === 503) headers.set("retry-after", "5");
  if (status === 401 || status === 403) headers.set("www-authenticate", "Bearer");
  if (!wantsPage(request)) {
    headers.set("content-type", "application/json; charset=utf-8");
    return new Response(JSON.stringify({ message: `${title}.`, detail: text }), { status, headers });
  }
  headers.set("content-type", "text/html; charset=utf-8");
  headers.set("content-security-policy", POLICY);
  const page = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${title}</title><style>${STYLE}</style></head>
<body><main><h1>${title}</h1><p>${text}</p><a href="">Try again</a><a href="${home.origin}/">Home</a></main></body>
</html>
`;
  return new Response(page, { status, headers });
};
