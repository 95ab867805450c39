// The notification inbox and its operations.
import { expect, test } from "bun:test";
import { insertNotification } from "#db/notifications/notifications.ts";
import { NOTICE_KINDS } from "#schema/notifications/kinds.ts";
import type { Inbox, InboxNotification } from "#schema/notifications/notification.ts";
import { Client } from "#src/client.ts";
import { describeInProcess } from "#test/support/in-process.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { getContext, seedUser } from "#test/support/seed.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { fetchStatus, newPerson } from "../users/people.ts";

const getInbox = (client: Client, query = ""): Promise<Inbox> =>
  client.get<Inbox>(`/api/v2/notifications/inbox${query}`);

test("[NO-6] [NO-10] [NO-11] notifies user admins of new users, who read and watch only their own inboxes", async () => {
  await using server = await startTestServer();
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  const helper = await newPerson(admin, "helper", ["user-admin"]);
  using watch = await admin.socket("/api/v2/notifications/inbox/watch?format=plaintext");
  await admin.post("/api/v2/notifications/test");
  const testMessage = await watch.json<{ notification: InboxNotification; unread_count: number }>();
  expect(testMessage.notification.title).toBe("Test notification");
  const mia = await helper.client.post<{ id: string }>("/api/v2/users", {
    email: "mia@example.com",
    username: "mia",
    password: "a-long-enough-secret",
  });
  const received = await watch.json<{ notification: InboxNotification; unread_count: number }>();
  expect(received.notification).toMatchObject({
    title: "User mia was created",
    content: "The account was created by helper.",
    read_at: null,
    targets: [mia.id],
    template_id: NOTICE_KINDS.user_created.id,
  });
  expect(received.unread_count).toBe(2);
  // The person who created the account already knows.
  expect((await getInbox(helper.client)).notifications).toEqual([]);

  const { id } = received.notification;
  const readStatusPath = `/notifications/inbox/${id}/read-status`;
  expect(await fetchStatus(helper.client, "PUT", readStatusPath, { is_read: true })).toBe(404);
  expect((await getInbox(helper.client, "?read_status=all")).notifications).toEqual([]);
  expect(await fetchStatus(helper.client, "GET", `/notifications/inbox?starting_before=${id}`)).toBe(400);
  const marked = await admin.put<{ notification: InboxNotification; unread_count: number }>(
    `/api/v2${readStatusPath}`,
    {
      is_read: true,
    },
  );
  expect(marked.notification.read_at).not.toBeNull();
  expect(marked.unread_count).toBe(1);
  expect(await watch.json<object>()).toEqual({ unread_count: 1 });
  expect((await getInbox(admin, "?read_status=unread")).notifications.map((notification) => notification.id)).toEqual([
    testMessage.notification.id,
  ]);
  expect((await getInbox(admin, "?read_status=read")).notifications.map((notification) => notification.id)).toEqual([
    id,
  ]);
  expect((await getInbox(admin, `?targets=${mia.id}`)).notifications.map((notification) => notification.id)).toEqual([
    id,
  ]);
  expect((await getInbox(admin, `?templates=${NOTICE_KINDS.test.id}`)).notifications).toHaveLength(1);
  expect(
    (await getInbox(admin, `?starting_before=${id}`)).notifications.map((notification) => notification.id),
  ).toEqual([testMessage.notification.id]);
  expect(await fetchStatus(admin, "GET", "/notifications/inbox?templates=x")).toBe(400);
  await admin.put("/api/v2/notifications/inbox/mark-all-as-read");
  expect((await getInbox(admin)).unread_count).toBe(0);
});

test("[NO-11] the next page continues where the last one ended", async () => {
  await using server = await startTestServer();
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  for (let i = 0; i < 30; i++) await admin.post("/api/v2/notifications/test");
  const firstPage = await getInbox(admin);
  expect(firstPage.notifications).toHaveLength(25);
  const olderPage = await getInbox(admin, `?starting_before=${firstPage.notifications.at(-1)?.id}`);
  expect(olderPage.notifications).toHaveLength(5);
  const ids = [...firstPage.notifications, ...olderPage.notifications].map(({ id }) => id);
  expect(new Set(ids).size).toBe(30);
  expect(firstPage.unread_count).toBe(30);
});

test("[NO-2] does not send a disabled kind", async () => {
  await using server = await startTestServer();
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  const path = "/api/v2/users/me/notifications/preferences";
  const preferences = { template_disabled_map: { [NOTICE_KINDS.test.id]: true } };
  expect(await admin.put<object[]>(path, preferences)).toMatchObject([{ id: NOTICE_KINDS.test.id, disabled: true }]);
  await admin.post("/api/v2/notifications/test");
  expect((await getInbox(admin)).notifications).toEqual([]);
  await admin.put(path, { template_disabled_map: { [NOTICE_KINDS.test.id]: false } });
  await admin.post("/api/v2/notifications/test");
  expect((await getInbox(admin)).notifications).toHaveLength(1);
  const invalidBody = { template_disabled_map: { "6ba7b810-9dad-41d1-80b4-00c04fd430c8": true } };
  expect(await fetchStatus(admin, "PUT", "/users/me/notifications/preferences", invalidBody)).toBe(400);
});

describeInProcess("retention", () => {
  test("[NO-9] deletes old notifications", async () => {
    const clock = new ManualClock();
    await using server = await startTestServer({ clock });
    const { user_id, token } = await seedUser(server);
    const ada = new Client(server.url, token);
    const notification = { user_id, kind: "test", values: {}, path: "/" } as const;
    await getContext(server).store.commit([
      insertNotification({ ...notification, now: clock.now() - 91 * 86_400_000, dedupe: "old" }),
      insertNotification({ ...notification, now: clock.now() - 89 * 86_400_000, dedupe: "young" }),
    ]);
    expect((await getInbox(ada)).unread_count).toBe(2);
    clock.advance(70_000);
    await until(async () => (await getInbox(ada)).unread_count === 1);
  });
});

test("[NO-12] owners choose how a kind is sent", async () => {
  await using server = await startTestServer();
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  const kinds = await admin.get<{ id: string; method: string; name: string }[]>(
    "/api/v2/notifications/templates/system",
  );
  expect(kinds.map(({ name }) => name)).toContain("Build failed");
  const path = `/api/v2/notifications/templates/${NOTICE_KINDS.chat_done.id}/method`;
  expect(await admin.put<object>(path, { method: "smtp" })).toMatchObject({ method: "smtp", default_method: "inbox" });
  expect(await admin.put<object>(path, { method: "" })).toMatchObject({ method: "" });
  expect(await admin.get<object>("/api/v2/notifications/dispatch-methods")).toEqual({
    available: ["inbox", "webpush"],
    default: "inbox",
  });
});
