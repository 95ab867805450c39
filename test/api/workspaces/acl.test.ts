// Sharing a workspace with people: who can share it, what each role allows, and what ends when a share is revoked.
import { expect, test } from "bun:test";
import { uuid } from "#base/ids.ts";
import { updateBy } from "#db/engine/sql.ts";
import { users } from "#db/schema/users.ts";
import { storeSharingDisabled } from "#db/workspaces/sharing.ts";
import type { WorkspaceAcl } from "#schema/workspaces/acl.ts";
import type { Workspace, Workspaces } from "#schema/workspaces/workspace.ts";
import { ApiError, Client, type ClientSocket } from "#src/client.ts";
import { startAgentProcess, TestTerminal } from "#test/api/agents/reach.ts";
import { getContext } from "#test/support/seed.ts";
import { startTestServer, tempDirectory } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, createBuild } from "#test/support/workspaces.ts";
import { openSharedWorkspace } from "./shared-workspace.ts";

const awaitRejection = async (promise: Promise<unknown>): Promise<ApiError> => {
  const error = await promise.catch((thrown: unknown) => thrown);
  if (!(error instanceof ApiError)) throw new Error("the call was not rejected");
  return error;
};
const getInvalidFields = async (promise: Promise<unknown>) => {
  const { status, body } = await awaitRejection(promise);
  return [status, ...(body.validations ?? []).map(({ field }) => field)];
};
const searchNames = async (client: Client, q = ""): Promise<string[]> =>
  (await client.get<Workspaces>(`/api/v2/workspaces?q=${encodeURIComponent(q)}`)).workspaces.map(({ name }) => name);
const awaitClose = async (socket: ClientSocket) => {
  for await (const _ of socket);
  return socket.closed;
};

test("[SH-1] the workspace and its ACL show shares with names and roles; the owner revokes one or all", async () => {
  await using shared = await openSharedWorkspace();
  const { clients, path, idOf, organization_id, server } = shared;
  const ada = clients.owner;
  // No API call sets an image: it comes with external accounts.
  const avatar_url = "https://pictures.example/amy.png";
  await getContext(server).store.commit([updateBy(users, users.id)(idOf("amy"), { avatar_url })]);
  expect((await ada.get<Workspace>(path)).shared_with).toEqual([
    { id: idOf("amy"), actor_type: "user", name: "amy", avatar_url, roles: ["admin"] },
    { id: idOf("uma"), actor_type: "user", name: "uma", roles: ["use"] },
  ]);
  const patched = await ada.fetch("PATCH", `${path}/acl`, {
    user_roles: { [idOf("uma").toUpperCase()]: "", [idOf("bob")]: "" },
    group_roles: { [organization_id]: "use" },
  });
  expect([patched.status, await patched.text()]).toEqual([204, ""]);
  const acl = await ada.get<WorkspaceAcl>(`${path}/acl`);
  expect(acl.users).toEqual([{ id: idOf("amy"), username: "amy", name: "", avatar_url, role: "admin" }]);
  expect(acl.groups).toMatchObject([{ id: organization_id, name: "Everyone", organization_id, role: "use" }]);
  expect([acl.user_roles, acl.group_roles]).toEqual([{ [idOf("amy")]: "admin" }, { [organization_id]: "use" }]);
  expect((await ada.get<Workspace>(path)).shared_with.map(({ actor_type, name }) => [actor_type, name])).toEqual([
    ["user", "amy"],
    ["group", "Everyone"],
  ]);
  expect((await ada.fetch("DELETE", `${path}/acl`)).status).toBe(204);
  expect((await ada.fetch("DELETE", `${path}/acl`)).status).toBe(204);
  expect((await ada.get<Workspace>(path)).shared_with).toEqual([]);
});

