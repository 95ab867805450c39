// Embeds the initial data of an app page for a signed-in user: the session and the content of the live lists. Otherwise the app would
// request each as soon as the page has loaded (src/web/app/early.ts) (rule WB-77).
import { isLocalRead, readLocally } from "#base/network/local-reads.ts";
import { finishesWithin } from "#base/retry.ts";
import type { ApiContext } from "../context.ts";
import { loadFirstMessage } from "../workspaces/watch-all-follower.ts";
import { findSignedInUser, identifySender, type UserCaller } from "./caller.ts";
import { getPath } from "./errors.ts";
import { findCredential } from "./identify.ts";
import type { LoadInitialData } from "./streamed-page.ts";

/**
 * Paths below /api/v2 whose responses the app needs first; `workspaces` is the path of their stream. `firstVisit`: what Home shows to a
 * user without workspaces, and the path of Home.
 */
type InitialPaths = {
  readonly session: readonly string[];
  readonly workspaces: string;
  readonly chats: string;
  readonly firstVisit: { readonly page: string; readonly address: string };
};

type PreloadDeps = {
  readonly ctx: ApiContext;
  readonly beginning: InitialPaths;
  /** Sends a request to a route of this server. */
  readonly ask: (request: Request) => Promise<Response>;
  /** Counts a request of this user; throws when they have sent too many. */
  readonly count: (request: Request, caller: UserCaller) => void;
};

/** The page does not wait longer for data that it can also request later. */
const READ_TIMEOUT_MS = 250;
/** In characters. A longer list would delay the page, so the page requests it separately. */
const MAX_CHARS = 100_000;
const PREFIX = "/api/v2";

/** Keeps only the headers that identify the client; the page's other headers do not apply to API requests. */
const toKeptHeaders = ({ headers }: Request): Headers => {
  const kept = new Headers();
  for (const name of ["user-agent", "x-forwarded-for"]) {
    const value = headers.get(name);
    if (value !== null) kept.set(name, value);
  }
  return kept;
};

/**
 * Returns a function that reads the data, or undefined for anonymous callers. The data is undefined when a request was rejected or late.
 */
export const preloadInitialData = ({ ctx, beginning, ask, count }: PreloadDeps) => {
  const loadAnswer = async (page: Request, caller: UserCaller, address: string): Promise<string> => {
    const request = new Request(new URL(PREFIX + address, page.url).href, { headers: toKeptHeaders(page) });
    ctx.requests.setPeer(request, ctx.requests.getPeer(page) ?? "");
    count(request, caller);
    await identifySender(request, { clock: ctx.clock, identify: async () => caller });
    const response = await ask(request);
    if (!response.ok) throw new Error(`${address} is answered ${response.status}`);
    return `${JSON.stringify(`GET ${address}`)}:${await response.text()}`;
  };
  const read = async (page: Request, caller: UserCaller): Promise<string> => {
    const { session, workspaces, chats, firstVisit } = beginning;
    const listPromise = loadFirstMessage(ctx, caller);
    const loadFirstVisit = async (): Promise<string[]> => {
      const list = getPath(page.url) === firstVisit.page ? await listPromise : undefined;
      const isFirstVisit = list !== undefined && !list.includes(`"owner_id":"${caller.user_id}"`);
      return isFirstVisit ? [await loadAnswer(page, caller, firstVisit.address)] : [];
    };
    const [list, firstVisitAnswers, ...baseAnswers] = await Promise.all([
      listPromise,
      loadFirstVisit(),
      ...[...session, chats].map((address) => loadAnswer(page, caller, address)),
    ]);
    const answers = [...baseAnswers, ...firstVisitAnswers];
    const includedAnswers = answers.filter((answer, index) => index < session.length || answer.length <= MAX_CHARS);
    const received = list !== undefined && list.length <= MAX_CHARS ? { [workspaces]: list } : {};
    return `{"answers":{${includedAnswers.join(",")}},"heard":${JSON.stringify(received)}}`;
  };
  const readInTime = async (page: Request, caller: UserCaller): Promise<string | undefined> => {
    let json: string | undefined;
    // The page is shown even when only the active node of a cluster can read its data.
    const readPromise = isLocalRead() ? readLocally(() => read(page, caller)) : read(page, caller);
    const reading = readPromise.then(
      (text) => {
        json = text;
      },
      // The app sends the request itself and gets the error.
      () => undefined,
    );
    await finishesWithin(ctx.clock, READ_TIMEOUT_MS, reading);
    return json?.replaceAll("<", "\\u003c");
  };
  return (page: Request): LoadInitialData | undefined => {
    const caller = findSignedInUser(page);
    // A key in the URL is not what the page's own requests will send.
    if (!caller?.scopes.includes("all") || findCredential(page, ctx.accessUrl)?.source !== "cookie") return undefined;
    return () => readInTime(page, caller);
  };
};
