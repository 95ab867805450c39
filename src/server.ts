// Starts the HTTP server of a context. Requests pass the gate (Host, Origin), are identified, and reach Elysia; every error becomes the
// generic error body. Stopping ends open connections in order.

import type { Server } from "bun";
import type { AnyElysia } from "elysia";
import { getAccessUrl, getAllowedHosts } from "#base/config.ts";
import { AppError } from "#base/errors.ts";
import "#schema/formats.ts";
import type { Clock } from "#base/clock.ts";
import { isTraceEnabled, log } from "#base/log.ts";
import { MISDIRECTED, readLocally } from "#base/network/local-reads.ts";
import { finishesWithin, pause } from "#base/retry.ts";
import { DescriptorGuard } from "#base/system/descriptor-guard.ts";
import { readTls, TlsError } from "#base/tls.ts";
import type { Membership } from "#src/cluster/membership.ts";
import { AiGateway, isGatewayPath } from "./api/ai/gateway.ts";
import { AppProxy } from "./api/applications/proxy.ts";
import { runOnBehalf } from "./api/audit/origin.ts";
import { alive } from "./api/health.ts";
import { AgentTokens } from "./api/http/agent-tokens.ts";
import { checkAnswer } from "./api/http/answers/answer-check.ts";
import { getBodyLimit, MIN_BODY_LIMIT, tooLarge } from "./api/http/body/body.ts";
import { refuseNulIn } from "./api/http/body/nul.ts";
import { identifySender } from "./api/http/caller.ts";
import { compress } from "./api/http/encoding.ts";
import { errorResponse, getPath } from "./api/http/errors.ts";
import { type AllowedHosts, checkHost, checkOrigin } from "./api/http/gate.ts";
import { findCredential, identify } from "./api/http/identify.ts";
import type { Operations } from "./api/http/operations.ts";
import { type OthersCounts, RateLimits } from "./api/http/rate-limit.ts";
import { findMadeId, getRequestId, runTraced } from "./api/http/request-id.ts";
import { enforceScope } from "./api/http/scope-gate.ts";
import { UserKeys } from "./api/http/user-keys.ts";
import { registerFigures } from "./api/metrics/figures.ts";
import { listenForScrapes } from "./api/metrics/listen.ts";
import { countRequests, traceRequests } from "./api/metrics/requests.ts";
import type { TakeForwardedAddress } from "./cluster/forwarded-header.ts";
import type { Context } from "./context/context.ts";
import { isAppPath } from "./domain/applications/names.ts";

/** Grace period for requests on existing or nearly established connections. */
const DRAIN_TIMEOUT_MS = 250;

/**
 * Stops accepting connections. New connections are forwarded to the next node and wait for it. Requests on existing connections are still
 * answered, after which the connections end. `connections` resolves when the last connection is closed. Returns undefined if there is no
 * next node; this node then reports that it is stopping, like a server without a cluster.
 */
const stopAccepting = async (
  server: Server<never>,
  ctx: Context,
  { clock, standAside }: Membership,
): Promise<{ clock: Clock; connections: Promise<void> } | undefined> => {
  ctx.handingOver = true;
  ctx.handingOver = await standAside(server.port as number, ctx.encryption);
  if (!ctx.handingOver) return undefined;
  await pause(clock, DRAIN_TIMEOUT_MS);
  return { clock, connections: server.stop() };
};

export interface RunningServer {
  readonly url: URL;
  /** The URL of the metrics endpoint, if enabled. */
  readonly metrics: URL | undefined;
  /** Refuses new work, ends streams with 1001, waits for open requests, and stops listening. */
  stop(reason: string): Promise<void>;
}

export interface ReadServer {
  readonly port: number;
  /** Stops the server, after a short time for running reads to finish. */
  stop(): Promise<void>;
}

/** How long a node that becomes active waits for its reads. Clients can retry them. */
const READ_DRAIN_TIMEOUT_MS = 500;

export type ServerOptions = {
  /** Connections without traffic are closed after this time. Tests shorten it. */
  idleTimeoutSeconds?: number;
  /** Also validates responses that handlers build themselves against their schemas; tests only. */
  checkAnswers?: boolean;
};

export type ReadServerOptions = Pick<ServerOptions, "checkAnswers"> & {
  /** Authenticates requests that this node forwards to itself. All other requests are rejected. */
  readonly takeForwardedAddress: TakeForwardedAddress;
  readonly counts?: OthersCounts;
  /** Called before each request. Checks for new writes, which invalidate cached responses. */
  ask(): Promise<void>;
};

/** The routes and their declarations. */
type RoutedApp = { readonly app: Pick<AnyElysia, "fetch">; readonly operations: Operations };

