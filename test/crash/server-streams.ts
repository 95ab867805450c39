// Followers that connect and disconnect: they resume by cursor without gaps, leave no leaks after connection storms, and see an agent's
// last byte (RELIABILITY checks 18, 19 and 25).
import type { AgentLog } from "#schema/agents/agent-log.ts";
import { randomFrom } from "#test/support/random.ts";
import { until } from "#test/support/until.ts";
import { call } from "./oracle/calls.ts";
import { findDatabaseProblems } from "./oracle/database.ts";
import { listStoredLines } from "./oracle/log-lines.ts";
import { findDifferences, LogReader } from "./oracle/log-reader.ts";
import { ServerSlot } from "./server.ts";
import { assertNoProblems } from "./server-crash.ts";
import { makeAgents, makeWriters, signInAdmin } from "./server-world.ts";
import type { Check, CheckOptions } from "./store/store-crash.ts";

/** Eight followers are disconnected `rounds` hundred times in total while lines arrive. In the end, each has received every line once. */
export const checkDroppedFollowers = async ({ rounds, seed, log }: CheckOptions): Promise<string> => {
  await using place = await ServerSlot.make();
  await place.start();
  const world = await signInAdmin(place);
  const random = randomFrom(seed);
  const writers = await makeWriters(await makeAgents(world, "dropped", 2), random);
  const readers = Array.from({ length: 8 }, (_, i) => {
    return { writerIndex: i % 2, reader: new LogReader(world.admin, writers[i % 2]?.options.agent_id ?? "") };
  });
  const writing = writers.map((writer) => writer.run(1));
  const reading = readers.map(({ reader }) => reader.run());
  for (let drops = 0; drops < rounds * 100; drops++) {
    await Bun.sleep(random() * 10);
    readers[Math.floor(random() * readers.length)]?.reader.drop();
  }
  for (const writer of writers) writer.stop();
  await Promise.all(writing);
  const problems: string[] = [];
  let lines = 0;
  for (const [i, writer] of writers.entries()) {
    const stored = await listStoredLines(world.admin, writer.options.agent_id);
    lines += stored.length;
    if (stored.length !== writer.acknowledged)
      problems.push(`${stored.length} of ${writer.acknowledged} lines are stored`);
    for (const { writerIndex, reader } of readers) {
      if (writerIndex !== i) continue;
      await reader.waitForLines(stored.length);
      problems.push(...findDifferences(reader.lines, stored));
    }
  }
  for (const { reader } of readers) reader.stop();
  await Promise.all(reading);
  const connections = readers.reduce((sum, { reader }) => sum + reader.connections, 0);
  log(`${lines} lines, ${connections} connections`);
  assertNoProblems(seed, "dropped followers", problems);
  return `${connections} connections of 8 followers, each saw all of ${lines} lines once and in order`;
};

/** Allowed memory change between two moments without load. */
const MEMORY_NOISE = 60 * 1024 * 1024;

/**
 * Two hundred followers connect and disconnect each second for `rounds` seconds. Then the server has as many file descriptors as before.
 */
export const connectionStorm = async ({ rounds, seed, log }: CheckOptions): Promise<string> => {
  await using place = await ServerSlot.make();
  const server = await place.start();
  const world = await signInAdmin(place);
  const [writer] = await makeWriters(await makeAgents(world, "storm", 1), randomFrom(seed));
  if (!writer) throw new Error("no writer was made");
  const path = `/api/v2/workspaceagents/${writer.options.agent_id}/logs?follow=true&after=${2 ** 40}`;
  const visit = async (): Promise<void> => {
    using socket = await world.admin.socket(path);
    await socket.next();
  };
  const writing = writer.run(20);
  for (let i = 0; i < 200; i++) await visit();
  await until(async () => server.descriptors() < 100);
  const before = { descriptors: server.descriptors(), rss: server.rss() };
  for (let second = 0; second < rounds; second++) {
    for (let i = 0; i < 20; i++) {
      const pause = Bun.sleep(50);
      await Promise.all(Array.from({ length: 10 }, visit));
      await pause;
    }
  }
  writer.stop();
  await writing;
  await until(async () => server.descriptors() <= before.descriptors + 4).catch(() => {});
  const [descriptors, grownBytes] = [server.descriptors(), server.rss() - before.rss];
  const problems: string[] = [];
  if (descriptors > before.descriptors + 4) problems.push(`${before.descriptors} descriptors became ${descriptors}`);
  if (grownBytes > MEMORY_NOISE) problems.push(`memory grew by ${(grownBytes / 1024 / 1024).toFixed(0)} MiB`);
  assertNoProblems(seed, "the storm", problems);
  log(`${rounds * 200} visits, ${before.descriptors} descriptors before and ${descriptors} after`);
  return `${rounds * 200} followers connected and disconnected, descriptors ${before.descriptors} and ${descriptors}, memory ${(grownBytes / 1024 / 1024).toFixed(0)} MiB more`;
};

