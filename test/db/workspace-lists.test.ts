// Lists of many workspaces: SQLite's query plans, and consistent pages and counts for every caller.
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, spyOn } from "bun:test";
import { join } from "node:path";
import { updateAgent } from "#db/agents/agents.ts";
import { updateBy } from "#db/engine/sql.ts";
import { workspaces } from "#db/schema/workspaces.ts";
import { insertMember } from "#db/users/members.ts";
import { listWorkspaceStamps } from "#db/workspaces/fingerprint.ts";
import { listWorkspacePage } from "#db/workspaces/lists.ts";
import { listWorkspaceViews } from "#db/workspaces/views.ts";
import { parseWorkspaceFilter } from "#domain/workspaces/search.ts";
import type { Workspace, Workspaces } from "#schema/workspaces/workspace.ts";
import type { UserCaller } from "#src/api/http/caller.ts";
import type { Client } from "#src/client.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { getContext, seedUser } from "#test/support/seed.ts";
import { type SeededMany, seedMany } from "#test/support/seed-many.ts";
import { tempDirectory } from "#test/support/server.ts";
import { openWorld, type World } from "#test/support/workspaces.ts";

const SIZE = { workspaces: 600, templates: 30, owners: 40 };
const updateWorkspace = updateBy(workspaces, workspaces.id);

const temp = tempDirectory();
let world: World;
let seeded: SeededMany;
let people: Record<"owner" | "organization_admin" | "member" | "outsider", { client: Client; id: string }>;
beforeAll(async () => {
  // The clock is stopped, because otherwise agents could time out before a list is read on a busy machine.
  world = await openWorld({ directory: temp.path, clock: new ManualClock() });
  if (!world.server.context) return;
  const { store, clock } = getContext(world.server);
  const now = clock.now();
  seeded = await seedMany(store, now, SIZE);
  const admin = await seedUser(world.server, { username: "boss" });
  const member = await seedUser(world.server, { username: "mia", organization_id: seeded.organization_id });
  const outsider = await seedUser(world.server, { username: "stan" });
  const times = { created_at: now, updated_at: now };
  const { organization_id } = seeded;
  const [first = "", second = "", third = "", fourth = ""] = seeded.workspaces;
  await store.commit([
    insertMember({ organization_id, user_id: admin.user_id, roles: ["organization-admin"], ...times }),
    updateWorkspace(first, { user_acl: { [member.user_id]: "use" } }),
    updateWorkspace(second, { group_acl: { [organization_id]: "use" } }),
    updateWorkspace(third, { owner_id: member.user_id, favorite: true }),
    updateWorkspace(fourth, { dormant_at: now }),
  ]);
  const clientAs = ({ user_id, token }: { user_id: string; token: string }) => ({
    id: user_id,
    client: world.admin.withToken(token),
  });
  const { id } = await world.admin.get<{ id: string }>("/api/v2/users/me");
  people = {
    owner: { id, client: world.admin },
    organization_admin: clientAs(admin),
    member: clientAs(member),
    outsider: clientAs(outsider),
  };
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  temp[Symbol.dispose]();
});

/** The cursor before every workspace. */
const FIRST_CURSOR = "00000000-0000-0000-0000-000000000000";

/** Every search key, alone and combined with another. */
const SEARCHES = [
  "",
  ...["owner:owner-7", "owner:me", "owner-3/ws", "name:ws-001", "name:w", "template:kind-3", "organization:default"],
  ...["pending", "running", "stopped", "failed", "deleted", "starting", "canceled"].map((status) => `status:${status}`),
  ...["has-agent:connecting", "has-agent:connected,timeout", "healthy:true", "healthy:false", "dormant:true"],
  ...["outdated:true", "outdated:false", "param:size", "param:size=big", "has-ai-task:true"],
  ...["last_used_after:2020-01-01T00:00:00Z", "last_used_before:2020-01-01T00:00:00Z"],
  ...["shared:true", "shared:false", "shared_with_user:mia", "shared_with_group:everyone"],
  ...["id:6f1c2f60-0d43-4d7f-8df9-1b5a51dcb1a0", "status:running owner:owner-7", "status:running name:ws-001"],
  ...["status:running template:kind-3", "template:kind-3 owner:owner-3", "shared:true status:running"],
];