type RequestHandler = {
  /** Returns the routes. They are created once: for the first request that needs them, or at the end of the start. */
  route(): Promise<RoutedApp>;
  /** Handles a request that has passed the connection limit. */
  readonly handle: (request: Request) => Promise<Response>;
  /** Sets the accepted host names, once the address is known. */
  allow(names: readonly string[]): void;
};

/** Returns the handler of requests: checks the gate, identifies the caller, applies limits, and calls the route. */
const makeHandler = (
  ctx: Context,
  takeForwardedAddress: TakeForwardedAddress | undefined,
  options: Pick<ReadServerOptions, "checkAnswers" | "counts">,
): RequestHandler => {
  let routed: RoutedApp | undefined;
  const { promise: routesNeeded, resolve: requireRoutes } = Promise.withResolvers<void>();
  const makeRoutes = async (): Promise<RoutedApp> => {
    const { collectOperations, createApp } = await import("./api/app.ts");
    const app = createApp(ctx, (request, caller) => rates?.count(request, caller, operations));
    const operations = collectOperations(app);
    routed = { app, operations };
    return routed;
  };
  // Created in the async context of the start, so that background work of the routes does not belong to the request that needs them first.
  const routes = routesNeeded.then(makeRoutes);
  const route = (): Promise<RoutedApp> => {
    requireRoutes();
    return routes;
  };
  let hosts: AllowedHosts = new Set();
  const answer = async (request: Request): Promise<Response> => {
    try {
      if (isLapsed(ctx) && !isProbe(request)) throw new AppError("overloaded", "This node is not the active one now.");
      const appName = apps.findAppName(request);
      if (appName) return await ctx.requests.run(request, () => apps.serveHost(request, appName));
      checkHost(request, hosts);
      if (isGatewayPath(getPath(request.url))) return await gateway.answer(request);
      if (isAppPath(getPath(request.url))) return await ctx.requests.run(request, () => apps.servePath(request));
      const credential = findCredential(request, ctx.accessUrl);
      checkOrigin(request, credential, hosts, ctx.accessUrl);
      // A liveness probe does not wait until the routes are created.
      if (!routed && isLivenessProbe(request)) return alive();
      const { app, operations } = routed ?? (await route());
      if (isProbe(request)) return await app.fetch(request);
      checkDeclaredLength(request, operations);
      refuseNulIn(request.url);
      return await ctx.requests.run(request, async () => {
        const identity = await identifySender(request, {
          clock: ctx.clock,
          identify: async () => enforceScope(request, await identify(credential, request, identifyDeps), operations),
        });
        rates?.count(request, identity, operations);
        const originDeps = { addresses: ctx.addresses, operations };
        const response = await runOnBehalf(request, identity, originDeps, () => app.fetch(request));
        if (options.checkAnswers)
          await checkAnswer(request, response, { operations, mismatches: ctx.requests.mismatches });
        const { pages } = ctx.requests;
        return pages.finish(request, await compress(request, response, pages.isSentInParts(request)));
      });
    } catch (error) {
      ctx.requests.pages.drop(request);
      return errorResponse(error, request);
    }
  };

  const identifyDeps = {
    store: ctx.store,
    clock: ctx.clock,
    agents: new AgentTokens(ctx),
    keys: new UserKeys(ctx.store),
    policy: ctx.config.require_second_factor,
    addresses: ctx.addresses,
    encryption: ctx.encryption,
  };
  const apps = new AppProxy(ctx, identifyDeps);
  const gateway = new AiGateway(ctx, identifyDeps, ctx.metrics);
  const rates = RateLimits.create(ctx, options.counts ?? ctx.membership?.active?.counts);
  const handle = async (request: Request): Promise<Response> => {
    const forwardedClient = takeForwardedAddress?.(request);
    // No work has started, so the standby node can pass the request to the next one.
    if (forwardedClient !== undefined && ctx.membership && (ctx.draining || isLapsed(ctx)))
      return await ctx.membership.decline(request, ctx.encryption);
    if (forwardedClient !== undefined) ctx.requests.setPeer(request, forwardedClient);
    const id = getRequestId(request);
    const response = await (id !== undefined && isTraceEnabled() ? runTraced(request, id, answer) : answer(request));
    const responseId = id ?? findMadeId(request);
    if (responseId !== undefined) response.headers.set("x-request-id", responseId);
    // A standby node forwards only one request on each connection, so the client must not reuse it. During a handover, clients must
    // reconnect, to reach the next node.
    const mustReconnect = forwardedClient !== undefined || ctx.handingOver;
    if (mustReconnect && !request.headers.has("upgrade")) response.headers.set("connection", "close");
    return response;
  };
  return {
    route,
    handle,
    allow(names) {
      hosts = new Set(names.map((name) => name.toLowerCase()));
    },
  };
};

