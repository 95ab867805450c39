// Chats paused by a budget, one with Slipway's own loop and one with a coding agent, when server and daemon are killed.
import { expect, test } from "bun:test";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import type { Budget } from "#schema/ai/budget.ts";
import type { AiUsage } from "#schema/ai/gateway.ts";
import type { Chat } from "#schema/chats/chat.ts";
import { Client } from "#src/client.ts";
import { configureAgent, readAgentLog, startAgentChat } from "#test/support/acp/agent-world.ts";
import { AgentUpstream, FINAL_TEXT } from "#test/support/acp/upstream.ts";
import { createChat, loadHistory } from "#test/support/chats.ts";
import { putGatewaySettings } from "#test/support/models/gateway-world.ts";
import { addModel } from "#test/support/models/model-world.ts";
import { toProgramCommand } from "#test/support/program.ts";
import { seedAgent } from "#test/support/seed.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { ServerSlot } from "../server.ts";

/** Cost of a call of the model server, in millionths of a dollar. */
const CALL_MICROS = 60;

const prepare = async (place: ServerSlot, upstream: AgentUpstream) => {
  await using server = await startTestServer({ directory: place.directory, clock: systemClock });
  const owner = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  const cost = { input: 1_000_000, output: 10_000_000 };
  await addModel({ owner, upstream } as never, "openai-compat", { model_config: { cost } }, "Mine", "/v1");
  await putGatewaySettings(owner, { default_names: { openai: "test-model" } });
  await configureAgent({ server }, "test");
  return await seedAgent(server);
};

test("[BU-4] [CA-13] chats paused by a budget stay paused after server and daemon are killed, and continue the same turn after a raise", async () => {
  await using upstream = new AgentUpstream();
  await using place = await ServerSlot.make();
  const seeded = await prepare(place, upstream);
  // The server has tried the model when it was configured.
  const callsBefore = upstream.calls.length;
  const home = join(place.scratch, "home");
  await using stack = new AsyncDisposableStack();
  const start = async () => {
    await place.start({ env: { SLIPWAY_CHAT_TITLES: "false" } });
    const daemon = Bun.spawn([...toProgramCommand(), "agent"], {
      env: {
        PATH: process.env.PATH ?? "",
        HOME: home,
        SHELL: "/bin/bash",
        SLIPWAY_AGENT_TOKEN: seeded.agent_token,
        SLIPWAY_AGENT_URL: `http://127.0.0.1:${place.port}`,
      },
      stdio: ["ignore", "ignore", "ignore"],
    });
    stack.defer(async () => {
      daemon.kill("SIGKILL");
      await daemon.exited;
    });
    return daemon;
  };
  await Bun.$`mkdir -p ${home}`.quiet();
  let daemon = await start();
  const admin = await place.client.signIn(ADMIN.email, ADMIN.password);
  const owner = new Client(new URL(`http://127.0.0.1:${place.port}`), seeded.owner_token);
  const world = { owner, organization_id: seeded.organization_id, seeded, home };
  const amount = CALL_MICROS;
  const budget = await admin.put<Budget>("/api/v2/ai/budgets", {
    scope: "everyone",
    period: "month",
    unit: "usd",
    amount,
  });
  type Agent = { readonly status: string };
  await until(
    async () => (await owner.get<Agent>(`/api/v2/workspaceagents/${seeded.agent_id}`)).status === "connected",
  );
  const agentChat = await startAgentChat(world, "call\ncall\nsay never", { permissions: null });
  const getChat = (id: string) => owner.get<Chat>(`/api/v2/chats/${id}`);
  const waitForStatus = (id: string, expected: string) =>
    until(async () => (await getChat(id)).status === expected, { what: `${expected} of ${id}`, timeoutMs: 60_000 });
  await waitForStatus(agentChat.id, "requires_action");
  const loopChat = await createChat(world, "hello");
  await waitForStatus(loopChat.id, "requires_action");
  const getPauses = () => Promise.all([agentChat, loopChat].map(async ({ id }) => (await getChat(id)).budget_pause));
  const pauses = await getPauses();
  expect(pauses.map((pause) => pause?.budget_id)).toEqual([budget.id, budget.id]);

  const killAll = async (): Promise<void> => {
    place.currentProcess.kill("SIGKILL");
    daemon.kill("SIGKILL");
    await Promise.all([place.currentProcess.ended, daemon.exited]);
  };
  await killAll();
  daemon = await start();
  expect(await getPauses()).toEqual(pauses);
  expect((await getChat(agentChat.id)).status).toBe("requires_action");
  expect(upstream.calls).toHaveLength(callsBefore + 1);

  // The server is killed right after it has acknowledged the raise, before the chats can end their turns.
  await admin.post<unknown>(`/api/v2/ai/budgets/${budget.id}/raise`, { amount: 1_000_000 });
  await killAll();
  daemon = await start();
  await waitForStatus(loopChat.id, "waiting");
  await waitForStatus(agentChat.id, "waiting");
  expect(await loadHistory(owner, loopChat.id)).toEqual(["user: hello", `assistant: ${FINAL_TEXT}`]);
  expect(
    readAgentLog(world, agentChat.id)
      .filter((line) => line.startsWith("prompt"))
      .at(-1),
  ).toContain("continue where you left off");
  for (const { id } of [agentChat, loopChat]) expect((await getChat(id)).last_error).toBeUndefined();

  const [budgetNow] = await admin.get<Budget[]>("/api/v2/ai/budgets");
  const { total, rows } = await admin.get<AiUsage>("/api/v2/ai/usage?by=kind");
  expect(budgetNow).toMatchObject({ reserved: 0, spent: total.total_cost_micros });
  expect(rows.find(({ key }) => key === "gateway")?.total_cost_micros).toBe(CALL_MICROS);
  await place.stop();
});
