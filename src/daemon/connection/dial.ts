// Opens a connection to the server: a WebSocket that carries a yamux session (facts/wire 1.1). Distinguishes a rejected token from an
// unreachable server.
import type { Clock } from "#base/clock.ts";
import { generateBytes } from "#base/ids.ts";
import { describeNetworkError } from "#base/network/failure-words.ts";
import { DAEMON_ID_HEADER } from "#schema/agents/daemon-id.ts";
import {
  AGENT_API_VERSION,
  type ByteStream,
  connectPlainWebSocket,
  createWebSocketStream,
  UpgradeRefusedError,
  WireError,
  type YamuxOptions,
  YamuxSession,
} from "#src/wire/index.ts";

const DIAL_TIMEOUT_MS = 30_000;
const PING_INTERVAL_MS = 15_000;
const PING_TIMEOUT_MS = 15_000;

/** The server rejected the token: the token is unknown, or belongs to a build that is no longer the latest. */
export class TokenRefused extends Error {
  override readonly name = "TokenRefused";
  readonly status: number;
  constructor(status: number) {
    super(`The server refused the agent's token: ${status}.`);
    this.status = status;
  }
}

/** Distinguishes this process from other holders of the token. The ID exists only in memory (rule AG-29). */
const DAEMON_ID = Buffer.from(generateBytes(16)).toString("hex");

type Endpoint = { path: string; role: YamuxOptions["role"] };

/** The daemon opens the streams. */
const CALLS_PATH: Endpoint = {
  path: `/api/v2/workspaceagents/me/rpc?${new URLSearchParams({ version: AGENT_API_VERSION, role: "agent" })}`,
  role: "client",
};
/** The server opens the streams. */
export const TUNNEL_PATH: Endpoint = { path: "/api/v2/workspaceagents/me/tunnel", role: "server" };

/** Opens a session. Rejects with TokenRefused, or with WireError if there is no connection within 30 s or the signal fires. */
export const dial = async (options: {
  url: URL;
  token: string;
  clock: Clock;
  signal: AbortSignal;
  /** The server's endpoint to connect to; calls by default. */
  endpoint?: Endpoint;
}): Promise<YamuxSession> => {
  const { url, token, clock, signal, endpoint = CALLS_PATH } = options;
  const abort = new AbortController();
  const onAbort = (): void => abort.abort();
  const timeout = clock.after(DIAL_TIMEOUT_MS, onAbort);
  signal.addEventListener("abort", onAbort);
  if (signal.aborted) onAbort();
  try {
    const stream = await openWebSocket({ url: toAddress(url, endpoint), token, clock, signal: abort.signal, endpoint });
    return new YamuxSession(stream, {
      role: endpoint.role,
      clock,
      ping_interval_ms: PING_INTERVAL_MS,
      ping_timeout_ms: PING_TIMEOUT_MS,
    });
  } catch (error) {
    if (error instanceof WireError && error.failure === "closed") throw await explainUnreachable(url, error, clock);
    if (!(error instanceof UpgradeRefusedError)) throw error;
    const { status, message } = error;
    throw status === 401 || status === 403 ? new TokenRefused(status) : new WireError("closed", message);
  } finally {
    timeout.cancel();
    signal.removeEventListener("abort", onAbort);
  }
};

/** How long to query the server for the reason of a failed upgrade, which a WebSocket does not report. */
const PROBE_TIMEOUT_MS = 2_000;

/** Returns an error with the address that was tried and the reason it did not answer. */
const explainUnreachable = async (url: URL, { message }: WireError, clock: Clock): Promise<WireError> => {
  const timeout = new AbortController();
  const timer = clock.after(PROBE_TIMEOUT_MS, () => timeout.abort());
  const probe = fetch(new URL("/healthz", url), { signal: timeout.signal, redirect: "manual" });
  const reason = await probe.then(
    ({ status }) => (status === 200 ? message : `${message} It answers ${status} to /healthz.`),
    (error: unknown) => (timeout.signal.aborted ? "there is no answer" : describeNetworkError(error)),
  );
  timer.cancel();
  return new WireError("closed", `${url.origin} is not reached: ${reason}`);
};

type Opening = { url: URL; token: string; clock: Clock; signal: AbortSignal; endpoint: Endpoint };

/**
 * Opens the WebSocket. An unencrypted tunnel uses our own client, which is faster for bulk data. With TLS the gain is negligible, so Bun's
 * client is used, which also verifies the certificate.
 */
const openWebSocket = async ({ url, token, clock, signal, endpoint }: Opening): Promise<ByteStream> => {
  const headers = { "Service-Session-Token": token, [DAEMON_ID_HEADER]: DAEMON_ID };
  if (endpoint === TUNNEL_PATH && url.protocol === "ws:")
    return await connectPlainWebSocket({ url, headers, clock, signal });
  const socket = new WebSocket(url, toSocketOptions(headers));
  let status: number | undefined;
  socket.addEventListener("error", (event) => {
    status = parseRefusedStatus((event as ErrorEvent).message);
  });
  const onAbort = (): void => socket.close();
  signal.addEventListener("abort", onAbort);
  if (signal.aborted) onAbort();
  try {
    return await createWebSocketStream(socket, clock);
  } catch (error) {
    throw status === undefined ? error : new UpgradeRefusedError(status);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
};

const toAddress = (base: URL, { path }: Endpoint): URL => {
  const url = new URL(path, base);
  url.protocol = base.protocol === "https:" ? "wss:" : "ws:";
  return url;
};

// Bun's own options; the DOM type knows only subprotocols.
const toSocketOptions = (headers: Record<string, string>): never => ({ headers, perMessageDeflate: false }) as never;

// The error message is the only place where Bun reports the status of a refused upgrade.
const parseRefusedStatus = (message = ""): number | undefined => {
  const match = /status code: (\d{3})/.exec(message);
  return match ? Number(match[1]) : undefined;
};
