// Turns of users who can no longer start turns: they stop with a reason, and queued messages stay queued.
import { expect, test } from "bun:test";
import { findChat } from "#db/chats/chats.ts";
import { listQueued } from "#db/chats/messages.ts";
import { updateUser } from "#db/users/users.ts";
import type { Chat } from "#schema/chats/chat.ts";
import { Client } from "#src/client.ts";
import { createChat, loadHistory, openChatWorld, sendMessage } from "#test/support/chats.ts";
import { ScriptedModels } from "#test/support/models/scripted-models.ts";
import { getOwnerContext } from "#test/support/seed.ts";
import { ADMIN, startTestServer, type TestServer, tempDirectory } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";

const PASSWORD = "another-horse-battery";

/** Adds a member of a new organization, with a password and no roles, and gives them a running turn and a queued message. */
const startTurn = async (server: TestServer, models: ScriptedModels) => {
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  const { id: organization_id } = await admin.post<{ id: string }>("/api/v2/organizations", { name: "crew" });
  const account = { email: "dave@example.com", username: "dave", password: PASSWORD, login_type: "password" };
  const { id: user_id } = await admin.post<{ id: string }>("/api/v2/users", {
    ...account,
    organization_ids: [organization_id],
  });
  const owner = await new Client(server.url).signIn(account.email, PASSWORD);
  const { id } = await createChat({ owner, organization_id }, "begin");
  const call = await models.next();
  await sendMessage({ owner }, id, "later");
  return { admin, owner, organization_id, user_id, id, call };
};
type StartedTurn = Awaited<ReturnType<typeof startTurn>>;

/** Reads the chat from the database, because its owner may have no access. */
const readStoredChat = async (server: TestServer, id: string) => {
  const { store } = getOwnerContext(server, id);
  const chat = await store.get(findChat({ id }));
  const queue = chat ? await store.all(listQueued({ chat: chat.key })) : [];
  return { status: chat?.status, message: chat?.last_error?.message, queued: queue.length };
};

const EVENTS: readonly [name: string, refuse: (started: StartedTurn) => Promise<unknown>, message: RegExp][] = [
  [
    "is removed from the organization",
    ({ admin, organization_id, user_id }) =>
      admin.delete(`/api/v2/organizations/${organization_id}/members/${user_id}`),
    /not a member/,
  ],
  ["is suspended", ({ admin, user_id }) => admin.put(`/api/v2/users/${user_id}/status/suspend`), /suspended/],
  ["is deleted", ({ admin, user_id }) => admin.delete(`/api/v2/users/${user_id}`), /deleted/],
  [
    "is in an organization that is deleted",
    ({ admin, organization_id }) => admin.delete(`/api/v2/organizations/${organization_id}`),
    /not a member/,
  ],
  [
    "gets another password from an administrator",
    ({ admin, user_id }) => admin.put(`/api/v2/users/${user_id}/password`, { password: `${PASSWORD}, again` }),
    /password .* was reset/,
  ],
  [
    "must set up a second factor",
    ({ admin, user_id }) => admin.put(`/api/v2/users/${user_id}/factors/required`, { required: true }),
    /second factor/,
  ],
];

test.each(EVENTS)(
  "[CH-51] a turn stops with a reason, and no queued message starts, when its owner %s",
  async (_, refuse, message) => {
    await using world = await openChatWorld();
    const { server, models } = world;
    const started = await startTurn(server, models);
    await refuse(started);
    await until(async () => (await readStoredChat(server, started.id)).status === "error");
    expect(await readStoredChat(server, started.id)).toEqual({
      status: "error",
      message: expect.stringMatching(message),
      queued: 1,
    });
    expect(models.calls).toHaveLength(1);
  },
);

test("[CH-51] once the owner can start turns again, the next message runs after the queued ones", async () => {
  await using world = await openChatWorld();
  const { server, models } = world;
  const { admin, user_id, id } = await startTurn(server, models);
  await admin.put(`/api/v2/users/${user_id}/status/suspend`);
  await until(async () => (await readStoredChat(server, id)).status === "error");
  await admin.put(`/api/v2/users/${user_id}/status/activate`);
  const owner = await new Client(server.url).signIn("dave@example.com", PASSWORD);
  await sendMessage({ owner }, id, "last");
  for (const prompt of ["later", "last"]) {
    const call = await models.next();
    expect(call.prompt).toBe(prompt);
    call.finish();
  }
  await until(async () => (await owner.get<Chat>(`/api/v2/chats/${id}`)).status === "waiting");
});

test("[CH-51] after a password reset, the owner's next message starts a turn", async () => {
  await using world = await openChatWorld();
  const { server, models } = world;
  const { admin, user_id, id } = await startTurn(server, models);
  const password = `${PASSWORD}, again`;
  await admin.put(`/api/v2/users/${user_id}/password`, { password });
  await until(async () => (await readStoredChat(server, id)).status === "error");
  const owner = await new Client(server.url).signIn("dave@example.com", password);
  await sendMessage({ owner }, id, "last");
  expect((await models.next()).prompt).toBe("later");
});

test("[CH-51] a node that missed the event refuses the next tool call and the next model call", async () => {
  await using world = await openChatWorld();
  const { server, models } = world;
  const { owner, admin, user_id, id, call } = await startTurn(server, models);
  const { store } = getOwnerContext(server, id);
  await store.commit([updateUser(user_id, { status: "suspended" })]);
  call.callTool("one", "spawn_agent", { type: "explore", prompt: "look around" }).finish("tool_calls");
  await until(async () => (await readStoredChat(server, id)).status === "error");
  expect((await readStoredChat(server, id)).queued).toBe(1);
  expect(models.calls).toHaveLength(1);
  await admin.put(`/api/v2/users/${user_id}/status/activate`);
  expect(await loadHistory(owner, id)).toHaveLength(2);
});

test("[CH-51] after a restart, the server neither continues the turn nor starts the next one", async () => {
  using temporary = tempDirectory();
  const directory = temporary.path;
  const firstModels = new ScriptedModels();
  const firstServer = await startTestServer({ models: firstModels, directory });
  const { user_id, id } = await startTurn(firstServer, firstModels);
  const { store } = getOwnerContext(firstServer, id);
  // Suspends the owner without publishing an event, like the command for a stopped server.
  await store.commit([updateUser(user_id, { status: "suspended" })]);
  await firstServer[Symbol.asyncDispose]();
  const models = new ScriptedModels();
  await using server = await startTestServer({ models, directory });
  await until(async () => (await readStoredChat(server, id)).status === "error");
  expect((await readStoredChat(server, id)).queued).toBe(1);
  expect(models.calls).toHaveLength(0);
});

test("[CH-51] requests no further titles after the owner was suspended", async () => {
  const models = new ScriptedModels(true);
  await using world = await openChatWorld({ models, env: { SLIPWAY_CHAT_TITLES: "true" } });
  const { server } = world;
  const { user_id, id, call } = await startTurn(server, models);
  const titleCall = await models.next();
  titleCall.say("A title").finish();
  const { store } = getOwnerContext(server, id);
  await store.commit([updateUser(user_id, { status: "suspended" })]);
  call.say("answered").finish();
  await until(async () => (await readStoredChat(server, id)).status === "error");
  await getOwnerContext(server, id).titles.whenIdle();
  expect(models.calls).toHaveLength(2);
});
