// What is said when an app cannot be shown: a small quiet page for people, the generic body for programs. Nothing on it comes from
// elsewhere, and nothing of what was asked for is repeated (rule AX-5).
import { COMMON_HEADERS } from "#base/network/common-headers.ts";
import { type Plain, plainPage, wantsPage } from "../http/plain-page.ts";

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
  disabled: {
    status: 403,
    title: "Apps are not shown here",
    text: "An administrator has switched apps below this address off: they are shown on hosts of their own only.",
  },
  spent: {
    status: 400,
    title: "This link was used",
    text: "The sign-in link was used already or is too old. Open the app again.",
  },
  needs_host: {
    status: 403,
    title: "This app needs its own host name",
    text: "Below this server's address, a page gets no cookies, and its scripts, styles, requests and sockets are refused, so most apps stay blank. An administrator can set wildcard_access_url, such as *.apps.example.com, with a DNS entry and a certificate for these names. Then the app opens at a host of its own.",
  },
  loop: {
    status: 508,
    title: "The app leads back to itself",
    text: "The request came back to this server several times. Check where the port or the app forwards to.",
  },
  body_of_get: {
    status: 400,
    title: "A GET or HEAD request cannot have a body here",
    text: "The server does not pass the body of such a request to an app. Send the request with POST or QUERY, or through a forwarded port.",
  },
  malformed: { status: 400, title: "The request is malformed", text: "It cannot be passed on to an app." },
};

/** The answer; `home` is where the way back leads. */
export const troubleAnswer = (request: Request, trouble: Trouble, home: URL, action?: Plain["action"]): Response => {
  const { status, title, text } = WORDS[trouble];
  const headers = new Headers(COMMON_HEADERS);
  headers.set("referrer-policy", "no-referrer");
  if (status === 503) headers.set("retry-after", "5");
  if (status === 401 || status === 403) headers.set("www-authenticate", "Bearer");
  if (!wantsPage(request)) {
    headers.set("content-type", "application/json; charset=utf-8");
    return new Response(JSON.stringify({ message: `${title}.`, detail: text }), { status, headers });
  }
  return plainPage({ status, title, text, home: `${home.origin}/`, ...(action && { action }) }, headers);
};
