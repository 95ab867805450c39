// Several clients at once do what they like to a few chats, for which a model answers as it likes, while followers come and go and the
// clock moves. In the end every follower has the same picture as the database. SLIPWAY_TEST_COMMANDS makes it longer.
import { expect, test } from "bun:test";
import type { Chat, MessagePage } from "#schema/chat.ts";
import { type LanguageModels, ModelError, type ModelEvent, type ModelRequest } from "#src/llm/model.ts";
import { type ChatWorld, createChat, Follower, openChatWorld, said, wordsOf } from "#test/support/chats.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { SCRIPTED } from "#test/support/scripted-models.ts";

const COMMANDS = Number(process.env.SLIPWAY_TEST_COMMANDS ?? 400);
const AT_ONCE = 8;
const CHATS = 4;

/** A small generator of repeatable chance. */
const randomOf = (seed: number) => {
  let state = seed;
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let x = Math.imul(state ^ (state >>> 15), 1 | state);
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
    return ((x ^ (x >>> 14)) >>> 0) / 4_294_967_296;
  };
  const below = (n: number): number => Math.floor(next() * n);
  return { below, pick: <T>(list: readonly T[]): T => list[below(list.length)] as T };
};
type Random = ReturnType<typeof randomOf>;

const loopTurned = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

class MoodyModels implements LanguageModels {
  isCalm = false;
  readonly #random: Random;
  constructor(random: Random) {
    this.#random = random;
  }

  resolve(id: string | null) {
    return id === null || id === SCRIPTED.id ? SCRIPTED : undefined;
  }

