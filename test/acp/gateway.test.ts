// Model calls of a chat's coding agent. They are charged to the chat, pause it when a budget is used up, and are refused once the chat is
// deleted.
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { updateWorkspace } from "#db/workspaces/workspaces.ts";
import type { Budget } from "#schema/ai/budget.ts";
import type { AiUsage } from "#schema/ai/gateway.ts";
import type { Chat } from "#schema/chats/chat.ts";
import { Client } from "#src/client.ts";
import { enablePreset, openAgentGateway } from "#test/support/acp/agent-gateway.ts";
import { configureAgent, readAgentLog, startAgentChat } from "#test/support/acp/agent-world.ts";
import { sendMessage } from "#test/support/chats.ts";
import { forFile } from "#test/support/for-file.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { listGatewayCalls } from "#test/support/models/gateway-world.ts";
import { needs } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { getContext, seedUser } from "#test/support/seed.ts";
import { until } from "#test/support/until.ts";
import { listMessages } from "#test/tools/world.ts";

/** Number of chats that use up one budget together. */
const CHAT_COUNT = Number(Bun.env.SLIPWAY_TEST_AGENT_CROWD ?? 6);
const AGENT = Bun.env.SLIPWAY_TEST_CROWD_AGENT ?? "test";
/** Cost of a call of the model server, in millionths of a dollar. */
const CALL_MICROS = 60;

const PATH = `${join(needs.agents.file, "node_modules/.bin")}:${process.env.PATH}`;
const world = await forFile(openAgentGateway({ env: { PATH }, chats: Math.max(CHAT_COUNT, 5) }));
const { owner, admin, home, server, upstream } = world;
await configureAgent(world, "test");

/** Returns a separate file for each chat, named with letters only as the model server requires. */
const proofPath = (index: number): string =>
  join(home, `proof-${[...String(index)].map((digit) => "abcdefghij"[Number(digit)]).join("")}.txt`);

const getChat = (id: string): Promise<Chat> => owner.get<Chat>(`/api/v2/chats/${id}`);
const waitForStatus = (id: string, status: string) =>
  until(async () => (await getChat(id)).status === status, { what: `${status} of ${id}` });
const listCalls = async (id: string) => (await listGatewayCalls(admin)).filter(({ chat_id }) => chat_id === id);
const listPrompts = (id: string): string[] => readAgentLog(world, id).filter((line) => line.startsWith("prompt"));

test(
  "[CA-13] [BU-2] concurrent agents exceed a budget by less than one call, and finish their turns after a raise",
  async () => {
    // Half of what all chats need, at two calls each.
    const amount = CHAT_COUNT * CALL_MICROS;
    const budget = await admin.put<Budget>("/api/v2/ai/budgets", {
      scope: "everyone",
      period: "month",
      unit: "usd",
      amount,
    });
    const getSpent = async (): Promise<number> => (await admin.get<Budget[]>("/api/v2/ai/budgets"))[0]?.spent ?? 0;
    if (AGENT !== "test") await enablePreset(admin, AGENT);
    const startedAt = performance.now();
    const ids = await Promise.all(
      Array.from({ length: CHAT_COUNT }, async (_, index) => {
        const text = AGENT === "test" ? "call 6\ncall 6\nsay over" : `Write ${proofPath(index)}`;
        return (await startAgentChat(world, text, { coding_agent: AGENT, permissions: null })).id;
      }),
    );
    const listChats = () => Promise.all(ids.map(getChat));
    let highestSpent = 0;
    const pausedChats = await until(
      async () => {
        highestSpent = Math.max(highestSpent, await getSpent());
        const chats = await listChats();
        return chats.every(({ status }) => status !== "running") && chats;
      },
      { timeoutMs: 30_000 * CHAT_COUNT },
    );
    const askingChats = pausedChats.filter(({ status }) => status === "requires_action");
    expect(pausedChats.flatMap(({ last_error }) => last_error ?? [])).toEqual([]);
    expect(askingChats.length).toBeGreaterThan(0);
    expect(new Set(askingChats.map(({ budget_pause }) => budget_pause?.budget_id))).toEqual(new Set([budget.id]));
    expect(Math.max(highestSpent, await getSpent())).toBeLessThan(amount + CALL_MICROS);
    const pausedAfterMs = performance.now() - startedAt;
    await admin.post<unknown>(`/api/v2/ai/budgets/${budget.id}/raise`, { amount: 1_000 * amount });
    await until(async () => (await listChats()).every(({ status }) => status === "waiting"), {
      timeoutMs: 30_000 * CHAT_COUNT,
    });
    expect((await listChats()).flatMap(({ last_error }) => last_error ?? [])).toEqual([]);
    const { total } = await admin.get<AiUsage>("/api/v2/ai/usage?by=kind");
    expect(total.total_cost_micros).toBe(upstream.calls.length * CALL_MICROS);
    expect(await getSpent()).toBe(total.total_cost_micros);
    if (Bun.env.SLIPWAY_REPORT) {
      const durations = [pausedAfterMs, performance.now() - startedAt].map((ms) => `${(ms / 1_000).toFixed(1)} s`);
      const figures = `${askingChats.length} asked, highest ${highestSpent} of ${amount} micros`;
      await Bun.write(Bun.stderr, `${CHAT_COUNT} of ${AGENT}: ${figures}, ${durations.join(", then ")}\n`);
    }
    await admin.delete(`/api/v2/ai/budgets/${budget.id}`);
  },
  scaleTimeout(60_000 + CHAT_COUNT * 60_000),
);

