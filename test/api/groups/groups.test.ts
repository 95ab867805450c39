// Groups of an organization: creating them, their members, and sharing with them.

import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Static } from "@sinclair/typebox";
import { uuid } from "#base/ids.ts";
import type { AuditLogs } from "#schema/audit.ts";
import type { Group } from "#schema/users/group.ts";
import type { Organization } from "#schema/users/organization.ts";
import type { Workspace, Workspaces } from "#schema/workspaces/workspace.ts";
import type { Client } from "#src/client.ts";
import { seedUser } from "#test/support/seed.ts";
import { createWorkspace, ECHO, openWorld, seedTemplate, type World } from "#test/support/workspaces.ts";
import { fetchStatus } from "../users/people.ts";

let world: World;
let organization_id: string;
let template_id: string;
let outsider: Client;
const clients: Record<string, Client> = {};
const ids: Record<string, string> = {};
const ORGANIZATION = "/api/v2/organizations/default";

beforeAll(async () => {
  world = await openWorld();
  const seeded = await seedTemplate(world.server, ECHO);
  template_id = seeded.template_id;
  const organization = await world.admin.get<Organization>(ORGANIZATION);
  organization_id = seeded.organization_id;
  expect(organization.id).toBe(organization_id);
  for (const name of ["ada", "bob", "uma"]) {
    const { token, user_id } = await seedUser(world.server, { username: name, organization_id });
    clients[name] = world.admin.withToken(token);
    ids[name] = user_id;
  }
  outsider = world.admin.withToken((await seedUser(world.server, { username: "eve" })).token);
});
afterAll(() => world[Symbol.asyncDispose]());

const getClient = (name: string): Client => clients[name] as Client;
const getId = (name: string): string => ids[name] as string;
let groupCount = 0;
const createGroup = (overrides: object = {}): Promise<Group> => {
  groupCount += 1;
  return world.admin.post<Group>(`${ORGANIZATION}/groups`, { name: `group-${groupCount}`, ...overrides });
};
const updateGroup = (group: Group, body: object) => world.admin.patch<Group>(`/api/v2/groups/${group.id}`, body);

test("[GR-1] every organization has a fixed group of all its members", async () => {
  const everyone = await world.admin.get<Group>(`/api/v2/groups/${organization_id}`);
  expect(everyone).toMatchObject({ id: organization_id, name: "Everyone", organization_id, quota_allowance: 0 });
  expect(everyone.members.map(({ username }) => username)).toEqual(expect.arrayContaining(["ada", "bob", "uma"]));
  expect(everyone.total_member_count).toBe(everyone.members.length);
  const path = `/groups/${organization_id}`;
  expect(await fetchStatus(world.admin, "PATCH", path, { name: "all" })).toBe(400);
  expect(await fetchStatus(world.admin, "PATCH", path, { add_users: ["ada"] })).toBe(400);
  expect(await fetchStatus(world.admin, "PATCH", path, { remove_users: ["ada"] })).toBe(400);
  expect(await fetchStatus(world.admin, "DELETE", path)).toBe(400);
  expect(await fetchStatus(world.admin, "POST", "/organizations/default/groups", { name: "everyone" })).toBe(400);
  for (const display_name of ["All of us", ""]) {
    expect(await updateGroup(everyone, { display_name })).toMatchObject({ name: "Everyone", display_name });
  }
  expect(
    (await world.admin.get<Group[]>(`${ORGANIZATION}/groups`)).filter(({ name }) => name === "Everyone"),
  ).toHaveLength(1);
});

