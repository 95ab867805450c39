// Sharing ports of a workspace, and the template's limit on the share level.
import { expect, test } from "bun:test";
import type { PortShare } from "#schema/workspaces/port-share.ts";
import { ApiError, Client } from "#src/client.ts";
import { getContext } from "#test/support/seed.ts";
import { startTestServer, tempDirectory } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, createBuild, ECHO } from "#test/support/workspaces.ts";
import { openSharedWorkspace } from "./shared-workspace.ts";

const agents = [{ name: "dev" }, { name: "aux" }];
const manifest = { ...ECHO, resources: [{ name: "main", agents }] };
const validShare = { agent_name: "dev", port: 8080, protocol: "http", share_level: "public" };

const listShares = async (client: Client, path: string) =>
  (await client.get<{ shares: PortShare[] }>(`${path}/port-share`)).shares;
const listLevels = async (client: Client, path: string) =>
  (await listShares(client, path)).map(({ agent_name, port, share_level }) => `${port} ${agent_name} ${share_level}`);
const awaitRejection = async (promise: Promise<unknown>) => {
  const error = await promise.catch((thrown: unknown) => thrown);
  if (!(error instanceof ApiError)) throw new Error("the call was not rejected");
  return [error.status, ...(error.body.validations ?? []).map(({ field }) => field)];
};

test("[SH-8] each agent has one share per port; a new share replaces it, and lists are sorted by port and agent", async () => {
  await using shared = await openSharedWorkspace({ manifest });
  const { clients, path, id } = shared;
  const ada = clients.owner;
  const post = (more: object = {}) => ada.post<PortShare>(`${path}/port-share`, { ...validShare, ...more });
  expect(await post()).toEqual({ workspace_id: id, ...validShare } as PortShare);
  await post({ agent_name: "aux", share_level: "owner" });
  await post({ port: 9, protocol: "https", share_level: "organization" });
  await post({ port: 65_535 });
  expect(await post({ share_level: "authenticated", protocol: "https" })).toMatchObject({ protocol: "https" });
  expect(await listLevels(ada, path)).toEqual([
    "9 dev organization",
    "8080 aux owner",
    "8080 dev authenticated",
    "65535 dev public",
  ]);
  const deleteResponse = await ada.fetch("DELETE", `${path}/port-share`, { agent_name: "dev", port: 8080 });
  expect([deleteResponse.status, await deleteResponse.text()]).toEqual([200, ""]);
  expect(await awaitRejection(ada.delete(`${path}/port-share`, { agent_name: "dev", port: 8080 }))).toEqual([404]);
  expect(await listLevels(ada, path)).toEqual(["9 dev organization", "8080 aux owner", "65535 dev public"]);
});

test("[SH-9] errors name invalid levels, ports, protocols and agents, and levels that the template does not allow", async () => {
  await using shared = await openSharedWorkspace({ manifest });
  const { clients, path, template_id } = shared;
  const invalidShares: [object, string][] = [
    [{ share_level: "everybody" }, "share_level"],
    [{ share_level: undefined }, "share_level"],
    [{ port: 8 }, "port"],
    [{ port: 65_536 }, "port"],
    [{ port: "80" }, "port"],
    [{ protocol: "ftp" }, "protocol"],
    [{ agent_name: "other" }, "agent_name"],
    [{ agent_name: undefined }, "agent_name"],
  ];
  for (const [more, field] of invalidShares) {
    const rejection = awaitRejection(clients.owner.post(`${path}/port-share`, { ...validShare, ...more }));
    expect([more, await rejection]).toEqual([more, [400, field]]);
  }
  await clients["template admin"].patch(`/api/v2/templates/${template_id}`, { max_port_share_level: "organization" });
  for (const share_level of ["public", "authenticated"]) {
    const rejection = awaitRejection(clients.owner.post(`${path}/port-share`, { ...validShare, share_level }));
    expect(await rejection).toEqual([400, "share_level"]);
  }
  const publicShare = clients.owner.post(`${path}/port-share`, validShare);
  const validations = [{ field: "share_level", detail: "the template allows at most organization" }];
  await expect(publicShare).rejects.toMatchObject({ body: { validations } });
  for (const share_level of ["organization", "owner"]) {
    await clients.owner.post(`${path}/port-share`, { ...validShare, share_level });
  }
  expect(await listLevels(clients.owner, path)).toEqual(["8080 dev owner"]);
});