test("[CA-13] an agent's calls use up the chat's budget, and a raise resumes the same turn", async () => {
  const { id } = await startAgentChat(world, "say begun", { permissions: null });
  await waitForStatus(id, "waiting");
  const budget = { scope: "chat", scope_id: id, period: "month", unit: "usd", amount: 100 };
  const { id: budget_id } = await admin.put<Budget>("/api/v2/ai/budgets", budget);
  // Each call costs 60 micros.
  await sendMessage(world, id, "call\ncall\ncall\nsay over");
  await waitForStatus(id, "requires_action");
  expect((await getChat(id)).budget_pause).toMatchObject({ budget_id, scope: "chat", spent: 120 });
  expect((await listCalls(id)).map(({ cost_micros }) => cost_micros)).toEqual([60, 60]);
  const texts = (await listMessages(owner, id)).map(({ content }) => content.map(({ text }) => text).join(""));
  expect(texts.at(-1)).toBe("answered answered ");
  await admin.post<unknown>(`/api/v2/ai/budgets/${budget_id}/raise`, { amount: 100 });
  await waitForStatus(id, "waiting");
  expect(readAgentLog(world, id).slice(-4)).toEqual([
    "called 200",
    "called 200",
    "called 429",
    expect.stringContaining("continue where you left off"),
  ]);
  await sendMessage(world, id, "call\nsay last");
  await until(async () => (await listCalls(id)).length === 3);
  await waitForStatus(id, "waiting");
  await sendMessage(world, id, "call\ncall");
  await waitForStatus(id, "requires_action");
  const promptCount = listPrompts(id).length;
  // The budget is already used up, so nothing is sent to the agent.
  await owner.post<unknown>(`/api/v2/chats/${id}/interrupt`, {});
  await waitForStatus(id, "waiting");
  await sendMessage(world, id, "say never");
  await waitForStatus(id, "requires_action");
  expect(listPrompts(id)).toHaveLength(promptCount);
});

test("[CA-13] the chat's token is hidden from the chat and revoked with it", async () => {
  const { id } = await startAgentChat(world, 'free printf %s "$OPENAI_API_KEY" | tee token', { permissions: null });
  await waitForStatus(id, "waiting");
  const token = readFileSync(join(home, "token"), "utf8");
  expect(token).toStartWith(`slipway-chat.${world.seeded.agent_id}.${id}.`);
  expect(JSON.stringify(await listMessages(owner, id))).not.toContain(token.slice(-36));
  const fetchStatus = async (bearer: string): Promise<number> => {
    const headers = { authorization: `Bearer ${bearer}` };
    return (await fetch(new URL("/api/v2/ai/openai/v1/models", server.url), { headers })).status;
  };
  expect(await fetchStatus(token)).toBe(200);
  const alteredToken = `${token.slice(0, -1)}${token.endsWith("0") ? "1" : "0"}`;
  expect(await fetchStatus(alteredToken)).toBe(401);
  const otherChat = await startAgentChat(world, "say x", { permissions: null });
  expect(await fetchStatus(token.replace(id, otherChat.id))).toBe(401);
  await owner.delete(`/api/v2/chats/${id}`);
  expect(await fetchStatus(token)).toBe(401);
});

testInProcess(
  "[CA-13] [GW-16] a guest's chat can call models only during a turn, while the guest has access to the workspace",
  async () => {
    const guest = await seedUser(server, { organization_id: world.organization_id });
    const { workspace_id } = world.seeded;
    const { store, topics } = getContext(server);
    const setGuestRole = async (role?: "use"): Promise<void> => {
      await store.commit([updateWorkspace(workspace_id, { user_acl: role ? { [guest.user_id]: role } : {} })]);
      topics.publish("access_changed", workspace_id, {});
    };
    await setGuestRole("use");
    const guestClient = new Client(server.url, guest.token);
    const prompt = 'free printf %s "$OPENAI_API_KEY" > part; mv part guest-token; sleep 1000';
    const { id } = await startAgentChat({ ...world, owner: guestClient }, prompt, { permissions: null });
    const tokenFile = join(home, "guest-token");
    await until(() => existsSync(tokenFile), { what: "the token" });
    const headers = { authorization: `Bearer ${readFileSync(tokenFile, "utf8")}` };
    const url = new URL("/api/v2/ai/openai/v1/models", server.url);
    const fetchStatus = async (): Promise<number> => (await fetch(url, { headers })).status;
    expect(await fetchStatus()).toBe(200);
    await setGuestRole();
    expect(await fetchStatus()).toBe(403);
    const isTurnOver = async () => (await guestClient.get<Chat>(`/api/v2/chats/${id}`)).status === "waiting";
    await until(isTurnOver, { what: "the end of the turn" });
    await setGuestRole("use");
    // The owner of the workspace could have read the token.
    expect(await fetchStatus()).toBe(401);
  },
);
