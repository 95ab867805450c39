// The error shown when an app cannot be displayed: a small page for people, the generic error body for programs. It loads nothing from
// elsewhere and repeats nothing from the request (rule AX-5).
import { COMMON_HEADERS } from "#base/network/common-headers.ts";
import { acceptsPage, type PlainPage, renderPlainPage } from "../http/plain-page.ts";

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
  | "disabled"
  | "spent"
  | "malformed"
  | "body_of_get"
  | "loop"
  | "needs_host";

type ErrorText = { status: number; title: string; text: string };

const ERROR_TEXTS: Record<Trouble, ErrorText> = {
  signed_out: { status: 401, title: "Sign in first", text: "You are signed out or your session has expired." },
  not_found: {
    status: 404,
    title: "Nothing to open here",
    text: "The app does not exist, or you don't have access to it.",
  },
  dormant: {
    status: 503,
    title: "The workspace is dormant",
    text: "It was not used for a long time. Wake it up, then start it.",
  },
  stopped: { status: 503, title: "The workspace is stopped", text: "Start it, then open the app again." },
  starting: { status: 503, title: "The workspace is starting", text: "Try again in a moment." },
  failed: {
    status: 503,
    title: "The workspace did not start",
    text: "Its last build failed. See the log for the reason.",
  },
  no_address: { status: 404, title: "The app has no address", text: "It does not listen inside the workspace." },
  agent_away: { status: 503, title: "The workspace cannot be reached", text: "Its agent is not connected right now." },
  silent: { status: 502, title: "The app is not responding", text: "Nothing listens at its address in the workspace." },
  late: { status: 504, title: "The app is not responding", text: "It accepted the request but did not respond." },
  broken: {
    status: 502,
    title: "The app closed the connection",
    text: "The app sent an invalid response or disconnected.",
  },
  foreign: { status: 403, title: "Forbidden", text: "The request came from a page of another site." },
  disabled: {
    status: 403,
    title: "Apps are not shown here",
    text: "An administrator disabled path-based apps. Apps open only on their own host names.",
  },
  spent: {
    status: 400,
    title: "Link already used",
    text: "The sign-in link was already used or has expired. Open the app again.",
  },
  needs_host: {
    status: 403,
    title: "This app needs its own host name",
    text: "Under this server's address, an app gets no cookies, and its scripts, styles, requests and sockets are blocked, so most apps stay blank. An administrator can set wildcard_access_url, such as *.apps.example.com, with a DNS entry and a certificate for these names. The app then opens on its own host name.",
  },
  loop: {
    status: 508,
    title: "Redirect loop",
    text: "The request came back to this server several times. Check where the port or the app forwards to.",
  },
  body_of_get: {
    status: 400,
    title: "A GET or HEAD request cannot have a body here",
    text: "The server does not pass the body of such a request to an app. Send the request with POST or QUERY, or through a forwarded port.",
  },
  malformed: { status: 400, title: "The request is malformed", text: "It can't be forwarded to an app." },
};

/** Returns the response; `home` is the target of the link back. */
export const respondTrouble = (
  request: Request,
  trouble: Trouble,
  home: URL,
  action?: PlainPage["action"],
): Response => {
  const { status, title, text } = ERROR_TEXTS[trouble];
  const headers = new Headers(COMMON_HEADERS);
  headers.set("referrer-policy", "no-referrer");
  if (status === 503) headers.set("retry-after", "5");
  if (status === 401 || status === 403) headers.set("www-authenticate", "Bearer");
  if (!acceptsPage(request)) {
    headers.set("content-type", "application/json; charset=utf-8");
    return new Response(JSON.stringify({ message: `${title}.`, detail: text }), { status, headers });
  }
  return renderPlainPage({ status, title, text, home: `${home.origin}/`, ...(action && { action }) }, headers);
};