test("[SH-2] invalid roles, users and groups are rejected by field, and no share changes", async () => {
  await using shared = await openSharedWorkspace();
  const { clients, path, idOf, server } = shared;
  const unknownId = uuid();
  const patchUsers = (user_roles: object) => clients.owner.patch(`${path}/acl`, { user_roles });
  const before = await clients.owner.get<object>(`${path}/acl`);
  expect(await getInvalidFields(patchUsers({ [idOf("bob")]: "owner" }))).toEqual([400, `user_roles.${idOf("bob")}`]);
  expect(await getInvalidFields(patchUsers({ [idOf("ada")]: "admin" }))).toEqual([400, `user_roles.${idOf("ada")}`]);
  expect(await getInvalidFields(patchUsers({ [unknownId]: "use", bob: "use" }))).toEqual([
    400,
    "user_roles.bob",
    `user_roles.${unknownId}`,
  ]);
  const groupRequest = clients.owner.patch(`${path}/acl`, { group_roles: { [unknownId]: "use" } });
  expect(await getInvalidFields(groupRequest)).toEqual([400, `group_roles.${unknownId}`]);
  const { body } = await awaitRejection(clients.owner.patch(`${path}/acl`, { user_roles: [] }));
  expect(body.validations?.map(({ field }) => field)).toEqual(["user_roles"]);
  const adminRequest = clients["site owner"].patch(`${path}/acl`, { user_roles: { [idOf("ada")]: "use" } });
  expect(await getInvalidFields(adminRequest)).toEqual([400, `user_roles.${idOf("ada")}`]);
  expect(await clients.owner.get<object>(`${path}/acl`)).toEqual(before);
  expect(getContext(server).workspaces.size).toBeGreaterThan(0);
});

test("[SH-13] shares are not restored for a user who returns to the organization", async () => {
  await using shared = await openSharedWorkspace();
  const { clients, path, idOf, template_id } = shared;
  const { "site owner": admin, "shared use": uma } = shared.clients;
  await admin.patch(`/api/v2/templates/${template_id}/acl`, { user_perms: { [idOf("uma")]: "admin" } });
  const members = "/api/v2/organizations/default/members";
  const listSharedWith = async () => [
    (await clients.owner.get<WorkspaceAcl>(`${path}/acl`)).users.map(({ username }) => username),
    (await admin.get<{ users: unknown[] }>(`/api/v2/templates/${template_id}/acl`)).users.length,
  ];
  expect(await listSharedWith()).toEqual([["amy", "uma"], 1]);
  await admin.delete(`${members}/${idOf("uma")}`);
  expect(await listSharedWith()).toEqual([["amy"], 0]);
  await admin.post(`${members}/${idOf("uma")}`);
  expect((await awaitRejection(uma.get(path))).status).toBe(404);
});

test("[SH-3] sharing with the organization's ID gives all members access, and members lose it when they leave", async () => {
  await using shared = await openSharedWorkspace();
  const { clients, path, idOf, organization_id } = shared;
  expect((await awaitRejection(clients.member.get(path))).status).toBe(404);
  await clients.owner.patch(`${path}/acl`, { group_roles: { [organization_id]: "use" } });
  expect((await clients.member.get<Workspace>(path)).name).toBe("dev");
  expect(await searchNames(clients.member)).toEqual(["dev"]);
  await clients["site owner"].delete(`/api/v2/organizations/default/members/${idOf("uma")}`);
  expect((await awaitRejection(clients["shared use"].get(path))).status).toBe(404);
  expect(await searchNames(clients["shared use"])).toEqual([]);
});

test("[SH-4] `use` can view the workspace; `admin` can also start, stop and change it, but not delete or share it", async () => {
  await using shared = await openSharedWorkspace();
  const { clients, path, id, idOf, workspace } = shared;
  const agent = workspace.latest_build.resources[0]?.agents[0]?.id;
  const [amy, uma] = [clients["shared admin"], clients["shared use"]];
  for (const client of [amy, uma]) {
    expect((await client.get<Workspace>(path)).favorite).toBe(false);
    expect((await client.fetch("GET", `/api/v2/workspaceagents/${agent}/logs`)).status).toBe(200);
    expect((await client.fetch("GET", "/api/v2/users/ada/workspace/dev")).status).toBe(200);
    expect((await client.fetch("PUT", `${path}/favorite`)).status).toBe(403);
    expect((await awaitRejection(createBuild(client, id, "delete"))).status).toBe(403);
    expect((await client.fetch("PATCH", `${path}/acl`, { user_roles: { [idOf("bob")]: "use" } })).status).toBe(403);
    expect((await client.fetch("DELETE", `${path}/acl`)).status).toBe(403);
  }
  const alwaysUpdate = { automatic_updates: "always" };
  expect((await uma.fetch("PUT", `${path}/autoupdates`, alwaysUpdate)).status).toBe(403);
  expect((await awaitRejection(createBuild(uma, id, "stop"))).status).toBe(403);
  expect((await amy.fetch("PUT", `${path}/autoupdates`, alwaysUpdate)).status).toBe(204);
  expect((await createBuild(amy, id, "stop")).initiator_name).toBe("amy");
  expect((await awaitBuild(amy, id)).latest_build.status).toBe("stopped");
});