/** Listens on the configured address (port 0 = any) and serves until stopped. */
export const startServer = async (ctx: Context, options: ServerOptions = {}): Promise<RunningServer> => {
  const { host, port } = ctx.config.address;
  const tls = readTls(ctx.config, ctx.clock.now());
  const shortHost = tls && getAllowedHosts(ctx.config).find((name) => name.length < 3);
  if (shortHost)
    throw new TlsError(`the host ${shortHost} is too short for https: use a name of three characters or more`);
  const takeForwardedAddress = ctx.membership?.makeForwardedAddressTaker(ctx.encryption);
  const active = ctx.membership?.active;
  const { route, handle, allow } = makeHandler(ctx, active ? undefined : takeForwardedAddress, options);
  const shardHandler = active && (await toShardHandler(ctx, { handle, ...(await route()) }));
  const answer = countRequests(traceRequests(shardHandler?.handle ?? handle, isProbe), ctx.metrics);
  const heardPorts = tls && new Set<number>();
  const server: Server<never> = Bun.serve({
    hostname: active ? "127.0.0.1" : host.replace(/^\[|\]$/g, ""),
    port: active ? 0 : port,
    tls: tls && { cert: tls.cert, key: tls.key },
    fetch: heardPorts ? recordSenders(heardPorts, answer) : answer,
    websocket: ctx.sockets.websocket as never,
    idleTimeout: options.idleTimeoutSeconds ?? 30,
    // During a takeover, the standby node's listener stays open until this listener is open. Forwarding to the next node starts before this
    // listener closes.
    reusePort: ctx.membership !== undefined && !active,
    // Bun's own error has no body. The routes check the size themselves and respond with the specified error.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    error: (error) => {
      log("http").error("unhandled", { error });
      return errorResponse(error, new Request("http://localhost/"));
    },
  });
  ctx.membership?.forwarder?.handOffClients();
  ctx.cluster?.onLapse(() => {
    ctx.streams.endAll();
    ctx.sockets.closeAll("this node is not the active one now");
  });
  ctx.sockets.attach(server as never);
  ctx.requests.attach(server);
  // With several active nodes, another listener accepts the connections and counts them itself.
  const guardDeps = { server, port: server.port as number, heardPorts };
  const guard = active
    ? undefined
    : DescriptorGuard.create({ ...guardDeps, busyPorts: () => ctx.requests.peerPorts() });
  const shownPort =
    active && shardHandler
      ? active.listen(server.port as number, ctx.encryption, shardHandler.shardOf)
      : (server.port as number);
  ctx.accessUrl = getAccessUrl(ctx.config, shownPort);
  allow(getAllowedHosts(ctx.config));
  const scrapes =
    ctx.metrics &&
    ctx.config.metrics_address &&
    listenForScrapes(ctx.metrics, ctx.config.metrics_address, getAllowedHosts(ctx.config));
  if (ctx.metrics) registerFigures(ctx.metrics, ctx);
  await ctx.onListening();
  await route();
  active?.shards.onMoves({
    adopt: (shards) => ctx.adoptShards(shards),
    releaseShards: (shards) => ctx.releaseShards(shards),
  });

  return {
    metrics: scrapes?.url,
    url: toListeningUrl(tls ? "https" : "http", host, shownPort),
    async stop(reason) {
      const closed = ctx.membership && ctx.cluster && (await stopAccepting(server, ctx, ctx.membership));
      ctx.draining = true;
      ctx.streams.endAll();
      ctx.sockets.closeAll(reason);
      await ctx.requests.drain();
      // Also ends streams that running requests have opened since.
      ctx.streams.endAll();
      ctx.sockets.closeAll(reason);
      await ctx.drain();
      await scrapes?.stop();
      guard?.[Symbol.dispose]();
      // Waits for responses that are still being sent.
      if (closed) await finishesWithin(closed.clock, ANSWER_DRAIN_TIMEOUT_MS, closed.connections);
      await server.stop(true);
    },
  };
};

type Answer = (request: Request) => Promise<Response> | Response;

/** Records which connections have sent a request, by their remote port. */
const recordSenders =
  (ports: Set<number>, answer: Answer) =>
  (request: Request, server: Pick<Server<never>, "requestIP">): ReturnType<Answer> => {
    const port = server.requestIP(request)?.port;
    if (port !== undefined) ports.add(port);
    return answer(request);
  };

/**
 * For several active nodes: returns a handler that rejects requests for the shards of other nodes, so that they are sent to these nodes.
 * `shardOf` returns the shard of a request; undefined if any node can handle it.
 */
