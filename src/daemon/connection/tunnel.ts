// The tunnel from the server into the workspace: a second connection, on which the server opens streams, each to one port (rules TN-1 to
// TN-5). The tunnel reconnects until the daemon ends; streams end when their connection breaks.
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import type { Random } from "#base/random.ts";
import {
  type Duplex,
  encodeOutcome,
  Lookahead,
  pipe,
  readTarget,
  type Target,
  toWireError,
  WireError,
  type YamuxSession,
} from "#src/wire/index.ts";
import type { AgentToken } from "../agent-token.ts";
import { dial, TokenRefused, TUNNEL_PATH } from "./dial.ts";
import { reconnect } from "./reconnect.ts";
import { connectSocket } from "./tunnel-socket.ts";

/** Services of the daemon itself, by port. Other ports below 9 are refused; ports from 9 on belong to the workspace's own programs. */
export type TunnelServices = ReadonlyMap<number, TunnelService>;

/** Prepares to serve a stream and returns the function that serves it. Throws WireError `refused` if it cannot. */
export type TunnelService = () => Promise<(stream: Duplex) => Promise<void>>;

export type TunnelOptions = {
  url: URL;
  token: Pick<AgentToken, "value" | "refuse">;
  clock: Clock;
  random: Random;
  signal: AbortSignal;
  services: TunnelServices;
  /** Counts a new stream to a port of the workspace. */
  countStream(): CountedStream;
};

/** Receives the bytes of a stream and its end. */
export type CountedStream = { moved(bytes: number): void; ended(): void };

const HEADER_TIMEOUT_MS = 10_000;
const MIN_TCP_PORT = 9;

/** Connects and reconnects until the signal fires; never rejects. */
export const runTunnel = (options: TunnelOptions): Promise<void> => {
  const { url, token: tokens, clock, random, signal } = options;
  const runOnce = async (): Promise<Error> => {
    const token = tokens.value;
    try {
      const session = await dial({ url, token, clock, signal, endpoint: TUNNEL_PATH });
      const closeSession = (): void => session.close("The daemon stops.");
      signal.addEventListener("abort", closeSession, { once: true });
      try {
        if (signal.aborted) closeSession();
        await serve(session, options);
        return (await session.closed) ?? new Error("The server closed the tunnel.");
      } finally {
        signal.removeEventListener("abort", closeSession);
      }
    } catch (error) {
      if (error instanceof TokenRefused) tokens.refuse(token);
      return toError(error);
    }
  };
  return reconnect({ failure: "no tunnel", clock, random, signal, once: runOnce });
};

const serve = async (session: YamuxSession, options: TunnelOptions): Promise<void> => {
  for (;;) {
    const stream = await session.accept();
    if (stream === undefined) return;
    serveStream(stream, options).catch((error) => {
      stream.reset(toWireError(error).message);
      log("daemon").debug("a stream of the tunnel broke: {error}", { error });
    });
  }
};

const serveStream = async (connection: Duplex, { clock, services, countStream }: TunnelOptions): Promise<void> => {
  const stream = new Lookahead(connection);
  const headerTimer = clock.after(HEADER_TIMEOUT_MS, () => connection.reset("No target was named."));
  const { port, tls } = await readTarget(stream).finally(() => headerTimer.cancel());
  let run: (stream: Duplex) => Promise<void>;
  try {
    run = await ((tls ? undefined : services.get(port)) ?? (() => connectTcp({ port, tls }, clock, countStream)))();
  } catch (error) {
    const { failure, message } = toWireError(error);
    await stream.write(encodeOutcome(failure === "refused" ? "refused" : "failed", message));
    await stream.end();
    return;
  }
  await stream.write(encodeOutcome("open"));
  await run(stream);
};

/** Connects to a port of the workspace and returns the function that serves the stream. Throws WireError `refused`. */
export const connectTcp = async (
  target: Target,
  clock: Clock,
  countStream: TunnelOptions["countStream"],
): Promise<(stream: Duplex) => Promise<void>> => {
  if (target.port < MIN_TCP_PORT) throw new WireError("refused", `The agent does not offer port ${target.port}.`);
  const socket = await connectLoopback(target, clock);
  const { moved, ended } = countStream();
  return (stream) => pipe(stream, socket, moved).finally(ended);
};

/** Tries both loopback addresses, because a program may listen on only one of them. */
const connectLoopback = async (target: Target, clock: Clock): Promise<Duplex> => {
  try {
    return await connectSocket({ hostname: "127.0.0.1", ...target }, clock);
  } catch (error) {
    return await connectSocket({ hostname: "::1", ...target }, clock).catch(() => {
      throw error;
    });
  }
};

const toError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));
