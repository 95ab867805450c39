// Chat features that every engine supports, tested on chats with coding agents: one row per feature, with the scripted agent and, on
// request, with a genuine one.
import { expect } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { toSealContext } from "#actors/notifications/push.ts";
import { sha256, uuid } from "#base/ids.ts";
import { insertSubscription } from "#db/notifications/deliveries.ts";
import type { GitMessage } from "#schema/agents/git-message.ts";
import type { AuditLog } from "#schema/audit.ts";
import type { Chat, ChatMessage, EditedMessage, MessagePage } from "#schema/chats/chat.ts";
import type { ChatCost } from "#schema/chats/chat-cost.ts";
import { Client } from "#src/client.ts";
import { Consumer } from "#test/hooks/world.ts";
import { enablePreset, openAgentGateway } from "#test/support/acp/agent-gateway.ts";
import { configureAgent, listPendingCalls, readAgentLog, startAgentChat } from "#test/support/acp/agent-world.ts";
import { FILE_CONTENT, FINAL_TEXT, PARTIAL_TEXT } from "#test/support/acp/upstream.ts";
import { Follower, sendMessage, toTextContent } from "#test/support/chats.ts";
import { forFile } from "#test/support/for-file.ts";
import { listGatewayCalls } from "#test/support/models/gateway-world.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { makeRepository } from "#test/support/repository.ts";
import { getContext, seedUser } from "#test/support/seed.ts";
import { until } from "#test/support/until.ts";

/** The prompts that make an agent do the same actions. */
type Driver = {
  readonly name: string;
  /** Asks for approval, writes `FILE_CONTENT` into the file, and says the sentence. Calls its model at least once. */
  readonly write: (path: string) => string;
  /** Says this text and then works until it is canceled. */
  readonly hold: { readonly prompt: string; readonly text: string };
  /** Says the sentence. */
  readonly answer: string;
};
const SCRIPTED: Driver = {
  name: "test",
  write: (path) => `call\nedit ${path} ${FILE_CONTENT}\nsay ${FINAL_TEXT}`,
  hold: { prompt: "wait", text: "waiting" },
  answer: `say ${FINAL_TEXT}`,
};
const GENUINE: Driver = {
  name: "opencode",
  write: (path) => `Write ${path}`,
  hold: { prompt: "Hold on, opencode.", text: PARTIAL_TEXT },
  answer: "Answer me.",
};

// The example of RFC 8291, appendix A: messages to the browser are only counted here.
const BROWSER = {
  p256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
  auth: "BTBZMqHH6r4Tts7J_aSIgg",
};
let pushCount = 0;
const browser = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: () => {
    pushCount += 1;
    return new Response(null, { status: 201 });
  },
});
await forFile(Promise.resolve({ [Symbol.asyncDispose]: () => browser.stop(true) }));
const consumer = needs.python3.found ? await forFile(Consumer.start()) : undefined;
const PATH = `${join(needs.agents.file, "node_modules/.bin")}:${process.env.PATH}`;
const serverEnv = Object.assign(
  { SLIPWAY_CHAT_TITLES: "true", SLIPWAY_WEBPUSH_PRIVATE_NETWORKS: "127.0.0.0/8" },
  consumer?.env(),
);
const world = await forFile(openAgentGateway({ env: { PATH }, server: serverEnv }));
const { owner, admin, home } = world;
await configureAgent(world, "test");
const repository = makeRepository(join(home, "work"), { empty: true });
const { store, encryption } = getContext(world.server);
const subscriptionId = uuid();
const endpoint = `http://127.0.0.1:${browser.port}/push`;
const sealed = encryption.seal(JSON.stringify(Object.assign({ endpoint }, BROWSER)), toSealContext(subscriptionId));
await store.commit([
  insertSubscription({
    id: subscriptionId,
    user_id: world.seeded.owner_id,
    key_id: owner.token?.split("-")[0],
    endpoint_hash: sha256(endpoint),
    sealed,
    created_at: 1,
  }),
]);