const toShardHandler = async (
  ctx: Context,
  { operations, handle }: Pick<RoutedApp, "operations"> & Pick<RequestHandler, "handle">,
): Promise<Pick<RequestHandler, "handle"> & { shardOf(request: Request): Promise<number | undefined> }> => {
  const { membership, shardIndex: index, encryption, store, clock, config } = ctx;
  if (!membership) throw new Error("a node with shards needs its cluster membership");
  const [{ ownRequests }, { Placement }] = await Promise.all([
    import("./api/http/placement/own-requests.ts"),
    import("./api/http/placement/placement.ts"),
  ]);
  const placement = new Placement({ store, clock, config, index, operations, accessUrl: () => ctx.accessUrl });
  const handleOwn = ownRequests(ctx, {
    placement,
    handle,
    isProbe,
    // Without handover, this node reports its shutdown itself.
    isClosed: () => (ctx.draining && ctx.handingOver) || isLapsed(ctx),
    takeForwardedAddress: membership.makeForwardedAddressTaker(encryption),
    decline: (request, shard) => membership.decline(request, encryption, shard),
  });
  return {
    handle: handleOwn,
    async shardOf(request) {
      const destination = isProbe(request) ? "here" : await placement.shardOf(request);
      return destination === "here" ? undefined : destination;
    },
  };
};

/**
 * Serves reads on a local port of a node that is not the active one. Requests that it cannot answer get 421, so that they are sent to the
 * active node. `ctx` comes from src/context/open-reads.ts.
 */
export const startReads = (ctx: Context, { takeForwardedAddress, ask, ...options }: ReadServerOptions): ReadServer => {
  const { route, handle, allow } = makeHandler(ctx, undefined, options);
  const tls = readTls(ctx.config, ctx.clock.now());
  const needsActiveNode = async (request: Request): Promise<boolean> => {
    if (!request.headers.has("upgrade")) return false;
    const { operations } = await route();
    return !operations.find(request.method, getPath(request.url))?.declared.anywhere;
  };
  const server: Server<never> = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    tls: tls && { cert: tls.cert, key: tls.key },
    websocket: ctx.sockets.websocket as never,
    async fetch(request) {
      const client = takeForwardedAddress(request);
      if (client === undefined) return new Response(null, { status: 403 });
      ctx.requests.setPeer(request, client);
      const localResponse = (await needsActiveNode(request))
        ? undefined
        : await readLocally(() => ask().then(() => handle(request)));
      const isAnswered = localResponse !== undefined && localResponse.status < 500;
      if (!isAnswered) await localResponse?.body?.cancel();
      const response = isAnswered ? localResponse : new Response(null, { status: MISDIRECTED });
      response.headers.set("connection", "close");
      return response;
    },
  });
  ctx.sockets.attach(server as never);
  ctx.requests.attach(server);
  ctx.accessUrl = getAccessUrl(ctx.config, ctx.config.address.port);
  allow(getAllowedHosts(ctx.config));
  void route();
  return {
    port: server.port as number,
    async stop() {
      await finishesWithin(ctx.clock, READ_DRAIN_TIMEOUT_MS, ctx.requests.drain());
      ctx.sockets.closeAll("this node becomes the active one");
      await server.stop(true);
    },
  };
};

/** Time for responses that are still being sent when a node closes. */
const ANSWER_DRAIN_TIMEOUT_MS = 500;

/** Returns whether this node of a cluster could not renew its lease. Another node may then be active. */
const isLapsed = ({ cluster }: Context): boolean => cluster !== undefined && cluster.serves_ms <= 0;

/** Returns whether this is a health check, which is answered even while the server is overloaded or stopping. */
const isProbe = (request: Request): boolean => {
  const path = getPath(request.url);
  return path === "/healthz" || path === "/readyz";
};

const isLivenessProbe = ({ method, url }: Request): boolean => method === "GET" && getPath(url) === "/healthz";

const toListeningUrl = (scheme: string, host: string, port: number): URL =>
  new URL(`${scheme}://${host.includes(":") && !host.startsWith("[") ? `[${host}]` : host}:${port}/`);

/** Rejects a body that exceeds its route's limit before reading any of it, including on routes that take no body. */
const checkDeclaredLength = ({ method, url, headers }: Request, operations: Operations): void => {
  if (method === "GET" || method === "HEAD") {
    if (!headers.has("transfer-encoding")) return;
    throw new AppError("invalid", `A ${method} request has no body.`);
  }
  const length = Number(headers.get("content-length"));
  if (length <= MIN_BODY_LIMIT) return;
  const limit = getBodyLimit(operations.find(method, getPath(url))?.declared);
  if (length > limit) throw tooLarge(limit);
};
