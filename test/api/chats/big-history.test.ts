// Chats of many megabytes: what reads them takes a bounded piece at a time.
import { expect, test } from "bun:test";
import { readHistory, TurnHistory } from "#actors/chat/prompt/prompt-history.ts";
import { findChatAccessRow } from "#db/chats/chats.ts";
import { insertMessages } from "#db/chats/messages.ts";
import type { Store } from "#db/engine/store.ts";
import type { Chat, MessagePage } from "#schema/chats/chat.ts";
import type { ApiError } from "#src/client.ts";
import { createChat, Follower, openChatWorld } from "#test/support/chats.ts";
import { testInside } from "#test/support/inside.ts";
import { getContext } from "#test/support/seed.ts";
import { until } from "#test/support/until.ts";

const MIB = 1024 * 1024;

testInside(
  "[CH-29] [CH-42] histories are read in pages of some megabytes, and models are given the newest of them",
  async () => {
    await using world = await openChatWorld();
    const { owner, models } = world;
    const { id } = await createChat(world, "hello");
    (await models.next()).say("hi").finish();
    await until(async () => (await owner.get<Chat>(`/api/v2/chats/${id}`)).status === "waiting");
    const { store } = getContext(world.server);
    const access = await store.get(findChatAccessRow({ id }));
    const chat = access?.key ?? 0;
    const write = async (count: number): Promise<number> => {
      const first = await store.reserve("messages", count);
      const rows = Array.from({ length: count }, (_, at) => ({
        id: first + at,
        chat,
        revision: 1,
        role: at % 2 === 0 ? ("user" as const) : ("assistant" as const),
        visibility: "both" as const,
        content: [{ type: "text" as const, text: `${first + at} ${"x".repeat(1.5 * MIB)}` }],
        created_at: 0,
      }));
      await store.commit([insertMessages(rows as never)]);
      return first;
    };
    const first = await write(8);
    const pages: number[][] = [];
    for (let cursor = "", more = true; more; ) {
      const page = await owner.get<MessagePage>(`/api/v2/chats/${id}/messages${cursor}`);
      pages.push(page.messages.map((message) => message.id));
      cursor = `?before_id=${pages.at(-1)?.at(-1)}`;
      more = page.has_more;
    }
    expect(pages.map(({ length }) => length)).toEqual([3, 3, 4]);
    expect(pages.flat()).toEqual(pages.flat().toSorted((a, b) => b - a));
    const after = await owner.get<MessagePage>(`/api/v2/chats/${id}/messages?after_id=${first}`);
    expect([after.messages.map((message) => message.id), after.has_more]).toEqual([
      [first + 1, first + 2, first + 3],
      true,
    ]);
    const { prompts } = await owner.get<{ prompts: { id: number }[] }>(`/api/v2/chats/${id}/prompts`);
    expect(prompts.map((prompt) => prompt.id)).toEqual([first + 6, first + 4, first + 2]);
    using follower = await Follower.open(owner, id);
    await follower.until(() => follower.messages.size === 10);

    expect(await readHistory(store, chat)).toHaveLength(10);
    await write(6);
    const history = await readHistory(store, chat);
    // Eleven messages are the first to have 16 MiB; the oldest of them was an answer.
    expect([history.length, history[0]?.role]).toEqual([10, "user"]);
    const copied = await owner.post<Chat>(`/api/v2/chats/${id}/fork`, { message_id: first });
    expect(copied.id).not.toBe(id);
    await write(8);
    const refused = await owner.post<Chat>(`/api/v2/chats/${id}/fork`, {}).catch((error: ApiError) => error);
    expect(refused).toMatchObject({ status: 409, body: { message: expect.stringContaining("more than 32 MiB") } });
  },
);

testInside("[CM-13] a turn reads its history once, and then what was added, until a summary replaces it", async () => {
  await using world = await openChatWorld();
  const { id } = await createChat(world, "hello");
  (await world.models.next()).say("hi").finish();
  await until(async () => (await world.owner.get<Chat>(`/api/v2/chats/${id}`)).status === "waiting");
  const { store } = getContext(world.server);
  const chat = (await store.get(findChatAccessRow({ id })))?.key ?? 0;
  const write = async (size: number, replayed: number | null = null): Promise<void> => {
    const row = { id: await store.reserve("messages", 1), chat, revision: 1, role: "user", visibility: "model" };
    const content = [{ type: "text", text: "x".repeat(size) }];
    await store.commit([insertMessages([{ ...row, replayed, content, created_at: 0 }] as never)]);
  };
  let rows = 0;
  const scan: Store["scan"] = async (query) => {
    const found = await store.scan(query);
    rows += found.length;
    return found;
  };
  const history = new TurnHistory({ get: (query) => store.get(query), scan }, chat);
  const readRows = async (): Promise<number> => {
    rows = 0;
    expect(await history.read()).toEqual([...(await readHistory(store, chat))]);
    return rows;
  };
  expect(await readRows()).toBe(2);
  await write(10);
  await write(10);
  expect([await readRows(), await readRows()]).toEqual([2, 0]);
  await write(10, 1);
  await write(10);
  expect(await readRows()).toBe(3);
  expect(await readRows()).toBe(0);
  // Too much to be kept in memory while tools run.
  await write(3 * MIB);
  expect([await readRows(), await readRows()]).toEqual([1, 4]);
});

test("[CH-53] an answer that does not end is ended, is not asked for again, and stays readable", async () => {
  await using world = await openChatWorld();
  const { owner, models } = world;
  const { id } = await createChat(world, "repeat it forever");
  const call = await models.next();
  for (let output = 0; output < 6; output++) call.say("word ".repeat(200_000));
  const read = () => owner.get<Chat>(`/api/v2/chats/${id}`);
  await until(async () => (await read()).status === "error");
  expect((await read()).last_error?.message).toContain("longer than a message can be, and was ended");
  const { messages } = await owner.get<MessagePage>(`/api/v2/chats/${id}/messages`);
  expect(messages[0]?.content[0]?.text?.length).toBe(4_000_000);
  await owner.post(`/api/v2/chats/${id}/messages`, { content: [{ type: "text", text: "shorter, please" }] });
  (await models.next()).say("yes").finish();
  await until(async () => (await read()).status === "waiting");
});
