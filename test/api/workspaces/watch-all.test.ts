// Watching all visible workspaces: a snapshot, then changes according to current access, resumed after a disconnect.

import { expect, test } from "bun:test";
import type { WorkspaceSummary, WorkspacesEvent } from "#schema/workspaces/workspace-watch.ts";
import type { Client, ClientSocket } from "#src/client.ts";
import { usesActiveNodes } from "#test/support/cluster/active-nodes.ts";
import { readEvents } from "#test/support/net/event-reader.ts";
import { seedUser } from "#test/support/seed.ts";
import { importVersion, makeTemplate } from "#test/support/templates.ts";
import {
  awaitBuild,
  createBuild,
  createWorkspace,
  ECHO,
  openWorld,
  seedTemplate,
  type World,
} from "#test/support/workspaces.ts";

type RowsEvent = Extract<WorkspacesEvent, { type: "snapshot" | "changes" }>;

/** Maintains the rows of a follower in the same way as the web app. */
class FollowedRows {
  readonly rows = new Map<string, WorkspaceSummary>();
  readonly events: RowsEvent[] = [];
  /** Number of notifications about changed permissions. */
  accessNotices = 0;
  readonly socket: ClientSocket;

  constructor(socket: ClientSocket) {
    this.socket = socket;
  }

  get id(): string {
    return this.events.findLast(({ id }) => id !== "")?.id ?? "";
  }

  /** Reads events until `isDone` returns true. */
  async until(isDone: (rows: Map<string, WorkspaceSummary>) => boolean): Promise<void> {
    while (!isDone(this.rows) || this.events.length === 0) await this.next();
  }

  /** Returns the templates of the next message about templates. */
  async nextTemplates(): Promise<readonly string[]> {
    for (;;) {
      const event = await this.socket.json<WorkspacesEvent | { type: "ping" }>();
      if (event.type === "templates") return event.changed;
    }
  }

  async next(): Promise<RowsEvent> {
    for (;;) {
      const event = await this.socket.json<WorkspacesEvent | { type: "ping" }>();
      if (event.type === "access") this.accessNotices += 1;
      if (event.type === "ping" || event.type === "access" || event.type === "templates") continue;
      this.events.push(event);
      if (event.type === "snapshot") for (const row of event.workspaces) this.rows.set(row.id, row);
      else {
        for (const row of event.changed) this.rows.set(row.id, row);
        for (const id of event.removed) this.rows.delete(id);
      }
      return event;
    }
  }
}

const follow = async (client: Client, after = ""): Promise<FollowedRows> =>
  new FollowedRows(await client.socket(`/api/v2/workspaces/watch${after && `?after_id=${after}`}`));

/** A member of the first user's organization, without roles. */
const createMember = async ({ server, admin }: World): Promise<{ user_id: string; client: Client }> => {
  const [organization] = await admin.get<{ id: string }[]>("/api/v2/organizations");
  const { user_id, token } = await seedUser(server, { organization_id: organization?.id ?? "" });
  return { user_id, client: admin.withToken(token) };
};

test("[WS-1] a follower gets all rows, then each change once, and the IDs of deleted workspaces", async () => {
  await using world = await openWorld();
  const { template_id } = await seedTemplate(world.server);
  const first = await createWorkspace(world.admin, template_id, "first");
  await awaitBuild(world.admin, first.id);
  const followed = await follow(world.admin);
  using _socket = followed.socket;
  const snapshot = await followed.next();
  expect(snapshot).toMatchObject({ type: "snapshot", more: false });
  expect([...followed.rows.values()]).toMatchObject([
    { name: "first", status: "running", owner_name: "admin", build_number: 1, outdated: false },
  ]);
  const second = await createWorkspace(world.admin, template_id, "second");
  await followed.until((rows) => rows.get(second.id)?.status === "running");
  await createBuild(world.admin, first.id, "stop");
  await followed.until((rows) => rows.get(first.id)?.status === "stopped");
  await createBuild(world.admin, first.id, "delete");
  await followed.until((rows) => !rows.has(first.id));
  const lastRows = new Map<string, string>();
  for (const event of followed.events) {
    for (const row of event.type === "changes" ? event.changed : event.workspaces) {
      expect(JSON.stringify(row)).not.toBe(lastRows.get(row.id) ?? "");
      lastRows.set(row.id, JSON.stringify(row));
    }
  }
});