/** A chat on which the rows of the table are tested one after the other. */
type DrivenChat = {
  readonly driver: Driver;
  readonly id: string;
  readonly path: string;
  readonly file: string;
  /** Number of pushes before the chat started. */
  readonly pushesBefore: number;
};
const getChat = ({ path }: DrivenChat): Promise<Chat> => owner.get<Chat>(path);
const waitForStatus = (chat: DrivenChat, wanted: string) =>
  until(
    async () => {
      const { status, last_error } = await getChat(chat);
      if (last_error) throw new Error(JSON.stringify(last_error));
      return status === wanted;
    },
    { what: `${wanted} of ${chat.driver.name}`, timeoutMs: 120_000 },
  );
const listMessages = async ({ path }: DrivenChat): Promise<ChatMessage[]> =>
  (await owner.get<MessagePage>(`${path}/messages?limit=200`)).messages.reverse();
const getLastText = async (chat: DrivenChat): Promise<string> =>
  ((await listMessages(chat)).at(-1)?.content ?? []).map(({ text = "" }) => text).join("");
const allowPendingCall = async (chat: DrivenChat): Promise<void> => {
  await waitForStatus(chat, "requires_action");
  const [call] = await listPendingCalls(owner, chat.id);
  const answers = [{ tool_call_id: call?.tool_call_id, decision: "allow" }];
  await owner.post<unknown>(`${chat.path}/permissions`, { answers });
};
/** Sends a message and waits for its answer. */
const sendAndExpect = async (chat: DrivenChat, prompt: string, text: string): Promise<void> => {
  const countBefore = (await listMessages(chat)).length;
  await sendMessage({ owner }, chat.id, prompt);
  await until(async () => (await listMessages(chat)).length > countBefore + 1, { timeoutMs: 120_000 });
  await waitForStatus(chat, "waiting");
  expect(await getLastText(chat)).toContain(text);
};
const startHolding = async (chat: DrivenChat): Promise<Follower> => {
  const follower = await Follower.open(owner, chat.id);
  await sendMessage({ owner }, chat.id, chat.driver.hold.prompt);
  await follower.until(({ preview }) => preview.includes(chat.driver.hold.text));
  return follower;
};
const fetchStatus = async (client: Client, method: string, path: string, body?: unknown): Promise<number> =>
  (await client.fetch(method, path, body)).status;

