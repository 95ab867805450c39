// Readers that stop reading: the server's memory stays bounded, each reader gets a close reason, and other clients are not affected
// (RELIABILITY checks 15 and 16).
import { connect, type Socket } from "node:net";
import type { AgentLog } from "#schema/agents/agent-log.ts";
import type { Client } from "#src/client.ts";
import { openStalledFollower, readLogs } from "#test/api/agents/stalled.ts";
import type { BareSocket } from "#test/support/net/bare-socket.ts";
import { until } from "#test/support/until.ts";
import { listStoredLines } from "./oracle/log-lines.ts";
import { findDifferences, LogReader } from "./oracle/log-reader.ts";
import { measureGrowth, type Stage, startOneServer } from "./reader-stage.ts";
import { assertNoProblems } from "./server-crash.ts";
import { type EchoAgent, makeAgents, withTimeout } from "./server-world.ts";
import type { Check, CheckOptions } from "./store/store-crash.ts";

const PATH = "/api/v2/workspaceagents/me/logs";
/** More bytes than the kernel buffers for a loopback connection, plus the server's own limits. */
const FULL_BYTES = 12 * 1024 * 1024;
const LINE = "z".repeat(4000);

/** Writes this many bytes in batches of 64 KiB. */
const writeBytes = async (agent: EchoAgent, bytes: number): Promise<void> => {
  const logs = Array.from({ length: 16 }, () => ({ output: LINE }));
  for (let sent = 0; sent < bytes; sent += 16 * LINE.length) await agent.client.patch(PATH, { logs });
};

/** `rounds` followers of an agent stop reading. A healthy follower next to them receives every line. */
export const checkStalledFollowers = async (
  { rounds, seed, log }: CheckOptions,
  { open = startOneServer, bytes = 2 * FULL_BYTES }: { open?: () => Promise<Stage>; bytes?: number } = {},
): Promise<string> => {
  await using stage = await open();
  const { world } = stage;
  const { url } = world.admin;
  const [agent] = await makeAgents(world, "stalled", 1);
  if (!agent) throw new Error("no agent was made");
  const path = `/api/v2/workspaceagents/${agent.agent_id}/logs?follow=true&no_compression`;
  // A warm-up, so that allocations of the first use are not counted.
  await writeBytes(agent, FULL_BYTES);
  const after = (await listStoredLines(world.admin, agent.agent_id)).at(-1)?.id ?? 0;
  const healthy = new LogReader(world.admin, agent.agent_id);
  const following = healthy.run();
  const token = world.admin.token ?? "";
  const stalled: BareSocket[] = [];
  for (let i = 0; i < rounds; i++) stalled.push(await openStalledFollower(url, `${path}&after=${after}`, token));
  const growth = await measureGrowth(stage, () => writeBytes(agent, bytes));
  const stored = await listStoredLines(world.admin, agent.agent_id);
  await healthy.waitForLines(stored.length);
  const problems = [...findDifferences(healthy.lines, stored), ...growth.problems];
  const expected = stored.filter(({ id }) => id > after);
  // The server keeps the close reason for two minutes, so all readers return before any of them follows again.
  const returned = await Promise.all(
    stalled.map((socket) => withTimeout("a stalled reader to be closed", readLogs(socket))),
  );
  for (const { logs, close } of returned) {
    if (close?.code !== 1013) problems.push(`a stalled reader was closed with ${close?.code} ${close?.reason}`);
    problems.push(...findDifferences(logs, expected.slice(0, logs.length)));
    const followed = await followUntil(world.admin, agent.agent_id, logs.at(-1)?.id ?? after, stored.at(-1)?.id ?? 0);
    problems.push(...findDifferences([...logs, ...followed], expected));
  }
  for (const socket of stalled) await socket[Symbol.asyncDispose]();
  healthy.stop();
  await following;
  assertNoProblems(seed, "stalled followers", problems);
  log(`${rounds} stalled followers, ${mib(bytes)} MiB sent to each: ${growth.summary}`);
  return `${rounds} stalled readers of ${mib(bytes)} MiB closed with a reason, ${growth.summary}, a healthy one saw all ${stored.length} lines`;
};

const mib = (bytes: number): string => (bytes / 1024 / 1024).toFixed(0);

