// Shared chats: their readers, the limits of read access, lists, and the end of sharing.
import { expect, test } from "bun:test";
import { updateChat } from "#db/chats/chats.ts";
import type { Chat, MessagePage } from "#schema/chats/chat.ts";
import type { ChatAcl } from "#schema/chats/chat-acl.ts";
import { Client } from "#src/client.ts";
import {
  type ChatWorld,
  createChat,
  Follower,
  loadHistory,
  openChatWorld,
  sendMessage,
  toTextContent,
} from "#test/support/chats.ts";
import { getContext, seedUser } from "#test/support/seed.ts";
import { ADMIN } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";

/** Adds another user, by default to the same organization. */
const addUser = async (world: ChatWorld, organization_id: string | undefined = world.organization_id) => {
  const seeded = await seedUser(world.server, organization_id === "" ? {} : { organization_id });
  return { ...seeded, client: new Client(world.server.url, seeded.token) };
};
const toChatPath = (id: string) => `/api/v2/chats/${id}`;
const share = (world: ChatWorld, id: string, user_roles: Record<string, string>, group_roles = {}) =>
  world.owner.patch(`${toChatPath(id)}/acl`, { user_roles, group_roles });
const fetchStatus = async (client: Client, method: string, path: string, body?: unknown): Promise<number> => {
  const response = await client.fetch(method, path, body);
  await response.body?.cancel();
  return response.status;
};
const signInAdmin = (world: ChatWorld) => new Client(world.server.url).signIn(ADMIN.email, ADMIN.password);
const listChats = async (client: Client, source: string): Promise<string[]> =>
  (await client.get<Chat[]>(`/api/v2/chats?q=source:${source}`)).map(({ id }) => id);

test("[CS-1] a reader can read the chat, its messages, prompts and stream; the chat is marked as shared", async () => {
  await using world = await openChatWorld();
  const [bob, eve] = [await addUser(world), await addUser(world)];
  const { id } = await createChat(world, "hello");
  expect((await world.owner.get<Chat>(toChatPath(id))).shared).toBe(false);
  expect(await fetchStatus(bob.client, "GET", toChatPath(id))).toBe(404);
  await share(world, id, { [bob.user_id.toUpperCase()]: "read" });
  expect((await bob.client.get<Chat>(toChatPath(id))).shared).toBe(true);
  expect((await world.owner.get<Chat[]>("/api/v2/chats"))[0]?.shared).toBe(true);
  expect(await loadHistory(bob.client, id)).toEqual(["user: hello"]);
  expect(await bob.client.get(`${toChatPath(id)}/prompts`)).toMatchObject({ prompts: [{ text: "hello" }] });
  using follower = await Follower.open(bob.client, id);
  (await world.models.next()).say("hi").finish();
  await follower.until(({ status }) => status === "waiting");
  expect(follower.history).toEqual(["user: hello", "assistant: hi"]);
  expect(await fetchStatus(eve.client, "GET", toChatPath(id))).toBe(404);
});

test("[SH-13] does not restore a share when a former member returns to the organization", async () => {
  await using world = await openChatWorld();
  const bob = await addUser(world);
  const { id } = await createChat(world, "hello");
  await share(world, id, { [bob.user_id]: "read" });
  const admin = await signInAdmin(world);
  const memberPath = `/api/v2/organizations/${world.organization_id}/members/${bob.user_id}`;
  await admin.delete(memberPath);
  expect((await world.owner.get<ChatAcl>(`${toChatPath(id)}/acl`)).users).toEqual([]);
  await admin.post(memberPath);
  expect(await fetchStatus(bob.client, "GET", toChatPath(id))).toBe(404);
});