const CAP_BYTES = 100_000;
const LOGS_PATH = "/api/v2/workspaceagents/me/logs";

/** `rounds` agents are filled to their limit by many concurrent batches, next to one agent that stays below it. */
export const checkLogCap = async ({ rounds, seed, log }: CheckOptions): Promise<string> => {
  await using place = await ServerSlot.make();
  await place.start({ env: { SLIPWAY_AGENT_LOG_LIMIT: String(CAP_BYTES) } });
  const world = await signInAdmin(place);
  const random = randomFrom(seed);
  const agents = await makeAgents(world, "capped", rounds + 1);
  const [calmAgent, ...fullAgents] = agents;
  if (!calmAgent) throw new Error("no agent was made");
  const problems: string[] = [];
  const send = (agent: (typeof agents)[number], output: string) =>
    call(agent.client, "PATCH", LOGS_PATH, { logs: [{ output }] }, { problems });
  let calmLines = 0;
  let isRunning = true;
  const calmWrites = (async () => {
    for (; isRunning && calmLines < 500; calmLines++) {
      const result = await send(calmAgent, `calm ${calmLines}`);
      if (result.outcome !== "acknowledged")
        problems.push(`an agent below its cap was answered ${JSON.stringify(result)}`);
    }
  })();
  for (const agent of fullAgents) {
    const outputs = Array.from({ length: 100 }, (_, i) => `${i} `.padEnd(100 + Math.floor(random() * 2500), "é"));
    const results = await Promise.all(outputs.map(async (output) => ({ output, result: await send(agent, output) })));
    const stored = await listStoredLines(world.admin, agent.agent_id);
    const bytes = stored.reduce((sum, { output }) => sum + Buffer.byteLength(output), 0);
    if (bytes > CAP_BYTES) problems.push(`${bytes} bytes are stored, the cap is ${CAP_BYTES}`);
    if (results.some(({ result }) => result.outcome === "refused" && result.status !== 413))
      problems.push("a batch was rejected with another status than 413");
    const acknowledged = results.filter(({ result }) => result.outcome === "acknowledged").map(({ output }) => output);
    if (acknowledged.sort().join() !== joinOutputs(stored))
      problems.push("the stored lines are not the acknowledged lines");
    if ((await send(agent, "")).outcome !== "refused") problems.push("a full agent accepted one more line");
    const shown = await world.admin.get<{ logs_overflowed: boolean }>(`/api/v2/workspaceagents/${agent.agent_id}`);
    if (!shown.logs_overflowed) problems.push("a full agent is not reported as full");
    log(`${acknowledged.length} of 100 batches stored, ${bytes} of ${CAP_BYTES} bytes`);
  }
  isRunning = false;
  await calmWrites;
  if ((await listStoredLines(world.admin, calmAgent.agent_id)).length !== calmLines)
    problems.push("an agent below its cap lost lines");
  await place.stop();
  assertNoProblems(seed, "the cap", [...problems, ...(await findDatabaseProblems(place.directory))]);
  return `${fullAgents.length} agents filled by 100 concurrent batches, never above the cap; ${calmLines} lines of another agent stored`;
};

const joinOutputs = (logs: readonly AgentLog[]): string =>
  logs
    .map(({ output }) => output)
    .sort()
    .join();

export const checks: readonly Check[] = [
  { name: "server: dropped followers", run: checkDroppedFollowers },
  { name: "server: storm of connections", run: connectionStorm },
  { name: "server: cap of an agent's lines", run: checkLogCap },
];
