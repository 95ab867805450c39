// Forwards one request to an app and the app's response to the client. Bodies are streamed with backpressure. Everything ends when the
// client or the app disconnects, the caller loses access, or the server stops (rules AX-6, AX-9, AX-15).

import type { Timer } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";
import { log } from "#base/log.ts";
import { ProgressWatch, paceBody } from "#base/network/body-pieces.ts";
import { type HttpResponse, WebSocketFrames, WireError } from "#src/wire/index.ts";
import type { ApiContext } from "../context.ts";
import { makeSlowBodyError, reserveStreamedBody } from "../http/body/budget.ts";
import { AppBridge } from "./bridge.ts";
import { type OpenedApp, watchAppAccess } from "./ends.ts";
import { isLoop, type SubresourcePolicy, toAppHeaders, toBrowserHeaders } from "./headers.ts";
import { AppMessageMemory } from "./message-memory.ts";
import type { Trouble } from "./page.ts";

/** Timeout for an app to send its response headers. */
const HEAD_TIMEOUT_MS = 300_000;
/** Bodies up to this many bytes are not streamed. */
const MAX_BUFFERED_BYTES = 64 * 1024;
const CLOSE_TIMEOUT_MS = 5_000;

export type Forwarding = OpenedApp & {
  /** Where the app is mounted below the access URL; empty on a host of its own. */
  readonly prefix: string;
  /** Path and query as sent to the app. */
  readonly path: string;
  /** Its pages get an opaque origin. */
  readonly isSandboxed: boolean;
  /** Which pages may load this response as a subresource. */
  readonly subresources: SubresourcePolicy;
  onUse(): void;
  respondTrouble(trouble: Trouble): Response | Promise<Response>;
};

/**
 * Returns the app's response, or an error page if the app did not respond. Throws 503 when too many requests are open, or too many bodies
 * are in transit to apps.
 */
export const forwardRequest = async (ctx: ApiContext, request: Request, forwarding: Forwarding): Promise<Response> => {
  const { headers, method } = request;
  const hasBody = headers.has("transfer-encoding") || Number(headers.get("content-length") ?? 0) > 0;
  // The runtime does not expose a body of such requests, and without it the app would answer a different request.
  if (hasBody && (method === "GET" || method === "HEAD")) return forwarding.respondTrouble("body_of_get");
  if (isLoop(headers)) return forwarding.respondTrouble("loop");
  const flow = new Flow(ctx, request, forwarding);
  try {
    if (headers.get("upgrade")?.toLowerCase() === "websocket") return await upgrade(ctx, request, forwarding, flow);
    const appRequest = flow.makeAppRequest(hasBody ? flow.takeBody() : {});
    return await flow.answer(await ctx.agentHttp.request(forwarding.app.agent_id, appRequest));
  } catch (error) {
    flow.end();
    if (flow.isSlow) throw makeSlowBodyError();
    const trouble = flow.isLate ? "late" : toTrouble(error);
    if (!trouble) throw error;
    log("applications").debug("an app did not answer: {error}", { error });
    return forwarding.respondTrouble(trouble);
  }
};

const toTrouble = (error: unknown): Trouble | undefined => {
  if (error instanceof RangeError) return "malformed";
  if (error instanceof WireError) {
    return error.failure === "refused" ? "silent" : error.failure === "timeout" ? "late" : "broken";
  }
  // The agent is not connected or has just disconnected.
  return error instanceof AppError && (error.kind === "invalid" || error.kind === "not_found")
    ? "agent_away"
    : undefined;
};

/** Connects to the app first, so that its choice of protocol or its refusal becomes the response. */
const upgrade = async (ctx: ApiContext, request: Request, forwarding: Forwarding, flow: Flow): Promise<Response> => {
  const appRequest = flow.makeAppRequest({});
  const names = ["sec-websocket-extensions", "connection", "upgrade"];
  const keptHeaders = [...appRequest.headers].filter(([name]) => !names.includes(name));
  const headers = [...keptHeaders, ["connection", "Upgrade"] as const, ["upgrade", "websocket"] as const];
  const answer = await ctx.agentHttp.upgrade(forwarding.app.agent_id, { ...appRequest, headers });
  if ("response" in answer) return await flow.answer(answer.response);
  const protocol = answer.head.headers.get("sec-websocket-protocol");
  const onTimeout = (): void => frames.reset("A message of the app was in memory for too long while memory was short.");
  const memory = new AppMessageMemory({ clock: ctx.clock, owner_id: forwarding.app.owner_id, onTimeout });
  const frames = new WebSocketFrames(answer.stream, ctx.config.app_message_mb * 1024 * 1024, memory);
  const bridge = new AppBridge(frames, {
    onUse: forwarding.onUse,
    watch: (end) => watchAppAccess(ctx, forwarding, end),
    runLater: (run) => void ctx.clock.after(CLOSE_TIMEOUT_MS, run),
  });
  try {
    flow.end();
    const protocolHeaders: Record<string, string> = protocol === null ? {} : { "sec-websocket-protocol": protocol };
    const visits = forwarding.appCaller ? undefined : forwarding.app.workspace_id;
    return ctx.sockets.upgrade(request, bridge, { headers: protocolHeaders, who: flow.holder, app: true, visits });
  } catch (error) {
    frames.reset("The client has gone.");
    throw error;
  }
};

