// A workspace whose agent appears as a genuine one: it uses the genuine token header and opens no tunnel, so that it can be reached only
// through the private network. A real `slipway agent` runs behind a proxy that removes both.
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

type ProxySide = { to: Socket<ProxySide> | undefined; waiting: Buffer[]; head: Buffer | undefined };

const send = (side: ProxySide, bytes: Buffer): void => {
  side.waiting.push(bytes);
  flush(side);
};
const flush = ({ to, waiting }: ProxySide): void => {
  while (to && waiting[0]) {
    const sent = to.write(waiting[0]);
    if (sent < waiting[0].byteLength) {
      waiting[0] = waiting[0].subarray(Math.max(0, sent));
      return;
    }
    waiting.shift();
  }
};

/** Forwards connections to the server as a genuine agent would make them. */
const passing = (server: URL): { url: URL } & Disposable => {
  const listener = Bun.listen<ProxySide>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(socket) {
        socket.data = { to: undefined, waiting: [], head: Buffer.alloc(0) };
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
          data: { to: socket, waiting: [], head: undefined },
          socket: {
            open(up) {
              side.to = up;
              flush(side);
            },
            data: (up, bytes) => send(up.data, Buffer.from(bytes)),
            drain: () => flush(side),
            close: () => void socket.end(),
            error: () => void socket.end(),
            connectError: () => void socket.end(),
          },
        }).catch(() => socket.end());
      },
      drain: (socket) => {
        const up = socket.data.to;
        if (up) flush(up.data);
      },
      close: (socket) => void socket.data.to?.end(),
    },
  });
  return { url: new URL(`http://127.0.0.1:${listener.port}/`), [Symbol.dispose]: () => listener.stop(true) };
};

export type Genuine = Reachable & {
  /** Kills the agent and starts another in its place. */
  replace(): Promise<void>;
};

export const startGenuine = async (options: SeedOptions = {}): Promise<Genuine> => {
  const server = await startTestServer({ clock: systemClock });
  const seeded = await seedAgent(server, options);
  const home = mkdtempSync(join(tmpdir(), "slipway-home-"));
  const proxy = passing(server.url);
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
