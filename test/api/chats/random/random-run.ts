// Several clients act randomly on a few chats, with randomly answering models, while followers connect and disconnect and the clock moves.
// The state machine must explain every commit, and in the end every follower has the same state as the database and the state machine.
// Used by random.test.ts and by test/crash/chats/server-chats-random.ts.
import type { Chat, MessagePage } from "#schema/chats/chat.ts";
import {
  type ChatWorld,
  createChat,
  Follower,
  formatMessage,
  openChatWorld,
  toTextContent,
} from "#test/support/chats.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { createRandom, type Random } from "./random.ts";
import { Machine } from "./random-machine.ts";
import { nextTick, RandomModels } from "./random-models.ts";

export type RandomOptions = {
  readonly commands: number;
  readonly seed: number;
  readonly chats?: number;
  /** Number of concurrent clients. */
  readonly clients?: number;
  /** Only send (sometimes with an interrupt), promote, delete and edit. */
  readonly queueOnly?: boolean;
};

const FOLLOWERS = 40;
const EXPECTED = new Set([200, 202, 204, 400, 404, 409, 429]);

type ActionCounts = { sent: number; edited: number; deleted: number };
type Run = {
  readonly world: ChatWorld;
  readonly random: Random;
  readonly acknowledged: ActionCounts;
  readonly queueOnly: boolean;
  count: number;
};

const callId = ({ tool_call_id = "" }: { tool_call_id?: string }): string => tool_call_id;

/** Runs one command of one client; an unexpected response is an error. */
const command = async (run: Run, id: string): Promise<void> => {
  const { random, acknowledged } = run;
  const { owner } = run.world;
  const path = `/api/v2/chats/${id}`;
  const page = (): Promise<MessagePage> => owner.get<MessagePage>(`${path}/messages?limit=200`);
  const call = async (method: string, rest: string, body?: unknown, headers = {}): Promise<string | undefined> => {
    const response = await owner.fetch(method, path + rest, body, { headers });
    const text = await response.text();
    if (!EXPECTED.has(response.status)) throw new Error(`${method} ${rest}: ${response.status} ${text}`);
    return response.ok ? text : undefined;
  };
  const kind = random.below(run.queueOnly ? 14 : 21);
  const content = toTextContent(`message ${run.count++}`);
  if (kind < 6) {
    const body = { content, busy_behavior: random.pick(["queue", "queue", "interrupt"]) };
    if (random.below(4) > 0) {
      if (await call("POST", "/messages", body)) acknowledged.sent += 1;
      return;
    }
    const headers = { "Idempotency-Key": crypto.randomUUID() };
    const answers = await Promise.all([1, 2].map(() => call("POST", "/messages", body, headers)));
    const good = answers.filter((text) => text !== undefined);
    if (new Set(good).size > 1) throw new Error(`one key, two answers: ${good.join(" ")}`);
    if (good.length > 0) acknowledged.sent += 1;
    return;
  }
  if (kind < 14) {
    const { messages, queued_messages } = await page();
    const queued = queued_messages[random.below(queued_messages.length + 1)]?.id ?? 1;
    if (kind < 8) {
      if ((await call("DELETE", `/queue/${queued}`)) !== undefined) acknowledged.deleted += 1;
      return;
    }
    if (kind < 11) return void (await call("POST", `/queue/${queued}/promote`));
    const message = messages[random.below(messages.length)]?.id ?? 1;
    if (await call("PATCH", `/messages/${message}`, { content })) acknowledged.edited += 1;
    return;
  }
  if (kind < 16) return void (await call("POST", "/interrupt"));
  if (kind < 18) {
    const { messages } = await page();
    const answered = new Set(messages.flatMap((one) => (one.role === "tool" ? one.content : [])).map(callId));
    const calls = messages.flatMap((one) => (one.role === "assistant" ? one.content : []));
    const open = calls.filter((part) => part.type === "tool-call" && !answered.has(callId(part)));
    const results = open.map((part) => ({ tool_call_id: callId(part), output: random.below(9) }));
    return void (await call("POST", "/tool-results", { results }));
  }
  if (kind < 20) return void (await call("PATCH", "", { archived: random.below(2) === 0 }));
  await call("POST", "/reconcile-invalid");
};

/** Unarchives the chat, moves the clock, and waits until the chat is idle. */
const settle = async ({ owner }: ChatWorld, clock: ManualClock, id: string): Promise<Chat> => {
  for (let round = 0; round < 4_000; round++) {
    const chat = await owner.get<Chat>(`/api/v2/chats/${id}`);
    if (chat.archived) await owner.patch(`/api/v2/chats/${id}`, { archived: false });
    else if (chat.status === "waiting" || chat.status === "error") return chat;
    else clock.advance(chat.status === "requires_action" ? 301_000 : 20_000);
    await nextTick();
  }
  throw new Error(`chat ${id} never settles`);
};