test("[WS-7] only a user whose roles or memberships change is notified, before they get the new rows", async () => {
  await using world = await openWorld();
  const { admin } = world;
  const member = await createMember(world);
  const [memberRows, adminRows] = [await follow(member.client), await follow(admin)];
  using _socket = memberRows.socket;
  using _others = adminRows.socket;
  await memberRows.next();
  await adminRows.next();
  const countNoticesAfter = async (change: Promise<unknown>): Promise<number> => {
    await change;
    expect(await memberRows.next()).toMatchObject({ type: "snapshot", more: false });
    return memberRows.accessNotices;
  };
  expect(await countNoticesAfter(admin.put(`/api/v2/users/${member.user_id}/roles`, { roles: ["auditor"] }))).toBe(1);
  const otherOrganization = await admin.post<{ id: string }>("/api/v2/organizations", { name: "other" });
  const memberPath = `/api/v2/organizations/${otherOrganization.id}/members/${member.user_id}`;
  expect(await countNoticesAfter(admin.post(memberPath))).toBe(2);
  expect(await countNoticesAfter(admin.put(`${memberPath}/roles`, { roles: ["organization-admin"] }))).toBe(3);
  expect(await countNoticesAfter(admin.delete(memberPath))).toBe(4);
  await createWorkspace(admin, (await seedTemplate(world.server)).template_id, "mine");
  await adminRows.next();
  expect(adminRows.accessNotices).toBe(0);
});

test("[WS-7] a reconnecting user is notified if their permissions have changed, or if the server cannot know", async () => {
  await using world = await openWorld();
  const { admin } = world;
  const { user_id, client } = await createMember(world);
  const countNoticesAfter = async (afterId: string): Promise<number> => {
    const followed = await follow(client, afterId);
    using _socket = followed.socket;
    await followed.next();
    return followed.accessNotices;
  };
  const before = await follow(client);
  await before.next();
  before.socket.close();
  // Event IDs belong to one node. Another node does not know whether permissions have changed.
  if (!usesActiveNodes) expect(await countNoticesAfter(before.id)).toBe(0);
  await admin.put(`/api/v2/users/${user_id}/roles`, { roles: ["auditor"] });
  expect(await countNoticesAfter(before.id)).toBe(1);
  expect(await countNoticesAfter("of-another-server.12")).toBe(1);
});

test("[WS-8] people who can see a template are notified when it or a version of it changes or is deleted", async () => {
  await using world = await openWorld();
  const { admin } = world;
  const template = await makeTemplate(admin, JSON.stringify(ECHO));
  const hiddenTemplate = await makeTemplate(admin, JSON.stringify(ECHO));
  const organization = hiddenTemplate.organization_id;
  await admin.patch(`/api/v2/templates/${hiddenTemplate.id}/acl`, { group_perms: { [organization]: "" } });
  const member = await createMember(world);
  const scopes = ["workspace:read"];
  const token = await admin.post<{ key: string }>("/api/v2/users/me/keys/tokens", { token_name: "read", scopes });
  const [memberRows, adminRows] = [await follow(member.client), await follow(admin)];
  const scopedRows = await follow(admin.withToken(token.key));
  using _socket = memberRows.socket;
  using _all = adminRows.socket;
  using _scoped = scopedRows.socket;
  await memberRows.next();
  await adminRows.next();
  await scopedRows.next();
  const archived = await importVersion(admin, JSON.stringify(ECHO), { template_id: template.id });
  const second = await importVersion(admin, JSON.stringify(ECHO), { template_id: template.id });
  for (const change of [
    () => admin.patch(`/api/v2/templates/${template.id}`, { display_name: "One" }),
    () => admin.patch(`/api/v2/templates/${template.id}/versions`, { id: second.id }),
    () => admin.post(`/api/v2/templateversions/${archived.id}/archive`),
    () => admin.delete(`/api/v2/templates/${template.id}`),
  ]) {
    // The hidden template changes first, so that a leak of it would arrive first.
    await admin.patch(`/api/v2/templates/${hiddenTemplate.id}`, { display_name: crypto.randomUUID() });
    expect(await adminRows.nextTemplates()).toEqual([hiddenTemplate.id]);
    await change();
    expect(await memberRows.nextTemplates()).toEqual([template.id]);
    expect(await adminRows.nextTemplates()).toEqual([template.id]);
  }
  const last = await createWorkspace(admin, hiddenTemplate.id, "last");
  for (;;) {
    const event = await scopedRows.socket.json<WorkspacesEvent | { type: "ping" }>();
    expect(event.type).not.toBe("templates");
    if (event.type === "changes" && event.changed.some(({ id }) => id === last.id)) break;
  }
});

