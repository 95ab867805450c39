// An agent of the test: the real client of the protocol over a real WebSocket.
import { systemClock } from "#base/clock.ts";
import { createAgentClient } from "#src/wire/agent-api.ts";
import type { ByteStream } from "#src/wire/byte-stream.ts";
import { createTailnetClient } from "#src/wire/tailnet-api.ts";
import { createWebSocketStream } from "#src/wire/websocket.ts";
import { YamuxSession } from "#src/wire/yamux.ts";
import type { TestServer } from "#test/support/server.ts";

export type RpcAgent = AsyncDisposable & {
  agent: ReturnType<typeof createAgentClient>;
  tailnet: ReturnType<typeof createTailnetClient>;
  stream: ByteStream;
  /** How the server closed the socket. */
  closed: Promise<{ code: number; reason: string }>;
};

/** Connects with this agent token; rejects if the server refuses. */
export const connectAgent = async (
  server: Pick<TestServer, "url">,
  token: string,
  query = "?version=2.10&role=agent",
): Promise<RpcAgent> => {
  const url = new URL(`/api/v2/workspaceagents/me/rpc${query}`, server.url);
  url.protocol = "ws:";
  const socket = new WebSocket(url, { headers: { "Coder-Session-Token": token } } as never);
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.addEventListener("close", ({ code, reason }) => resolve({ code, reason }));
  });
  const stream = await createWebSocketStream(socket, systemClock);
  const session = new YamuxSession(stream, { role: "client", clock: systemClock });
  return {
    agent: createAgentClient(session),
    tailnet: createTailnetClient(session),
    stream,
    closed,
    async [Symbol.asyncDispose]() {
      session.close();
      await closed;
    },
  };
};