/** The features, in the order of the test. The chat's first message asks the agent to write a file. */
const FEATURES: readonly (readonly [feature: string, run: (chat: DrivenChat) => Promise<void>])[] = [
  [
    "push notifications of calls that wait for an approval",
    async (chat) => {
      await waitForStatus(chat, "requires_action");
      await until(() => pushCount > chat.pushesBefore);
      expect(existsSync(chat.file)).toBe(false);
      await allowPendingCall(chat);
      await waitForStatus(chat, "waiting");
      expect(readFileSync(chat.file, "utf8").trim()).toBe(FILE_CONTENT);
    },
  ],
  [
    "titles",
    async (chat) => void (await until(async () => (await getChat(chat)).title === FINAL_TEXT.replace(/\.$/, ""))),
  ],
  [
    "the unread mark, which disappears once the reader follows the chat",
    async (chat) => {
      expect((await getChat(chat)).has_unread).toBe(true);
      using _reader = await Follower.open(owner, chat.id);
      await until(async () => !(await getChat(chat)).has_unread);
    },
  ],
  [
    "search",
    async (chat) => {
      const query = encodeURIComponent(`search:"${FINAL_TEXT}"`);
      await until(async () => (await owner.get<Chat[]>(`/api/v2/chats?q=${query}`)).some(({ id }) => id === chat.id));
    },
  ],
  [
    "the diff of the panel",
    async (chat) => {
      using socket = await owner.socket(`${chat.path}/stream/git`);
      for (;;) {
        const { repositories = [] } = await socket.json<GitMessage>();
        if (repositories.some(({ unified_diff = "" }) => unified_diff.includes(`+${FILE_CONTENT}`))) return;
      }
    },
  ],
  [
    "cost of the chat and of each turn",
    async (chat) => {
      const cost = await owner.get<ChatCost>(`${chat.path}/cost`);
      const calls = (await listGatewayCalls(admin)).filter(({ chat_id }) => chat_id === chat.id);
      const agentMicros = calls.reduce((sum, { cost_micros }) => sum + (cost_micros ?? 0), 0);
      expect(calls.length).toBeGreaterThan(0);
      expect(agentMicros).toBeGreaterThan(0);
      // Titles also have a cost.
      expect(cost.total_cost_micros).toBeGreaterThan(agentMicros);
      const [firstMessage] = await listMessages(chat);
      const turn = { cost_micros: agentMicros, request_count: calls.length, unpriced_request_count: 0 };
      expect(cost.turns).toEqual([{ message_id: firstMessage?.id ?? 0, ...turn }]);
    },
  ],
  [
    "the audit log",
    async (chat) => {
      const query = `/api/v2/audit?limit=10&q=resource_type:chat+resource_id:${chat.id}`;
      const { audit_logs } = await admin.get<{ audit_logs: AuditLog[] }>(query);
      expect(audit_logs.map(({ action }) => action)).toContain("create");
    },
  ],
  [
    "sharing: a reader can follow the chat, but not write",
    async (chat) => {
      const { user_id, token } = await seedUser(world.server, { organization_id: world.organization_id });
      const readerClient = new Client(world.server.url, token);
      expect(await fetchStatus(readerClient, "GET", chat.path)).toBe(404);
      await owner.patch(`${chat.path}/acl`, { user_roles: { [user_id]: "read" } });
      using reader = await Follower.open(readerClient, chat.id);
      const countBefore = (await listMessages(chat)).length;
      await sendAndExpect(chat, chat.driver.answer, FINAL_TEXT);
      await reader.until(({ history }) => history.length === countBefore + 2);
      expect(reader.history.at(-1)).toContain(FINAL_TEXT);
      for (const [method, path, body] of [
        ["POST", "messages", { content: toTextContent("mine") }],
        ["POST", "interrupt", {}],
        ["POST", "permissions", { answers: [] }],
      ] as const) {
        expect([path, await fetchStatus(readerClient, method, `${chat.path}/${path}`, body)]).toEqual([path, 403]);
      }
    },
  ],
  [
    "interruption, which keeps the agent's text so far",
    async (chat) => {
      using _follower = await startHolding(chat);
      await owner.post<unknown>(`${chat.path}/interrupt`, {});
      await waitForStatus(chat, "waiting");
      expect(await getLastText(chat)).toContain(chat.driver.hold.text);
    },
  ],
  [
    "the queue, and a queued message that is promoted",
    async (chat) => {
      using follower = await startHolding(chat);
      const countBefore = (await listMessages(chat)).length;
      await sendMessage({ owner }, chat.id, chat.driver.answer);
      await follower.until(({ queue }) => queue.length === 1);
      await owner.post<unknown>(`${chat.path}/queue/${follower.queue[0]?.id}/promote`, {});
      await until(async () => (await listMessages(chat)).length >= countBefore + 3, { timeoutMs: 120_000 });
      await waitForStatus(chat, "waiting");
      expect(await getLastText(chat)).toContain(FINAL_TEXT);
      if (chat.driver === SCRIPTED) {
        const promoted = `prompt ${JSON.stringify(chat.driver.answer)}`;
        expect(readAgentLog(world, chat.id).slice(-2)).toEqual(["cancelled", promoted]);
      }
    },
  ],
  [
    "lifecycle hooks",
    async (chat) => {
      const received = ((await consumer?.listReceived()) ?? []).filter(
        ({ request }) => request.meta.chat_id === chat.id,
      );
      expect(received.flatMap(({ problems }) => problems)).toEqual([]);
      const events = new Set(received.map(({ event }) => event));
      for (const event of ["user_prompt_submit", "pre_tool_use", "post_tool_use", "stop"])
        expect(events).toContain(event);
    },
  ],
  [
    "forks",
    async (chat) => {
      const fork = await owner.post<Chat>(`${chat.path}/fork`, {});
      const forkChat = { ...chat, id: fork.id, path: `/api/v2/chats/${fork.id}` };
      expect(fork.coding_agent).toBe(chat.driver.name);
      expect(await listMessages(forkChat)).toHaveLength((await listMessages(chat)).length);
      await sendAndExpect(forkChat, chat.driver.answer, FINAL_TEXT);
      // The agent of the fork gets the conversation, including the first message.
      if (chat.driver === SCRIPTED) expect(readAgentLog(world, forkChat.id).at(-1)).toContain(FILE_CONTENT);
      await owner.delete(forkChat.path);
    },
  ],
  [
    "an edit of an earlier message, with undo",
    async (chat) => {
      expect(existsSync(chat.file)).toBe(true);
      const firstMessage = (await listMessages(chat)).find(({ role }) => role === "user");
      const body = { content: toTextContent(chat.driver.answer), restore_files: true };
      const { warnings } = await owner.patch<EditedMessage>(`${chat.path}/messages/${firstMessage?.id}`, body);
      expect([warnings, existsSync(chat.file)]).toEqual([[], false]);
      await until(async () => (await listMessages(chat)).length === 2, { timeoutMs: 120_000 });
      await waitForStatus(chat, "waiting");
      expect(await getLastText(chat)).toContain(FINAL_TEXT);
    },
  ],
  [
    "archiving and deletion",
    async (chat) => {
      const agentHome = join(home, ".local/state/slipway/coding-agents/homes", chat.id);
      await owner.patch<unknown>(chat.path, { archived: true });
      expect(await fetchStatus(owner, "POST", `${chat.path}/messages`, { content: toTextContent("more") })).toBe(409);
      await owner.patch<unknown>(chat.path, { archived: false });
      await sendAndExpect(chat, chat.driver.answer, FINAL_TEXT);
      expect(existsSync(agentHome)).toBe(true);
      await owner.delete(chat.path);
      expect(await fetchStatus(owner, "GET", chat.path)).toBe(404);
      await until(() => !existsSync(agentHome));
    },
  ],
];