test("[SH-10] shares survive a stop and a start, need an agent, and are deleted with the workspace", async () => {
  await using shared = await openSharedWorkspace({ manifest });
  const { clients, path, id, server } = shared;
  const ada = clients.owner;
  await ada.post(`${path}/port-share`, validShare);
  await createBuild(ada, id, "stop");
  await awaitBuild(ada, id);
  expect(await awaitRejection(ada.post(`${path}/port-share`, validShare))).toEqual([400, "agent_name"]);
  expect(await listLevels(ada, path)).toEqual(["8080 dev public"]);
  await createBuild(ada, id, "start");
  await awaitBuild(ada, id);
  expect(await listLevels(ada, path)).toEqual(["8080 dev public"]);
  await createBuild(ada, id, "delete");
  await awaitBuild(ada, id).catch(() => undefined);
  expect(await awaitRejection(ada.get(`${path}/port-share`))).toEqual([410]);
  expect(await awaitRejection(ada.post(`${path}/port-share`, validShare))).toEqual([410]);
  const countShares = { sql: "select count(*) from port_shares", params: [], map: ([count]: unknown[]) => count };
  expect(await getContext(server).store.get(countShares)).toBe(0);
});

test("[SH-14] when a guest loses access, their shared ports are unshared; the owner is notified of public ports", async () => {
  await using shared = await openSharedWorkspace({ manifest });
  const { clients, path, idOf, organization_id } = shared;
  const { owner, "shared admin": amy, "site owner": admin, member: bob } = shared.clients;
  const { id: group } = await admin.post<{ id: string }>(`/api/v2/organizations/${organization_id}/groups`, {
    name: "helpers",
  });
  await admin.patch(`/api/v2/groups/${group}`, { add_users: [idOf("bob")] });
  await owner.patch(`${path}/acl`, { group_roles: { [group]: "admin" } });
  await owner.post(`${path}/port-share`, validShare);
  await amy.post(`${path}/port-share`, { ...validShare, port: 3000 });
  await amy.post(`${path}/port-share`, { ...validShare, port: 3001, share_level: "authenticated" });
  await bob.post(`${path}/port-share`, { ...validShare, port: 4000 });
  const inbox = await owner.get<{ notifications: { title: string }[] }>("/api/v2/notifications/inbox");
  expect(inbox.notifications.map(({ title }) => title).sort()).toEqual([
    "amy made port 3000 of dev public",
    "bob made port 4000 of dev public",
  ]);
  await owner.patch(`${path}/acl`, { user_roles: { [idOf("amy")]: "" } });
  expect(await listLevels(owner, path)).toEqual(["4000 dev public", "8080 dev public"]);
  await admin.patch(`/api/v2/groups/${group}`, { remove_users: [idOf("bob")] });
  await until(async () => (await listLevels(owner, path)).join() === "8080 dev public");
  const { audit_logs } = await clients["site owner"].get<{ audit_logs: { action: string }[] }>(
    "/api/v2/audit?limit=50&q=resource_type:port_share",
  );
  expect(audit_logs.filter(({ action }) => action === "delete")).toHaveLength(3);
});

test("[SH-14] a port that a guest shares while they lose access is rejected or unshared", async () => {
  await using shared = await openSharedWorkspace({ manifest });
  const { clients, path, idOf, organization_id } = shared;
  const { owner, "shared admin": amy, "site owner": admin, member: bob } = clients;
  const { id: group } = await admin.post<{ id: string }>(`/api/v2/organizations/${organization_id}/groups`, {
    name: "helpers",
  });
  await admin.patch(`/api/v2/groups/${group}`, { add_users: [idOf("bob")] });
  await owner.patch(`${path}/acl`, { group_roles: { [group]: "admin" } });
  const shareWhileRevoking = async (client: Client, firstPort: number, revokeAccess: () => Promise<unknown>) => {
    const share = async (_: unknown, i: number) =>
      (await client.fetch("POST", `${path}/port-share`, { ...validShare, port: firstPort + i })).status;
    const shareRequests = Array.from({ length: 20 }, share);
    const revocation = revokeAccess();
    const statuses = await Promise.all([...shareRequests, ...Array.from({ length: 20 }, (_, i) => share(_, 20 + i))]);
    await revocation;
    expect(statuses.filter((status) => ![200, 403, 404].includes(status))).toEqual([]);
  };
  await shareWhileRevoking(amy, 4000, () => owner.patch(`${path}/acl`, { user_roles: { [idOf("amy")]: "" } }));
  expect(await listLevels(owner, path)).toEqual([]);
  await shareWhileRevoking(bob, 5000, () => admin.patch(`/api/v2/groups/${group}`, { remove_users: [idOf("bob")] }));
  await until(async () => (await listLevels(owner, path)).length === 0);
});

test("[SH-14] when a guest loses the role that allows sharing, their ports are unshared unless another role allows it", async () => {
  await using shared = await openSharedWorkspace({ manifest });
  const { clients, path, idOf } = shared;
  const { owner, "shared admin": amy, "template admin": tia } = clients;
  await owner.patch(`${path}/acl`, { user_roles: { [idOf("tia")]: "admin" } });
  await owner.post(`${path}/port-share`, validShare);
  await amy.post(`${path}/port-share`, { ...validShare, port: 3000 });
  await tia.post(`${path}/port-share`, { ...validShare, port: 4000 });
  await owner.patch(`${path}/acl`, { user_roles: { [idOf("amy")]: "use", [idOf("tia")]: "use" } });
  expect(await listLevels(owner, path)).toEqual(["4000 dev public", "8080 dev public"]);
  expect(await awaitRejection(amy.post(`${path}/port-share`, validShare))).toEqual([403]);
  await tia.post(`${path}/port-share`, { ...validShare, port: 4001 });
});

