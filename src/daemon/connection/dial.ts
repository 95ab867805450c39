// Opens a connection to the server: a WebSocket that becomes a yamux session (facts/wire 1.1). Says whether the server refused the
// token or could not be reached.
import type { Clock } from "#base/clock.ts";
import { failureWords } from "#base/network/failure-words.ts";
import {
  AGENT_API_VERSION,
  type ByteStream,
  plainWebSocket,
  streamOverWebSocket,
  UpgradeRefused,
  WireError,
  type YamuxOptions,
  YamuxSession,
} from "#src/wire/index.ts";

const DIAL_TIMEOUT_MS = 30_000;
const PING_INTERVAL_MS = 15_000;
const PING_TIMEOUT_MS = 15_000;

/** The server does not take this token: unknown, or of a build that is no longer the latest. */
export class TokenRefused extends Error {
  override readonly name = "TokenRefused";
  readonly status: number;
  constructor(status: number) {
    super(`The server refused the agent's token: ${status}.`);
    this.status = status;
  }
}

type Endpoint = { path: string; role: YamuxOptions["role"] };

/** The daemon asks. */
const CALLS: Endpoint = {
  path: `/api/v2/workspaceagents/me/rpc?${new URLSearchParams({ version: AGENT_API_VERSION, role: "agent" })}`,
  role: "client",
};
/** The server asks. */
export const TUNNEL: Endpoint = { path: "/api/v2/workspaceagents/me/tunnel", role: "server" };

/** Resolves with an open session. Rejects with TokenRefused, or with WireError when there is no connection within 30 s or the signal fires. */
export const dial = async (options: {
  url: URL;
  token: string;
  clock: Clock;
  signal: AbortSignal;
  /** Which of the server's two endpoints for daemons; calls by default. */
  endpoint?: Endpoint;
}): Promise<YamuxSession> => {
  const { url, token, clock, signal, endpoint = CALLS } = options;
  const cut = new AbortController();
  const giveUp = (): void => cut.abort();
  const late = clock.after(DIAL_TIMEOUT_MS, giveUp);
  signal.addEventListener("abort", giveUp);
  if (signal.aborted) giveUp();
  try {
    const stream = await opened({ url: toAddress(url, endpoint), token, clock, signal: cut.signal, endpoint });
    return new YamuxSession(stream, {
      role: endpoint.role,
      clock,
      ping_interval_ms: PING_INTERVAL_MS,
      ping_timeout_ms: PING_TIMEOUT_MS,
    });
  } catch (error) {
    if (error instanceof WireError && error.failure === "closed") throw await unreached(url, error, clock);
    if (!(error instanceof UpgradeRefused)) throw error;
    const { status, message } = error;
    throw status === 401 || status === 403 ? new TokenRefused(status) : new WireError("closed", message);
  } finally {
    late.cancel();
    signal.removeEventListener("abort", giveUp);
  }
};

/** How long the server is asked again for the reason why no socket was opened, which a WebSocket does not tell. */
const WHY_MS = 2_000;

/** Names the address that was tried, and why nobody answered there. */
const unreached = async (url: URL, { message }: WireError, clock: Clock): Promise<WireError> => {
  const late = new AbortController();
  const timer = clock.after(WHY_MS, () => late.abort());
  const asked = fetch(new URL("/healthz", url), { signal: late.signal, redirect: "manual" });
  const why = await asked.then(
    ({ status }) => (status === 200 ? message : `${message} It answers ${status} to /healthz.`),
    (error: unknown) => (late.signal.aborted ? "there is no answer" : failureWords(error)),
  );
  timer.cancel();
  return new WireError("closed", `${url.origin} is not reached: ${why}`);
};

type Opening = { url: URL; token: string; clock: Clock; signal: AbortSignal; endpoint: Endpoint };

/** Bulk goes through the tunnel; what it saves is lost among the costs of TLS, which is the runtime's to check. */
const opened = async ({ url, token, clock, signal, endpoint }: Opening): Promise<ByteStream> => {
  const headers = { "Service-Session-Token": token };
  if (endpoint === TUNNEL && url.protocol === "ws:") return await plainWebSocket({ url, headers, clock, signal });
  const socket = new WebSocket(url, socketOptions(headers));
  let status: number | undefined;
  socket.addEventListener("error", (event) => {
    status = refusedStatus((event as ErrorEvent).message);
  });
  const giveUp = (): void => socket.close();
  signal.addEventListener("abort", giveUp);
  if (signal.aborted) giveUp();
  try {
    return await streamOverWebSocket(socket, clock);
  } catch (error) {
    throw status === undefined ? error : new UpgradeRefused(status);
  } finally {
    signal.removeEventListener("abort", giveUp);
  }
};

const toAddress = (base: URL, { path }: Endpoint): URL => {
  const url = new URL(path, base);
  url.protocol = base.protocol === "https:" ? "wss:" : "ws:";
  return url;
};

// Bun's own options; the DOM type knows only subprotocols.
const socketOptions = (headers: Record<string, string>): never => ({ headers, perMessageDeflate: false }) as never;

// The only place where Bun tells the status of a refused upgrade.
const refusedStatus = (message = ""): number | undefined => {
  const found = /status code: (\d{3})/.exec(message);
  return found ? Number(found[1]) : undefined;
};