test("[SH-5] lists contain shared workspaces, and searches filter by share, within what the caller can see", async () => {
  await using shared = await openSharedWorkspace();
  const { clients, path, idOf, organization_id } = shared;
  const { owner, member, "shared use": uma, "site owner": admin } = shared.clients;
  expect([await searchNames(owner), await searchNames(uma), await searchNames(member)]).toEqual([["dev"], ["dev"], []]);
  expect([await searchNames(uma, "shared:true"), await searchNames(uma, "shared:false")]).toEqual([["dev"], []]);
  for (const user of ["me", "UMA", idOf("uma")]) {
    expect(await searchNames(uma, `shared_with_user:${user}`)).toEqual(["dev"]);
  }
  expect(await searchNames(admin, "shared_with_user:bob")).toEqual([]);
  expect(await searchNames(admin, "shared_with_group:everyone")).toEqual([]);
  await owner.patch(`${path}/acl`, { group_roles: { [organization_id]: "admin" } });
  const { name: organization } = await admin.get<{ name: string }>(`/api/v2/organizations/${organization_id}`);
  for (const group of ["everyone", organization_id, `${organization}/everyone`, `${organization}/${organization_id}`]) {
    expect(await searchNames(admin, `shared_with_group:${group}`)).toEqual(["dev"]);
  }
  for (const group of ["other", "other/everyone", `"$["`, uuid()]) {
    expect(await searchNames(admin, `shared_with_group:${group}`)).toEqual([]);
  }
  expect(await searchNames(member)).toEqual(["dev"]);
  expect((await clients.guest.fetch("GET", "/api/v2/workspaces")).status).toBe(401);
});

test("[SH-6] a person who loses access is disconnected from every stream of the workspace; other people stay connected", async () => {
  await using shared = await openSharedWorkspace();
  const { clients, path, idOf, workspace, server } = shared;
  const { owner, "shared use": uma, "shared admin": amy } = clients;
  const agent = workspace.latest_build.resources[0]?.agents[0]?.id;
  using amySocket = await amy.socket(`${path}/watch-ws`);
  using ownerSocket = await owner.socket(`${path}/watch-ws`);
  using umaSocket = await uma.socket(`${path}/watch-ws`);
  using umaLogs = await uma.socket(`/api/v2/workspaceagents/${agent}/logs?follow=true`);
  const umaEvents = await uma.fetch("GET", `${path}/watch`);
  await owner.patch(`${path}/acl`, { user_roles: { [idOf("uma")]: "" } });
  for (const socket of [umaSocket, umaLogs]) expect((await awaitClose(socket)).code).toBe(1008);
  expect(await umaEvents.text()).toStartWith("event: ping\n");
  expect((await awaitRejection(uma.get(`${path}/acl`))).status).toBe(404);
  // A lower role that still allows viewing keeps the person connected.
  await owner.patch(`${path}/acl`, { user_roles: { [idOf("amy")]: "use" } });
  for (const socket of [amySocket, ownerSocket]) {
    for (;;) {
      const { type, data } = await socket.json<{ type: string; data: Workspace }>();
      if (type === "data" && data.shared_with[0]?.roles[0] === "use") break;
    }
  }
  await clients["site owner"].delete(`/api/v2/organizations/default/members/${idOf("amy")}`);
  expect((await awaitClose(amySocket)).code).toBe(1008);
  expect(getContext(server).streams.size).toBe(0);
});

