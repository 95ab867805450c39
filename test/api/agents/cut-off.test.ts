// A daemon is disconnected, restarted and replaced with a new token while logs, a terminal and a download run. The server and the daemon
// processes are real; the test can cut the connection between them.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import { sha256, uuid } from "#base/ids.ts";
import type { AgentLog } from "#schema/agents/agent-log.ts";
import { DEFAULT_SOURCE } from "#schema/agents/log-source.ts";
import { Client } from "#src/client.ts";
import { getContext, type SeededAgent, seedAgent } from "#test/support/seed.ts";
import { startTestServer, type TestServer } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { startAgentProcess, TestTerminal } from "./reach.ts";

/** Prints the process ID of its daemon and a number that counts up forever, and writes the last number to a file. */
const COUNT_SCRIPT =
  'i=0; while true; do echo "$i" > "$HOME/last-$PPID"; echo "$PPID $i"; i=$((i + 1)); sleep 0.02; done';
const FILE_BYTES = 48 * 1024 * 1024;

let server: TestServer;
let seeded: SeededAgent;
let home: string;
beforeAll(async () => {
  server = await startTestServer({ clock: systemClock });
  seeded = await seedAgent(server, {
    scripts: [{ script: COUNT_SCRIPT, run_on_start: true, log_source_id: DEFAULT_SOURCE.id }],
  });
  home = mkdtempSync(join(tmpdir(), "slipway-cut-"));
  writeFileSync(join(home, "big"), new Uint8Array(FILE_BYTES));
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(home, { recursive: true, force: true });
});

/** Starts a TCP proxy to the server whose connections can be cut. */
const startProxy = async () => {
  const openSockets = new Set<Socket>();
  const proxy = createServer((daemonSocket) => {
    const serverSocket = connect(Number(server.url.port), "127.0.0.1");
    for (const [socket, peer] of [
      [daemonSocket, serverSocket],
      [serverSocket, daemonSocket],
    ] as const) {
      openSockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        openSockets.delete(socket);
        peer.destroy();
      });
      socket.pipe(peer);
    }
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const { port } = proxy.address() as { port: number };
  return {
    url: new URL(`http://127.0.0.1:${port}/`),
    cut: () => {
      for (const socket of openSockets) socket.destroy();
    },
    [Symbol.dispose]: () => void proxy.close(),
  };
};

const owner = () => new Client(server.url, seeded.owner_token);
const toPath = (suffix: string): string => `/api/v2/workspaceagents/${seeded.agent_id}/${suffix}`;

const awaitConnection = (): Promise<void> =>
  new Promise((resolve) => {
    const stop = getContext(server).topics.subscribe("agent_connection", seeded.agent_id, () => {
      stop();
      resolve();
    });
  });

/** Waits for the tunnel: a daemon opens it shortly after connecting, and until then dialing could time out on a busy machine. */
const awaitTunnel = (): Promise<unknown> => until(() => getContext(server).dialer.size === 1, { what: "a tunnel" });

/** Reads lines of this daemon until `count` more have arrived. */
const readLines = async (socket: AsyncIterable<string | Uint8Array>, pid: number, count: number): Promise<void> => {
  let lineCount = 0;
  for await (const frame of socket) {
    lineCount += (JSON.parse(String(frame)) as AgentLog[]).filter(({ output }) => output.startsWith(`${pid} `)).length;
    if (lineCount >= count) return;
  }
  throw new Error("the log stream ended");
};

/** Returns the numbers of this daemon that the server has stored. */
const listCounts = async (pid: number): Promise<number[]> => {
  const counts: number[] = [];
  for (let after = 0; ; ) {
    const lines = await owner().get<AgentLog[]>(toPath(`logs?after=${after}`));
    if (lines.length === 0) return counts;
    after = lines.at(-1)?.id ?? after;
    for (const { output } of lines) {
      const [linePid, count] = output.split(" ");
      if (Number(linePid) === pid) counts.push(Number(count));
    }
  }
};

