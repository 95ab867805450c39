// The server is killed at random moments while a hook's consumer changes every prompt and every call of its chats: no message is stored
// without its hook, and no effect without its message. A stored call runs with its stored input and is never sent to the hook again, and
// all pending work continues (rule HK-16).
import type { Chat } from "#schema/chats/chat.ts";
import type { MessagePart } from "#schema/chats/chat-part.ts";
import { Consumer, type Rule } from "#test/hooks/world.ts";
import { type ModelCall, ModelServer } from "#test/support/models/model-server.ts";
import { randomFrom } from "#test/support/random.ts";
import { until } from "#test/support/until.ts";
import { findDatabaseProblems } from "../oracle/database.ts";
import { ServerSlot } from "../server.ts";
import { assertNoProblems } from "../server-crash.ts";
import { signInAdmin, type World } from "../server-world.ts";
import type { Check, CheckOptions } from "../store/store-crash.ts";
import { loadStoredChats, type StoredChat } from "./server-chats-database.ts";

const CHATS = 3;

/** A model that calls one tool per message and then says that it is done. Its calls have unique IDs. */
const answerAll = async (upstream: ModelServer, isFinished: () => boolean): Promise<void> => {
  for (let number = 1; ; number++) {
    const call = await upstream.next();
    if (isFinished()) return;
    answerCall(call, number);
  }
};

const answerCall = (call: ModelCall, number: number): void => {
  const messages = call.body.messages as { role: string; content: unknown }[];
  const promptIndex = messages.findLastIndex(
    ({ role, content }) => role === "user" && JSON.stringify(content).includes("SAID "),
  );
  const isAnswered = messages.slice(promptIndex).some(({ role }) => role === "tool");
  if (isAnswered) call.say({ text: "done" }, { finish: "stop" }).end();
  else {
    const id = `call-${number}`;
    call.say({ call: { id, name: "list_templates", args: '{"query":"proposed"}' } }, { finish: "tool_calls" }).end();
  }
};

/** A message sent by a person, and whether the server has acknowledged it. */
type SentPrompt = { readonly text: string; isAcknowledged: boolean };

class Writer {
  readonly sent: SentPrompt[] = [];
  readonly #world: World;
  readonly #name: string;
  #isStopped = false;

  constructor(world: World, name: string) {
    this.#world = world;
    this.#name = name;
  }

  async run(id: string): Promise<void> {
    for (let n = 0; !this.#isStopped; n++) {
      const prompt: SentPrompt = { text: `SAID ${this.#name}.${n}.`, isAcknowledged: false };
      this.sent.push(prompt);
      const content = [{ type: "text", text: prompt.text }];
      const response = await this.#world.admin
        .fetch("POST", `/api/v2/chats/${id}/messages`, { content })
        .catch(() => undefined);
      prompt.isAcknowledged = response?.status === 200;
      // The queue is full, or the server is down: try again a little later.
      if (!prompt.isAcknowledged) await Bun.sleep(30);
      await response?.text().catch(() => "");
    }
  }

  stop(): void {
    this.#isStopped = true;
  }
}

/** The consumer's rules, each with a short delay, so that kills happen during the dispatch. */
const RULES: readonly Rule[] = [
  {
    event: "user_prompt_submit",
    how: "slow",
    seconds: 0.01,
    answer: { model_context: "CTX-PROMPT", user_message: "NOTE-PROMPT" },
  },
  {
    event: "pre_tool_use",
    how: "slow",
    seconds: 0.02,
    answer: { permission: { decision: "allow", input_override: { query: "hooked" } }, model_context: "CTX-PRE" },
  },
  { event: "post_tool_use", how: "slow", seconds: 0.01, answer: { user_message: "NOTE-POST" } },
  { event: "stop", how: "slow", seconds: 0.01, answer: { user_message: "NOTE-STOP" } },
];

type Row = { readonly role: string; readonly parts: readonly MessagePart[] };

const toRows = ({ messages }: StoredChat): Row[] =>
  messages.map(({ role, content }) => ({ role, parts: JSON.parse(content) as MessagePart[] }));

const listCallIds = (rows: readonly Row[]): string[] =>
  rows.flatMap(({ parts }) => parts.flatMap((part) => (part.type === "tool-call" ? [part.tool_call_id ?? ""] : [])));

