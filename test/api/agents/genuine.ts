// A workspace whose agent looks like a genuine one: it sends the genuine token header and opens no tunnel, so that the server can reach it
// only through the private network. It is a real `slipway agent` behind a proxy that renames the header and rejects the tunnel.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Socket } from "bun";
import { systemClock } from "#base/clock.ts";
import { Client } from "#src/client.ts";
import { type SeedOptions, seedAgent } from "#test/support/seed.ts";
import { startTestServer } from "#test/support/server.ts";
import { type Reachable, startAgentProcess } from "./reach.ts";

const HEAD_END = "\r\n\r\n";

/** One end of a proxied connection: data goes to the peer, or waits until the peer is connected or drained. */
type ProxySide = { peer: Socket<ProxySide> | undefined; waiting: Buffer[]; head: Buffer | undefined };

const send = (side: ProxySide, bytes: Buffer): void => {
  side.waiting.push(bytes);
  flush(side);
};
const flush = ({ peer, waiting }: ProxySide): void => {
  while (peer && waiting[0]) {
    const sent = peer.write(waiting[0]);
    if (sent < waiting[0].byteLength) {
      waiting[0] = waiting[0].subarray(Math.max(0, sent));
      return;
    }
    waiting.shift();
  }
};

/** Forwards connections to the server, changed to what a genuine agent would send. */
const startProxy = (server: URL): { url: URL } & Disposable => {
  const listener = Bun.listen<ProxySide>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(socket) {
        socket.data = { peer: undefined, waiting: [], head: Buffer.alloc(0) };
      },
      data(socket, chunk) {
        const side = socket.data;
        if (side.head === undefined) {
          send(side, Buffer.from(chunk));
          return;
        }
        side.head = Buffer.concat([side.head, chunk]);
        if (!side.head.includes(HEAD_END)) return;
        const text = side.head.toString("latin1");
        side.head = undefined;
        if (/^GET \S*\/me\/tunnel/.test(text)) {
          socket.end("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
          return;
        }
        send(side, Buffer.from(text.replace(/service-session-token:/i, "Coder-Session-Token:"), "latin1"));
        void Bun.connect<ProxySide>({
          hostname: server.hostname,
          port: Number(server.port),
          data: { peer: socket, waiting: [], head: undefined },
          socket: {
            open(upstream) {
              side.peer = upstream;
              flush(side);
            },
            data: (upstream, bytes) => send(upstream.data, Buffer.from(bytes)),
            drain: () => flush(side),
            close: () => void socket.end(),
            error: () => void socket.end(),
            connectError: () => void socket.end(),
          },
        }).catch(() => socket.end());
      },
      drain: (socket) => {
        const upstream = socket.data.peer;
        if (upstream) flush(upstream.data);
      },
      close: (socket) => void socket.data.peer?.end(),
    },
  });
  return { url: new URL(`http://127.0.0.1:${listener.port}/`), [Symbol.dispose]: () => listener.stop(true) };
};

export type Genuine = Reachable & {
  /** Kills the agent and starts another one in its place. */
  replace(): Promise<void>;
};

export const startGenuine = async (options: SeedOptions = {}): Promise<Genuine> => {
  const server = await startTestServer({ clock: systemClock });
  const seeded = await seedAgent(server, options);
  const home = mkdtempSync(join(tmpdir(), "slipway-home-"));
  const proxy = startProxy(server.url);
  const start = () => startAgentProcess(server, seeded, home, { url: proxy.url });
  let daemon = await start();
  return {
    server,
    seeded,
    home,
    get daemon() {
      return daemon;
    },
    owner: new Client(server.url, seeded.owner_token),
    path: (rest) => `/api/v2/workspaceagents/${seeded.agent_id}/${rest}`,
    async replace() {
      daemon.process.kill("SIGKILL");
      await daemon.process.exited;
      daemon = await start();
    },
    async [Symbol.asyncDispose]() {
      await daemon[Symbol.asyncDispose]();
      proxy[Symbol.dispose]();
      await server[Symbol.asyncDispose]();
      rmSync(home, { recursive: true, force: true });
    },
  };
};