test("[CH-50] an owner who was removed from the organization can read, unshare and archive a chat, but not send or share", async () => {
  await using world = await openChatWorld();
  const [bob, carol] = [await addUser(world), await addUser(world)];
  const { id } = await createChat(world, "hello");
  await world.models.next();
  await share(world, id, { [bob.user_id]: "read" });
  const admin = await signInAdmin(world);
  const { id: user_id } = await world.owner.get<{ id: string }>("/api/v2/users/me");
  await admin.delete(`/api/v2/organizations/${world.organization_id}/members/${user_id}`);
  expect(await loadHistory(world.owner, id)).toEqual(["user: hello"]);
  const content = [{ type: "text", text: "more" }];
  const [message] = (await world.owner.get<MessagePage>(`${toChatPath(id)}/messages`)).messages;
  for (const [method, path, body] of [
    ["POST", "/messages", { content }],
    ["PATCH", `/messages/${message?.id}`, { content }],
    ["POST", "/title/propose", {}],
    ["POST", "/compact", {}],
    ["POST", "/fork", {}],
    ["PATCH", "/acl", { user_roles: { [carol.user_id]: "read" } }],
    ["PATCH", "/acl", { user_roles: { [bob.user_id]: "" }, group_roles: { [world.organization_id]: "read" } }],
  ] as const)
    expect([path, await fetchStatus(world.owner, method, toChatPath(id) + path, body)]).toEqual([path, 403]);
  expect(Object.keys((await world.owner.get<ChatAcl>(`${toChatPath(id)}/acl`)).user_roles)).toEqual([bob.user_id]);
  await share(world, id, { [bob.user_id]: "" });
  expect(await fetchStatus(bob.client, "GET", toChatPath(id))).toBe(404);
  // The removal from the organization has stopped the turn (CH-51).
  await until(async () => (await world.owner.get<Chat>(toChatPath(id))).status === "error");
  expect(await fetchStatus(world.owner, "PATCH", toChatPath(id), { archived: true })).toBe(204);
});

test("[CS-2] a reader can change nothing (403), other users get 404, and the owner's read cursor stays unchanged", async () => {
  await using world = await openChatWorld();
  const [bob, eve] = [await addUser(world), await addUser(world)];
  const { id } = await createChat(world, "hello");
  const messageId = (await world.owner.get<MessagePage>(`${toChatPath(id)}/messages`)).messages[0]?.id;
  const { queued_message } = await sendMessage(world, id, "more");
  await share(world, id, { [bob.user_id]: "read" });
  const requests: [method: string, suffix: string, body?: unknown][] = [
    ["PATCH", "", { title: "mine" }],
    ["PATCH", "", { archived: true }],
    ["POST", "/messages", { content: toTextContent("x") }],
    ["PATCH", `/messages/${messageId}`, { content: toTextContent("x") }],
    ["DELETE", `/queue/${queued_message?.id}`],
    ["POST", `/queue/${queued_message?.id}/promote`],
    ["POST", "/interrupt"],
    ["POST", "/tool-results", { results: [] }],
    ["POST", "/reconcile-invalid"],
    ["POST", "/title/propose"],
    ["GET", "/acl"],
    ["PATCH", "/acl", { user_roles: {} }],
  ];
  const chatBefore = await world.owner.get<Chat>(toChatPath(id));
  for (const [method, suffix, body] of requests) {
    const path = `${toChatPath(id)}${suffix}`;
    expect([method, suffix, await fetchStatus(bob.client, method, path, body)]).toEqual([method, suffix, 403]);
    expect([method, suffix, await fetchStatus(eve.client, method, path, body)]).toEqual([method, suffix, 404]);
  }
  expect(await world.owner.get<Chat>(toChatPath(id))).toEqual(chatBefore);
  await world.owner.fetch("DELETE", `${toChatPath(id)}/queue/${queued_message?.id}`);
  (await world.models.next()).say("hi").finish();
  using follower = await Follower.open(bob.client, id);
  await follower.until(({ status }) => status === "waiting");
  expect((await world.owner.get<Chat>(toChatPath(id))).has_unread).toBe(true);
});

test("[CS-3] source:shared_with_me lists shared chats, with search, cursor and the group of everyone", async () => {
  await using world = await openChatWorld();
  const [bob, eve] = [await addUser(world), await addUser(world, "")];
  const apples = await createChat(world, "apples and pears");
  const bananas = await createChat(world, "bananas");
  await createChat(world, "private apples");
  const bobsChat = await createChat({ owner: bob.client, organization_id: bob.organization_id }, "bob's apples");
  await share(world, apples.id, { [bob.user_id]: "read" });
  await share(world, bananas.id, {}, { [world.organization_id]: "read" });
  await world.owner.patch(toChatPath(apples.id), { pin_order: 1 });
  for (const _ of [1, 2, 3, 4]) (await world.models.next()).finish();
  for (const [client, id] of [
    [world.owner, apples.id],
    [world.owner, bananas.id],
    [bob.client, bobsChat.id],
  ] as const) {
    using follower = await Follower.open(client, id);
    await follower.until(({ status }) => status === "waiting");
  }
  expect((await listChats(bob.client, "shared_with_me")).sort()).toEqual([apples.id, bananas.id].sort());
  expect((await listChats(bob.client, "created_by_me,shared_with_me")).sort()).toEqual(
    [apples.id, bananas.id, bobsChat.id].sort(),
  );
  expect(await listChats(bob.client, "created_by_me")).toEqual([bobsChat.id]);
  expect(await listChats(bob.client, "shared_with_me search:apple")).toEqual([apples.id]);
  expect((await listChats(bob.client, "created_by_me,shared_with_me search:apples")).sort()).toEqual(
    [apples.id, bobsChat.id].sort(),
  );
  const [firstId, secondId] = await listChats(bob.client, "shared_with_me");
  const nextPage = await bob.client.get<Chat[]>(`/api/v2/chats?q=source:shared_with_me&after_id=${firstId}`);
  expect(nextPage.map(({ id }) => id)).toEqual([secondId as string]);
  expect(await listChats(eve.client, "shared_with_me")).toEqual([]);
  expect(await fetchStatus(eve.client, "GET", `/api/v2/chats?after_id=${apples.id}`)).toBe(400);
  expect(await listChats(world.owner, "shared_with_me")).toEqual([]);
});

