// All features above a chat's engine, on chats with coding agents: one row per feature, each tested with a genuine agent where it is
// cached, and with the scripted one.
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

/** How a chat's agent is prompted for the same actions. */
type Driver = {
  readonly name: string;
  /** Asks for approval, writes `FILE_CONTENT` into the file, and says the sentence. Calls its model at least once. */
  readonly write: (path: string) => string;
  /** Says something, and works until it is canceled. */
  readonly hold: { readonly prompt: string; readonly words: string };
  /** Says the sentence. */
  readonly answer: string;
};
const SCRIPTED: Driver = {
  name: "test",
  write: (path) => `call\nedit ${path} ${FILE_CONTENT}\nsay ${FINAL_TEXT}`,
  hold: { prompt: "wait", words: "waiting" },
  answer: `say ${FINAL_TEXT}`,
};
const GENUINE: Driver = {
  name: "opencode",
  write: (path) => `Write ${path}`,
  hold: { prompt: "Hold on, opencode.", words: PARTIAL_TEXT },
  answer: "Answer me.",
};

// The example of RFC 8291, appendix A: messages to the browser are only counted here.
const BROWSER = {
  p256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
  auth: "BTBZMqHH6r4Tts7J_aSIgg",
};
let pushed = 0;
const browser = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: () => {
    pushed += 1;
    return new Response(null, { status: 201 });
  },
});
await forFile(Promise.resolve({ [Symbol.asyncDispose]: () => browser.stop(true) }));
const consumer = needs.python3.found ? await forFile(Consumer.start()) : undefined;
const PATH = `${join(needs.agents.file, "node_modules/.bin")}:${process.env.PATH}`;
const server = Object.assign(
  { SLIPWAY_CHAT_TITLES: "true", SLIPWAY_WEBPUSH_PRIVATE_NETWORKS: "127.0.0.0/8" },
  consumer?.env(),
);
const world = await forFile(openAgentGateway({ env: { PATH }, server }));
const { owner, admin, home } = world;
await configureAgent(world, "test");
const repository = makeRepository(join(home, "work"), { empty: true });
const { store, encryption } = getContext(world.server);
const [subscription, endpoint] = [uuid(), `http://127.0.0.1:${browser.port}/push`];
const sealed = encryption.seal(JSON.stringify(Object.assign({ endpoint }, BROWSER)), toSealContext(subscription));
await store.commit([
  insertSubscription({
    id: subscription,
    user_id: world.seeded.owner_id,
    key_id: owner.token?.split("-")[0],
    endpoint_hash: sha256(endpoint),
    sealed,
    created_at: 1,
  }),
]);

/** A chat of the table, on which rows are tested one after the other. */
type DrivenChat = {
  readonly lead: Driver;
  readonly id: string;
  readonly path: string;
  readonly file: string;
  /** Number of pushes before it. */
  readonly pushed: number;
};
const getChat = ({ path }: DrivenChat): Promise<Chat> => owner.get<Chat>(path);
const waitForStatus = (led: DrivenChat, wanted: string) =>
  until(
    async () => {
      const { status, last_error } = await getChat(led);
      if (last_error) throw new Error(JSON.stringify(last_error));
      return status === wanted;
    },
    { what: `${wanted} of ${led.lead.name}`, patience: 120_000 },
  );
const listMessages = async ({ path }: DrivenChat): Promise<ChatMessage[]> =>
  (await owner.get<MessagePage>(`${path}/messages?limit=200`)).messages.reverse();
const getLastText = async (led: DrivenChat): Promise<string> =>
  ((await listMessages(led)).at(-1)?.content ?? []).map(({ text = "" }) => text).join("");
const allow = async (led: DrivenChat): Promise<void> => {
  await waitForStatus(led, "requires_action");
  const [call] = await listPendingCalls(owner, led.id);
  const answers = [{ tool_call_id: call?.tool_call_id, decision: "allow" }];
  await owner.post<unknown>(`${led.path}/permissions`, { answers });
};
/** Sends a message and waits for its answer. */
const sendAndExpect = async (led: DrivenChat, prompt: string, words: string): Promise<void> => {
  const before = (await listMessages(led)).length;
  await sendMessage({ owner }, led.id, prompt);
  await until(async () => (await listMessages(led)).length > before + 1, { patience: 120_000 });
  await waitForStatus(led, "waiting");
  expect(await getLastText(led)).toContain(words);
};
const hold = async (led: DrivenChat): Promise<Follower> => {
  const follower = await Follower.open(owner, led.id);
  await sendMessage({ owner }, led.id, led.lead.hold.prompt);
  await follower.until(({ preview }) => preview.includes(led.lead.hold.words));
  return follower;
};
const fetchStatus = async (client: Client, method: string, path: string, body?: unknown): Promise<number> =>
  (await client.fetch(method, path, body)).status;

