// What a page of the app begins with, written into the page for the person who opens it: who is signed in, and what the live lists show.
// It would be asked for as soon as the page is there (src/web/app/early.ts), with a request for each (rule WB-77).
import { isReadHere, readHere } from "#base/network/read-here.ts";
import { within } from "#base/retry.ts";
import type { ApiContext } from "../context.ts";
import { firstMessage } from "../workspaces/watch-all-follower.ts";
import { remember, type UserCaller, userIn } from "./caller.ts";
import { findCredential } from "./identify.ts";
import type { Tell } from "./streamed-page.ts";

/** What the app begins with, as addresses below /api/v2; `workspaces` is that of their stream. */
type Beginning = { readonly session: readonly string[]; readonly workspaces: string; readonly chats: string };

type Parts = {
  readonly ctx: ApiContext;
  readonly beginning: Beginning;
  /** Sends a request to a route of this server. */
  readonly ask: (request: Request) => Promise<Response>;
  /** Counts a request of this person; throws where they have sent too many. */
  readonly count: (request: Request, caller: UserCaller) => void;
};

/** A page does not wait longer for what can be asked for after it. */
const PATIENCE_MS = 250;
/** A list that is longer is asked for alongside the page, which would come late with it. Characters. */
const MOST = 100_000;
const PREFIX = "/api/v2";

/** Who it comes from is known; what they have asked of the page is not asked of the API. */
const toKeptHeaders = ({ headers }: Request): Headers => {
  const kept = new Headers();
  for (const name of ["user-agent", "x-forwarded-for"]) {
    const value = headers.get(name);
    if (value !== null) kept.set(name, value);
  }
  return kept;
};

/** Gives what tells it, which is nothing where something is refused or late; undefined for strangers. */
export const firstAnswers = ({ ctx, beginning, ask, count }: Parts) => {
  const answerTo = async (page: Request, caller: UserCaller, address: string): Promise<string> => {
    const request = new Request(new URL(PREFIX + address, page.url).href, { headers: toKeptHeaders(page) });
    ctx.requests.passedOnFor(request, ctx.requests.peerOf(page) ?? "");
    count(request, caller);
    remember(request, caller);
    const response = await ask(request);
    if (!response.ok) throw new Error(`${address} is answered ${response.status}`);
    return `${JSON.stringify(`GET ${address}`)}:${await response.text()}`;
  };
  const read = async (page: Request, caller: UserCaller): Promise<string> => {
    const { session, workspaces, chats } = beginning;
    const [list, ...answers] = await Promise.all([
      firstMessage(ctx, caller),
      ...[...session, chats].map((address) => answerTo(page, caller, address)),
    ]);
    const fitting = answers.filter((answer, at) => at < session.length || answer.length <= MOST);
    const heard = list !== undefined && list.length <= MOST ? { [workspaces]: list } : {};
    return `{"answers":{${fitting.join(",")}},"heard":${JSON.stringify(heard)}}`;
  };
  const inTime = async (page: Request, caller: UserCaller): Promise<string | undefined> => {
    let json: string | undefined;
    // A page is shown though only the active node of a cluster can tell what it begins with.
    const begun = isReadHere() ? readHere(() => read(page, caller)) : read(page, caller);
    const reading = begun.then(
      (text) => {
        json = text;
      },
      // The app asks on its own, and hears why.
      () => undefined,
    );
    await within(ctx.clock, PATIENCE_MS, reading);
    return json?.replaceAll("<", "\\u003c");
  };
  return (page: Request): Tell | undefined => {
    const caller = userIn(page);
    // A key in the address is not what the page's own requests will carry.
    if (!caller?.scopes.includes("all") || findCredential(page)?.place !== "cookie") return undefined;
    return () => inTime(page, caller);
  };
};