test("[SH-6][WK-34] a person who loses access loses the terminal; the owner's stays open until they leave the organization", async () => {
  await using shared = await openSharedWorkspace();
  const { clients, path, idOf, workspace, server, token } = shared;
  const agent_id = workspace.latest_build.resources[0]?.agents[0]?.id ?? "";
  using home = tempDirectory();
  await using _daemon = await startAgentProcess(server, { agent_id, agent_token: token }, home.path);
  const toAgentPath = (suffix: string) => `/api/v2/workspaceagents/${agent_id}/${suffix}`;
  using umaTerminal = await TestTerminal.open({ owner: clients["shared use"], path: toAgentPath }, { command: "cat" });
  using ownerTerminal = await TestTerminal.open({ owner: clients.owner, path: toAgentPath }, { command: "cat" });
  umaTerminal.sendInput({ data: "one\r" });
  await umaTerminal.until(/one/);
  await clients.owner.patch(`${path}/acl`, { user_roles: { [idOf("uma")]: "" } });
  expect((await awaitClose(umaTerminal.socket)).code).toBe(1008);
  ownerTerminal.sendInput({ data: "two\r" });
  await ownerTerminal.until(/two/);
  await clients["site owner"].delete(`/api/v2/organizations/default/members/${idOf("ada")}`);
  expect((await awaitClose(ownerTerminal.socket)).code).toBe(1008);
  expect((await clients.owner.fetch("GET", toAgentPath("listening-ports"))).status).toBe(404);
  expect((await clients.owner.get<Workspace>(path)).id).toBe(workspace.id);
});

test("[SH-7] every ACL call for a deleted workspace returns 410", async () => {
  await using shared = await openSharedWorkspace();
  const { clients, path, id } = shared;
  await createBuild(clients.owner, id, "delete");
  await awaitBuild(clients.owner, id).catch(() => undefined);
  for (const method of ["GET", "PATCH", "DELETE"]) {
    const body = method === "PATCH" ? { user_roles: {} } : undefined;
    expect((await clients.owner.fetch(method, `${path}/acl`, body)).status).toBe(410);
  }
});

test("[SH-12] disabling sharing in an organization revokes existing shares and rejects new ones until it is enabled again", async () => {
  using directory = tempDirectory();
  const firstServer = await openSharedWorkspace({ directory: directory.path });
  const { clients, path, idOf, organization_id, server } = firstServer;
  const { owner, "shared use": uma, "organization admin": ora } = clients;
  const settingPath = `/api/v2/organizations/${organization_id}/settings/workspace-sharing`;
  const shareWithUma = async () =>
    (await owner.fetch("PATCH", `${path}/acl`, { user_roles: { [idOf("uma")]: "use" } })).status;
  using umaSocket = await uma.socket(`${path}/watch-ws`);
  expect((await owner.fetch("PATCH", settingPath, { sharing_disabled: true })).status).toBe(403);
  expect(await uma.get<object>(settingPath)).toEqual({ sharing_disabled: false });
  expect(await ora.patch<object>(settingPath, { sharing_disabled: true })).toEqual({ sharing_disabled: true });
  expect((await awaitClose(umaSocket)).code).toBe(1008);
  expect((await uma.fetch("GET", path)).status).toBe(404);
  expect((await owner.get<Workspace>(path)).shared_with).toEqual([]);
  for (const method of ["GET", "DELETE"]) expect((await owner.fetch(method, `${path}/acl`)).status).toBe(403);
  expect(await shareWithUma()).toBe(403);
  await ora.patch(settingPath, { sharing_disabled: false });
  expect(await shareWithUma()).toBe(204);
  // The state after a crash between the change of the setting and its effect on workspaces.
  await getContext(server).store.commit([storeSharingDisabled(organization_id, true)]);
  await firstServer[Symbol.asyncDispose]();
  await using secondServer = await startTestServer({ directory: directory.path });
  const newClient = new Client(secondServer.url, owner.token);
  // A node can receive calls before it has notified the other nodes of its start.
  await until(async () => (await newClient.get<Workspace>(path)).shared_with.length === 0);
});