  async *stream({ attempt, tools }: ModelRequest): AsyncIterable<ModelEvent> {
    const mood = this.isCalm ? 9 : this.#random.below(10);
    for (let word = this.#random.below(20); word > 0; word--) {
      if (this.#random.below(3) === 0) await loopTurned();
      yield { type: this.#random.below(6) === 0 ? "reasoning" : "text", delta: `w${word} ` };
    }
    if (mood === 0) throw new ModelError("overloaded", "too much");
    if (mood === 1) throw new ModelError("auth", "who are you?");
    if (mood === 2 && attempt < 3) return;
    if (mood <= 5 && tools.length > 0) {
      for (let call = this.#random.below(3); call >= 0; call--) {
        const name = this.#random.pick(["ask", "ask", "unknown"]);
        yield { type: "tool_call", id: crypto.randomUUID(), name, args: {} };
      }
    }
    yield { type: "finish", reason: "stop" };
  }
}

const EXPECTED = new Set([200, 202, 204, 400, 404, 409, 429]);

/** One command of one client; what is not expected of it is an error. */
const command = async ({ owner }: ChatWorld, id: string, random: Random): Promise<void> => {
  const path = `/api/v2/chats/${id}`;
  const page = (): Promise<MessagePage> => owner.get<MessagePage>(`${path}/messages?limit=200`);
  const kind = random.below(20);
  const call = async (method: string, rest: string, body?: unknown): Promise<void> => {
    const response = await owner.fetch(method, path + rest, body);
    const text = await response.text();
    if (!EXPECTED.has(response.status)) throw new Error(`${method} ${rest}: ${response.status} ${text}`);
  };
  const content = said(`message ${random.below(1_000)}`);
  if (kind < 6)
    return call("POST", "/messages", { content, busy_behavior: random.pick(["queue", "queue", "interrupt"]) });
  if (kind < 8) return call("POST", "/interrupt");
  if (kind < 12) {
    const { messages, queued_messages } = await page();
    const queued = queued_messages[random.below(queued_messages.length + 1)]?.id ?? 1;
    if (kind === 8) return call("DELETE", `/queue/${queued}`);
    if (kind === 9) return call("POST", `/queue/${queued}/promote`);
    const message = messages[random.below(messages.length)]?.id ?? 1;
    return call("PATCH", `/messages/${message}`, { content });
  }
  if (kind < 17) {
    const { messages } = await page();
    const answered = new Set(messages.flatMap((one) => (one.role === "tool" ? one.content : [])).map(callId));
    const calls = messages.flatMap((one) => (one.role === "assistant" ? one.content : []));
    const open = calls.filter((part) => part.type === "tool-call" && !answered.has(callId(part)));
    const results = open.map((part) => ({ tool_call_id: callId(part), output: random.below(9) }));
    return call("POST", "/tool-results", { results });
  }
  if (kind < 19) return call("PATCH", "", { archived: random.below(2) === 0 });
  return call("POST", "/reconcile-invalid");
};

const callId = ({ tool_call_id = "" }: { tool_call_id?: string }): string => tool_call_id;

/** Unarchives, answers, and waits until the chat has nothing more to do. */
const settle = async (world: ChatWorld, clock: ManualClock, id: string): Promise<Chat> => {
  for (let round = 0; round < 2_000; round++) {
    const chat = await world.owner.get<Chat>(`/api/v2/chats/${id}`);
    if (chat.archived) await world.owner.patch(`/api/v2/chats/${id}`, { archived: false });
    else if (chat.status === "waiting" || chat.status === "error") return chat;
    else clock.advance(chat.status === "requires_action" ? 301_000 : 1_000);
    await loopTurned();
  }
  throw new Error(`chat ${id} never settles`);
};

test("[CH-37] whatever several clients do at once, every follower ends with the picture of the database", async () => {
  const seed = Date.now() % 2_147_483_647;
  process.stderr.write(`random chats: seed ${seed}\n`);
  const random = randomOf(seed);
  const clock = new ManualClock();
  const models = new MoodyModels(random);
  await using world = await openChatWorld({ clock, models });
  const tools = [{ name: "ask", description: "asks", input_schema: {} }];
  const ids: string[] = [];
  for (let n = 0; n < CHATS; n++) {
    ids.push((await createChat(world, `chat ${n}`, { unsafe_dynamic_tools: tools })).id);
  }
  const followers: { id: string; after: number; follower: Follower }[] = [];
  const follow = async (id: string, after: number): Promise<void> => {
    followers.push({ id, after, follower: await Follower.open(world.owner, id, after) });
  };
  for (const id of ids) await follow(id, 0);
  for (let done = 0; done < COMMANDS; done += AT_ONCE) {
    await Promise.all(Array.from({ length: AT_ONCE }, () => command(world, random.pick(ids), random)));
    if (random.below(4) === 0) clock.advance(random.pick([1_000, 2_000, 61_000]));
    if (random.below(40) === 0) clock.advance(301_000);
    if (followers.length < 60 && random.below(4) === 0) {
      const id = random.pick(ids);
      const { messages } = await world.owner.get<MessagePage>(`/api/v2/chats/${id}/messages`);
      await follow(id, random.pick([0, messages[0]?.id ?? 0]));
    }
  }
  models.isCalm = true;
  for (const id of ids) {
    const chat = await settle(world, clock, id);
    const { messages, queued_messages } = await world.owner.get<MessagePage>(`/api/v2/chats/${id}/messages?limit=200`);
    const truth = (after: number) =>
      JSON.stringify([
        chat.status,
        queued_messages.map((one) => one.id),
        messages.reverse().flatMap((one) => (one.id > after ? [`${one.id} ${wordsOf(one)}`] : [])),
      ]);
    const pictureOf = (follower: Follower, after: number) => {
      const known = [...follower.messages.values()].sort((a, b) => a.id - b.id).slice(-200);
      return JSON.stringify([
        follower.status,
        follower.queue.map((one) => one.id),
        known.flatMap((one) => (one.id > after ? [`${one.id} ${wordsOf(one)}`] : [])),
      ]);
    };
    for (const { follower, after } of followers.filter((one) => one.id === id)) {
      const expected = truth(after);
      messages.reverse();
      const late = setTimeout(() => follower.close(), 5_000);
      await follower.until((one) => pictureOf(one, after) === expected).catch(() => {});
      clearTimeout(late);
      expect(pictureOf(follower, after)).toBe(expected);
      follower.close();
    }
  }
}, 120_000);
