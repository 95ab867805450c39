// One request on its way to an app and its answer on the way back: bodies stream as fast as the slower side takes them, and everything
// ends when the client, the app, the caller's right or the server does (rules AX-6, AX-9, AX-15).
import { unhurried } from "#base/body-pieces.ts";
import type { Clock, Timer } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";
import { log } from "#base/log.ts";
import { type HttpResponse, WebSocketFrames, WireError } from "#src/wire/index.ts";
import type { ApiContext } from "../context.ts";
import { AppBridge } from "./bridge.ts";
import { type Opened, whenAppLost } from "./ends.ts";
import { isLoop, requestHeaders, responseHeaders } from "./headers.ts";
import type { Trouble } from "./page.ts";

/** An app that has said nothing of its answer by then is given up. */
const HEAD_MS = 300_000;
/** Bytes of a body that is not streamed. */
const SHORT = 64 * 1024;
const FAREWELL_MS = 5_000;

export type Passing = Opened & {
  /** Where the app is mounted below the access URL; empty on a host of its own. */
  readonly prefix: string;
  /** Path and query as the app gets them. */
  readonly path: string;
  /** Its pages get no origin. */
  readonly sandboxed: boolean;
  used(): void;
  trouble(trouble: Trouble): Response | Promise<Response>;
};

/** Answers with what the app answers, or with why it does not. Throws 503 when too much is open. */
export const passOn = async (ctx: ApiContext, request: Request, passing: Passing): Promise<Response> => {
  const { headers, method } = request;
  const hasBody = headers.has("transfer-encoding") || Number(headers.get("content-length") ?? 0) > 0;
  // The runtime does not hand such a body over, and without it an app would answer something else than was asked.
  if (hasBody && (method === "GET" || method === "HEAD")) return passing.trouble("body_of_get");
  if (isLoop(headers)) return passing.trouble("loop");
  const flow = new Flow(ctx, request, passing);
  try {
    if (headers.get("upgrade")?.toLowerCase() === "websocket") return await upgraded(ctx, request, passing, flow);
    const asked = flow.asked(getBody(ctx.clock, request, hasBody));
    return await flow.answer(await ctx.agentHttp.request(passing.place.agent_id, asked));
  } catch (error) {
    flow.end();
    const trouble = flow.isLate ? "late" : findTrouble(error);
    if (!trouble) throw error;
    log("applications").debug("an app did not answer: {error}", { error });
    return passing.trouble(trouble);
  }
};

const getBody = (clock: Clock, { body, headers }: Request, hasBody: boolean) => {
  if (!hasBody || !body) return {};
  const length = headers.has("transfer-encoding") ? undefined : Number(headers.get("content-length"));
  return {
    body: unhurried(clock, body as unknown as AsyncIterable<Uint8Array>),
    ...(length === undefined ? {} : { length }),
  };
};

const findTrouble = (error: unknown): Trouble | undefined => {
  if (error instanceof RangeError) return "malformed";
  if (error instanceof WireError) {
    return error.failure === "refused" ? "silent" : error.failure === "timeout" ? "late" : "broken";
  }
  // The agent is not connected, or has just gone.
  return error instanceof AppError && (error.kind === "invalid" || error.kind === "not_found")
    ? "agent_away"
    : undefined;
};

