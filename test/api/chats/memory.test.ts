// Model calls of chats, sub-chats and the AI gateway share a limited amount of memory for their requests.
import { expect } from "bun:test";
import { MemoryShare } from "#base/system/memory-share.ts";
import type { Chat, MessagePage } from "#schema/chats/chat.ts";
import { Client } from "#src/client.ts";
import { type ChatWorld, createChat, openChatWorld, sendMessage } from "#test/support/chats.ts";
import { testInSingleProcess } from "#test/support/in-process.ts";
import { createGatewayToken, putGatewaySettings } from "#test/support/models/gateway-world.ts";
import { openModelWorld } from "#test/support/models/model-world.ts";
import { seedUser } from "#test/support/seed.ts";
import { until } from "#test/support/until.ts";

/** A message of this length takes more than half of a user's memory. */
const LARGE = "x".repeat(150_000);
const makeShare = () => new MemoryShare({ total: 400_000, each: 200_000 });

const openWorld = async (callMemory: MemoryShare) =>
  openChatWorld({ callMemory, env: { SLIPWAY_CHAT_SLOTS: "20", SLIPWAY_SUBCHAT_SLOTS: "20" } });
const readStatus = async ({ owner }: Pick<ChatWorld, "owner">, { id }: Chat): Promise<string> =>
  (await owner.get<Chat>(`/api/v2/chats/${id}`)).status;

testInSingleProcess(
  "[CH-54] a user's large calls run one after another; small calls and other users' calls don't wait",
  async () => {
    const share = makeShare();
    await using world = await openWorld(share);
    const { models, server } = world;
    const { token, organization_id } = await seedUser(server);
    const bob = { owner: new Client(server.url, token), organization_id };
    const chats = [];
    for (const name of ["a", "b", "c"]) chats.push(await createChat(world, `${name} ${LARGE}`));
    const firstLargeCall = await models.next();
    await until(() => share.waiting === 2);
    const smallChat = await createChat(world, "small");
    const bobsChat = await createChat(bob, `bob ${LARGE}`);
    const immediateCalls = [await models.next(), await models.next()];
    expect(immediateCalls.map(({ prompt }) => prompt.slice(0, 5)).toSorted()).toEqual(["bob x", "small"]);
    expect(models.calls).toHaveLength(3);
    expect(await Promise.all(chats.map((chat) => readStatus(world, chat)))).toEqual(["running", "running", "running"]);
    for (const call of immediateCalls) call.say("done").finish();
    firstLargeCall.say("done").finish();
    (await models.next()).say("done").finish();
    (await models.next()).say("done").finish();
    expect(models.calls).toHaveLength(5);
    for (const chat of [...chats, smallChat]) await until(async () => (await readStatus(world, chat)) === "waiting");
    await until(async () => (await readStatus(bob, bobsChat)) === "waiting");
    await until(() => share.used === 0);
  },
);

testInSingleProcess(
  "[CH-54] an interruption ends the wait of a call, and frees the memory of a running one",
  async () => {
    const share = makeShare();
    await using world = await openWorld(share);
    const { models, owner } = world;
    const runningChat = await createChat(world, LARGE);
    const call = await models.next();
    const waitingChat = await createChat(world, LARGE);
    await until(() => share.waiting === 1);
    await owner.post(`/api/v2/chats/${waitingChat.id}/interrupt`);
    await until(async () => (await readStatus(world, waitingChat)) === "waiting");
    expect([share.waiting, models.calls.length]).toEqual([0, 1]);
    const { messages } = await owner.get<MessagePage>(`/api/v2/chats/${waitingChat.id}/messages`);
    expect(messages.map(({ role }) => role)).not.toContain("assistant");
    await sendMessage(world, waitingChat.id, "again");
    await until(() => share.waiting === 1);
    await owner.post(`/api/v2/chats/${runningChat.id}/interrupt`);
    call.finish();
    const nextCall = await models.next();
    expect(nextCall.prompt).toBe("again");
    nextCall.say("done").finish();
    await until(async () => (await readStatus(world, waitingChat)) === "waiting");
    await until(() => share.used === 0);
  },
);

testInSingleProcess("[CH-54] [GW-9] chats and the gateway share the same memory", async () => {
  const share = makeShare();
  await using world = await openModelWorld({ callMemory: share });
  await putGatewaySettings(world.owner);
  const token = await createGatewayToken(world.owner);
  const otherReservation = await share.take("others", 390_000, new AbortController().signal);
  const url = new URL("/api/v2/ai/openai/v1/chat/completions", world.server.url);
  const body = JSON.stringify({ model: "no-such-model", messages: [{ role: "user", content: LARGE }] });
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const pendingResponse = fetch(url, { method: "POST", headers, body });
  await until(() => share.waiting === 1);
  otherReservation.release();
  expect((await pendingResponse).status).toBe(404);
  await until(() => share.used === 0);
});
