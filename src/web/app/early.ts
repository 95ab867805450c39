// Runs in the head of the page, before the app loads: applies the theme, reads the data that the server sent with the page
// (src/api/http/first-answers.ts), and prefetches the code and data of the page at this address, so that app, code and data load in one
// round trip instead of one after the other. Handles the loss of the app's code. The app uses the same code to prefetch the targets of
// links (shell/prefetch.ts). Built into app.html.
import { type Early, toKey } from "../browser/early.ts";
import { parseRange } from "./pages/insights/range.ts";

/** Path of a page, the indexes of its files, and the addresses it requests. The first match wins. */
declare const PAGES: readonly (readonly [path: string, files: readonly number[], data: readonly string[]])[];
declare const FILES: readonly string[];
declare const SIGNED_OUT_PAGES: Readonly<Record<string, readonly string[]>>;
declare const SESSION: readonly string[];
declare const STREAMS: readonly (readonly [socket: string, then?: string])[];

const theme = localStorage.getItem("theme");
if (theme) document.documentElement.dataset.theme = theme;

// A lost script would leave an empty page. The page is loaded again once, and after that it asks the user.
const RELOADED_KEY = "reloaded-at";
const RELOAD_INTERVAL_MS = 60_000;

const showNotLoaded = (): void => {
  const createElement = (tag: string, className: string, ...inside: (Node | string)[]): HTMLElement => {
    const element = document.createElement(tag);
    element.className = className;
    element.append(...inside);
    return element;
  };
  const button = createElement("button", "btn primary", "Reload");
  button.onclick = () => location.reload();
  const text = createElement("p", "mut", "The server is not responding, or it was updated.");
  const box = createElement("div", "login", createElement("h1", "", "Can't load this page"), text, button);
  box.role = "alert";
  const page = createElement("main", "center", box);
  (document.getElementById("app") ?? document.body).replaceChildren(page);
};

const onScriptLost = ({ target }: Event): void => {
  if (!(target instanceof HTMLScriptElement)) return;
  const now = Date.now();
  if (now - Number(sessionStorage.getItem(RELOADED_KEY)) < RELOAD_INTERVAL_MS) showNotLoaded();
  else {
    sessionStorage.setItem(RELOADED_KEY, String(now));
    location.reload();
  }
};
addEventListener("error", onScriptLost, true);

const prefetch = (request: string): void => {
  const [address = "", body] = request.split(" ");
  const method = body === undefined ? "GET" : "POST";
  const key = toKey(method, address, body);
  if (early.answers.has(key)) return;
  const headers = { "content-type": "application/json" };
  const answer = fetch(`/api/v2${address}`, body === undefined ? {} : { method, body, headers });
  // The code that takes the answer handles its failure.
  answer.catch(() => undefined);
  early.answers.set(key, { at: performance.now(), answer });
};

const openStream = (path: string, then: string): void => {
  const socket = new WebSocket(`${location.origin.replace("http", "ws")}/api/v2${path}`);
  const received: unknown[] = [];
  socket.onmessage = ({ data }) => received.push(data);
  if (then) socket.onopen = () => prefetch(then);
  early.sockets.set(`/api/v2${path}`, { socket, messages: received });
};

/** Returns the variables of the path as found in the address; undefined if the address does not match. */
const matchPath = (path: string, pathname: string): Record<string, string> | undefined => {
  const [pathSegments, segments] = [path.split("/"), pathname.split("/")];
  if (pathSegments.length !== segments.length) return undefined;
  const variables: Record<string, string> = {};
  for (const [index, segment] of pathSegments.entries()) {
    if (segment.startsWith(":")) variables[segment] = segments[index] ?? "";
    else if (segment !== segments[index]) return undefined;
  }
  return variables;
};

const preloadFile = (file: number): void => {
  const href = FILES[file] ?? "";
  if (document.head.querySelector(`link[href="${href}"]`)) return;
  const link = document.createElement("link");
  link.rel = "modulepreload";
  link.href = href;
  document.head.append(link);
};

const prepare = ({ pathname, search }: URL | Location, withData: boolean): void => {
  for (const [path, files, data] of PAGES) {
    const variables = matchPath(path, pathname);
    if (!variables) continue;
    for (const file of files) preloadFile(file);
    if (!withData) return;
    const requested = Object.fromEntries(new URLSearchParams(search));
    const { query, previousQuery } = parseRange(requested, Date.now(), -new Date().getTimezoneOffset());
    const toQuery = (values: Record<string, string>): string => String(new URLSearchParams(values));
    for (const address of data) {
      prefetch(
        address
          .replace(/:[a-z]+/g, (name) => variables[name] ?? name)
          .replace("q={q}", toQuery({ q: requested.q ?? "" }))
          .replace("{range}", toQuery(query))
          .replace("{before}", toQuery(previousQuery)),
      );
    }
    return;
  }
};

type EmbeddedData = {
  readonly answers: Readonly<Record<string, unknown>>;
  readonly heard: Readonly<Record<string, string>>;
};

const embeddedText = document.getElementById("first")?.textContent;
const embedded = embeddedText ? (JSON.parse(embeddedText) as EmbeddedData) : undefined;
const embeddedAt = performance.now();

const early: Early = {
  answers: new Map(Object.entries(embedded?.answers ?? {}).map(([key, value]) => [key, { at: embeddedAt, value }])),
  sockets: new Map(),
  firstMessages: new Map(Object.entries(embedded?.heard ?? {})),
  prepare,
};
Object.assign(window, { early });

const signInRequests = SIGNED_OUT_PAGES[location.pathname];
const startPrefetching = (): void => {
  for (const [path, then = ""] of STREAMS) {
    // Data that came with the page is shown before its changes are requested.
    const isEmbedded = early.firstMessages.has(path) || early.answers.has(toKey("GET", then));
    if (!isEmbedded) openStream(path, then);
  }
  prepare(location, true);
};

for (const address of signInRequests ?? SESSION) prefetch(address);
if (embedded || (!signInRequests && localStorage.getItem("signed-in") !== null)) startPrefetching();
else {
  prepare(location, false);
  // A browser without a stored session may still have a cookie, for example from an external sign-in page.
  const [userAddress = ""] = SESSION;
  const requested = early.answers.get(toKey("GET", userAddress));
  // A page that has been rendered has already made its own requests.
  const isUnrendered = (): boolean => document.querySelector("#app > *") === null;
  if (!signInRequests)
    void requested?.answer?.then(({ ok }) => ok && isUnrendered() && startPrefetching()).catch(() => undefined);
}