const makeCaller = (kind: "owner" | "organization_admin" | "member"): UserCaller => {
  const organizations = { [seeded.organization_id]: kind === "organization_admin" ? ["organization-admin"] : [] };
  const roles = kind === "owner" ? ["owner"] : [];
  return { user_id: people[kind].id, roles, organizations, groups: [], compat: false } as unknown as UserCaller;
};

testInProcess("[WL-1] every list search uses an index, for every caller", () => {
  using db = new Database(join(temp.path, "slipway.db"), { readonly: true });
  const faults: string[] = [];
  for (const kind of ["owner", "organization_admin", "member"] as const) {
    const caller = makeCaller(kind);
    const page = { favorites_of: caller.user_id, limit: 50 };
    const requests = SEARCHES.flatMap((q) => [undefined, FIRST_CURSOR].map((after) => ({ q, after })));
    for (const { q, after } of requests) {
      const filter = parseWorkspaceFilter(q, caller, 0);
      const { sql, params } = listWorkspacePage(filter, { ...page, after });
      const plan = db.query(`explain query plan ${sql}`).all(...(params as never[])) as { detail: string }[];
      const fullScans = plan.filter(({ detail }) => /^SCAN (w|s|own|a|p|b|workspaces|agents)$/.test(detail));
      faults.push(...fullScans.map(({ detail }) => `${kind} ${q}: ${detail} in ${sql}`));
    }
  }
  for (const { sql, params } of [listWorkspaceStamps(["x"]), listWorkspaceViews({ ids: "[]" })]) {
    const plan = db.query(`explain query plan ${sql}`).all(...(params as never[])) as { detail: string }[];
    faults.push(
      ...plan.map(({ detail }) => detail).filter((detail) => /^SCAN (w|workspaces|agents|jobs)\b/.test(detail)),
    );
  }
  expect(faults).toEqual([]);
});

const search = (client: Client, q: string, limit = 0, offset = 0) =>
  client.get<Workspaces>(`/api/v2/workspaces?q=${encodeURIComponent(q)}&limit=${limit}&offset=${offset}`);
const listIds = (list: readonly Workspace[]): string[] => list.map(({ id }) => id);

testInProcess("[WL-2] pages follow each other without gaps or duplicates, and the count is their total", async () => {
  for (const { client } of [people.owner, people.organization_admin, people.member]) {
    for (const q of ["", "status:running", "status:failed", "name:ws-00", "owner:owner-7", "param:size=big"]) {
      const complete = await search(client, q);
      const ids = listIds(complete.workspaces);
      expect([q, complete.count, new Set(ids).size]).toEqual([q, ids.length, ids.length]);
      const step = Math.max(7, Math.ceil(ids.length / 4));
      const pages: string[] = [];
      for (let offset = 0; offset <= ids.length; offset += step) {
        const page = await search(client, q, step, offset);
        expect(page.count).toBe(complete.count);
        pages.push(...listIds(page.workspaces));
      }
      expect(pages).toEqual(ids);
    }
  }
});

testInProcess("[WL-7] cursor pages contain each workspace once, for every caller and search", async () => {
  for (const { client } of [people.owner, people.organization_admin, people.member]) {
    for (const q of ["", "status:running", "name:ws-00", "owner:owner-7"]) {
      const complete = await search(client, q);
      const step = Math.max(7, Math.ceil(complete.count / 4));
      const pages: string[] = [];
      for (let after = FIRST_CURSOR; ; ) {
        const query = new URLSearchParams({ q, limit: String(step), after_id: after });
        const page = await client.get<Workspaces>(`/api/v2/workspaces?${query}`);
        expect(page.count).toBe(complete.count);
        pages.push(...listIds(page.workspaces));
        if (page.workspaces.length < step) break;
        after = pages.at(-1) ?? after;
      }
      expect([q, pages]).toEqual([q, listIds(complete.workspaces).sort()]);
    }
  }
});

testInProcess(
  "[WL-3] each caller's list and count contain only visible workspaces, in the same order for everyone",
  async () => {
    const allWorkspaces = (await search(people.owner.client, "")).workspaces;
    expect(allWorkspaces).toHaveLength(SIZE.workspaces - 1);
    const dormant = await search(people.owner.client, "dormant:true");
    expect(listIds(dormant.workspaces)).toEqual([seeded.workspaces[3] as string]);
    const adminList = await search(people.organization_admin.client, "");
    expect(listIds(adminList.workspaces)).toEqual(listIds(allWorkspaces));
    const memberList = await search(people.member.client, "");
    // The member's own favorite comes first, then the workspaces that are shared with the member.
    const [first = "", second = "", third = ""] = seeded.workspaces;
    expect(listIds(memberList.workspaces)).toEqual([third, first, second]);
    expect(memberList.count).toBe(3);
    expect(await search(people.outsider.client, "")).toEqual({ workspaces: [], count: 0 });
    const order = allWorkspaces.map(({ owner_name, name, latest_build }) => [
      latest_build.status === "running" ? 0 : 1,
      owner_name.toLowerCase(),
      name.toLowerCase(),
    ]);
    expect(order).toEqual(order.toSorted((a, b) => (String(a) < String(b) ? -1 : 1)));
  },
);