/** A genuine agent takes a minute of CPU time, and genuine.test.ts covers the differences between agents, so this runs only on request. */
const DRIVERS = Bun.env.SLIPWAY_TEST_FEATURES === "genuine" ? [SCRIPTED, GENUINE] : [SCRIPTED];

for (const driver of DRIVERS) {
  const requirements = [needs.git, needs.python3, ...(driver === GENUINE ? [needs.agents] : [])];
  testNeeding(
    requirements,
    `[CA-25] a chat with the agent "${driver.name}" has every feature of the table`,
    async () => {
      if (driver === GENUINE) await enablePreset(admin, driver.name);
      const pushesBefore = pushCount;
      const file = join(repository.root, `proof-${driver.name}.txt`);
      const { id } = await startAgentChat(
        world,
        driver.write(driver === GENUINE ? file : `work/proof-${driver.name}.txt`),
        {
          coding_agent: driver.name,
          model_config_id: world.model_config_id,
          permissions: { default: "ask_changes", rules: [] },
        },
      );
      const chat: DrivenChat = { driver, id, path: `/api/v2/chats/${id}`, file, pushesBefore };
      const failures: string[] = [];
      for (const [feature, run] of FEATURES) {
        await run(chat).catch((error: unknown) => failures.push(`${feature}: ${String(error)}`));
      }
      expect(failures).toEqual([]);
    },
    scaleTimeout(300_000),
  );
}