const toStream = (body: Uint8Array): ReadableStream<Uint8Array> =>
  new ReadableStream({
    start(controller) {
      if (body.byteLength > 0) controller.enqueue(body);
      controller.close();
    },
  });

/** One forwarded request, with everything that must end together: the request to the app, its open stream, and the watch on access. */
class Flow {
  readonly #ctx: ApiContext;
  readonly #request: Request;
  readonly #forwarding: Forwarding;
  readonly #abort = new AbortController();
  readonly #timer: Timer;
  #cleanups: (() => void)[] = [];
  /** The user whose connection this is. */
  readonly holder: string;
  isLate = false;
  /** True when the request body was canceled because it arrived too slowly. */
  isSlow = false;

  constructor(ctx: ApiContext, request: Request, forwarding: Forwarding) {
    this.#ctx = ctx;
    this.#request = request;
    this.#forwarding = forwarding;
    const address = ctx.addresses.of(request);
    this.holder = forwarding.appCaller?.caller.user_id ?? `address ${address}`;
    const { cut } = this;
    const handle = { end: cut, ping: () => {} };
    this.#cleanups.push(ctx.streams.add(handle, { who: this.holder }, request));
    ctx.requests.exempt(request);
    request.signal.addEventListener("abort", cut, { once: true });
    this.#timer = ctx.clock.after(HEAD_TIMEOUT_MS, () => {
      this.isLate = true;
      cut();
    });
    this.#cleanups.push(() => this.#timer.cancel());
  }

  readonly cut = (): void => this.#abort.abort();

  /** Returns the body as sent to the app. Throws 503 when too many bodies are in transit. */
  takeBody(): { body?: AsyncIterable<Uint8Array>; length?: number } {
    const { headers } = this.#request;
    const length = headers.has("transfer-encoding") ? undefined : Number(headers.get("content-length"));
    const { clock, addresses } = this.#ctx;
    const { app, appCaller } = this.#forwarding;
    const reservation = reserveStreamedBody(this.#request, {
      receiver: app.workspace_id,
      user_id: appCaller?.caller.user_id,
      address: addresses.of(this.#request),
    });
    const progress = new ProgressWatch(clock, () => {
      if (!reservation.isShort()) return;
      this.isSlow = true;
      this.cut();
    });
    this.#cleanups.push(reservation.release, progress.stop);
    const { body } = this.#request;
    if (!body) return {};
    return {
      body: paceBody(clock, progress.watch(body as unknown as AsyncIterable<Uint8Array>), reservation.release),
      ...(length === undefined ? {} : { length }),
    };
  }

  /** Returns the request as sent to the app. */
  makeAppRequest(body: { body?: AsyncIterable<Uint8Array>; length?: number }) {
    const { prefix, path, app, onUse } = this.#forwarding;
    onUse();
    const { headers, method } = this.#request;
    const protocol = this.#ctx.accessUrl.protocol;
    const forwarded = { address: this.#ctx.addresses.of(this.#request), protocol, prefix };
    return {
      method,
      path,
      port: app.port,
      tls: app.tls,
      signal: this.#abort.signal,
      ...body,
      headers: toAppHeaders(headers, forwarded),
    };
  }

  /** Returns the app's response. A short body is sent whole, because the runtime drops the length of a streamed body. */
  async answer(response: HttpResponse): Promise<Response> {
    const { status } = response;
    if (status < 200 || status > 599) throw new WireError("protocol", "The answer's status is none.");
    const headers = toBrowserHeaders(response.headers, this.#forwarding);
    if (this.#request.method === "HEAD" || status === 204 || status === 205 || status === 304) {
      this.end();
      // A 205 should have no body but may have one.
      if (status === 205) this.cut();
      return new Response(null, { status, headers });
    }
    const length = Number(response.headers.get("content-length") ?? Number.NaN);
    if (length <= MAX_BUFFERED_BYTES) {
      const parts: Uint8Array[] = [];
      for await (const part of response.body) parts.push(part);
      this.end();
      const body = Buffer.concat(parts);
      if (headers.has("content-type")) return new Response(body, { status, headers });
      // The runtime would add a content type to these bytes, which makes browsers download them. It adds none to a stream.
      headers.set("content-length", String(body.byteLength));
      return new Response(toStream(body), { status, headers });
    }
    this.#timer.cancel();
    this.#cleanups.push(watchAppAccess(this.#ctx, this.#forwarding, this.cut));
    return new Response(this.#toStream(response), { status, headers });
  }

  end(): void {
    for (const cleanUp of this.#cleanups.splice(0)) cleanUp();
  }

  #toStream(response: HttpResponse): ReadableStream<Uint8Array> {
    const { onUse } = this.#forwarding;
    const onEnd = (): void => this.end();
    const { cut } = this;
    return new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          try {
            const { value, done } = await response.body.next();
            if (!done) {
              onUse();
              controller.enqueue(value);
              return;
            }
            onEnd();
            controller.close();
          } catch (error) {
            onEnd();
            log("applications").debug("an app's answer broke off: {error}", { error });
            // Cuts the connection so that the client doesn't mistake the response for complete. The runtime would print a reason.
            controller.error(undefined);
          }
        },
        cancel() {
          onEnd();
          // Needed even if nothing of the body was read yet.
          cut();
        },
      },
      { highWaterMark: 0 },
    );
  }
}