/** The features, in the order in which a chat is tested. The first message has asked for a file. */
const FEATURES: readonly (readonly [feature: string, run: (led: DrivenChat) => Promise<void>])[] = [
  [
    "push notifications of what waits for an approval",
    async (led) => {
      await waitForStatus(led, "requires_action");
      await until(() => pushed > led.pushed);
      expect(existsSync(led.file)).toBe(false);
      await allow(led);
      await waitForStatus(led, "waiting");
      expect(readFileSync(led.file, "utf8").trim()).toBe(FILE_CONTENT);
    },
  ],
  [
    "titles",
    async (led) => void (await until(async () => (await getChat(led)).title === FINAL_TEXT.replace(/\.$/, ""))),
  ],
  [
    "unread, and the read cursor that moves for who reads",
    async (led) => {
      expect((await getChat(led)).has_unread).toBe(true);
      using _reader = await Follower.open(owner, led.id);
      await until(async () => !(await getChat(led)).has_unread);
    },
  ],
  [
    "search",
    async (led) => {
      const query = encodeURIComponent(`search:"${FINAL_TEXT}"`);
      await until(async () => (await owner.get<Chat[]>(`/api/v2/chats?q=${query}`)).some(({ id }) => id === led.id));
    },
  ],
  [
    "the diff of the panel",
    async (led) => {
      using socket = await owner.socket(`${led.path}/stream/git`);
      for (;;) {
        const { repositories = [] } = await socket.json<GitMessage>();
        if (repositories.some(({ unified_diff = "" }) => unified_diff.includes(`+${FILE_CONTENT}`))) return;
      }
    },
  ],
  [
    "cost in the chat's figures, and for each turn",
    async (led) => {
      const cost = await owner.get<ChatCost>(`${led.path}/cost`);
      const calls = (await listGatewayCalls(admin)).filter(({ chat_id }) => chat_id === led.id);
      const sum = calls.reduce((all, { cost_micros }) => all + (cost_micros ?? 0), 0);
      expect(calls.length).toBeGreaterThan(0);
      expect(sum).toBeGreaterThan(0);
      // Titles also have a cost.
      expect(cost.total_cost_micros).toBeGreaterThan(sum);
      const [first] = await listMessages(led);
      const turn = { cost_micros: sum, request_count: calls.length, unpriced_request_count: 0 };
      expect(cost.turns).toEqual([{ message_id: first?.id ?? 0, ...turn }]);
    },
  ],
  [
    "the audit log",
    async (led) => {
      const query = `/api/v2/audit?limit=10&q=resource_type:chat+resource_id:${led.id}`;
      const { audit_logs } = await admin.get<{ audit_logs: AuditLog[] }>(query);
      expect(audit_logs.map(({ action }) => action)).toContain("create");
    },
  ],
  [
    "sharing: another person reads along and cannot write",
    async (led) => {
      const { user_id, token } = await seedUser(world.server, { organization_id: world.organization_id });
      const other = new Client(world.server.url, token);
      expect(await fetchStatus(other, "GET", led.path)).toBe(404);
      await owner.patch(`${led.path}/acl`, { user_roles: { [user_id]: "read" } });
      using reader = await Follower.open(other, led.id);
      const before = (await listMessages(led)).length;
      await sendAndExpect(led, led.lead.answer, FINAL_TEXT);
      await reader.until(({ history }) => history.length === before + 2);
      expect(reader.history.at(-1)).toContain(FINAL_TEXT);
      for (const [method, path, body] of [
        ["POST", "messages", { content: toTextContent("mine") }],
        ["POST", "interrupt", {}],
        ["POST", "permissions", { answers: [] }],
      ] as const) {
        expect([path, await fetchStatus(other, method, `${led.path}/${path}`, body)]).toEqual([path, 403]);
      }
    },
  ],
  [
    "interrupt, with what was said until then",
    async (led) => {
      using _follower = await hold(led);
      await owner.post<unknown>(`${led.path}/interrupt`, {});
      await waitForStatus(led, "waiting");
      expect(await getLastText(led)).toContain(led.lead.hold.words);
    },
  ],
  [
    "the queue, and a queued message that is promoted",
    async (led) => {
      using follower = await hold(led);
      const before = (await listMessages(led)).length;
      await sendMessage({ owner }, led.id, led.lead.answer);
      await follower.until(({ queue }) => queue.length === 1);
      await owner.post<unknown>(`${led.path}/queue/${follower.queue[0]?.id}/promote`, {});
      await until(async () => (await listMessages(led)).length >= before + 3, { patience: 120_000 });
      await waitForStatus(led, "waiting");
      expect(await getLastText(led)).toContain(FINAL_TEXT);
      if (led.lead === SCRIPTED)
        expect(readAgentLog(world, led.id).slice(-2)).toEqual([
          "cancelled",
          `prompt ${JSON.stringify(led.lead.answer)}`,
        ]);
    },
  ],
  [
    "lifecycle hooks",
    async (led) => {
      const seen = ((await consumer?.listReceived()) ?? []).filter(({ request }) => request.meta.chat_id === led.id);
      expect(seen.flatMap(({ problems }) => problems)).toEqual([]);
      const events = new Set(seen.map(({ event }) => event));
      for (const event of ["user_prompt_submit", "pre_tool_use", "post_tool_use", "stop"])
        expect(events).toContain(event);
    },
  ],
  [
    "forks",
    async (led) => {
      const fork = await owner.post<Chat>(`${led.path}/fork`, {});
      const copy = { ...led, id: fork.id, path: `/api/v2/chats/${fork.id}` };
      expect(fork.coding_agent).toBe(led.lead.name);
      expect(await listMessages(copy)).toHaveLength((await listMessages(led)).length);
      await sendAndExpect(copy, led.lead.answer, FINAL_TEXT);
      // The first message is in the conversation that its agent was given.
      if (led.lead === SCRIPTED) expect(readAgentLog(world, copy.id).at(-1)).toContain(FILE_CONTENT);
      await owner.delete(copy.path);
    },
  ],
  [
    "an edit of an earlier message, with undo",
    async (led) => {
      expect(existsSync(led.file)).toBe(true);
      const first = (await listMessages(led)).find(({ role }) => role === "user");
      const body = { content: toTextContent(led.lead.answer), restore_files: true };
      const { warnings } = await owner.patch<EditedMessage>(`${led.path}/messages/${first?.id}`, body);
      expect([warnings, existsSync(led.file)]).toEqual([[], false]);
      await until(async () => (await listMessages(led)).length === 2, { patience: 120_000 });
      await waitForStatus(led, "waiting");
      expect(await getLastText(led)).toContain(FINAL_TEXT);
    },
  ],
  [
    "archive and delete",
    async (led) => {
      const homeOf = join(home, ".local/state/slipway/coding-agents/homes", led.id);
      await owner.patch<unknown>(led.path, { archived: true });
      expect(await fetchStatus(owner, "POST", `${led.path}/messages`, { content: toTextContent("more") })).toBe(409);
      await owner.patch<unknown>(led.path, { archived: false });
      await sendAndExpect(led, led.lead.answer, FINAL_TEXT);
      expect(existsSync(homeOf)).toBe(true);
      await owner.delete(led.path);
      expect(await fetchStatus(owner, "GET", led.path)).toBe(404);
      await until(() => !existsSync(homeOf));
    },
  ],
];

