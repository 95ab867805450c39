// Makes the command line a peer of the private network while a command runs: joins as a client of one agent, rejoins after the server was
// unreachable, and stops when access is revoked (rule CN-1).
import type { Clock } from "#base/clock.ts";
import { systemRandom } from "#base/random.ts";
import { pause } from "#base/retry.ts";
import { ApiError, type Client } from "#src/client.ts";
import { createClientAddress, type Datagram, NetworkPeer, RelayLink } from "#src/tailnet/index.ts";
import { createTailnetClient, createWebSocketStream, YamuxSession } from "#src/wire/index.ts";
import { VerbFailure } from "../../failure.ts";

const VERSION = "2.0";
const RETRY_INTERVAL_MS = 500;
const MAX_RETRY_DELAY_MS = 10_000;
const PING_INTERVAL_MS = 15_000;
/** The server's close code when the caller no longer has access. */
const ACCESS_REVOKED_CODE = 1008;

export type NetworkSession = AsyncDisposable & {
  readonly peer: NetworkPeer;
  /** Rejects with VerbFailure when access is revoked; never resolves. */
  readonly refused: Promise<never>;
};

export type JoinOptions = {
  clock: Clock;
  datagram?: (datagram: Datagram) => void;
  /** Passed to the peer. */
  hasLargeSegments?: boolean;
};

/**
 * Joins the network. Connections may be dialed immediately. `agent_id` may be a pending lookup; the caller reports an agent that does
 * not exist.
 */
export const join = (
  client: Client,
  agent_id: string | Promise<string>,
  { clock, datagram, hasLargeSegments = true }: JoinOptions,
): NetworkSession => {
  const refusal = Promise.withResolvers<never>();
  refusal.promise.catch(() => {});
  const end = new AbortController();
  const peer = new NetworkPeer({
    clock,
    random: systemRandom,
    role: "client",
    addresses: [createClientAddress()],
    hasLargeSegments,
    link: (key, receive, onAccepted) =>
      new RelayLink({
        url: client.url,
        headers: client.extraHeaders,
        key,
        clock,
        random: systemRandom,
        receive,
        onAccepted,
      }),
    // The client offers no services.
    accept: (connection) => connection.reset("This is a client."),
    ...(datagram ? { datagram: (_, one) => datagram(one) } : {}),
  });
  const connect = async (): Promise<void> => {
    const path = `/api/v2/workspaceagents/${await agent_id}/coordinate?version=${VERSION}`;
    await keepJoined({ client, path, peer, clock, signal: end.signal });
  };
  connect().catch((error) => refusal.reject(error));
  return {
    peer,
    refused: refusal.promise,
    async [Symbol.asyncDispose]() {
      end.abort();
      await peer.close();
    },
  };
};

type JoinTarget = { client: Client; path: string; peer: NetworkPeer; clock: Clock; signal: AbortSignal };

/** Stays joined until the signal fires. Throws VerbFailure when the server refuses access. */
const keepJoined = async ({ client, path, peer, clock, signal }: JoinTarget): Promise<void> => {
  for (let wait = RETRY_INTERVAL_MS; !signal.aborted; wait = Math.min(MAX_RETRY_DELAY_MS, wait * 2)) {
    const closed = await connectOnce(client, path, peer, clock).catch(() => undefined);
    if (signal.aborted) return;
    if (closed?.code === ACCESS_REVOKED_CODE) throw new VerbFailure(`the server revoked your access: ${closed.reason}`);
    if (closed) wait = RETRY_INTERVAL_MS;
    // Distinguishes a refusal from an unreachable server.
    else await throwIfRefused(client, path);
    await pause(clock, wait);
  }
};

const connectOnce = async (
  client: Client,
  path: string,
  peer: NetworkPeer,
  clock: Clock,
): Promise<{ code: number; reason: string }> => {
  const url = new URL(path, client.url);
  url.protocol = client.url.protocol === "https:" ? "wss:" : "ws:";
  const socket = new WebSocket(url, { headers: client.headers, perMessageDeflate: false } as never);
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.addEventListener("close", ({ code, reason }) => resolve({ code, reason }));
  });
  const stream = await createWebSocketStream(socket, clock);
  const session = new YamuxSession(stream, {
    role: "client",
    clock,
    ping_interval_ms: PING_INTERVAL_MS,
    ping_timeout_ms: PING_INTERVAL_MS,
  });
  try {
    await peer.run(createTailnetClient(session));
  } catch {
    // The socket's close code contains the reason.
  } finally {
    session.close();
  }
  return await closed;
};

const throwIfRefused = async (client: Client, path: string): Promise<void> => {
  const answer = await client.fetch("GET", path).catch(() => undefined);
  if (!answer || ![401, 403, 404].includes(answer.status)) return;
  const body = (await answer.json().catch(() => ({}))) as { message?: string };
  throw new ApiError(answer.status, { message: body.message ?? `The server answered ${answer.status}.` });
};