type Following = { readonly id: string; readonly after: number; readonly follower: Follower };

const follow = async ({ owner }: ChatWorld, random: Random, id: string): Promise<Following> => {
  const { messages } = await owner.get<MessagePage>(`/api/v2/chats/${id}/messages`);
  const after = random.pick([0, messages[0]?.id ?? 0]);
  const open = random.below(2) === 0 ? Follower.openEventStream : Follower.open;
  return { id, after, follower: await open(owner, id, after) };
};

/** Describes how a follower's state differs from the database's. */
const compare = async ({ owner }: ChatWorld, chat: Chat, { after, follower }: Following): Promise<string[]> => {
  const { messages, queued_messages } = await owner.get<MessagePage>(`/api/v2/chats/${chat.id}/messages?limit=200`);
  const lines = (all: typeof messages) =>
    all.flatMap((one) => (one.id > after ? [`${one.id} ${formatMessage(one)}`] : []));
  const expected = JSON.stringify([chat.status, queued_messages.map((one) => one.id), lines(messages.reverse())]);
  const formatState = () => {
    const lastMessages = [...follower.messages.values()].sort((a, b) => a.id - b.id).slice(-200);
    return JSON.stringify([follower.status, follower.queue.map((one) => one.id), lines(lastMessages)]);
  };
  const timeout = setTimeout(() => follower.close(), 20_000);
  await follower.until(() => formatState() === expected).catch(() => {});
  clearTimeout(timeout);
  follower.close();
  return formatState() === expected ? [] : [`a follower of ${chat.id} has ${formatState()} instead of ${expected}`];
};

/** Runs this many commands. Throws with the seed and the problem; returns a one-line summary. */
export const randomChats = async (options: RandomOptions): Promise<string> => {
  const { commands, seed, chats = 4, clients = 8, queueOnly = false } = options;
  const random = createRandom(seed);
  const clock = new ManualClock();
  const models = new RandomModels(random);
  await using world = await openChatWorld({ clock, models });
  const { context } = world.server;
  if (!context) throw new Error("the state machine needs a server in this process");
  const run: Run = { world, random, acknowledged: { sent: 0, edited: 0, deleted: 0 }, queueOnly, count: 0 };
  const tools = [{ name: "ask", description: "asks", input_schema: {} }];
  const ids: string[] = [];
  const machines: Machine[] = [];
  const followers: Following[] = [];
  for (let n = 0; n < chats; n++) {
    const { id } = await createChat(world, `chat ${n}`, queueOnly ? {} : { unsafe_dynamic_tools: tools });
    ids.push(id);
    machines.push(await Machine.follow(context, id));
    followers.push(await follow(world, random, id));
  }
  for (let done = 0; done < commands; done += clients) {
    await Promise.all(Array.from({ length: clients }, () => command(run, random.pick(ids))));
    if (random.below(4) === 0) clock.advance(random.pick([1_000, 2_000, 61_000]));
    if (random.below(40) === 0) clock.advance(random.pick([301_000, 601_000]));
    if (random.below(4) === 0) followers.push(await follow(world, random, random.pick(ids)));
    if (followers.length > FOLLOWERS) followers.splice(random.below(FOLLOWERS), 1)[0]?.follower.close();
  }
  models.isCalm = true;
  const problems: string[] = [...models.problems];
  for (const [index, id] of ids.entries()) {
    const chat = await settle(world, clock, id);
    const machine = machines[index];
    if (machine?.state?.status !== chat.status) problems.push(`${id} is ${chat.status}, not ${machine?.state?.status}`);
    problems.push(...(machine?.problems ?? []));
    for (const one of followers.filter((some) => some.id === id)) problems.push(...(await compare(world, chat, one)));
  }
  const count = (name: string) => machines.reduce((sum, one) => sum + (one.commands.get(name) ?? 0), 0);
  for (const [name, acknowledged] of [
    ["send", run.acknowledged.sent],
    ["edit", run.acknowledged.edited],
    ["delete_queued", run.acknowledged.deleted],
  ] as const) {
    if (count(name) !== acknowledged)
      problems.push(`${acknowledged} ${name} commands were acknowledged, but ${count(name)} were committed`);
  }
  if (problems.length > 0)
    throw new Error(`seed ${seed}: ${problems.length} problems: ${problems.slice(0, 3).join("\n")}`);
  const moves = new Set(machines.flatMap((one) => [...one.moves.keys()]));
  const commits = machines.reduce((sum, one) => sum + [...one.moves.values()].reduce((a, b) => a + b, 0), 0);
  return `${commands} commands of ${clients} clients on ${chats} chats: ${commits} commits by ${moves.size} kinds of transitions, all in the table; ${models.calls} model calls; ${followers.length} followers with the state of the database`;
};