/** Starts a download and pauses it. The returned function reads the rest and returns how it ended. */
const startDownload = async () => {
  const request = { method: "GET", path: `/api/v0/read-file?path=${encodeURIComponent(join(home, "big"))}` };
  const { body } = await getContext(server).agentHttp.request(seeded.agent_id, request);
  await body.next();
  return async (): Promise<string> => {
    let size = 0;
    try {
      for await (const chunk of body) size += chunk.byteLength;
      return `complete: ${size}`;
    } catch (error) {
      return (error as Error).message;
    }
  };
};

const openTerminal = (id?: string) =>
  TestTerminal.open({ owner: owner(), path: toPath }, { command: "cat", ...(id ? { id } : {}) });

test("[DM-19] a daemon that is disconnected, restarted or replaced loses no log line, and clients get a close reason", async () => {
  using proxy = await startProxy();
  using logs = await owner().socket(toPath("logs?follow=true"));
  const firstDaemon = await startAgentProcess(server, seeded, home, { url: proxy.url });
  await readLines(logs, firstDaemon.process.pid, 5);
  await awaitTunnel();

  // The daemon is disconnected three times.
  using firstTerminal = await openTerminal();
  firstTerminal.sendInput({ data: "before\n" });
  await firstTerminal.until(/before\r\nbefore/);
  let currentTerminal = firstTerminal;
  for (let i = 0; i < 3; i += 1) {
    const readDownload = await startDownload();
    const reconnected = awaitConnection();
    proxy.cut();
    const { code, reason } = await currentTerminal.socket.closed;
    expect([code, reason]).toEqual([1011, expect.stringMatching(/the agent (has|disconnected)/)]);
    expect(await readDownload()).toMatch(/agent|connection|session/i);
    await reconnected;
    await readLines(logs, firstDaemon.process.pid, 5);
    await awaitTunnel();
    // The terminal has continued while no client was connected.
    currentTerminal = await openTerminal(firstTerminal.id);
    await currentTerminal.until(/before/);
  }

  // The daemon stops cleanly and is restarted.
  const readDownload = await startDownload();
  await firstDaemon[Symbol.asyncDispose]();
  expect([1000, 1011]).toContain((await currentTerminal.socket.closed).code);
  expect(await readDownload()).toMatch(/agent|connection|session/i);
  const counts = await listCounts(firstDaemon.process.pid);
  expect(counts).toEqual(counts.map((_, i) => i));
  const lastNumber = Number(readFileSync(join(home, `last-${firstDaemon.process.pid}`), "utf8") || "0");
  expect(counts.length - 1).toBeGreaterThanOrEqual(lastNumber - 1);
  const secondDaemon = await startAgentProcess(server, seeded, home, { url: proxy.url });
  await readLines(logs, secondDaemon.process.pid, 5);
  await awaitTunnel();

  // Another process takes over with a new token, and the old token becomes invalid.
  using oldTerminal = await openTerminal();
  oldTerminal.sendInput({ data: "old\n" });
  await oldTerminal.until(/old\r\nold/);
  const agent_token = uuid();
  await getContext(server).agents.ask(seeded.agent_id, "signIn", { token_hash: sha256(agent_token) });
  const thirdDaemon = await startAgentProcess(server, { ...seeded, agent_token }, home, { url: proxy.url });
  expect(await oldTerminal.socket.closed).toMatchObject({
    code: 1011,
    reason: expect.stringMatching(/the agent (has|disconnected)/),
  });
  await readLines(logs, thirdDaemon.process.pid, 5);
  await awaitTunnel();
  using newTerminal = await openTerminal();
  newTerminal.sendInput({ data: "new\n" });
  await newTerminal.until(/new\r\nnew/);
  await Promise.all([secondDaemon[Symbol.asyncDispose](), thirdDaemon[Symbol.asyncDispose]()]);
  for (const { process } of [secondDaemon, thirdDaemon]) {
    const stored = await listCounts(process.pid);
    expect(stored.length).toBeGreaterThanOrEqual(5);
    expect(stored).toEqual(stored.map((_, i) => i));
  }
});
