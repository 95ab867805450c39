// Opens a connection to the server: a WebSocket that becomes a yamux session (facts/wire 1.1). Says whether the server refused the
// token or could not be reached.
import type { Clock } from "#base/clock.ts";
import { AGENT_API_VERSION } from "#src/wire/agent-api.ts";
import { streamOverWebSocket } from "#src/wire/websocket.ts";
import { type YamuxOptions, YamuxSession } from "#src/wire/yamux.ts";

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
  const socket = new WebSocket(addressOf(url, endpoint), socketOptions(token));
  let status: number | undefined;
  socket.addEventListener("error", (event) => {
    status = refusedStatus((event as ErrorEvent).message);
  });
  const giveUp = (): void => socket.close();
  const late = clock.after(DIAL_TIMEOUT_MS, giveUp);
  signal.addEventListener("abort", giveUp);
  try {
    const stream = await streamOverWebSocket(socket, clock);
    return new YamuxSession(stream, {
      role: endpoint.role,
      clock,
      ping_interval_ms: PING_INTERVAL_MS,
      ping_timeout_ms: PING_TIMEOUT_MS,
    });
  } catch (error) {
    if (status === 401 || status === 403) throw new TokenRefused(status);
    throw error;
  } finally {
    late.cancel();
    signal.removeEventListener("abort", giveUp);
  }
};

const addressOf = (base: URL, { path }: Endpoint): URL => {
  const url = new URL(path, base);
  url.protocol = base.protocol === "https:" ? "wss:" : "ws:";
  return url;
};

// Bun's own options; the DOM type knows only subprotocols.
const socketOptions = (token: string): never =>
  ({ headers: { "Service-Session-Token": token }, perMessageDeflate: false }) as never;

// The only place where Bun tells the status of a refused upgrade.
const refusedStatus = (message = ""): number | undefined => {
  const found = /status code: (\d{3})/.exec(message);
  return found ? Number(found[1]) : undefined;
};
