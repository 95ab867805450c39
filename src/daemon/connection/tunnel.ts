// The tunnel from the server into the workspace: a second connection, on which the server opens streams, each for a port (rules TN-1 to
// TN-5). Lives as long as the daemon; a stream ends with its connection.
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import type { Random } from "#base/random.ts";
import {
  asWireError,
  type Duplex,
  encodeOutcome,
  Lookahead,
  pipe,
  readTarget,
  type Target,
  WireError,
  type YamuxSession,
} from "#src/wire/index.ts";
import { dial, TUNNEL } from "./dial.ts";
import { reconnect } from "./reconnect.ts";
import { connectSocket } from "./tunnel-socket.ts";

/** Services of the daemon itself, by port. Other ports below 9 are refused; ports from 9 on are the workspace's own programs. */
export type TunnelServices = ReadonlyMap<number, TunnelService>;

/** Prepares to serve a stream and returns the function that serves it. Throws WireError `refused` if it cannot. */
export type TunnelService = () => Promise<(stream: Duplex) => Promise<void>>;

export type TunnelOptions = {
  url: URL;
  token: string;
  clock: Clock;
  random: Random;
  signal: AbortSignal;
  services: TunnelServices;
  /** Counts a new stream to a port of the workspace. */
  counted(): CountedStream;
};

/** Receives the bytes of a stream and its end. */
export type CountedStream = { moved(bytes: number): void; ended(): void };

const HEADER_MS = 10_000;
const FIRST_TCP = 9;

/** Connects and reconnects until the signal fires; never rejects. */
export const runTunnel = (options: TunnelOptions): Promise<void> => {
  const { url, token, clock, random, signal } = options;
  const once = async (): Promise<Error> => {
    try {
      const session = await dial({ url, token, clock, signal, endpoint: TUNNEL });
      const hangUp = (): void => session.close("The daemon stops.");
      signal.addEventListener("abort", hangUp, { once: true });
      try {
        if (signal.aborted) hangUp();
        await serve(session, options);
        return (await session.closed) ?? new Error("The server closed the tunnel.");
      } finally {
        signal.removeEventListener("abort", hangUp);
      }
    } catch (error) {
      return asError(error);
    }
  };
  return reconnect({ what: "no tunnel", clock, random, signal, once });
};

const serve = async (session: YamuxSession, options: TunnelOptions): Promise<void> => {
  for (;;) {
    const stream = await session.accept();
    if (stream === undefined) return;
    serveStream(stream, options).catch((error) => {
      stream.reset(asWireError(error).message);
      log("daemon").debug("a stream of the tunnel broke: {error}", { error });
    });
  }
};

const serveStream = async (raw: Duplex, { clock, services, counted }: TunnelOptions): Promise<void> => {
  const stream = new Lookahead(raw);
  const late = clock.after(HEADER_MS, () => raw.reset("No target was named."));
  const { port, tls } = await readTarget(stream).finally(() => late.cancel());
  let run: (stream: Duplex) => Promise<void>;
  try {
    run = await ((tls ? undefined : services.get(port)) ?? (() => tcp({ port, tls }, clock, counted)))();
  } catch (error) {
    const { failure, message } = asWireError(error);
    await stream.write(encodeOutcome(failure === "refused" ? "refused" : "failed", message));
    await stream.end();
    return;
  }
  await stream.write(encodeOutcome("open"));
  await run(stream);
};

/** Connects to a port of the workspace and returns the function that serves the stream. Throws WireError `refused`. */
export const tcp = async (
  target: Target,
  clock: Clock,
  counted: TunnelOptions["counted"],
): Promise<(stream: Duplex) => Promise<void>> => {
  if (target.port < FIRST_TCP) throw new WireError("refused", `The agent does not offer port ${target.port}.`);
  const socket = await loopback(target, clock);
  const { moved, ended } = counted();
  return (stream) => pipe(stream, socket, moved).finally(ended);
};

/** Programs listen on either loopback address, or on both. */
const loopback = async (target: Target, clock: Clock): Promise<Duplex> => {
  try {
    return await connectSocket({ hostname: "127.0.0.1", ...target }, clock);
  } catch (error) {
    return await connectSocket({ hostname: "::1", ...target }, clock).catch(() => {
      throw error;
    });
  }
};

const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));