/** Follows from a cursor until this line has arrived. */
const followUntil = async (reader: Client, agent_id: string, after: number, lastId: number): Promise<AgentLog[]> => {
  using socket = await reader.socket(`/api/v2/workspaceagents/${agent_id}/logs?follow=true&after=${after}`);
  const logs: AgentLog[] = [];
  while ((logs.at(-1)?.id ?? after) < lastId) logs.push(...(await socket.json<AgentLog[]>()));
  return logs;
};

/** `rounds` readers of a workspace's events stop reading. A healthy reader receives the last change. */
export const checkStalledEvents = async (
  { rounds, seed, log }: CheckOptions,
  { open = startOneServer, eventBytes = FULL_BYTES }: { open?: () => Promise<Stage>; eventBytes?: number } = {},
): Promise<string> => {
  await using stage = await open();
  const { world } = stage;
  const { url } = world.admin;
  // Many agents make each event large.
  const agents = await makeAgents(world, "watched", 16);
  const path = `/api/v2/workspaces/${agents[0]?.workspace_id}/watch`;
  const request = `GET ${path} HTTP/1.1\r\nHost: ${url.host}\r\nService-Session-Token: ${world.admin.token}\r\n\r\n`;
  const response = await world.admin.fetch("GET", path);
  let tail = "";
  let bytes = 0;
  const reading = (async () => {
    for await (const chunk of response.body ?? []) {
      bytes += chunk.length;
      tail = (tail + new TextDecoder().decode(chunk)).slice(-FULL_BYTES);
    }
  })().catch(() => {});
  const change = async (name: string): Promise<void> => {
    await Promise.all(
      agents.map(({ client }) => client.post("/api/v2/workspaceagents/me/log-source", makeSource(name))),
    );
  };
  // A warm-up, so that the cost of the changes and of one reader is not counted.
  while (bytes < FULL_BYTES / 2) await change("first");
  const stalled: Socket[] = [];
  for (let i = 0; i < rounds; i++) stalled.push(await openStalledReader(url, request));
  const endBytes = bytes + eventBytes;
  const growth = await measureGrowth(stage, async () => {
    while (bytes < endBytes) await change("more");
    await change("the last one");
    await until(async () => tail.slice(tail.lastIndexOf("event: data")).split("the last one").length > agents.length);
  });
  const problems = [...growth.problems];
  for (const socket of stalled) if (!(await endsAfterReading(socket))) problems.push("a stalled stream was not ended");
  if ((await readFirstEvent(world.admin, path)).split("the last one").length <= agents.length)
    problems.push("a returning reader was not shown the last change");
  assertNoProblems(seed, "stalled events", problems);
  log(`${rounds} stalled readers of events: ${growth.summary}`);
  await stage.stop();
  await reading;
  return `${rounds} stalled streams ended, ${growth.summary}, a healthy one saw the last of ${mib(bytes)} MiB of events`;
};

/** Returns the state that a new or returning reader receives. */
const readFirstEvent = async (reader: Client, path: string): Promise<string> => {
  const response = await reader.fetch("GET", path);
  let text = "";
  for await (const chunk of response.body ?? []) {
    text += new TextDecoder().decode(chunk);
    const start = text.indexOf("event: data");
    if (start >= 0 && text.includes("\n\n", start)) break;
  }
  return text;
};

const makeSource = (display_name: string) => ({ id: crypto.randomUUID(), display_name, icon: "" });

/** Opens a connection that sends a request, receives the start of the response, and stops reading. */
const openStalledReader = async (url: URL, request: string): Promise<Socket> => {
  const socket = connect(Number(url.port), url.hostname);
  socket.write(request);
  await new Promise<void>((resolve, reject) => {
    socket.once("data", () => {
      socket.pause();
      resolve();
    });
    socket.once("error", reject);
  });
  socket.on("error", () => {});
  return socket;
};

/** Reads the remaining bytes. Returns true if the server ends the connection within five seconds. */
const endsAfterReading = async (socket: Socket): Promise<boolean> => {
  const hasEnded = await new Promise<boolean>((resolve) => {
    const timeout = setTimeout(() => resolve(false), 5000);
    socket.on("close", () => {
      clearTimeout(timeout);
      resolve(true);
    });
    socket.on("data", () => {});
    socket.resume();
  });
  socket.destroy();
  return hasEnded;
};

export const checks: readonly Check[] = [
  { name: "server: stalled followers", run: checkStalledFollowers },
  { name: "server: stalled event streams", run: checkStalledEvents },
];
