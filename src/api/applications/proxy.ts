// Routes requests to apps and ports of workspaces, below the access URL and on hosts of their own (facts/platform 8.4, rules AX-1 to
// AX-14). Checks access and finds the target; pass.ts forwards HTTP, bridge.ts forwards WebSockets.

import type { Clock } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";
import { type AppName, formatLabel } from "#base/links/app-label.ts";
import { findApp, type ResolvedApp } from "#domain/applications/find.ts";
import { type AppHosts, getFirstSignInOrigin, makeAppHosts, parseAppPath } from "#domain/applications/names.ts";
import type { ApiContext } from "../context.ts";
import { toConnectedBy } from "../http/connected-by.ts";
import { readCookie } from "../http/cookies.ts";
import { getPath } from "../http/errors.ts";
import { type CallerDeps, findCredential, findSessionCookie } from "../http/identify.ts";
import { acceptsPage } from "../http/plain-page.ts";
import { AppActivity } from "./activity.ts";
import { type AppCaller, HandOver, KEY_PARAMETER, loadPerson, toAppCaller } from "./hand-over.ts";
import { BY_PATH, removeOwnQuery, removePairs } from "./headers.ts";
import { isForeignSubresource, isFromOwnPage, isSubresourceOfSibling, isWorkspacePreflight } from "./origin.ts";
import { type Trouble, troubleResponse } from "./page.ts";
import { forwardRequest, type Passing } from "./pass.ts";
import { AppVisits } from "./visits.ts";
import { AppWaiting } from "./waiting.ts";

/** An app request, whether it came by host or by path. */
type AppRequest = {
  readonly name: AppName;
  /** Empty on an app's own host. */
  readonly prefix: string;
  readonly rest: string;
  readonly by: AppCaller | undefined;
  readonly byCookie: boolean;
};

export class AppProxy {
  readonly #ctx: ApiContext;
  readonly #who: CallerDeps;
  readonly #handOver: HandOver;
  readonly #activity: AppActivity;
  readonly #visits: AppVisits;
  readonly #waiting: AppWaiting;
  /** Cache of the last parsed Host header, because nearly all requests of a server have the same one. */
  #last: { readonly host: string; readonly accessUrl: URL; readonly name: AppName | undefined } | undefined;

  constructor(ctx: ApiContext, who: CallerDeps) {
    this.#ctx = ctx;
    this.#who = who;
    this.#handOver = new HandOver(ctx);
    this.#activity = new AppActivity(ctx);
    this.#visits = new AppVisits(ctx);
    this.#waiting = new AppWaiting(ctx);
  }

  /** Returns the app that the Host header names, if any. */
  findAppName(request: Request): AppName | undefined {
    const host = request.headers.get("host") ?? "";
    const { accessUrl } = this.#ctx;
    if (this.#last?.host !== host || this.#last.accessUrl !== accessUrl) {
      this.#last = { host, accessUrl, name: this.#hostsFor(request).parseName(host) };
    }
    return this.#last.name;
  }