test("[WS-2] [WS-3] no message contains invisible rows; sharing, revoking and roles take effect immediately", async () => {
  await using world = await openWorld();
  const { template_id } = await seedTemplate(world.server);
  const adminsWorkspace = await createWorkspace(world.admin, template_id, "mine");
  await awaitBuild(world.admin, adminsWorkspace.id);
  const member = await createMember(world);
  const followed = await follow(member.client);
  using _socket = followed.socket;
  expect(await followed.next()).toMatchObject({ type: "snapshot", workspaces: [] });
  await createBuild(world.admin, adminsWorkspace.id, "stop");
  await awaitBuild(world.admin, adminsWorkspace.id);
  await world.admin.patch(`/api/v2/workspaces/${adminsWorkspace.id}/acl`, { user_roles: { [member.user_id]: "use" } });
  await followed.until((rows) => rows.has(adminsWorkspace.id));
  // Events from before the sharing are not sent.
  expect(followed.events.map(({ type }) => type)).toEqual(["snapshot", "changes"]);
  await world.admin.patch(`/api/v2/workspaces/${adminsWorkspace.id}/acl`, { user_roles: { [member.user_id]: "" } });
  await followed.until((rows) => !rows.has(adminsWorkspace.id));
  await world.admin.put(`/api/v2/users/${member.user_id}/roles`, { roles: ["template-admin"] });
  await followed.until((rows) => rows.has(adminsWorkspace.id));
});

test("[WS-4] a reconnecting client gets the changes that it missed, or a snapshot if the server does not know them", async () => {
  await using world = await openWorld();
  const { template_id } = await seedTemplate(world.server);
  const firstWorkspace = await createWorkspace(world.admin, template_id, "one");
  const secondWorkspace = await createWorkspace(world.admin, template_id, "two");
  await awaitBuild(world.admin, firstWorkspace.id);
  await awaitBuild(world.admin, secondWorkspace.id);
  const before = await follow(world.admin);
  await before.until((rows) => rows.size === 2);
  before.socket.close();
  await createBuild(world.admin, firstWorkspace.id, "stop");
  await awaitBuild(world.admin, firstWorkspace.id);
  const reconnected = await follow(world.admin, before.id);
  using _again = reconnected.socket;
  const missed = await reconnected.next();
  expect(missed).toMatchObject({ type: "changes", changed: [{ name: "one", status: "stopped" }], removed: [] });
  // Later changes follow, including the deletion.
  await createBuild(world.admin, secondWorkspace.id, "delete");
  for (;;) {
    const event = await reconnected.next();
    if (event.type === "changes" && event.removed.includes(secondWorkspace.id)) break;
  }
  const otherServersFollower = await follow(world.admin, "of-another-server.12");
  using _otherSocket = otherServersFollower.socket;
  expect(await otherServersFollower.next()).toMatchObject({ type: "snapshot", workspaces: [{ name: "one" }] });
  // After a deletion, the client gets a snapshot.
  const lateFollower = await follow(world.admin, before.id);
  using _late = lateFollower.socket;
  expect(await lateFollower.next()).toMatchObject({ type: "snapshot", workspaces: [{ name: "one" }] });
});

test("[WS-5] server-sent events send the same; the server disconnects a client that sends a message or signs out", async () => {
  await using world = await openWorld();
  const { template_id } = await seedTemplate(world.server);
  const { id } = await createWorkspace(world.admin, template_id, "dev");
  await awaitBuild(world.admin, id);
  const abort = new AbortController();
  const response = await world.admin.fetch("GET", "/api/v2/workspaces/watch", undefined, { signal: abort.signal });
  expect(response.headers.get("content-encoding")).toBeNull();
  for await (const { event, data } of readEvents<WorkspacesEvent>(response)) {
    if (event === "ping") continue;
    expect(data).toMatchObject({ type: "snapshot", workspaces: [{ id, name: "dev", status: "running" }] });
    break;
  }
  abort.abort();
  const sending = await follow(world.admin);
  sending.socket.send("hello");
  expect((await sending.socket.closed).code).toBe(1008);
  const member = await createMember(world);
  const followed = await follow(member.client);
  await followed.next();
  await member.client.post("/api/v2/users/logout");
  expect((await followed.socket.closed).code).toBe(1008);
});

test("[WS-6] after a burst of changes, the server sends the final rows instead of one message per change", async () => {
  await using world = await openWorld();
  const { template_id } = await seedTemplate(world.server);
  const created = await Promise.all(
    Array.from({ length: 12 }, (_, i) => createWorkspace(world.admin, template_id, `dev-${i}`)),
  );
  const followed = await follow(world.admin);
  using _socket = followed.socket;
  await followed.until(
    (rows) => rows.size === created.length && [...rows.values()].every(({ status }) => status === "running"),
  );
  const messages = followed.events.length;
  const changes = followed.events.flatMap((event) => (event.type === "changes" ? event.changed : [])).length;
  expect(messages).toBeLessThan(changes + created.length);
});