test("[GR-2] user admins create and change groups; members see only themselves in them, others nothing", async () => {
  const group = await createGroup({ display_name: "Front end", quota_allowance: 3, avatar_url: "/emojis/1f310.png" });
  expect(group).toMatchObject({ display_name: "Front end", quota_allowance: 3, members: [], total_member_count: 0 });
  await updateGroup(group, { add_users: ["ada", getId("bob").toUpperCase()] });
  const path = `/groups/${group.id}`;
  const visibleGroup = await getClient("ada").get<Group>(`/api/v2${path}`);
  expect([visibleGroup.members.map(({ username }) => username), visibleGroup.total_member_count]).toEqual([["ada"], 2]);
  expect((await world.admin.get<Group>(`${ORGANIZATION}/groups/${group.name.toUpperCase()}`)).members).toHaveLength(2);
  const page = await world.admin.get<{ users: { username: string }[]; count: number }>(
    `/api/v2${path}/members?limit=1&offset=1`,
  );
  expect([page.users.map(({ username }) => username), page.count]).toEqual([["bob"], 2]);
  expect(await fetchStatus(getClient("ada"), "PATCH", path, { add_users: ["uma"] })).toBe(403);
  expect(await fetchStatus(getClient("ada"), "DELETE", path)).toBe(403);
  expect(await fetchStatus(getClient("ada"), "POST", "/organizations/default/groups", { name: "mine" })).toBe(403);
  for (const [method, body] of [["GET"], ["PATCH", {}], ["DELETE"]] as const) {
    expect([method, await fetchStatus(outsider, method, path, body)]).toEqual([method, 404]);
  }
  expect((await outsider.get<Group[]>("/api/v2/groups")).map(({ name }) => name)).toEqual(["Everyone"]);
  const ownGroups = await getClient("ada").get<Group[]>("/api/v2/groups?has_member=me&organization=default");
  expect(ownGroups.map(({ name }) => name)).toEqual(["Everyone", group.name]);
  expect((await world.admin.get<Group[]>(`/api/v2/groups?group_ids=${group.id}`)).map(({ id }) => id)).toEqual([
    group.id,
  ]);
});

test("[GR-2] rejects invalid and taken names, unknown members, and users both added and removed", async () => {
  const group = await createGroup();
  const getCreateStatus = (body: object) => fetchStatus(world.admin, "POST", "/organizations/default/groups", body);
  expect(await getCreateStatus({ name: group.name.toUpperCase() })).toBe(409);
  for (const body of [{}, { name: "" }, { name: " a" }, { name: "b", quota_allowance: -1 }, { name: "b", colour: 1 }]) {
    expect([body, await getCreateStatus(body)]).toEqual([body, 400]);
  }
  const path = `/groups/${group.id}`;
  for (const body of [
    { add_users: ["unknown"] },
    { add_users: ["ada"], remove_users: ["ada"] },
    { add_users: ["eve"] },
  ]) {
    expect([body, await fetchStatus(world.admin, "PATCH", path, body)]).toEqual([body, 400]);
  }
  expect((await world.admin.get<Group>(`/api/v2${path}`)).members).toEqual([]);
  expect(await fetchStatus(world.admin, "GET", `/groups/${uuid()}`)).toBe(404);
});

test("[GR-3] a person who leaves the organization loses its groups, even if they return", async () => {
  const { user_id } = await seedUser(world.server, { username: "lea", organization_id });
  const group = await createGroup();
  await updateGroup(group, { add_users: [user_id] });
  await world.admin.delete(`${ORGANIZATION}/members/lea`);
  await world.admin.post(`${ORGANIZATION}/members/lea`);
  expect((await world.admin.get<Group>(`/api/v2/groups/${group.id}`)).members).toEqual([]);
});