test("[CS-4] refuses and names invalid roles; a sub-chat is shared like its root", async () => {
  await using world = await openChatWorld();
  const [bob, eve] = [await addUser(world), await addUser(world, "")];
  const admin = await signInAdmin(world);
  const { id } = await createChat(world, "root");
  const { id: child } = await createChat(world, "child");
  const { store } = getContext(world.server);
  await store.commit([updateChat(child, { parent_chat_id: id, root_chat_id: id })]);
  const patchAcl = async (body: unknown, client = world.owner, chat = id) => {
    const response = await client.fetch("PATCH", `${toChatPath(chat)}/acl`, body);
    const { validations = [] } = (await response.json()) as { validations?: { field: string }[] };
    return [response.status, ...validations.map(({ field }) => field)];
  };
  const unknownId = crypto.randomUUID();
  expect(await patchAcl({ user_roles: { [world.user_id]: "read" } })).toEqual([400, `user_roles.${world.user_id}`]);
  const { id: adminId } = await admin.get<{ id: string }>("/api/v2/users/me");
  expect(await patchAcl({ user_roles: { [adminId]: "read" } }, admin)).toEqual([400, `user_roles.${adminId}`]);
  expect(await patchAcl({ user_roles: { [bob.user_id]: "write" } })).toEqual([400, `user_roles.${bob.user_id}`]);
  expect(await patchAcl({ user_roles: { [eve.user_id]: "read" } })).toEqual([400, `user_roles.${eve.user_id}`]);
  expect(await patchAcl({ user_roles: { me: "read" } })).toEqual([400, "user_roles.me"]);
  expect(await patchAcl({ group_roles: { [unknownId]: "read" } })).toEqual([400, `group_roles.${unknownId}`]);
  const tooMany = Object.fromEntries(Array.from({ length: 501 }, () => [crypto.randomUUID(), "read"]));
  expect(await patchAcl({ user_roles: tooMany })).toEqual([400, "user_roles"]);
  expect(await patchAcl({ user_roles: { [bob.user_id]: "read" } }, world.owner, child)).toEqual([400]);
  expect(await fetchStatus(world.owner, "GET", `${toChatPath(child)}/acl`)).toBe(400);
  expect((await world.owner.get<ChatAcl>(`${toChatPath(id)}/acl`)).users).toEqual([]);
  await share(world, id, { [bob.user_id]: "read" }, { [world.organization_id]: "read" });
  const acl = await world.owner.get<ChatAcl>(`${toChatPath(id)}/acl`);
  expect(acl.users).toMatchObject([{ id: bob.user_id, role: "read" }]);
  expect(acl.groups).toMatchObject([{ id: world.organization_id, name: "Everyone", role: "read" }]);
  expect([acl.user_roles, acl.group_roles]).toEqual([{ [bob.user_id]: "read" }, { [world.organization_id]: "read" }]);
  expect(await bob.client.get<Chat>(toChatPath(child))).toMatchObject({ id: child, shared: true });
  expect((await bob.client.get<Chat>(toChatPath(id))).children.map(({ id, shared }) => [id, shared])).toEqual([
    [child, true],
  ]);
});

