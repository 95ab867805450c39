// Runs in the head of the page, before anything else is there: the theme, and what the page at this address will ask the server for, so
// that its content takes one round trip and not one after the other for the app, the page's code and its data. Built into app.html.
import { type Early, keyOf } from "../browser/early.ts";
import { rangeFor } from "./pages/insights/range.ts";

/** Path of a page, the numbers of its own files, and the addresses it asks for; the first that fits counts. */
declare const PAGES: readonly (readonly [path: string, files: readonly number[], data: readonly string[]])[];
declare const FILES: readonly string[];
declare const DOORS: Readonly<Record<string, readonly string[]>>;
declare const SESSION: readonly string[];
declare const STREAMS: readonly (readonly [socket: string, then?: string])[];

const theme = localStorage.getItem("theme");
if (theme) document.documentElement.dataset.theme = theme;

const early: Early = { answers: new Map(), sockets: new Map() };
Object.assign(window, { early });

const ask = (text: string): void => {
  const [address = "", body] = text.split(" ");
  const method = body === undefined ? "GET" : "POST";
  const headers = { "content-type": "application/json" };
  const answer = fetch(`/api/v2${address}`, body === undefined ? {} : { method, body, headers });
  // Whoever takes it hears of its failure.
  answer.catch(() => undefined);
  early.answers.set(keyOf(method, address, body), answer);
};

const follow = (path: string, then: string | undefined): void => {
  const socket = new WebSocket(`${location.origin.replace("http", "ws")}/api/v2${path}`);
  const heard: unknown[] = [];
  socket.onmessage = ({ data }) => heard.push(data);
  if (then) socket.onopen = () => ask(then);
  early.sockets.set(`/api/v2${path}`, { socket, heard });
};

const { pathname, search } = location;
const given = pathname.split("/");
const named = (path: string): Record<string, string> | undefined => {
  const parts = path.split("/");
  if (parts.length !== given.length) return undefined;
  const found: Record<string, string> = {};
  for (const [at, part] of parts.entries()) {
    if (part.startsWith(":")) found[part] = given[at] ?? "";
    else if (part !== given[at]) return undefined;
  }
  return found;
};

const door = DOORS[pathname];
const isKnown = localStorage.getItem("signed-in") !== null;
if (isKnown && !door) {
  for (const [path, then] of STREAMS) follow(path, then);
  for (const address of SESSION) ask(address);
}
for (const address of door ?? []) ask(address);

for (const [path, files, data] of PAGES) {
  const names = named(path);
  if (!names) continue;
  for (const file of files) {
    const link = document.createElement("link");
    link.rel = "modulepreload";
    link.href = FILES[file] ?? "";
    document.head.append(link);
  }
  const asked = Object.fromEntries(new URLSearchParams(search));
  const { query, before } = rangeFor(asked, Date.now(), -new Date().getTimezoneOffset());
  const text = (values: Record<string, string>): string => String(new URLSearchParams(values));
  const filled = (address: string): string =>
    address
      .replace(/:[a-z]+/g, (name) => names[name] ?? name)
      .replace("q={q}", text({ q: asked.q ?? "" }))
      .replace("{range}", text(query))
      .replace("{before}", text(before));
  for (const address of isKnown ? data : []) ask(filled(address));
  break;
}