/** Asks the app first, so that its choice of protocol, or its refusal, is the answer. */
const upgraded = async (ctx: ApiContext, request: Request, passing: Passing, flow: Flow): Promise<Response> => {
  const asked = flow.asked({});
  const names = ["sec-websocket-extensions", "connection", "upgrade"];
  const kept = [...asked.headers].filter(([name]) => !names.includes(name));
  const headers = [...kept, ["connection", "Upgrade"] as const, ["upgrade", "websocket"] as const];
  const answer = await ctx.agentHttp.upgrade(passing.place.agent_id, { ...asked, headers });
  if ("response" in answer) return await flow.answer(answer.response);
  const protocol = answer.head.headers.get("sec-websocket-protocol");
  const frames = new WebSocketFrames(answer.stream, ctx.config.app_message_mb * 1024 * 1024);
  const bridge = new AppBridge(frames, {
    used: passing.used,
    watch: (end) => whenAppLost(ctx, passing, end),
    later: (run) => void ctx.clock.after(FAREWELL_MS, run),
  });
  try {
    flow.end();
    const said: Record<string, string> = protocol === null ? {} : { "sec-websocket-protocol": protocol };
    return ctx.sockets.upgrade(request, bridge, { headers: said, who: flow.who, app: true });
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

/** What must be ended together: the request to the app, the place among open streams, the watch over the caller's right. */
class Flow {
  readonly #ctx: ApiContext;
  readonly #request: Request;
  readonly #passing: Passing;
  readonly #abort = new AbortController();
  readonly #timer: Timer;
  #undo: (() => void)[] = [];
  /** Whose connection this is. */
  readonly who: string;
  isLate = false;

  constructor(ctx: ApiContext, request: Request, passing: Passing) {
    this.#ctx = ctx;
    this.#request = request;
    this.#passing = passing;
    const address = ctx.addresses.of(request);
    this.who = passing.by?.caller.user_id ?? `address ${address}`;
    const { cut } = this;
    const open = { end: cut, ping: () => {} };
    this.#undo.push(ctx.streams.add(open, this.who, request));
    ctx.requests.exempt(request);
    request.signal.addEventListener("abort", cut, { once: true });
    this.#timer = ctx.clock.after(HEAD_MS, () => {
      this.isLate = true;
      cut();
    });
    this.#undo.push(() => this.#timer.cancel());
  }

  readonly cut = (): void => this.#abort.abort();

  /** The request as the app gets it. */
  asked(body: { body?: AsyncIterable<Uint8Array>; length?: number }) {
    const { prefix, path, place, used } = this.#passing;
    used();
    const { headers, method } = this.#request;
    const protocol = this.#ctx.accessUrl.protocol;
    const forwarded = { address: this.#ctx.addresses.of(this.#request), protocol, prefix };
    return {
      method,
      path,
      port: place.port,
      tls: place.tls,
      signal: this.#abort.signal,
      ...body,
      headers: requestHeaders(headers, forwarded),
    };
  }

  /** The app's answer; a short one whole, since the runtime drops the length of a body that comes in pieces. */
  async answer(response: HttpResponse): Promise<Response> {
    const { status } = response;
    if (status < 200 || status > 599) throw new WireError("protocol", "The answer's status is none.");
    const headers = responseHeaders(response.headers, this.#passing);
    if (this.#request.method === "HEAD" || status === 204 || status === 205 || status === 304) {
      this.end();
      // It should have no body, but may.
      if (status === 205) this.cut();
      return new Response(null, { status, headers });
    }
    const length = Number(response.headers.get("content-length") ?? Number.NaN);
    if (length <= SHORT) {
      const parts: Uint8Array[] = [];
      for await (const part of response.body) parts.push(part);
      this.end();
      const body = Buffer.concat(parts);
      if (headers.has("content-type")) return new Response(body, { status, headers });
      // The runtime would call bytes without a type a download; a stream has the type that the app gave it: none.
      headers.set("content-length", String(body.byteLength));
      return new Response(toStream(body), { status, headers });
    }
    this.#timer.cancel();
    this.#undo.push(whenAppLost(this.#ctx, this.#passing, this.cut));
    return new Response(this.#toStream(response), { status, headers });
  }

  end(): void {
    for (const one of this.#undo.splice(0)) one();
  }

  #toStream(response: HttpResponse): ReadableStream<Uint8Array> {
    const { used } = this.#passing;
    const over = (): void => this.end();
    const { cut } = this;
    return new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          try {
            const { value, done } = await response.body.next();
            if (!done) {
              used();
              controller.enqueue(value);
              return;
            }
            over();
            controller.close();
          } catch (error) {
            over();
            log("applications").debug("an app's answer broke off: {error}", { error });
            // Cuts the connection, so that nobody takes it for the whole. With a reason the runtime would print it.
            controller.error(undefined);
          }
        },
        cancel() {
          over();
          // Also where nothing of the body was asked for yet.
          cut();
        },
      },
      { highWaterMark: 0 },
    );
  }
}
