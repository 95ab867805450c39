// Context -> a listening server. Requests pass the gate (Host, Origin), are identified, and reach Elysia; whatever goes wrong on
// the way becomes the generic error body. Stopping ends what is open in order.

import type { Server } from "bun";
import type { AnyElysia } from "elysia";
import { accessUrl, allowedHosts } from "#base/config.ts";
import { AppError } from "#base/errors.ts";
import "#schema/formats.ts";
import { log } from "#base/log.ts";
import { MISDIRECTED, readHere } from "#base/network/read-here.ts";
import { within } from "#base/retry.ts";
import { readTls, TlsError } from "#base/tls.ts";
import { tracing } from "#base/trace.ts";
import { AiGateway, isGatewayPath } from "./api/ai/gateway.ts";
import { AppProxy } from "./api/applications/proxy.ts";
import { onBehalf } from "./api/audit/origin.ts";
import { alive } from "./api/health.ts";
import { AgentTokens } from "./api/http/agent-tokens.ts";
import { checkAnswer } from "./api/http/answers/answer-check.ts";
import { checkDeclaredLength } from "./api/http/body/declared-length.ts";
import { refuseNulIn } from "./api/http/body/nul.ts";
import { remember } from "./api/http/caller.ts";
import { compressed } from "./api/http/encoding.ts";
import { errorResponse, getPath } from "./api/http/errors.ts";
import { type AllowedHosts, checkHost, checkOrigin } from "./api/http/gate.ts";
import { findCredential, identify } from "./api/http/identify.ts";
import type { Operations } from "./api/http/operations.ts";
import { type OthersCounts, RateLimits } from "./api/http/rate-limit.ts";
import { findMadeId, getRequestId, tracedAnswer } from "./api/http/request-id.ts";
import { withinScope } from "./api/http/scope-gate.ts";
import { UserKeys } from "./api/http/user-keys.ts";
import { registerFigures } from "./api/metrics/figures.ts";
import { listenForScrapes } from "./api/metrics/listen.ts";
import { countRequests, traceRequests } from "./api/metrics/requests.ts";
import type { TakeNamed } from "./cluster/passed-on.ts";
import { closeDoor } from "./context/close-door.ts";
import type { Context } from "./context/context.ts";
import { DescriptorGuard } from "./context/descriptor-guard.ts";
import { isAppPath } from "./domain/applications/names.ts";

export interface RunningServer {
  readonly url: URL;
  /** Where figures are served, when they are. */
  readonly metrics: URL | undefined;
  /** Refuses new work, ends streams with 1001, waits for open requests, and stops listening. */
  stop(reason: string): Promise<void>;
}

export interface ReadsServer {
  readonly port: number;
  /** Lets reads that are under way end, for a moment. */
  stop(): Promise<void>;
}

/** Before a node is active what it reads has to be over; reads can be asked again. */
const LAST_READS_MS = 500;

export type ServerOptions = {
  /** A connection on which nothing moves for so long is closed. Tests shorten it. */
  idleTimeoutSeconds?: number;
  /** Looks at the answers that handlers make themselves, too, whether they fit their schemas: tests only. */
  checkAnswers?: boolean;
};

export type ReadsOptions = Pick<ServerOptions, "checkAnswers"> & {
  /** Knows what this node passes to itself: nobody else is answered. */
  readonly takeNamed: TakeNamed;
  readonly counts?: OthersCounts;
  /** Before each request: learns what has been written, by which kept answers are right or not. */
  ask(): Promise<void>;
};

/** The routes, and what they have declared. */
type Routed = { readonly app: Pick<AnyElysia, "fetch">; readonly operations: Operations };

type Handling = {
  /** Makes the routes, once: with the first request for one of them, or when the server is done with all else. */
  route(): Promise<Routed>;
  /** Answers a request that has passed the gate of connections. */
  readonly handle: (request: Request) => Promise<Response>;
  /** Names of hosts that are answered to, once the address is known. */
  allow(names: readonly string[]): void;
};

