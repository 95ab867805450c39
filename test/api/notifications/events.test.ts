// Notifications that the server sends about workspaces, templates and chats.
import { expect, test } from "bun:test";
import type { Inbox } from "#schema/notifications/notification.ts";
import { Client } from "#src/client.ts";
import { openSharedWorkspace } from "#test/api/workspaces/shared-workspace.ts";
import { createChat, openChatWorld } from "#test/support/chats.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { seedUser } from "#test/support/seed.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";
import { startSmtpServer } from "#test/support/smtp-server.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, createBuild, createWorkspace, ECHO, seedTemplate } from "#test/support/workspaces.ts";

const listTitles = async (client: Client): Promise<string[]> =>
  (await client.get<Inbox>("/api/v2/notifications/inbox")).notifications.map(({ title }) => title);

test("[NO-1] [NO-3] notifies the owner once of a failed build, with its error", async () => {
  await using server = await startTestServer();
  const { template_id, organization_id } = await seedTemplate(server, { ...ECHO, echo: { error: "no room left" } });
  const { token } = await seedUser(server, { organization_id });
  const ada = new Client(server.url, token);
  const { id } = await createWorkspace(ada, template_id, "dev");
  await awaitBuild(ada, id);
  const { notifications } = await ada.get<Inbox>("/api/v2/notifications/inbox");
  expect(notifications).toHaveLength(1);
  expect(notifications[0]).toMatchObject({
    title: "Workspace dev failed to start",
    targets: [id],
    actions: [{ label: "View build", url: `/workspaces/${id}` }],
  });
  expect(notifications[0]?.content).toContain("no room left");
});

test("[NO-3] notifies the owner when another person deletes the workspace", async () => {
  await using server = await startTestServer();
  const { template_id, organization_id } = await seedTemplate(server);
  const { token } = await seedUser(server, { organization_id });
  const ada = new Client(server.url, token);
  const admin = await ada.withToken(undefined).signIn(ADMIN.email, ADMIN.password);
  for (const [name, deleter] of [
    ["own", ada],
    ["taken", admin],
  ] as const) {
    const { id } = await createWorkspace(ada, template_id, name);
    await awaitBuild(ada, id);
    await createBuild(deleter, id, "delete");
    await awaitBuild(admin, id);
  }
  const { notifications } = await ada.get<Inbox>("/api/v2/notifications/inbox");
  expect(notifications.map(({ title, content }) => [title, content])).toEqual([
    ["Workspace taken was deleted", "An administrator deleted it. The audit log says who did."],
  ]);
});

test("[NO-4] notifies the owner once of an approaching deadline", async () => {
  const clock = new ManualClock();
  await using server = await startTestServer({ clock });
  const { template_id, organization_id } = await seedTemplate(server);
  const { token } = await seedUser(server, { organization_id });
  const ada = new Client(server.url, token);
  const { id } = await ada.post<{ id: string }>("/api/v2/users/me/workspaces", {
    name: "dev",
    template_id,
    ttl_ms: 3_600_000,
  });
  await awaitBuild(ada, id);
  clock.advance(30 * 60_000);
  expect(await listTitles(ada)).toEqual([]);
  const advanceMinute = async (count: number): Promise<true | undefined> => {
    clock.advance(60_000);
    const titles = await listTitles(ada);
    expect(titles.length).toBeLessThanOrEqual(count);
    return titles.length === count ? true : undefined;
  };
  await until(() => advanceMinute(1));
  for (let i = 0; i < 3; i++) await advanceMinute(1);
  expect(await listTitles(ada)).toEqual(["Workspace dev stops soon"]);
});

test("[NO-6] notifies owners of workspaces that their template is deprecated", async () => {
  await using server = await startTestServer();
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  const { template_id, organization_id } = await seedTemplate(server);
  const people = [await seedUser(server, { organization_id }), await seedUser(server, { organization_id })];
  const [ada, bob] = people.map(({ token }) => new Client(server.url, token)) as [Client, Client];
  for (const name of ["one", "two"]) await awaitBuild(ada, (await createWorkspace(ada, template_id, name)).id);
  for (let i = 0; i < 2; i++) {
    await admin.patch(`/api/v2/templates/${template_id}`, { deprecation_message: "Use the new one." });
  }
  const { notifications } = await ada.get<Inbox>("/api/v2/notifications/inbox");
  expect(notifications).toMatchObject([{ content: "You have a workspace created from it. Use the new one." }]);
  expect(await listTitles(bob)).toEqual([]);
});

