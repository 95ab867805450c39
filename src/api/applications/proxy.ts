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
import { respondTrouble, type Trouble } from "./page.ts";
import { type Forwarding, forwardRequest } from "./pass.ts";
import { AppVisits } from "./visits.ts";
import { AppWaiting } from "./waiting.ts";

/** A request to an app on its own host or below the access URL. */
type AppRequest = {
  readonly name: AppName;
  /** Empty on an app's own host. */
  readonly prefix: string;
  readonly path: string;
  readonly appCaller: AppCaller | undefined;
  readonly hasCookie: boolean;
};

export class AppProxy {
  readonly #ctx: ApiContext;
  readonly #callerDeps: CallerDeps;
  readonly #handOver: HandOver;
  readonly #activity: AppActivity;
  readonly #visits: AppVisits;
  readonly #waiting: AppWaiting;
  /** Cache of the last parsed Host header, because nearly all requests of a server have the same one. */
  #lastHost: { readonly host: string; readonly accessUrl: URL; readonly name: AppName | undefined } | undefined;

  constructor(ctx: ApiContext, callerDeps: CallerDeps) {
    this.#ctx = ctx;
    this.#callerDeps = callerDeps;
    this.#handOver = new HandOver(ctx);
    this.#activity = new AppActivity(ctx);
    this.#visits = new AppVisits(ctx);
    this.#waiting = new AppWaiting(ctx);
  }

  /** Returns the app that the Host header names, if any. */
  findAppName(request: Request): AppName | undefined {
    const host = request.headers.get("host") ?? "";
    const { accessUrl } = this.#ctx;
    if (this.#lastHost?.host !== host || this.#lastHost.accessUrl !== accessUrl) {
      this.#lastHost = { host, accessUrl, name: this.#hostsFor(request).parseName(host) };
    }
    return this.#lastHost.name;
  }