/** From a request to its answer: gate, caller, limits, route. */
const makeHandler = (
  ctx: Context,
  takeNamed: TakeNamed | undefined,
  options: Pick<ReadsOptions, "checkAnswers" | "counts">,
): Handling => {
  let routed: Routed | undefined;
  const { promise: wanted, resolve: want } = Promise.withResolvers<void>();
  const makeRoutes = async (): Promise<Routed> => {
    const { collectOperations, createApp } = await import("./api/app.ts");
    const app = createApp(ctx, (request, caller) => rates?.count(request, caller, operations));
    const operations = collectOperations(app);
    routed = { app, operations };
    return routed;
  };
  // On behalf of the start, whichever request wants them first: what they begin belongs to no request.
  const routing = wanted.then(makeRoutes);
  const route = (): Promise<Routed> => {
    want();
    return routing;
  };
  let hosts: AllowedHosts = new Set();
  const answer = async (request: Request): Promise<Response> => {
    try {
      if (isLapsed(ctx) && !isProbe(request)) throw new AppError("overloaded", "This node is not the active one now.");
      const appName = apps.nameOf(request);
      if (appName) return await ctx.requests.run(request, () => apps.onHost(request, appName));
      checkHost(request, hosts);
      if (isGatewayPath(getPath(request.url))) return await gateway.answer(request);
      if (isAppPath(getPath(request.url))) return await ctx.requests.run(request, () => apps.onPath(request));
      const credential = findCredential(request);
      checkOrigin(request, credential, hosts, ctx.accessUrl);
      // A question whether the process is alive does not wait for routes that are still to be made.
      if (!routed && isAskedAlive(request)) return alive();
      const { app, operations } = routed ?? (await route());
      if (isProbe(request)) return await app.fetch(request);
      checkDeclaredLength(request, operations);
      refuseNulIn(request.url);
      return await ctx.requests.run(request, async () => {
        const identity = withinScope(request, await identify(credential, request, who), operations);
        rates?.count(request, identity, operations);
        remember(request, identity);
        const behalf = { addresses: ctx.addresses, operations };
        const response = await onBehalf(request, identity, behalf, () => app.fetch(request));
        if (options.checkAnswers)
          await checkAnswer(request, response, { operations, mismatches: ctx.requests.mismatches });
        return compressed(request, response);
      });
    } catch (error) {
      return errorResponse(error, request);
    }
  };

  const who = {
    store: ctx.store,
    clock: ctx.clock,
    agents: new AgentTokens(ctx),
    keys: new UserKeys(ctx.store),
    policy: ctx.config.require_second_factor,
    addresses: ctx.addresses,
    encryption: ctx.encryption,
  };
  const apps = new AppProxy(ctx, who);
  const gateway = new AiGateway(ctx, who, ctx.metrics);
  const rates = RateLimits.of(ctx, options.counts ?? ctx.membership?.active?.counts);
  const handle = async (request: Request): Promise<Response> => {
    const passedOnFor = takeNamed?.(request);
    // Nothing was begun: the spare asks the next node.
    if (passedOnFor !== undefined && ctx.membership && (ctx.draining || isLapsed(ctx)))
      return await ctx.membership.elsewhere(request, ctx.encryption);
    if (passedOnFor !== undefined) ctx.requests.passedOnFor(request, passedOnFor);
    const id = getRequestId(request);
    const response = await (id !== undefined && tracing() ? tracedAnswer(request, id, answer) : answer(request));
    const shown = id ?? findMadeId(request);
    if (shown !== undefined) response.headers.set("x-request-id", shown);
    // A spare passes one request on each connection; the client has to know that there is no second.
    // A node that hands over wants anyone who is still connected to come again, to the next one.
    const isLast = passedOnFor !== undefined || ctx.handingOver;
    if (isLast && !request.headers.has("upgrade")) response.headers.set("connection", "close");
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

/** Listens on the configured address (port 0 = any) and answers until stopped. */
export const startServer = async (ctx: Context, options: ServerOptions = {}): Promise<RunningServer> => {
  const { host, port } = ctx.config.address;
  const tls = readTls(ctx.config, ctx.clock.now());
  const short = tls && allowedHosts(ctx.config).find((name) => name.length < 3);
  if (short) throw new TlsError(`the host ${short} is too short for https: use a name of three characters or more`);
  const takeNamed = ctx.membership?.takerOfNames(ctx.encryption);
  const active = ctx.membership?.active;
  const { route, handle, allow } = makeHandler(ctx, active ? undefined : takeNamed, options);
  const own = active && (await handlerOfParts(ctx, { handle, ...(await route()) }));
  const answer = countRequests(traceRequests(own?.handle ?? handle, isProbe), ctx.metrics);
  const heardPorts = tls && new Set<number>();
  const server: Server<never> = Bun.serve({
    hostname: active ? "127.0.0.1" : host.replace(/^\[|\]$/g, ""),
    port: active ? 0 : port,
    tls: tls && { cert: tls.cert, key: tls.key },
    fetch: heardPorts ? remembering(heardPorts, answer) : answer,
    websocket: ctx.sockets.websocket as never,
    idleTimeout: options.idleTimeoutSeconds ?? 30,
    // A spare that takes over listens already, until this does; what passes on to the next node begins before this ends.
    reusePort: ctx.membership !== undefined && !active,
    // Bun's own refusal has no body. The routes count for themselves and answer with the specified words.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    error: (error) => {
      log("http").error("unhandled", { error });
      return errorResponse(error, new Request("http://localhost/"));
    },
  });
  ctx.membership?.forwarder?.handOver();
  ctx.cluster?.onLapse(() => {
    ctx.streams.endAll();
    ctx.sockets.closeAll("this node is not the active one now");
  });
  ctx.sockets.attach(server as never);
  ctx.requests.attach(server);
  // Where several nodes work another listener stands in front, which counts its connections itself.
  const guarded = { server, port: server.port as number, heardPorts };
  const guard = active ? undefined : DescriptorGuard.of({ ...guarded, busyPorts: () => ctx.requests.peerPorts() });
  const shownPort =
    active && own ? active.listen(server.port as number, ctx.encryption, own.partOf) : (server.port as number);
  ctx.accessUrl = accessUrl(ctx.config, shownPort);
  allow(allowedHosts(ctx.config));
  const scrapes =
    ctx.metrics &&
    ctx.config.metrics_address &&
    listenForScrapes(ctx.metrics, ctx.config.metrics_address, allowedHosts(ctx.config));
  if (ctx.metrics) registerFigures(ctx.metrics, ctx);
  await ctx.started();
  await route();
  active?.parts.onMoves({ adopt: (parts) => ctx.adopted(parts), leave: (parts) => ctx.leave(parts) });

  return {
    metrics: scrapes?.url,
    url: listeningUrl(tls ? "https" : "http", host, shownPort),
    async stop(reason) {
      const closed = ctx.membership && ctx.cluster && (await closeDoor(server, ctx, ctx.membership));
      ctx.draining = true;
      ctx.streams.endAll();
      ctx.sockets.closeAll(reason);
      await ctx.requests.drain();
      // What was opened by requests that were already under way.
      ctx.streams.endAll();
      ctx.sockets.closeAll(reason);
      await ctx.drain();
      await scrapes?.stop();
      guard?.[Symbol.dispose]();
      // Answers that are on their way still.
      if (closed) await within(closed.clock, LAST_ANSWERS_MS, closed.connections);
      await server.stop(true);
    },
  };
};

type Answer = (request: Request) => Promise<Response> | Response;

/** Notes which connections have brought a request, by the port at their other end. */
const remembering =
  (ports: Set<number>, answer: Answer) =>
  (request: Request, server: Pick<Server<never>, "requestIP">): ReturnType<Answer> => {
    const port = server.requestIP(request)?.port;
    if (port !== undefined) ports.add(port);
    return answer(request);
  };

/** Where several nodes are active: what is not of this node's parts is said to be another's, which `partOf` says as well. */
const handlerOfParts = async (
  ctx: Context,
  { operations, handle }: Pick<Routed, "operations"> & Pick<Handling, "handle">,
): Promise<Pick<Handling, "handle"> & { partOf(request: Request): Promise<number | undefined> }> => {
  const { membership, partIndex: index, encryption, store, clock, config } = ctx;
  if (!membership || !index) throw new Error("a node that has parts knows what is of them");
  const [{ ownRequests }, { Placement }] = await Promise.all([
    import("./api/http/placement/own-requests.ts"),
    import("./api/http/placement/placement.ts"),
  ]);
  const placement = new Placement({ store, clock, config, index, operations, accessUrl: () => ctx.accessUrl });
  const handleOwn = ownRequests(ctx, {
    placement,
    handle,
    isProbe,
    // One that is alone says itself that it stops.
    isClosed: () => (ctx.draining && ctx.handingOver) || isLapsed(ctx),
    takeNamed: membership.takerOfNames(encryption),
    elsewhere: (request, part) => membership.elsewhere(request, encryption, part),
  });
  return {
    handle: handleOwn,
    async partOf(request) {
      const place = isProbe(request) ? "here" : await placement.partOf(request);
      return place === "here" ? undefined : place;
    },
  };
};

/**
 * Answers reads of a node that is not the active one, on a port of this machine: whatever it cannot say is answered 421, for the active one
 * to be asked. `ctx` is of src/context/open-reads.ts.
 */
export const startReads = (ctx: Context, { takeNamed, ask, ...options }: ReadsOptions): ReadsServer => {
  const { route, handle, allow } = makeHandler(ctx, undefined, options);
  const tls = readTls(ctx.config, ctx.clock.now());
  const isForActive = async (request: Request): Promise<boolean> => {
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
      const client = takeNamed(request);
      if (client === undefined) return new Response(null, { status: 403 });
      ctx.requests.passedOnFor(request, client);
      const read = (await isForActive(request)) ? undefined : await readHere(() => ask().then(() => handle(request)));
      const isAnswer = read !== undefined && read.status < 500;
      if (!isAnswer) await read?.body?.cancel();
      const response = isAnswer ? read : new Response(null, { status: MISDIRECTED });
      response.headers.set("connection", "close");
      return response;
    },
  });
  ctx.sockets.attach(server as never);
  ctx.requests.attach(server);
  ctx.accessUrl = accessUrl(ctx.config, ctx.config.address.port);
  allow(allowedHosts(ctx.config));
  void route();
  return {
    port: server.port as number,
    async stop() {
      await within(ctx.clock, LAST_READS_MS, ctx.requests.drain());
      ctx.sockets.closeAll("this node becomes the active one");
      await server.stop(true);
    },
  };
};

/** For answers that are on their way while a node closes its door. */
const LAST_ANSWERS_MS = 500;

/** A node of a cluster that could not renew its lease: another one may be active by now. */
const isLapsed = ({ cluster }: Context): boolean => cluster !== undefined && cluster.serves_ms <= 0;

/** Health checks are answered also while the server is overloaded or stopping. */
const isProbe = (request: Request): boolean => {
  const path = getPath(request.url);
  return path === "/healthz" || path === "/readyz";
};

const isAskedAlive = ({ method, url }: Request): boolean => method === "GET" && getPath(url) === "/healthz";

const listeningUrl = (scheme: string, host: string, port: number): URL =>
  new URL(`${scheme}://${host.includes(":") && !host.startsWith("[") ? `[${host}]` : host}:${port}/`);
