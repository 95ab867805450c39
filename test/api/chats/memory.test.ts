// Model calls share the memory for their requests: of chats, sub-chats and of the AI gateway.
import { expect } from "bun:test";
import { MemoryShare } from "#base/system/memory-share.ts";
import type { Chat, MessagePage } from "#schema/chats/chat.ts";
import { Client } from "#src/client.ts";
import { type ChatWorld, createChat, openChatWorld, sendMessage } from "#test/support/chats.ts";
import { testInsideSingle } from "#test/support/inside.ts";
import { createGatewayToken, putGatewaySettings } from "#test/support/models/gateway-world.ts";
import { openModelWorld } from "#test/support/models/model-world.ts";
import { seedUser } from "#test/support/seed.ts";
import { until } from "#test/support/until.ts";

/** One message of this length takes more than half of what a person has. */
const LARGE = "x".repeat(150_000);
const makeShare = () => new MemoryShare({ total: 400_000, each: 200_000 });

const open = async (callMemory: MemoryShare) =>
  openChatWorld({ callMemory, env: { SLIPWAY_CHAT_SLOTS: "20", SLIPWAY_SUBCHAT_SLOTS: "20" } });
const readStatus = async ({ owner }: Pick<ChatWorld, "owner">, { id }: Chat): Promise<string> =>
  (await owner.get<Chat>(`/api/v2/chats/${id}`)).status;

testInsideSingle(
  "[CH-54] large calls of a person run one after another; small ones and those of others don't wait",
  async () => {
    const share = makeShare();
    await using world = await open(share);
    const { models, server } = world;
    const { token, organization_id } = await seedUser(server);
    const bob = { owner: new Client(server.url, token), organization_id };
    const chats = [];
    for (const name of ["a", "b", "c"]) chats.push(await createChat(world, `${name} ${LARGE}`));
    const first = await models.next();
    await until(() => share.waiting === 2);
    const otherChats = [await createChat(world, "small"), await createChat(bob, `bob ${LARGE}`)];
    const calls = [await models.next(), await models.next()];
    expect(calls.map(({ prompt }) => prompt.slice(0, 5)).toSorted()).toEqual(["bob x", "small"]);
    expect(models.calls).toHaveLength(3);
    expect(await Promise.all(chats.map((chat) => readStatus(world, chat)))).toEqual(["running", "running", "running"]);
    for (const call of calls) call.say("done").finish();
    first.say("done").finish();
    (await models.next()).say("done").finish();
    (await models.next()).say("done").finish();
    expect(models.calls).toHaveLength(5);
    for (const chat of [...chats, otherChats[0] as Chat])
      await until(async () => (await readStatus(world, chat)) === "waiting");
    await until(async () => (await readStatus(bob, otherChats[1] as Chat)) === "waiting");
    await until(() => share.used === 0);
  },
);

testInsideSingle("[CH-54] an interrupt ends the wait, and the memory of an interrupted call", async () => {
  const share = makeShare();
  await using world = await open(share);
  const { models, owner } = world;
  const first = await createChat(world, LARGE);
  const call = await models.next();
  const second = await createChat(world, LARGE);
  await until(() => share.waiting === 1);
  await owner.post(`/api/v2/chats/${second.id}/interrupt`);
  await until(async () => (await readStatus(world, second)) === "waiting");
  expect([share.waiting, models.calls.length]).toEqual([0, 1]);
  const { messages } = await owner.get<MessagePage>(`/api/v2/chats/${second.id}/messages`);
  expect(messages.map(({ role }) => role)).not.toContain("assistant");
  await sendMessage(world, second.id, "again");
  await until(() => share.waiting === 1);
  await owner.post(`/api/v2/chats/${first.id}/interrupt`);
  call.finish();
  const secondCall = await models.next();
  expect(secondCall.prompt).toBe("again");
  secondCall.say("done").finish();
  await until(async () => (await readStatus(world, second)) === "waiting");
  await until(() => share.used === 0);
});

testInsideSingle("[CH-54] [GW-9] chats and the gateway use the same share", async () => {
  const share = makeShare();
  await using world = await openModelWorld({ callMemory: share });
  await putGatewaySettings(world.owner);
  const token = await createGatewayToken(world.owner);
  const hold = await share.take("others", 390_000, new AbortController().signal);
  const url = new URL("/api/v2/ai/openai/v1/chat/completions", world.server.url);
  const body = JSON.stringify({ model: "no-such-model", messages: [{ role: "user", content: LARGE }] });
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const responsePromise = fetch(url, { method: "POST", headers, body });
  await until(() => share.waiting === 1);
  hold.release();
  expect((await responsePromise).status).toBe(404);
  await until(() => share.used === 0);
});