testInProcess("[WL-4] a search returns exactly the workspaces that match its terms", async () => {
  const allWorkspaces = (await search(people.owner.client, "")).workspaces;
  const cases: [string, (workspace: Workspace) => boolean][] = [
    ["status:stopped", ({ latest_build }) => latest_build.status === "stopped"],
    ["status:pending", ({ latest_build }) => latest_build.status === "pending"],
    ["status:failed", ({ latest_build }) => latest_build.status === "failed"],
    ["owner:owner-11", ({ owner_name }) => owner_name === "owner-11"],
    ["template:kind-3", ({ template_name }) => template_name === "kind-3"],
    ["name:0011", ({ name }) => name.includes("0011")],
    [
      "status:running template:kind-4",
      ({ latest_build, template_name }) => latest_build.status === "running" && template_name === "kind-4",
    ],
    ["healthy:false", ({ health }) => !health.healthy],
  ];
  for (const [q, matches] of cases) {
    const result = await search(people.organization_admin.client, q);
    expect([q, listIds(result.workspaces)]).toEqual([q, listIds(allWorkspaces.filter(matches))]);
    expect(result.count).toBe(result.workspaces.length);
  }
});

testInProcess("[WL-6] rereads only the workspaces of a cached page whose agents have changed since", async () => {
  const { client } = people.owner;
  const { store } = getContext(world.server);
  const q = "owner:owner-7";
  const before = await search(client, q, 5);
  const { id = "", latest_build } =
    before.workspaces.find((workspace) => workspace.latest_build.resources.length > 0) ?? {};
  const agent_id = latest_build?.resources[0]?.agents[0]?.id ?? "";
  using scans = spyOn(store, "scan");
  const takeScannedParams = (): string[] => scans.mock.calls.splice(0).flatMap(([{ params }]) => params.map(String));
  await store.commit([updateAgent(agent_id, { lifecycle_state: "off" })], { about: id });
  const { workspaces, count } = await search(client, q, 5);
  const listLifecycleStates = (list: readonly Workspace[]) =>
    list.map(({ latest_build: { resources } }) => resources[0]?.agents[0]?.lifecycle_state);
  expect([listIds(workspaces), count]).toEqual([listIds(before.workspaces), before.count]);
  expect(listLifecycleStates(workspaces)).toEqual(
    listLifecycleStates(before.workspaces).map((state, i) => (workspaces[i]?.id === id ? "off" : state)),
  );
  expect(takeScannedParams().slice(0, 2)).toEqual([JSON.stringify([id]), JSON.stringify([id])]);
  await search(client, q, 5);
  expect(takeScannedParams()).toEqual([]);
  // This batch does not name a workspace, so any workspace may have changed.
  await store.commit([updateAgent(agent_id, { lifecycle_state: "ready" })]);
  expect(listLifecycleStates((await search(client, q, 5)).workspaces)).toContain("ready");
  expect(takeScannedParams().some((param) => param === JSON.stringify(listIds(workspaces)))).toBe(true);
});

testInProcess("[WL-5] a cached page is not reused once anything in it has changed", async () => {
  const { client } = people.owner;
  const q = "owner:owner-9";
  const [firstWorkspace] = (await search(client, q, 5)).workspaces;
  expect((await search(client, q, 5)).workspaces[0]?.name).toBe(firstWorkspace?.name as string);
  await client.put(`/api/v2/workspaces/${firstWorkspace?.id}/ttl`, { ttl_ms: 3_600_000 });
  expect((await search(client, q, 5)).workspaces[0]?.ttl_ms).toBe(3_600_000);
  const { store } = getContext(world.server);
  await store.commit([updateWorkspace(firstWorkspace?.id as string, { deleted: true })]);
  const after = await search(client, q, 5);
  expect(listIds(after.workspaces)).not.toContain(firstWorkspace?.id);
});
