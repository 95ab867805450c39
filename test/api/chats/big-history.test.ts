// Chats of many megabytes, which are read in pieces of limited size.
import { expect, test } from "bun:test";
import { readHistory, TurnHistory } from "#actors/chat/prompt/prompt-history.ts";
import { findChatAccessRow } from "#db/chats/chats.ts";
import { insertMessages } from "#db/chats/messages.ts";
import type { Store } from "#db/engine/store.ts";
import type { Chat, MessagePage } from "#schema/chats/chat.ts";
import type { ApiError } from "#src/client.ts";
import { createChat, Follower, openChatWorld } from "#test/support/chats.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { getContext } from "#test/support/seed.ts";
import { until } from "#test/support/until.ts";

const MIB = 1024 * 1024;

testInProcess(
  "[CH-29] [CH-42] reads histories in pages of a few megabytes, and sends models the newest messages",
  async () => {
    await using world = await openChatWorld();
    const { owner, models } = world;
    const { id } = await createChat(world, "hello");
    (await models.next()).say("hi").finish();
    await until(async () => (await owner.get<Chat>(`/api/v2/chats/${id}`)).status === "waiting");
    const { store } = getContext(world.server);
    const access = await store.get(findChatAccessRow({ id }));
    const chat = access?.key ?? 0;
    const insertLarge = async (count: number): Promise<number> => {
      const firstId = await store.reserve("messages", count);
      const rows = Array.from({ length: count }, (_, index) => ({
        id: firstId + index,
        chat,
        revision: 1,
        role: index % 2 === 0 ? ("user" as const) : ("assistant" as const),
        visibility: "both" as const,
        content: [{ type: "text" as const, text: `${firstId + index} ${"x".repeat(1.5 * MIB)}` }],
        created_at: 0,
      }));
      await store.commit([insertMessages(rows as never)]);
      return firstId;
    };
    const firstId = await insertLarge(8);
    const pages: number[][] = [];
    let cursor = "";
    let hasMore = true;
    while (hasMore) {
      const page = await owner.get<MessagePage>(`/api/v2/chats/${id}/messages${cursor}`);
      pages.push(page.messages.map((message) => message.id));
      cursor = `?before_id=${pages.at(-1)?.at(-1)}`;
      hasMore = page.has_more;
    }
    expect(pages.map(({ length }) => length)).toEqual([3, 3, 4]);
    expect(pages.flat()).toEqual(pages.flat().toSorted((a, b) => b - a));
    const nextPage = await owner.get<MessagePage>(`/api/v2/chats/${id}/messages?after_id=${firstId}`);
    expect([nextPage.messages.map((message) => message.id), nextPage.has_more]).toEqual([
      [firstId + 1, firstId + 2, firstId + 3],
      true,
    ]);
    const { prompts } = await owner.get<{ prompts: { id: number }[] }>(`/api/v2/chats/${id}/prompts`);
    expect(prompts.map((prompt) => prompt.id)).toEqual([firstId + 6, firstId + 4, firstId + 2]);
    using follower = await Follower.open(owner, id);
    await follower.until(() => follower.messages.size === 10);

    expect(await readHistory(store, chat)).toHaveLength(10);
    await insertLarge(6);
    const history = await readHistory(store, chat);
    // Eleven messages exceed 16 MiB. The oldest of them is an answer, so the history starts with the next message.
    expect([history.length, history[0]?.role]).toEqual([10, "user"]);
    const fork = await owner.post<Chat>(`/api/v2/chats/${id}/fork`, { message_id: firstId });
    expect(fork.id).not.toBe(id);
    await insertLarge(8);
    const refused = await owner.post<Chat>(`/api/v2/chats/${id}/fork`, {}).catch((error: ApiError) => error);
    expect(refused).toMatchObject({ status: 409, body: { message: expect.stringContaining("more than 32 MiB") } });
  },
);

testInProcess(
  "[CM-13] a turn reads its history once, and later only new messages, until a summary replaces the history",
  async () => {
    await using world = await openChatWorld();
    const { id } = await createChat(world, "hello");
    (await world.models.next()).say("hi").finish();
    await until(async () => (await world.owner.get<Chat>(`/api/v2/chats/${id}`)).status === "waiting");
    const { store } = getContext(world.server);
    const chat = (await store.get(findChatAccessRow({ id })))?.key ?? 0;
    const insertMessage = async (size: number, replayed: number | null = null): Promise<void> => {
      const row = { id: await store.reserve("messages", 1), chat, revision: 1, role: "user", visibility: "model" };
      const content = [{ type: "text", text: "x".repeat(size) }];
      await store.commit([insertMessages([{ ...row, replayed, content, created_at: 0 }] as never)]);
    };
    let rowCount = 0;
    const scan: Store["scan"] = async (query) => {
      const rows = await store.scan(query);
      rowCount += rows.length;
      return rows;
    };
    const history = new TurnHistory({ get: (query) => store.get(query), scan }, chat);
    const countReadRows = async (): Promise<number> => {
      rowCount = 0;
      expect(await history.read()).toEqual([...(await readHistory(store, chat))]);
      return rowCount;
    };
    expect(await countReadRows()).toBe(2);
    await insertMessage(10);
    await insertMessage(10);
    expect([await countReadRows(), await countReadRows()]).toEqual([2, 0]);
    await insertMessage(10, 1);
    await insertMessage(10);
    expect(await countReadRows()).toBe(3);
    expect(await countReadRows()).toBe(0);
    // This message is too large to be kept in memory while tools run.
    await insertMessage(3 * MIB);
    expect([await countReadRows(), await countReadRows()]).toEqual([1, 4]);
  },
);

test("[CH-53] cuts off an endless answer, which stays readable and is not requested again", async () => {
  await using world = await openChatWorld();
  const { owner, models } = world;
  const { id } = await createChat(world, "repeat it forever");
  const call = await models.next();
  for (let output = 0; output < 6; output++) call.say("word ".repeat(200_000));
  const getChat = () => owner.get<Chat>(`/api/v2/chats/${id}`);
  await until(async () => (await getChat()).status === "error");
  expect((await getChat()).last_error?.message).toContain("longer than a message can be, and was ended");
  const { messages } = await owner.get<MessagePage>(`/api/v2/chats/${id}/messages`);
  expect(messages[0]?.content[0]?.text?.length).toBe(4_000_000);
  await owner.post(`/api/v2/chats/${id}/messages`, { content: [{ type: "text", text: "shorter, please" }] });
  (await models.next()).say("yes").finish();
  await until(async () => (await getChat()).status === "waiting");
});