test("[GR-4] a share with a group applies to its current members, and ends when the group is deleted", async () => {
  const ada = getClient("ada");
  const { id } = await createWorkspace(ada, template_id, "shared");
  const path = `/api/v2/workspaces/${id}`;
  const group = await createGroup();
  await ada.patch(`${path}/acl`, { group_roles: { [group.id]: "use" } });
  expect((await ada.get<Workspace>(path)).shared_with.map(({ actor_type, name }) => [actor_type, name])).toEqual([
    ["group", group.name],
  ]);
  const listWorkspaces = async (client: Client, q = "") =>
    (await client.get<Workspaces>(`/api/v2/workspaces?q=${q}`)).workspaces.map(({ name }) => name);
  expect([
    await fetchStatus(getClient("uma"), "GET", `/workspaces/${id}`),
    await listWorkspaces(getClient("uma")),
  ]).toEqual([404, []]);
  await updateGroup(group, { add_users: ["uma"] });
  expect([
    await fetchStatus(getClient("uma"), "GET", `/workspaces/${id}`),
    await listWorkspaces(getClient("uma")),
  ]).toEqual([200, ["shared"]]);
  for (const q of [group.name, group.id, `default/${group.name}`]) {
    expect(await listWorkspaces(ada, `shared_with_group:${q}`)).toEqual(["shared"]);
  }
  expect(await listWorkspaces(ada, "shared_with_group:Everyone")).toEqual([]);
  using socket = await getClient("uma").socket(`${path}/watch-ws`);
  await updateGroup(group, { remove_users: ["uma"], name: "renamed" });
  for await (const _ of socket);
  expect((await socket.closed).code).toBe(1008);
  expect((await ada.get<Workspace>(path)).shared_with.map(({ name }) => name)).toEqual(["renamed"]);
  await updateGroup(group, { add_users: ["uma"] });
  expect((await world.admin.fetch("DELETE", `/api/v2/groups/${group.id}`)).status).toBe(200);
  expect(await fetchStatus(getClient("uma"), "GET", `/workspaces/${id}`)).toBe(404);
  expect((await ada.get<Workspace>(path)).shared_with).toEqual([]);
  const response = await ada.fetch("PATCH", `${path}/acl`, { group_roles: { [group.id]: "use" } });
  expect(response.status).toBe(400);
  expect((await ada.fetch("PATCH", `${path}/acl`, { group_roles: { [group.id]: "" } })).status).toBe(204);
});

test("[GR-5] the audit log records changes of groups and their members", async () => {
  const group = await createGroup();
  await updateGroup(group, { add_users: ["bob"] });
  await world.admin.fetch("PATCH", `/api/v2/groups/${group.id}`, { add_users: ["unknown"] });
  await world.admin.fetch("DELETE", `/api/v2/groups/${group.id}`);
  const { audit_logs } = await world.admin.get<Static<typeof AuditLogs>>(
    `/api/v2/audit?q=resource_id:${group.id}&limit=10`,
  );
  expect(audit_logs.map(({ action, status_code }) => [action, status_code])).toEqual([
    ["delete", 200],
    ["write", 400],
    ["write", 200],
    ["create", 201],
  ]);
  expect(audit_logs[2]?.diff.members).toMatchObject({ old: [], new: [getId("bob")] });
});

test("[GR-6] the lowest spend limit of a member's groups applies", async () => {
  const [highLimit, lowLimit] = [await createGroup(), await createGroup()];
  for (const group of [highLimit, lowLimit]) await updateGroup(group, { add_users: ["bob"] });
  const putLimit = (group: Group, spend_limit_micros: number) =>
    fetchStatus(world.admin, "PUT", `/chats/usage-limits/group-overrides/${group.id}`, { spend_limit_micros });
  expect([await putLimit(highLimit, 9_000_000), await putLimit(lowLimit, 4_000_000)]).toEqual([204, 204]);
  const getLimit = async () =>
    (await getClient("bob").get<{ spend_limit_micros: number | null }>("/api/v2/chats/usage-limits/status"))
      .spend_limit_micros;
  expect(await getLimit()).toBe(4_000_000);
  const usageLimits = await world.admin.get<{ group_overrides: { group_name: string }[] }>(
    "/api/v2/chats/usage-limits",
  );
  expect(usageLimits.group_overrides.map(({ group_name }) => group_name).sort()).toEqual(
    [lowLimit.name, highLimit.name].sort(),
  );
  await updateGroup(lowLimit, { remove_users: ["bob"] });
  expect(await getLimit()).toBe(9_000_000);
  await world.admin.fetch("DELETE", `/api/v2/chats/usage-limits/group-overrides/${highLimit.id}`);
  expect(await getLimit()).toBeNull();
});
