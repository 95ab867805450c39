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

const MAX_FOLLOWERS = 40;
const EXPECTED_STATUSES = new Set([200, 202, 204, 400, 404, 409, 429]);

type ActionCounts = { sent: number; edited: number; deleted: number };
type Run = {
  readonly world: ChatWorld;
  readonly random: Random;
  readonly acknowledged: ActionCounts;
  readonly queueOnly: boolean;
  messageCount: number;
};

const getCallId = ({ tool_call_id = "" }: { tool_call_id?: string }): string => tool_call_id;

/** Runs one random command of one client; an unexpected response is an error. */
const runCommand = async (run: Run, id: string): Promise<void> => {
  const { random, acknowledged } = run;
  const { owner } = run.world;
  const path = `/api/v2/chats/${id}`;
  const getPage = (): Promise<MessagePage> => owner.get<MessagePage>(`${path}/messages?limit=200`);
  const request = async (
    method: string,
    subpath: string,
    body?: unknown,
    headers = {},
  ): Promise<string | undefined> => {
    const response = await owner.fetch(method, path + subpath, body, { headers });
    const text = await response.text();
    if (!EXPECTED_STATUSES.has(response.status)) throw new Error(`${method} ${subpath}: ${response.status} ${text}`);
    return response.ok ? text : undefined;
  };
  const kind = random.below(run.queueOnly ? 14 : 21);
  const content = toTextContent(`message ${run.messageCount++}`);
  if (kind < 6) {
    const body = { content, busy_behavior: random.pick(["queue", "queue", "interrupt"]) };
    if (random.below(4) > 0) {
      if (await request("POST", "/messages", body)) acknowledged.sent += 1;
      return;
    }
    const headers = { "Idempotency-Key": crypto.randomUUID() };
    const answers = await Promise.all([1, 2].map(() => request("POST", "/messages", body, headers)));
    const accepted = answers.filter((text) => text !== undefined);
    if (new Set(accepted).size > 1) throw new Error(`one key, two answers: ${accepted.join(" ")}`);
    if (accepted.length > 0) acknowledged.sent += 1;
    return;
  }
  if (kind < 14) {
    const { messages, queued_messages } = await getPage();
    const queuedId = queued_messages[random.below(queued_messages.length + 1)]?.id ?? 1;
    if (kind < 8) {
      if ((await request("DELETE", `/queue/${queuedId}`)) !== undefined) acknowledged.deleted += 1;
      return;
    }
    if (kind < 11) return void (await request("POST", `/queue/${queuedId}/promote`));
    const messageId = messages[random.below(messages.length)]?.id ?? 1;
    if (await request("PATCH", `/messages/${messageId}`, { content })) acknowledged.edited += 1;
    return;
  }
  if (kind < 16) return void (await request("POST", "/interrupt"));
  if (kind < 18) {
    const { messages } = await getPage();
    const answeredIds = new Set(
      messages.flatMap(({ role, content }) => (role === "tool" ? content : [])).map(getCallId),
    );
    const calls = messages.flatMap(({ role, content }) => (role === "assistant" ? content : []));
    const openCalls = calls.filter((part) => part.type === "tool-call" && !answeredIds.has(getCallId(part)));
    const results = openCalls.map((part) => ({ tool_call_id: getCallId(part), output: random.below(9) }));
    return void (await request("POST", "/tool-results", { results }));
  }
  if (kind < 20) return void (await request("PATCH", "", { archived: random.below(2) === 0 }));
  await request("POST", "/reconcile-invalid");
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

type ConnectedFollower = { readonly id: string; readonly afterId: number; readonly follower: Follower };

const connectFollower = async ({ owner }: ChatWorld, random: Random, id: string): Promise<ConnectedFollower> => {
  const { messages } = await owner.get<MessagePage>(`/api/v2/chats/${id}/messages`);
  const afterId = random.pick([0, messages[0]?.id ?? 0]);
  const open = random.below(2) === 0 ? Follower.openEventStream : Follower.open;
  return { id, afterId, follower: await open(owner, id, afterId) };
};

/** Describes how a follower's state differs from the database's. */
const compare = async (
  { owner }: ChatWorld,
  chat: Chat,
  { afterId, follower }: ConnectedFollower,
): Promise<string[]> => {
  const { messages, queued_messages } = await owner.get<MessagePage>(`/api/v2/chats/${chat.id}/messages?limit=200`);
  const toLines = (list: typeof messages) =>
    list.flatMap((message) => (message.id > afterId ? [`${message.id} ${formatMessage(message)}`] : []));
  const expected = JSON.stringify([chat.status, queued_messages.map(({ id }) => id), toLines(messages.reverse())]);
  const formatState = () => {
    const lastMessages = [...follower.messages.values()].sort((a, b) => a.id - b.id).slice(-200);
    return JSON.stringify([follower.status, follower.queue.map(({ id }) => id), toLines(lastMessages)]);
  };
  const timeout = setTimeout(() => follower.close(), 20_000);
  await follower.until(() => formatState() === expected).catch(() => {});
  clearTimeout(timeout);
  follower.close();
  return formatState() === expected ? [] : [`a follower of ${chat.id} has ${formatState()} instead of ${expected}`];
};

/** Runs this many commands. Throws with the seed and the problem; returns a one-line summary. */
export const runRandomChats = async (options: RandomOptions): Promise<string> => {
  const { commands, seed, chats = 4, clients = 8, queueOnly = false } = options;
  const random = createRandom(seed);
  const clock = new ManualClock();
  const models = new RandomModels(random);
  await using world = await openChatWorld({ clock, models });
  const { context } = world.server;
  if (!context) throw new Error("the state machine needs a server in this process");
  const run: Run = { world, random, acknowledged: { sent: 0, edited: 0, deleted: 0 }, queueOnly, messageCount: 0 };
  const tools = [{ name: "ask", description: "asks", input_schema: {} }];
  const ids: string[] = [];
  const machines: Machine[] = [];
  const followers: ConnectedFollower[] = [];
  for (let index = 0; index < chats; index++) {
    const { id } = await createChat(world, `chat ${index}`, queueOnly ? {} : { unsafe_dynamic_tools: tools });
    ids.push(id);
    machines.push(await Machine.follow(context, id));
    followers.push(await connectFollower(world, random, id));
  }
  for (let done = 0; done < commands; done += clients) {
    await Promise.all(Array.from({ length: clients }, () => runCommand(run, random.pick(ids))));
    if (random.below(4) === 0) clock.advance(random.pick([1_000, 2_000, 61_000]));
    if (random.below(40) === 0) clock.advance(random.pick([301_000, 601_000]));
    if (random.below(4) === 0) followers.push(await connectFollower(world, random, random.pick(ids)));
    if (followers.length > MAX_FOLLOWERS) followers.splice(random.below(MAX_FOLLOWERS), 1)[0]?.follower.close();
  }
  models.isCalm = true;
  const problems: string[] = [...models.problems];
  for (const [index, id] of ids.entries()) {
    const chat = await settle(world, clock, id);
    const machine = machines[index];
    if (machine?.state?.status !== chat.status) problems.push(`${id} is ${chat.status}, not ${machine?.state?.status}`);
    problems.push(...(machine?.problems ?? []));
    const ownFollowers = followers.filter((connected) => connected.id === id);
    for (const connected of ownFollowers) problems.push(...(await compare(world, chat, connected)));
  }
  const countCommitted = (name: string) => machines.reduce((sum, { commands }) => sum + (commands.get(name) ?? 0), 0);
  for (const [name, acknowledged] of [
    ["send", run.acknowledged.sent],
    ["edit", run.acknowledged.edited],
    ["delete_queued", run.acknowledged.deleted],
  ] as const) {
    if (countCommitted(name) !== acknowledged)
      problems.push(`${acknowledged} ${name} commands were acknowledged, but ${countCommitted(name)} were committed`);
  }
  if (problems.length > 0)
    throw new Error(`seed ${seed}: ${problems.length} problems: ${problems.slice(0, 3).join("\n")}`);
  const transitions = new Set(machines.flatMap((machine) => [...machine.transitions.keys()]));
  const counts = machines.flatMap((machine) => [...machine.transitions.values()]);
  const commits = counts.reduce((sum, count) => sum + count, 0);
  const actions = `${commands} commands of ${clients} clients on ${chats} chats`;
  const results = `${commits} commits by ${transitions.size} kinds of transitions, all in the table`;
  return `${actions}: ${results}; ${models.calls} model calls; ${followers.length} followers with the state of the database`;
};