test("[NO-5] notifies the owner once when a chat is done, unless a client follows it", async () => {
  await using world = await openChatWorld();
  const { owner, models } = world;
  const finishTurn = async (): Promise<unknown> => (await models.next()).finish();
  const chat = await createChat(world);
  await finishTurn();
  await until(async () => (await listTitles(owner)).length === 1);
  expect((await listTitles(owner))[0]).toEndWith("is done");
  const secondMessage = { content: [{ type: "text", text: "more" }] };
  await owner.post(`/api/v2/chats/${chat.id}/messages`, secondMessage);
  const response = await models.next();
  // The notification is removed, because the chat continues.
  expect(await listTitles(owner)).toEqual([]);
  response.finish();
  await until(async () => (await listTitles(owner)).length === 1);

  using follower = await owner.socket(`/api/v2/chats/${chat.id}/stream`);
  await follower.json();
  await owner.post(`/api/v2/chats/${chat.id}/messages`, secondMessage);
  await finishTurn();
  await until(async () => (await owner.get<{ status: string }>(`/api/v2/chats/${chat.id}`)).status === "waiting");
  expect(await listTitles(owner)).toEqual([]);
});

test("[NO-14] notifies a person once when a workspace is shared with them, until the share ends", async () => {
  using smtp = startSmtpServer();
  await using shared = await openSharedWorkspace({
    env: {
      SLIPWAY_SMTP_HOST: "127.0.0.1",
      SLIPWAY_SMTP_PORT: String(smtp.port),
      SLIPWAY_SMTP_TLS: "none",
      SLIPWAY_SMTP_FROM: "slipway@example.com",
    },
  });
  const { clients, path, id, idOf, organization_id } = shared;
  const { owner: ada, member: bob, "shared admin": amy, "template admin": tia } = clients;
  expect((await amy.get<Inbox>("/api/v2/notifications/inbox")).notifications).toMatchObject([
    {
      title: "ada shared the workspace dev with you",
      content: "You can see it and work in it, and start, stop and change it.",
    },
  ]);
  const share = (role: string) => ada.patch(`${path}/acl`, { user_roles: { [idOf("bob")]: role } });
  await share("use");
  const { notifications } = await bob.get<Inbox>("/api/v2/notifications/inbox");
  expect(notifications).toMatchObject([
    {
      title: "ada shared the workspace dev with you",
      content: "You can see it and work in it.",
      targets: [id],
      actions: [{ label: "Open workspace", url: `/workspaces/${id}` }],
    },
  ]);
  await until(() => smtp.letters.find(({ to: [to] }) => to === "<bob@example.com>"));
  await share("admin");
  expect(await listTitles(bob)).toHaveLength(1);
  await share("");
  expect(await listTitles(bob)).toEqual([]);
  await share("use");
  expect(await listTitles(bob)).toHaveLength(1);
  await ada.patch(`${path}/acl`, { group_roles: { [organization_id]: "use" } });
  expect(await listTitles(tia)).toEqual([]);
  await ada.delete(`${path}/acl`);
  expect(await listTitles(bob)).toEqual([]);
});

test("[NO-14] notifies a person when a chat is shared with them, with a link", async () => {
  await using world = await openChatWorld();
  const { owner, organization_id } = world;
  const { token, user_id } = await seedUser(world.server, { organization_id });
  const bob = owner.withToken(token);
  const chat = await createChat(world, "hello");
  const share = (role: string) => owner.patch(`/api/v2/chats/${chat.id}/acl`, { user_roles: { [user_id]: role } });
  await share("read");
  await share("read");
  const { notifications } = await bob.get<Inbox>("/api/v2/notifications/inbox");
  expect(notifications).toMatchObject([{ actions: [{ label: "Open chat", url: `/chats/${chat.id}` }] }]);
  expect(notifications[0]?.title).toEndWith("shared a chat with you");
  await share("");
  expect(await listTitles(bob)).toEqual([]);
});