/** Returns problems with one chat. */
const findProblems = (
  stored: StoredChat,
  sent: readonly SentPrompt[],
  requestCounts: ReadonlyMap<string, number>,
): string[] => {
  const failures: string[] = [];
  const rows = toRows(stored);
  const prompts = [
    ...rows.filter(({ role, parts }) => role === "user" && parts[0]?.type === "text"),
    ...stored.queue.map(({ content }) => ({ role: "user", parts: JSON.parse(content) as MessagePart[] })),
  ];
  for (const { parts } of prompts) {
    const kinds = parts.map(({ type }) => type).join(" ");
    if (kinds !== "text hook-context hook-notice") failures.push(`a message is stored as ${kinds}`);
  }
  for (const { text, isAcknowledged } of sent) {
    const count = prompts.filter(({ parts }) => parts[0]?.text === text).length;
    if (count > 1 || (isAcknowledged && count === 0)) failures.push(`${text} exists ${count} times`);
  }
  for (const part of rows.flatMap(({ parts }) => parts)) {
    if (part.type !== "tool-call") continue;
    if (JSON.stringify(part.args) !== '{"query":"hooked"}' || !part.hook_rewritten) {
      failures.push(`a call is stored with ${JSON.stringify(part.args)}`);
    }
  }
  for (const id of listCallIds(rows)) {
    if (requestCounts.get(id) !== 1)
      failures.push(`the hook was asked ${requestCounts.get(id) ?? 0} times about the stored call ${id}`);
  }
  const contexts = rows.filter(({ parts }) => parts.some(({ text }) => text === "CTX-PRE")).length;
  if (contexts !== listCallIds(rows).length)
    failures.push(`${contexts} contexts for ${listCallIds(rows).length} calls`);
  const results = rows.filter(({ role }) => role === "tool").length;
  const notices = rows.filter(({ parts }) => parts.some(({ text }) => text === "NOTE-POST")).length;
  if (notices !== results) failures.push(`${notices} notices for ${results} results`);
  const answers = rows.filter(({ parts }) => parts.some(({ type, text }) => type === "text" && text === "done")).length;
  const stopNotices = rows.filter(({ parts }) => parts.some(({ text }) => text === "NOTE-STOP")).length;
  if (answers !== stopNotices) failures.push(`${stopNotices} notices for ${answers} answers`);
  return failures;
};

/** Kills the server `rounds` times. Returns a one-line summary. */
export const serverHooks = async ({ rounds, seed, log }: CheckOptions): Promise<string> => {
  const random = randomFrom(seed);
  await using consumer = await Consumer.start();
  await consumer.rule(...RULES);
  await using upstream = await ModelServer.start();
  let isFinished = false;
  void answerAll(upstream, () => isFinished);
  await using place = await ServerSlot.make();
  const env = consumer.env({ SLIPWAY_CHAT_TITLES: "false" });
  let server = await place.start({ env });
  const world = await signInAdmin(place);
  const { admin, organization_id } = world;
  const provider = { provider: "openai-compat", display_name: "Calls", base_url: `${upstream.url}/v1`, api_key: "key" };
  const { id: provider_id } = await admin.post<{ id: string }>("/api/v2/chats/providers", provider);
  await admin.post("/api/v2/chats/model-configs", { provider_id, model: "calls", is_default: true });
  const ids: string[] = [];
  for (let n = 0; n < CHATS; n++) {
    const content = [{ type: "text", text: `SAID first.${n}.` }];
    ids.push((await admin.post<Chat>("/api/v2/chats", { organization_id, content })).id);
  }
  const writers = ids.map((_, n) => new Writer(world, `c${n}`));
  const writing = ids.map((id, n) => writers[n]?.run(id));
  const checkChats = async (moment: string): Promise<void> => {
    const requestCounts = new Map<string, number>();
    for (const { request } of await consumer.listReceived("pre_tool_use")) {
      const id = String(request.data.tool_use_id);
      requestCounts.set(id, (requestCounts.get(id) ?? 0) + 1);
    }
    const stored = await loadStoredChats(place.directory, ids);
    assertNoProblems(seed, moment, await findDatabaseProblems(place.directory));
    const problems = ids.flatMap((id, n) => {
      const chat = stored.get(id);
      return chat ? findProblems(chat, writers[n]?.sent ?? [], requestCounts) : [`chat ${id} was lost`];
    });
    assertNoProblems(seed, moment, problems);
  };
  for (let round = 1; round <= rounds; round++) {
    const receivedBefore = (await consumer.listReceived()).length;
    const requestCount = 5 + Math.floor(random() * 40);
    await until(async () => (await consumer.listReceived()).length - receivedBefore >= requestCount, {
      timeoutMs: 60_000,
    });
    await Bun.sleep(random() * 40);
    server.kill("SIGKILL");
    await server.ended;
    await checkChats(`kill ${round}`);
    log(`kill ${round}: consistent`);
    server = await place.start({ env });
  }
  for (const writer of writers) writer.stop();
  await Promise.all(writing);
  for (const id of ids) {
    await until(
      async () => {
        const { status } = await admin.get<Chat>(`/api/v2/chats/${id}`);
        if (status === "error") throw new Error(`seed ${seed}: a chat ended in an error`);
        return status === "waiting";
      },
      { timeoutMs: 120_000 },
    );
  }
  const received = await consumer.listReceived();
  assertNoProblems(
    seed,
    "the end",
    received.flatMap(({ problems }) => problems),
  );
  await place.stop();
  await checkChats("the end");
  isFinished = true;
  const acknowledged = writers.flatMap(({ sent }) => sent).filter(({ isAcknowledged }) => isAcknowledged).length;
  return `${rounds} kills around ${received.length} dispatches, ${acknowledged} acknowledged messages, every history consistent`;
};

export const checks: readonly Check[] = [{ name: "server: hooks", run: serverHooks }];
