// The machine's wall clock jumps: because someone or a time server sets it, or after a suspend. Durations are measured with the monotonic
// clock, which never jumps.
import { expect } from "bun:test";
import { systemClock } from "#base/clock.ts";
import type { AgentLog } from "#schema/agents/agent-log.ts";
import { Client } from "#src/client.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { getContext } from "#test/support/seed.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";
import { awaitBuild, createBuild, createWorkspace, ECHO, seedTemplate } from "#test/support/workspaces.ts";

const DAY_MS = 86_400_000;

testInProcess("[CR-21] when the clock jumps two days ahead and a week back, everything continues", async () => {
  let offsetMs = 0;
  const clock = { ...systemClock, now: () => systemClock.now() + offsetMs };
  await using server = await startTestServer({ clock });
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  const agents = [{ name: "dev", token: crypto.randomUUID() }];
  const { template_id } = await seedTemplate(server, { ...ECHO, resources: [{ name: "main", agents }] });
  const { id } = await createWorkspace(admin, template_id);
  const { latest_build } = await awaitBuild(admin, id);
  const agent_id = latest_build.resources[0]?.agents[0]?.id as string;
  const agent = admin.withToken(agents[0]?.token);
  using follower = await admin.socket(`/api/v2/workspaceagents/${agent_id}/logs?follow=true`);
  const received: AgentLog[] = [];
  const sendLog = (output: string) => agent.patch("/api/v2/workspaceagents/me/logs", { logs: [{ output }] });
  const follow = async (count: number): Promise<void> => {
    while (received.length < count) received.push(...(await follower.json<AgentLog[]>()));
  };
  await sendLog("before");
  await follow(1);

  offsetMs = 2 * DAY_MS;
  await sendLog("two days on");
  await follow(2);
  // A session lasts one day. By the new time, the first session has expired, and a new one is valid.
  expect((await admin.fetch("GET", "/api/v2/users/me")).status).toBe(401);
  const newSession = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);

  offsetMs = -7 * DAY_MS;
  const stopping = await createBuild(newSession, id, "stop");
  expect(stopping.transition).toBe("stop");
  await awaitBuild(newSession, id);
  const started = await createBuild(newSession, id, "start");
  const restarted = (await awaitBuild(newSession, id)).latest_build;
  expect([restarted.id, restarted.job.status, restarted.build_number]).toEqual([started.id, "succeeded", 3]);
  expect((await admin.fetch("GET", "/api/v2/users/me")).status).toBe(200);
  const secondAgentId = restarted.resources[0]?.agents[0]?.id as string;
  await sendLog("a week back");

  offsetMs = 0;
  await sendLog("now");
  const listLines = (agentId: string) => newSession.get<AgentLog[]>(`/api/v2/workspaceagents/${agentId}/logs`);
  const lines = [...(await listLines(agent_id)), ...(await listLines(secondAgentId))];
  expect(lines.map(({ output }) => output)).toEqual(["before", "two days on", "a week back", "now"]);
  expect(lines.map(({ id: lineId }) => lineId)).toEqual(lines.map(({ id: lineId }) => lineId).sort((a, b) => a - b));
  // Builds are ordered by number, whatever their times are.
  const builds = await newSession.get<{ build_number: number }[]>(`/api/v2/workspaces/${id}/builds`);
  expect(builds.map(({ build_number }) => build_number)).toEqual([3, 2, 1]);
  expect(getContext(server).requests.size).toBe(0);
});