  /** Answers a request to an app's own host. */
  async serveHost(request: Request, name: AppName): Promise<Response> {
    const label = formatLabel(name);
    const query = getQuery(request.url);
    const sealed = request.method === "GET" ? new URLSearchParams(query).get(KEY_PARAMETER) : null;
    if (sealed !== null) return this.#exchange(request, label, sealed);
    const fromCookie = await this.#handOver.findCaller(request, label, this.#callerDeps);
    const appCaller = fromCookie ?? (await this.#findTokenCaller(request));
    return this.#serve(request, {
      name,
      prefix: "",
      path: getPath(request.url),
      appCaller,
      hasCookie: fromCookie !== undefined,
    });
  }

  /** Answers a request for a path below the access URL. */
  async servePath(request: Request): Promise<Response> {
    if (this.#ctx.config.disable_path_apps) return this.#troublePage(request, "disabled");
    const appPath = parseAppPath(getPath(request.url));
    if (!appPath) return this.#troublePage(request, "not_found");
    const session = findSessionCookie(request, this.#ctx.accessUrl)?.token;
    const caller = session && (await loadPerson(session, request, this.#callerDeps));
    const appCaller = caller ? toAppCaller(caller) : await this.#findTokenCaller(request);
    const { name, prefix, rest: path } = appPath;
    const hasCookie = caller !== undefined && caller !== "";
    return this.#serve(request, { name, prefix, path, appCaller, hasCookie });
  }

  /**
   * Returns whether the app's pages may share the access URL's origin, where a script can do anything its viewer may do. They never may for
   * another user's workspace. For the viewer's own, they may if an administrator accepts that programs in it can take over its owner's
   * account.
   */
  #sharesOrigin(app: ResolvedApp, appCaller: AppCaller | undefined): boolean {
    return this.#ctx.config.path_apps_same_origin && appCaller?.caller.user_id === app.owner_id;
  }

  #hostsFor({ headers }: Request): AppHosts {
    return makeAppHosts(this.#ctx, headers.get("host") ?? "");
  }

  /** Authenticates programs, which send a token in a header or in the query. */
  async #findTokenCaller(request: Request): Promise<AppCaller | undefined> {
    const headers = new Headers(request.headers);
    headers.delete("cookie");
    const token = findCredential(new Request(request.url, { headers }), this.#ctx.accessUrl)?.token;
    const caller = token === undefined ? undefined : await loadPerson(token, request, this.#callerDeps);
    return caller && toAppCaller(caller);
  }

  async #serve(request: Request, appRequest: AppRequest): Promise<Response> {
    const { name, prefix, path, appCaller, hasCookie } = appRequest;
    const query = removeOwnQuery(getQuery(request.url));
    const { accessUrl } = this.#ctx;
    const appOrigin = { hosts: this.#hostsFor(request), name, accessUrl, hasOwnHost: prefix === "" };
    const asPreflight = isWorkspacePreflight(request, appOrigin);
    const app = await findApp(this.#ctx, name, appCaller?.caller, { asPreflight });
    const opening = { name, appCaller, url: `${normalizeSlashes(`${prefix}${path}`)}${query}` };
    const waitingResponse = await this.#waiting.answer(request, opening, app);
    if (waitingResponse) return waitingResponse;
    if (app === "signed_out" && acceptsPage(request)) return this.#signIn(request, appRequest, query);
    if (typeof app === "string") return this.#troublePage(request, app);
    const isGuarded = hasCookie && !app.isPublic;
    if ((hasCookie && !isFromOwnPage(request, appOrigin)) || (isGuarded && isForeignSubresource(request, appOrigin)))
      return this.#troublePage(request, "foreign");
    if (request.method === "GET" || request.method === "HEAD") {
      // Relative links of an app resolve below its own folder.
      if (path === "") return redirect(`${prefix}/${query}`);
      if (path === "/" && query === "" && app.base.query !== "") return redirect(`${prefix}/${app.base.query}`);
    }
    const redirection = prefix === "" ? undefined : this.#findRedirect(request, appRequest, app, query);
    if (redirection) return redirection;
    const visitor = toConnectedBy(this.#ctx, appCaller?.caller, request);
    const forwarding: Forwarding = {
      name,
      app,
      appCaller,
      prefix,
      path: `${app.base.path.replace(/\/$/, "")}${path || "/"}${query}`,
      isSandboxed: prefix !== "" && !this.#sharesOrigin(app, appCaller),
      subresources: !isGuarded ? "open" : isSubresourceOfSibling(request, appOrigin) ? "workspace" : "own",
      onUse: throttlePerSecond(this.#ctx.clock, () => {
        this.#activity.note(app, appCaller?.caller);
        this.#visits.recordTraffic(app, visitor);
      }),
      respondTrouble: async (trouble) => {
        const waitingPage = TRANSIENT_TROUBLES.has(trouble)
          ? await this.#waiting.findWaitingPage(request, opening, app)
          : undefined;
        return waitingPage ?? this.#troublePage(request, trouble);
      },
    };
    const answer = await forwardRequest(this.#ctx, request, forwarding);
    this.#visits.recordResponse(app, visitor, answer.status);
    return answer;
  }

  #signIn(request: Request, { name, prefix, path }: AppRequest, query: string): Response {
    if (prefix !== "") return redirect(`/login?${new URLSearchParams({ redirect: `${prefix}${path}${query}` })}`);
    const origin = getFirstSignInOrigin(this.#ctx, request.headers.get("host") ?? "");
    const url = new URL("/api/v2/applications/auth-redirect", origin);
    url.searchParams.set("redirect_uri", `${this.#hostsFor(request).toOrigin(formatLabel(name))}${path}${query}`);
    return redirect(url.href);
  }

  /**
   * Returns the redirect for a person who opens a page below the access URL: to the app's own host, or to a page that says why it needs
   * one. Returns undefined when the page can be shown here: for programs, and for pages that share the access URL's origin.
   */
  #findRedirect(
    request: Request,
    { path, prefix, appCaller, hasCookie }: AppRequest,
    app: ResolvedApp,
    query: string,
  ): Response | undefined {
    const isProgram = appCaller !== undefined && !hasCookie;
    if (isProgram || !isNavigation(request) || this.#sharesOrigin(app, appCaller)) return undefined;
    const hosts = this.#hostsFor(request);
    if (hosts.exist && app.label !== "") {
      const url = new URL(`${hosts.toOrigin(app.label)}${path || "/"}${query}`);
      if (appCaller && hasCookie)
        url.search = withPair(query, KEY_PARAMETER, this.#handOver.offer(appCaller.caller, app.label));
      return redirect(url.href);
    }
    // Subresources of a public app load even without a cookie.
    if (app.isPublic || readCookie(request, BY_PATH) !== undefined) return undefined;
    const url = `${prefix}${path || "/"}${query}`;
    if (hasPair(getQuery(request.url), BY_PATH)) {
      const answer = redirect(url);
      answer.headers.append("set-cookie", `${BY_PATH}=1; Path=${prefix}/; HttpOnly; SameSite=Lax`);
      return answer;
    }
    const href = `${prefix}${path || "/"}${withPair(query, BY_PATH, "1")}`;
    return respondTrouble(request, "needs_host", this.#ctx.accessUrl, { href, text: "Open anyway" });
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
    return respondTrouble(request, trouble, this.#ctx.accessUrl);
  }
}

const SECOND_MS = 1_000;

/** A response has thousands of chunks, and each of them reports the same activity. */
const throttlePerSecond = (clock: Clock, run: () => void): (() => void) => {
  let lastRunAt = Number.NEGATIVE_INFINITY;
  return () => {
    const now = clock.monotonic();
    if (now - lastRunAt < SECOND_MS) return;
    lastRunAt = now;
    run();
  };
};

/** Errors that may disappear while a workspace is starting. */
const TRANSIENT_TROUBLES: ReadonlySet<Trouble> = new Set(["agent_away", "silent"]);

const getQuery = (url: string): string => {
  const start = url.indexOf("?");
  return start < 0 ? "" : url.slice(start);
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