test("[CS-5] a user who loses access is disconnected immediately; the owner stays connected", async () => {
  await using world = await openChatWorld();
  const bob = await addUser(world);
  const { id } = await createChat(world, "hello");
  await share(world, id, { [bob.user_id]: "read" });
  using bobsFollower = await Follower.open(bob.client, id);
  using ownFollower = await Follower.open(world.owner, id);
  await bobsFollower.until(({ history }) => history.length === 1);
  await ownFollower.until(({ history }) => history.length === 1);
  const events = await fetch(new URL(`${toChatPath(id)}/stream`, world.server.url), {
    headers: { "Service-Session-Token": bob.token, accept: "text/event-stream" },
  });
  let received = "";
  const streamEnd = events.body?.pipeThrough(new TextDecoderStream()).pipeTo(
    new WritableStream({
      write(text) {
        received += text;
      },
    }),
  );
  await until(() => received.includes("hello"));
  await share(world, id, { [bob.user_id]: "" });
  expect((await bobsFollower.closed).code).toBe(1008);
  await streamEnd;
  expect(await fetchStatus(bob.client, "GET", toChatPath(id))).toBe(404);
  (await world.models.next()).say("still here").finish();
  await ownFollower.until(({ status }) => status === "waiting");
  // Leaving the organization also ends access.
  await share(world, id, { [bob.user_id]: "read" });
  using secondFollower = await Follower.open(bob.client, id);
  await secondFollower.until(({ history }) => history.length === 2);
  const admin = await signInAdmin(world);
  await admin.delete(`/api/v2/organizations/${world.organization_id}/members/${bob.user_id}`);
  expect((await secondFollower.closed).code).toBe(1008);
});

test("[CS-6] an organization that disables sharing revokes its existing shares", async () => {
  await using world = await openChatWorld();
  const bob = await addUser(world);
  const { id } = await createChat(world, "hello");
  await share(world, id, { [bob.user_id]: "read" });
  using bobsFollower = await Follower.open(bob.client, id);
  await bobsFollower.until(({ history }) => history.length === 1);
  const admin = await signInAdmin(world);
  const path = `/api/v2/organizations/${world.organization_id}/settings/workspace-sharing`;
  await admin.patch(path, { sharing_disabled: true });
  expect((await bobsFollower.closed).code).toBe(1008);
  expect(await fetchStatus(world.owner, "PATCH", `${toChatPath(id)}/acl`, { user_roles: {} })).toBe(403);
  expect(await fetchStatus(world.owner, "GET", `${toChatPath(id)}/acl`)).toBe(403);
  await admin.patch(path, { sharing_disabled: false });
  expect(await fetchStatus(bob.client, "GET", toChatPath(id))).toBe(404);
  expect((await world.owner.get<Chat>(toChatPath(id))).shared).toBe(false);
});

test("[CS-7] a reader can read the files of a shared chat, but not the owner's other files", async () => {
  await using world = await openChatWorld();
  const bob = await addUser(world);
  const upload = async (): Promise<string> => {
    const headers = { "Content-Type": "text/plain", "Content-Disposition": 'attachment; filename="a.txt"' };
    const uploadPath = `/api/v2/chats/files?organization=${world.organization_id}`;
    return (await world.owner.post<{ id: string }>(uploadPath, "words", { headers })).id;
  };
  const [chatFile, otherFile] = [await upload(), await upload()];
  const { id } = await createChat(world, "x", { content: [{ type: "file", file_id: chatFile }] });
  expect(await fetchStatus(bob.client, "GET", `/api/v2/chats/files/${chatFile}`)).toBe(404);
  await share(world, id, { [bob.user_id]: "read" });
  expect(await fetchStatus(bob.client, "GET", `/api/v2/chats/files/${chatFile}`)).toBe(200);
  expect(await fetchStatus(bob.client, "GET", `/api/v2/chats/files/${otherFile}`)).toBe(404);
  // Referencing the file in one's own chat does not give access to it.
  const referencingChat = { organization_id: world.organization_id, content: [{ type: "file", file_id: chatFile }] };
  expect(await fetchStatus(bob.client, "POST", "/api/v2/chats", referencingChat)).toBe(400);
});

test("[CS-8] by-workspace returns the newest chat that the caller can read, including shared ones", async () => {
  await using world = await openChatWorld();
  const bob = await addUser(world);
  const { id } = await createChat(world, "hello");
  const { id: bobsChat } = await createChat(
    { owner: bob.client, organization_id: bob.organization_id },
    "older or newer",
  );
  const workspace_id = crypto.randomUUID();
  const { store } = getContext(world.server);
  await store.commit([
    updateChat(id, { workspace_id, updated_at: 2 }),
    updateChat(bobsChat, { workspace_id, updated_at: 1 }),
  ]);
  const findByWorkspace = () => bob.client.get(`/api/v2/chats/by-workspace?workspace_ids=${workspace_id}`);
  expect(await findByWorkspace()).toEqual({ [workspace_id]: bobsChat });
  await share(world, id, { [bob.user_id]: "read" });
  expect(await findByWorkspace()).toEqual({ [workspace_id]: id });
});
