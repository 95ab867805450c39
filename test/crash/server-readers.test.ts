// Short versions of the torture checks of a server and its readers; `bun run torture` runs the long versions.
import { expect, test } from "bun:test";
import type { AgentLog } from "#schema/agents/agent-log.ts";
import type { Client } from "#src/client.ts";
import { openStalledFollower, readLogs } from "#test/api/agents/stalled.ts";
import { until } from "#test/support/until.ts";
import { listStoredLines } from "./oracle/log-lines.ts";
import { ServerSlot } from "./server.ts";
import { checkFrozenServer, checkTwoServers, serverStop } from "./server-signals.ts";
import { checkStalledEvents, checkStalledFollowers } from "./server-slow.ts";
import { checkDroppedFollowers, checkLogCap, connectionStorm } from "./server-streams.ts";
import { makeAgents, signInAdmin } from "./server-world.ts";

const SEED = Number(Bun.env.SLIPWAY_TEST_SEED ?? Date.now() % 1_000_000);
const quiet = { seed: SEED, log: () => {} };

test("[CR-10] rejects a second server on the same directory with an explanation, even while the first is paused", async () => {
  expect(await checkTwoServers({ ...quiet, rounds: 1 })).toContain("none lost");
});

test(`[CR-11] a server that was paused under load continues, and nothing is lost or duplicated (seed ${SEED})`, async () => {
  expect(await checkFrozenServer({ ...quiet, rounds: 1 }, 2)).toContain("none lost or duplicated");
});

test(`[CR-12] a server that is stopped under load notifies its followers, exits in time, and keeps everything it acknowledged (seed ${SEED})`, async () => {
  expect(await serverStop({ ...quiet, rounds: 1 }, 60)).toContain("none lost");
});

test("[CR-13] followers that stop reading use no memory, receive a close reason, and resume without a gap", async () => {
  expect(await checkStalledFollowers({ ...quiet, rounds: 2 })).toContain("closed with a reason");
});

test("[CR-13] event streams end if their readers stop reading, and another reader sees the newest state", async () => {
  expect(await checkStalledEvents({ ...quiet, rounds: 2 })).toContain("streams ended");
});

test(`[CR-14] followers that are disconnected again and again see every line once and in order (seed ${SEED})`, async () => {
  expect(await checkDroppedFollowers({ ...quiet, rounds: 0.4 })).toContain("once and in order");
});

test("[CR-15] many disconnected followers leave no descriptor and no memory behind", async () => {
  expect(await connectionStorm({ ...quiet, rounds: 1 })).toContain("connected and disconnected");
});

test(`[CR-16] concurrent batches never exceed an agent's cap, and acknowledged lines are stored (seed ${SEED})`, async () => {
  expect(await checkLogCap({ ...quiet, rounds: 1 })).toContain("never above the cap");
});

type FollowerLog = { lines: AgentLog[]; delays: number[] };

test("[CR-13] an early, a late and a slow follower see the same lines; the server closes only the slow one", async () => {
  await using place = await ServerSlot.make();
  await place.start();
  const { admin, organization_id } = await signInAdmin(place);
  const [agent] = await makeAgents({ admin, organization_id }, "story", 1);
  if (!agent) throw new Error("no agent was made");
  const path = `/api/v2/workspaceagents/${agent.agent_id}/logs?follow=true&no_compression`;
  let writtenCount = 0;
  /** Writes lines with their send time, so that a reader can measure the latency. */
  const write = async (batches: number): Promise<void> => {
    for (let i = 0; i < batches; i++, writtenCount += 16) {
      const logs = Array.from({ length: 16 }, () => ({ output: `${performance.now()} ${"z".repeat(4000)}` }));
      await agent.client.patch("/api/v2/workspaceagents/me/logs", { logs });
    }
  };
  const follow = async (client: Client, after: number): Promise<FollowerLog & AsyncDisposable> => {
    const socket = await client.socket(`${path}&after=${after}`);
    const log: FollowerLog = { lines: [], delays: [] };
    const reading = (async () => {
      for await (const message of socket) {
        for (const line of JSON.parse(message as string) as AgentLog[]) {
          log.lines.push(line);
          log.delays.push(performance.now() - Number.parseFloat(line.output));
        }
      }
    })();
    const close = async (): Promise<void> => {
      socket.close();
      await reading;
    };
    return { ...log, [Symbol.asyncDispose]: close };
  };
  await write(20);
  const linesBefore = await listStoredLines(admin, agent.agent_id);
  const middle = linesBefore[100]?.id ?? 0;
  await using earlyFollower = await follow(admin, 0);
  await using lateFollower = await follow(admin, middle);
  await waitForCount(earlyFollower, writtenCount);
  await write(60);
  await waitForCount(earlyFollower, writtenCount);
  const delaysWithout = earlyFollower.delays.slice(linesBefore.length).sort((a, b) => a - b);

  await using slowFollower = await openStalledFollower(place.client.url, `${path}&after=${2 ** 40}`, admin.token ?? "");
  const firstCount = writtenCount;
  await write(220);
  await waitForCount(earlyFollower, writtenCount);
  await waitForCount(lateFollower, writtenCount - 101);
  const delays = earlyFollower.delays.slice(firstCount).sort((a, b) => a - b);

  const stored = await listStoredLines(admin, agent.agent_id);
  expect(stored.length).toBe(writtenCount);
  expect(earlyFollower.lines).toEqual(stored);
  expect(lateFollower.lines).toEqual(stored.filter(({ id }) => id > middle));
  const slowResult = await readLogs(slowFollower);
  expect(slowResult.close).toEqual({ code: 1013, reason: "reader too slow, resume from the last id seen" });
  await using resumed = await follow(admin, slowResult.logs.at(-1)?.id ?? 0);
  const missing = stored.slice(firstCount + slowResult.logs.length);
  await waitForCount(resumed, missing.length);
  expect([...slowResult.logs, ...resumed.lines]).toEqual(stored.slice(firstCount));
  // The same work in the same run, so that a busy machine slows both equally.
  expect(median(delays)).toBeLessThan(median(delaysWithout) * 2 + 5);
});

const median = (sorted: readonly number[]): number => sorted[Math.floor(sorted.length / 2)] ?? 0;

const waitForCount = async ({ lines }: FollowerLog, count: number): Promise<void> => {
  await until(() => lines.length >= count);
};