/** A genuine agent takes a minute of CPU time, and genuine.test.ts covers the differences between agents, so this runs only on request. */
const LEADS = Bun.env.SLIPWAY_TEST_FEATURES === "genuine" ? [SCRIPTED, GENUINE] : [SCRIPTED];

for (const lead of LEADS) {
  const wanted = [needs.git, needs.python3, ...(lead === GENUINE ? [needs.agents] : [])];
  testNeeding(
    wanted,
    `[CA-25] a chat with the agent "${lead.name}" has every feature of the table`,
    async () => {
      if (lead === GENUINE) await enablePreset(admin, lead.name);
      const before = pushed;
      const file = join(repository.root, `proof-${lead.name}.txt`);
      const { id } = await startAgentChat(world, lead.write(lead === GENUINE ? file : `work/proof-${lead.name}.txt`), {
        coding_agent: lead.name,
        model_config_id: world.model_config_id,
        permissions: { default: "ask_changes", rules: [] },
      });
      const led: DrivenChat = { lead, id, path: `/api/v2/chats/${id}`, file, pushed: before };
      const failed: string[] = [];
      for (const [feature, run] of FEATURES) {
        await run(led).catch((error: unknown) => failed.push(`${feature}: ${String(error)}`));
      }
      expect(failed).toEqual([]);
    },
    scaleTimeout(300_000),
  );
}