  /** Answers a request to an app's own host. */
  async serveHost(request: Request, name: AppName): Promise<Response> {
    const label = formatLabel(name);
    const query = getQuery(request.url);
    const sealed = request.method === "GET" ? new URLSearchParams(query).get(KEY_PARAMETER) : null;
    if (sealed !== null) return this.#exchange(request, label, sealed);
    const fromCookie = await this.#handOver.findCaller(request, label, this.#who);
    const by = fromCookie ?? (await this.#findTokenCaller(request));
    return this.#serve(request, {
      name,
      prefix: "",
      rest: getPath(request.url),
      by,
      byCookie: fromCookie !== undefined,
    });
  }

  /** Answers a request for a path below the access URL. */
  async servePath(request: Request): Promise<Response> {
    if (this.#ctx.config.disable_path_apps) return this.#troublePage(request, "disabled");
    const path = parseAppPath(getPath(request.url));
    if (!path) return this.#troublePage(request, "not_found");
    const session = findSessionCookie(request, this.#ctx.accessUrl)?.token;
    const caller = session && (await loadPerson(session, request, this.#who));
    const by = caller ? toAppCaller(caller) : await this.#findTokenCaller(request);
    return this.#serve(request, { ...path, by, byCookie: caller !== undefined && caller !== "" });
  }

  /**
   * Returns whether the app's pages may share the access URL's origin, where a script can do anything its viewer may do. Never for another
   * user's workspace, and for the viewer's own only if an administrator accepts that everything running there can take over its owner's
   * account.
   */
  #sharesOrigin(app: ResolvedApp, by: AppCaller | undefined): boolean {
    return this.#ctx.config.path_apps_same_origin && by?.caller.user_id === app.owner_id;
  }

  #hostsFor({ headers }: Request): AppHosts {
    return makeAppHosts(this.#ctx, headers.get("host") ?? "");
  }

  /** Authenticates programs, which send a token in a header or in the query. */
  async #findTokenCaller(request: Request): Promise<AppCaller | undefined> {
    const headers = new Headers(request.headers);
    headers.delete("cookie");
    const token = findCredential(new Request(request.url, { headers }), this.#ctx.accessUrl)?.token;
    const caller = token === undefined ? undefined : await loadPerson(token, request, this.#who);
    return caller && toAppCaller(caller);
  }

  async #serve(request: Request, requested: AppRequest): Promise<Response> {
    const { name, prefix, rest, by, byCookie } = requested;
    const query = removeOwnQuery(getQuery(request.url));
    const { accessUrl } = this.#ctx;
    const from = { hosts: this.#hostsFor(request), name, accessUrl, hasOwnHost: prefix === "" };
    const asPreflight = isWorkspacePreflight(request, from);
    const app = await findApp(this.#ctx, name, by?.caller, { asPreflight });
    const opening = { name, by, here: `${normalizeSlashes(`${prefix}${rest}`)}${query}` };
    const waits = await this.#waiting.answer(request, opening, app);
    if (waits) return waits;
    if (app === "signed_out" && acceptsPage(request)) return this.#signIn(request, requested, query);
    if (typeof app === "string") return this.#troublePage(request, app);
    const isGuarded = byCookie && !app.isPublic;
    if ((byCookie && !isFromOwnPage(request, from)) || (isGuarded && isForeignSubresource(request, from)))
      return this.#troublePage(request, "foreign");
    if (request.method === "GET" || request.method === "HEAD") {
      // Relative links of an app resolve below its own folder.
      if (rest === "") return redirect(`${prefix}/${query}`);
      if (rest === "/" && query === "" && app.base.query !== "") return redirect(`${prefix}/${app.base.query}`);
    }
    const instead = prefix === "" ? undefined : this.#findRedirect(request, requested, app, query);
    if (instead) return instead;
    const visitor = toConnectedBy(this.#ctx, by?.caller, request);
    const passing: Passing = {
      name,
      app,
      by,
      prefix,
      path: `${app.base.path.replace(/\/$/, "")}${rest || "/"}${query}`,
      sandboxed: prefix !== "" && !this.#sharesOrigin(app, by),
      subresources: !isGuarded ? "open" : isSubresourceOfSibling(request, from) ? "workspace" : "own",
      used: throttlePerSecond(this.#ctx.clock, () => {
        this.#activity.note(app, by?.caller);
        this.#visits.recordTraffic(app, visitor);
      }),
      trouble: async (trouble) => {
        const comes = TRANSIENT_TROUBLES.has(trouble)
          ? await this.#waiting.findWaitingPage(request, opening, app)
          : undefined;
        return comes ?? this.#troublePage(request, trouble);
      },
    };
    const answer = await forwardRequest(this.#ctx, request, passing);
    this.#visits.recordResponse(app, visitor, answer.status);
    return answer;
  }

  #signIn(request: Request, { name, prefix, rest }: AppRequest, query: string): Response {
    if (prefix !== "") return redirect(`/login?${new URLSearchParams({ redirect: `${prefix}${rest}${query}` })}`);
    const origin = getFirstSignInOrigin(this.#ctx, request.headers.get("host") ?? "");
    const url = new URL("/api/v2/applications/auth-redirect", origin);
    url.searchParams.set("redirect_uri", `${this.#hostsFor(request).toOrigin(formatLabel(name))}${rest}${query}`);
    return redirect(url.href);
  }

  /**
   * Returns the redirect for a person who opens a page below the access URL: to the app's own host, or to a page that says why it needs
   * one. Returns undefined when the page can be shown here: for programs, and for pages that share the access URL's origin.
   */
  #findRedirect(
    request: Request,
    { rest, prefix, by, byCookie }: AppRequest,
    app: ResolvedApp,
    query: string,
  ): Response | undefined {
    const isProgram = by !== undefined && !byCookie;
    if (isProgram || !isNavigation(request) || this.#sharesOrigin(app, by)) return undefined;
    const hosts = this.#hostsFor(request);
    if (hosts.exist && app.label !== "") {
      const url = new URL(`${hosts.toOrigin(app.label)}${rest || "/"}${query}`);
      if (by && byCookie) url.search = withPair(query, KEY_PARAMETER, this.#handOver.offer(by.caller, app.label));
      return redirect(url.href);
    }
    // Subresources of a public app load even without a cookie.
    if (app.isPublic || readCookie(request, BY_PATH) !== undefined) return undefined;
    const here = `${prefix}${rest || "/"}${query}`;
    if (hasPair(getQuery(request.url), BY_PATH)) {
      const answer = redirect(here);
      answer.headers.append("set-cookie", `${BY_PATH}=1; Path=${prefix}/; HttpOnly; SameSite=Lax`);
      return answer;
    }
    const href = `${prefix}${rest || "/"}${withPair(query, BY_PATH, "1")}`;
    return troubleResponse(request, "needs_host", this.#ctx.accessUrl, { href, text: "Open anyway" });
  }

  async #exchange(request: Request, label: string, sealed: string): Promise<Response> {
    try {
      const session = await this.#handOver.exchange(sealed, label);
      const query = removePairs(getQuery(request.url), (pair) => hasPair(pair, KEY_PARAMETER));
      const answer = redirect(`${normalizeSlashes(getPath(request.url))}${query}`);
      answer.headers.append("set-cookie", session);
      return answer;
    } catch (error) {
      if (error instanceof AppError && error.kind === "invalid") return this.#troublePage(request, "spent");
      throw error;
    }
  }

  #troublePage(request: Request, trouble: Trouble): Response {
    return troubleResponse(request, trouble, this.#ctx.accessUrl);
  }
}

const SECOND_MS = 1_000;

/** A response has thousands of chunks, and each of them reports the same activity. */
const throttlePerSecond = (clock: Clock, run: () => void): (() => void) => {
  let last = Number.NEGATIVE_INFINITY;
  return () => {
    const now = clock.monotonic();
    if (now - last < SECOND_MS) return;
    last = now;
    run();
  };
};

/** Errors that can go away if the workspace has only just started. */
const TRANSIENT_TROUBLES: ReadonlySet<Trouble> = new Set(["agent_away", "silent"]);

const getQuery = (url: string): string => {
  const at = url.indexOf("?");
  return at < 0 ? "" : url.slice(at);
};

/** Returns whether a browser is opening a page, not loading a subresource. */
const isNavigation = (request: Request): boolean =>
  acceptsPage(request) && [null, "document", "iframe", "frame"].includes(request.headers.get("sec-fetch-dest"));

/** Returns the query with one more pair, otherwise byte for byte unchanged. */
const withPair = (query: string, name: string, value: string): string =>
  `${query}${query === "" ? "?" : "&"}${name}=${encodeURIComponent(value)}`;

const hasPair = (query: string, name: string): boolean => new URLSearchParams(query).has(name);

/** A path that begins with two slashes would redirect to another host. */
const normalizeSlashes = (path: string): string => path.replace(/^\/+/, "/");

const redirect = (location: string): Response =>
  new Response(null, {
    status: 307,
    headers: { location, "cache-control": "no-store", "referrer-policy": "no-referrer" },
  });