test("[SH-14] when a guest loses a deployment or organization role that allowed sharing, their ports are unshared", async () => {
  await using shared = await openSharedWorkspace({ manifest });
  const { clients, path, idOf, organization_id } = shared;
  const { owner, "template admin": tia, "site owner": admin, member: bob } = clients;
  const setRoles = (roles: string[]) =>
    admin.put(`/api/v2/organizations/${organization_id}/members/${idOf("bob")}/roles`, { roles });
  await setRoles(["organization-template-admin"]);
  await owner.patch(`${path}/acl`, { user_roles: { [idOf("tia")]: "use", [idOf("bob")]: "use" } });
  await owner.post(`${path}/port-share`, validShare);
  await tia.post(`${path}/port-share`, { ...validShare, port: 3000 });
  await bob.post(`${path}/port-share`, { ...validShare, port: 4000 });
  await admin.put(`/api/v2/users/${idOf("tia")}/roles`, { roles: [] });
  await until(async () => (await listLevels(owner, path)).join() === "4000 dev public,8080 dev public");
  await setRoles(["organization-auditor"]);
  await until(async () => (await listLevels(owner, path)).join() === "8080 dev public");
  expect(await awaitRejection(bob.post(`${path}/port-share`, validShare))).toEqual([403]);
});

const listStoredLevels = (server: Parameters<typeof getContext>[0]) =>
  getContext(server).store.all({
    sql: "select port || ' ' || share_level from port_shares order by port",
    params: [],
    map: ([text]) => String(text),
  });

test("[SH-11] lowering a template's maximum lowers the shares above it, and raising it does not restore them", async () => {
  await using shared = await openSharedWorkspace({ manifest });
  const { clients, path, template_id, server } = shared;
  const setMaxLevel = (max_port_share_level: string) =>
    clients["site owner"].patch<unknown>(`/api/v2/templates/${template_id}`, { max_port_share_level });
  const shareLevels = ["public", "authenticated", "organization", "owner"];
  for (const [i, share_level] of shareLevels.entries()) {
    await clients.owner.post(`${path}/port-share`, { ...validShare, port: 8000 + i, share_level });
  }
  await setMaxLevel("organization");
  const lowered = ["8000 organization", "8001 organization", "8002 organization", "8003 owner"];
  expect(await listStoredLevels(server)).toEqual(lowered);
  await setMaxLevel("public");
  expect(await listLevels(clients.owner, path)).toEqual(lowered.map((share) => share.replace(" ", " dev ")));
});

test("[SH-11] a port that is shared while the maximum is lowered ends at the maximum or is rejected", async () => {
  await using shared = await openSharedWorkspace({ manifest });
  const { clients, path, template_id, server } = shared;
  const ports = Array.from({ length: 40 }, (_, i) => 9000 + i);
  const share = async (port: number) =>
    (await clients.owner.fetch("POST", `${path}/port-share`, { ...validShare, port })).status;
  const firstShares = ports.slice(0, 20).map(share);
  const lowering = clients["site owner"].patch(`/api/v2/templates/${template_id}`, { max_port_share_level: "owner" });
  const statuses = await Promise.all([...firstShares, ...ports.slice(20).map(share)]);
  await lowering;
  expect(statuses.filter((status) => ![200, 400, 409].includes(status))).toEqual([]);
  expect((await listStoredLevels(server)).filter((share) => !share.endsWith(" owner"))).toEqual([]);
  expect(await share(9100)).toBe(400);
});

test("[SH-11] shares that a crash left above the maximum are never served, and the next start lowers them", async () => {
  using directory = tempDirectory();
  const firstServer = await openSharedWorkspace({ manifest, directory: directory.path });
  const { clients, path, template_id, server } = firstServer;
  const token = clients.owner.token;
  await clients.owner.post(`${path}/port-share`, validShare);
  // The state after a crash between the change of the template and its effect on workspaces.
  const lower = "update templates set max_port_share_level = 'authenticated' where id = ?";
  await getContext(server).store.commit([{ sql: lower, rows: [[template_id]] }]);
  expect(await listLevels(clients.owner, path)).toEqual(["8080 dev authenticated"]);
  expect(await listStoredLevels(server)).toEqual(["8080 public"]);
  await firstServer[Symbol.asyncDispose]();
  await using secondServer = await startTestServer({ directory: directory.path });
  // A node can receive calls before it has notified the other nodes of its start.
  await until(async () => (await listStoredLevels(secondServer)).join() === "8080 authenticated");
  expect(await listLevels(new Client(secondServer.url, token), path)).toEqual(["8080 dev authenticated"]);
});
