// A daemon that is disconnected, restarted, and replaced with a new token, during logs, a terminal and a download. Real server, real daemon
// processes, and a connection between them that can be cut.
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

/** Counts forever, with the process ID of the daemon that runs it; the last count is also written to a file. */
const COUNT = 'i=0; while true; do echo "$i" > "$HOME/last-$PPID"; echo "$PPID $i"; i=$((i + 1)); sleep 0.02; done';
const BIG = 48 * 1024 * 1024;

let server: TestServer;
let seeded: SeededAgent;
let home: string;
beforeAll(async () => {
  server = await startTestServer({ clock: systemClock });
  seeded = await seedAgent(server, {
    scripts: [{ script: COUNT, run_on_start: true, log_source_id: DEFAULT_SOURCE.id }],
  });
  home = mkdtempSync(join(tmpdir(), "slipway-cut-"));
  writeFileSync(join(home, "big"), new Uint8Array(BIG));
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(home, { recursive: true, force: true });
});

/** A connection to the server that can be cut. */
const startWire = async () => {
  const open = new Set<Socket>();
  const wire = createServer((near) => {
    const clientSocket = connect(Number(server.url.port), "127.0.0.1");
    for (const [one, other] of [
      [near, clientSocket],
      [clientSocket, near],
    ] as const) {
      open.add(one);
      one.on("error", () => {});
      one.on("close", () => {
        open.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });
  await new Promise<void>((resolve) => wire.listen(0, "127.0.0.1", resolve));
  const { port } = wire.address() as { port: number };
  return {
    url: new URL(`http://127.0.0.1:${port}/`),
    cut: () => {
      for (const one of open) one.destroy();
    },
    [Symbol.dispose]: () => void wire.close(),
  };
};

const owner = () => new Client(server.url, seeded.owner_token);
const path = (rest: string): string => `/api/v2/workspaceagents/${seeded.agent_id}/${rest}`;

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
  let seen = 0;
  for await (const frame of socket) {
    seen += (JSON.parse(String(frame)) as AgentLog[]).filter(({ output }) => output.startsWith(`${pid} `)).length;
    if (seen >= count) return;
  }
  throw new Error("the logs ended");
};

/** Returns the stored counts of one daemon. */
const listCounts = async (pid: number): Promise<number[]> => {
  const found: number[] = [];
  for (let after = 0; ; ) {
    const lines = await owner().get<AgentLog[]>(path(`logs?after=${after}`));
    if (lines.length === 0) return found;
    after = lines.at(-1)?.id ?? after;
    for (const { output } of lines) {
      const [by, count] = output.split(" ");
      if (Number(by) === pid) found.push(Number(count));
    }
  }
};

/** Starts a download and stops reading, so that it is in progress when something happens. */
const download = async () => {
  const request = { method: "GET", path: `/api/v0/read-file?path=${encodeURIComponent(join(home, "big"))}` };
  const { body } = await getContext(server).agentHttp.request(seeded.agent_id, request);
  await body.next();
  return async (): Promise<string> => {
    let size = 0;
    try {
      for await (const part of body) size += part.byteLength;
      return `whole: ${size}`;
    } catch (error) {
      return (error as Error).message;
    }
  };
};

const terminal = (id?: string) =>
  TestTerminal.open({ owner: owner(), path }, { command: "cat", ...(id ? { id } : {}) });

test("[DM-19] a daemon that is disconnected, restarted and moved to a new token loses no line, and clients get a close reason", async () => {
  using wire = await startWire();
  using logs = await owner().socket(path("logs?follow=true"));
  const first = await startAgentProcess(server, seeded, home, { url: wire.url });
  await readLines(logs, first.process.pid, 5);
  await awaitTunnel();

  // Disconnected three times, in the middle of everything.
  using kept = await terminal();
  kept.sendInput({ data: "before\n" });
  await kept.until(/before\r\nbefore/);
  let last = kept;
  for (let i = 0; i < 3; i += 1) {
    const laterDownload = await download();
    const back = awaitConnection();
    wire.cut();
    const { code, reason } = await last.socket.closed;
    expect([code, reason]).toEqual([1011, expect.stringMatching(/the agent (has|disconnected)/)]);
    expect(await laterDownload()).toMatch(/agent|connection|session/i);
    await back;
    await readLines(logs, first.process.pid, 5);
    await awaitTunnel();
    // The terminal has continued without clients.
    last = await terminal(kept.id);
    await last.until(/before/);
  }

  // Stopped cleanly and restarted.
  const laterDownload = await download();
  await first[Symbol.asyncDispose]();
  expect([1000, 1011]).toContain((await last.socket.closed).code);
  expect(await laterDownload()).toMatch(/agent|connection|session/i);
  const counts = await listCounts(first.process.pid);
  expect(counts).toEqual(counts.map((_, i) => i));
  const wrote = Number(readFileSync(join(home, `last-${first.process.pid}`), "utf8") || "0");
  expect(counts.length - 1).toBeGreaterThanOrEqual(wrote - 1);
  const second = await startAgentProcess(server, seeded, home, { url: wire.url });
  await readLines(logs, second.process.pid, 5);
  await awaitTunnel();

  // Another process takes over with a new token; the old one is invalid.
  using old = await terminal();
  old.sendInput({ data: "old\n" });
  await old.until(/old\r\nold/);
  const agent_token = uuid();
  await getContext(server).agents.ask(seeded.agent_id, "signIn", { token_hash: sha256(agent_token) });
  const third = await startAgentProcess(server, { ...seeded, agent_token }, home, { url: wire.url });
  expect(await old.socket.closed).toMatchObject({
    code: 1011,
    reason: expect.stringMatching(/the agent (has|disconnected)/),
  });
  await readLines(logs, third.process.pid, 5);
  await awaitTunnel();
  using fresh = await terminal();
  fresh.sendInput({ data: "new\n" });
  await fresh.until(/new\r\nnew/);
  await Promise.all([second[Symbol.asyncDispose](), third[Symbol.asyncDispose]()]);
  for (const { process } of [second, third]) {
    const stored = await listCounts(process.pid);
    expect(stored.length).toBeGreaterThanOrEqual(5);
    expect(stored).toEqual(stored.map((_, i) => i));
  }
});
