// Following all visible workspaces: a snapshot, then changes, with the current access at each moment, resumed after a disconnect.

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

/** A follower's state, maintained as in the app. */
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

  /** Reads until `done` holds. */
  async until(done: (rows: Map<string, WorkspaceSummary>) => boolean): Promise<void> {
    while (!done(this.rows) || this.events.length === 0) await this.next();
  }

  /** Returns the templates of the next message about templates. */
  async template(): Promise<readonly string[]> {
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
      if (event.type === "snapshot") for (const one of event.workspaces) this.rows.set(one.id, one);
      else {
        for (const one of event.changed) this.rows.set(one.id, one);
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

test("[WS-1] a follower gets all rows, then each change once, and deleted ones by ID", async () => {
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
  const last = new Map<string, string>();
  for (const event of followed.events) {
    for (const row of event.type === "changes" ? event.changed : event.workspaces) {
      expect(JSON.stringify(row)).not.toBe(last.get(row.id) ?? "");
      last.set(row.id, JSON.stringify(row));
    }
  }
});

test("[WS-7] only a user whose roles or memberships change is notified, before the resulting rows", async () => {
  await using world = await openWorld();
  const { admin } = world;
  const member = await createMember(world);
  const [followed, others] = [await follow(member.client), await follow(admin)];
  using _socket = followed.socket;
  using _others = others.socket;
  await followed.next();
  await others.next();
  const countNoticesAfter = async (change: Promise<unknown>): Promise<number> => {
    await change;
    expect(await followed.next()).toMatchObject({ type: "snapshot", more: false });
    return followed.accessNotices;
  };
  expect(await countNoticesAfter(admin.put(`/api/v2/users/${member.user_id}/roles`, { roles: ["auditor"] }))).toBe(1);
  const other = await admin.post<{ id: string }>("/api/v2/organizations", { name: "other" });
  const members = `/api/v2/organizations/${other.id}/members/${member.user_id}`;
  expect(await countNoticesAfter(admin.post(members))).toBe(2);
  expect(await countNoticesAfter(admin.put(`${members}/roles`, { roles: ["organization-admin"] }))).toBe(3);
  expect(await countNoticesAfter(admin.delete(members))).toBe(4);
  await createWorkspace(admin, (await seedTemplate(world.server)).template_id, "mine");
  await others.next();
  expect(others.accessNotices).toBe(0);
});

test("[WS-7] a user who reconnects is notified if their permissions have changed or that is unknown; otherwise not", async () => {
  await using world = await openWorld();
  const { admin } = world;
  const { user_id, client } = await createMember(world);
  const countNoticesOn = async (place: string): Promise<number> => {
    const followed = await follow(client, place);
    using _socket = followed.socket;
    await followed.next();
    return followed.accessNotices;
  };
  const before = await follow(client);
  await before.next();
  before.socket.close();
  // Positions belong to one node: a follower that reconnects to another is treated as after a restart.
  if (!usesActiveNodes) expect(await countNoticesOn(before.id)).toBe(0);
  await admin.put(`/api/v2/users/${user_id}/roles`, { roles: ["auditor"] });
  expect(await countNoticesOn(before.id)).toBe(1);
  expect(await countNoticesOn("of-another-server.12")).toBe(1);
});

test("[WS-8] a template that is changed, promoted, archived or deleted is sent only to people who may see it", async () => {
  await using world = await openWorld();
  const { admin } = world;
  const one = await makeTemplate(admin, JSON.stringify(ECHO));
  const hidden = await makeTemplate(admin, JSON.stringify(ECHO));
  const organization = hidden.organization_id;
  await admin.patch(`/api/v2/templates/${hidden.id}/acl`, { group_perms: { [organization]: "" } });
  const member = await createMember(world);
  const [followed, all] = [await follow(member.client), await follow(admin)];
  using _socket = followed.socket;
  using _all = all.socket;
  await followed.next();
  await all.next();
  const archived = await importVersion(admin, JSON.stringify(ECHO), { template_id: one.id });
  const second = await importVersion(admin, JSON.stringify(ECHO), { template_id: one.id });
  for (const change of [
    () => admin.patch(`/api/v2/templates/${one.id}`, { display_name: "One" }),
    () => admin.patch(`/api/v2/templates/${one.id}/versions`, { id: second.id }),
    () => admin.post(`/api/v2/templateversions/${archived.id}/archive`),
    () => admin.delete(`/api/v2/templates/${one.id}`),
  ]) {
    // The hidden one comes first, so that it would be reported first.
    await admin.patch(`/api/v2/templates/${hidden.id}`, { display_name: crypto.randomUUID() });
    expect(await all.template()).toEqual([hidden.id]);
    await change();
    expect(await followed.template()).toEqual([one.id]);
    expect(await all.template()).toEqual([one.id]);
  }
});

test("[WS-2] [WS-3] others' rows are in no message; sharing, revoking and roles take effect immediately", async () => {
  await using world = await openWorld();
  const { template_id } = await seedTemplate(world.server);
  const mine = await createWorkspace(world.admin, template_id, "mine");
  await awaitBuild(world.admin, mine.id);
  const member = await createMember(world);
  const followed = await follow(member.client);
  using _socket = followed.socket;
  expect(await followed.next()).toMatchObject({ type: "snapshot", workspaces: [] });
  await createBuild(world.admin, mine.id, "stop");
  await awaitBuild(world.admin, mine.id);
  await world.admin.patch(`/api/v2/workspaces/${mine.id}/acl`, { user_roles: { [member.user_id]: "use" } });
  await followed.until((rows) => rows.has(mine.id));
  // Events from before it was shared are not sent.
  expect(followed.events.map(({ type }) => type)).toEqual(["snapshot", "changes"]);
  await world.admin.patch(`/api/v2/workspaces/${mine.id}/acl`, { user_roles: { [member.user_id]: "" } });
  await followed.until((rows) => !rows.has(mine.id));
  await world.admin.put(`/api/v2/users/${member.user_id}/roles`, { roles: ["template-admin"] });
  await followed.until((rows) => rows.has(mine.id));
});

test("[WS-4] a reconnecting client gets only what it missed, or a snapshot if that is unknown", async () => {
  await using world = await openWorld();
  const { template_id } = await seedTemplate(world.server);
  const one = await createWorkspace(world.admin, template_id, "one");
  const two = await createWorkspace(world.admin, template_id, "two");
  await awaitBuild(world.admin, one.id);
  await awaitBuild(world.admin, two.id);
  const before = await follow(world.admin);
  await before.until((rows) => rows.size === 2);
  before.socket.close();
  await createBuild(world.admin, one.id, "stop");
  await awaitBuild(world.admin, one.id);
  const again = await follow(world.admin, before.id);
  using _again = again.socket;
  const missed = await again.next();
  expect(missed).toMatchObject({ type: "changes", changed: [{ name: "one", status: "stopped" }], removed: [] });
  // A later change is sent too, and so is the workspace's end.
  await createBuild(world.admin, two.id, "delete");
  for (;;) {
    const event = await again.next();
    if (event.type === "changes" && event.removed.includes(two.id)) break;
  }
  const outsider = await follow(world.admin, "of-another-server.12");
  using _stranger = outsider.socket;
  expect(await outsider.next()).toMatchObject({ type: "snapshot", workspaces: [{ name: "one" }] });
  // A deletion in the meantime leads to a snapshot, so that the list is complete again.
  const lateFollower = await follow(world.admin, before.id);
  using _late = lateFollower.socket;
  expect(await lateFollower.next()).toMatchObject({ type: "snapshot", workspaces: [{ name: "one" }] });
});

test("[WS-5] server-sent events send the same; a client that sends a message is closed, and so is one that signs out", async () => {
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
  const speaking = await follow(world.admin);
  speaking.socket.send("hello");
  expect((await speaking.socket.closed).code).toBe(1008);
  const member = await createMember(world);
  const followed = await follow(member.client);
  await followed.next();
  await member.client.post("/api/v2/users/logout");
  expect((await followed.socket.closed).code).toBe(1008);
});

test("[WS-6] a burst of changes is sent as the final rows, not one message for each", async () => {
  await using world = await openWorld();
  const { template_id } = await seedTemplate(world.server);
  const created = await Promise.all(
    Array.from({ length: 12 }, (_, at) => createWorkspace(world.admin, template_id, `dev-${at}`)),
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
