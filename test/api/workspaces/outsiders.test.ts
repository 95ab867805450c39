// Which data of the owner the agents get if a person without access to the workspace's contents has started or changed it.
import { describe, expect, test } from "bun:test";
import { uuid } from "#base/ids.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { Client } from "#src/client.ts";
import { forFile } from "#test/support/for-file.ts";
import { awaitBuild, createBuild, seedTemplate } from "#test/support/workspaces.ts";
import { openSharedWorkspace } from "./shared-workspace.ts";

const shared = await forFile(openSharedWorkspace());
const { server, clients } = shared;
const { owner, "organization admin": orgAdmin, "shared admin": sharedAdmin, "site owner": siteOwner } = clients;

/** Returns whether the agents of the latest build get the owner's data, using the agent's own token. */
const hasUserData = async (id: string, token: string): Promise<boolean> => {
  await awaitBuild(owner, id);
  const { status } = await owner.withToken(token).fetch("GET", "/api/v2/workspaceagents/me/gitsshkey");
  expect([200, 403]).toContain(status);
  return status === 200;
};

/** Creates a template whose agent has a known token. */
const seedKnownAgent = async () => {
  const token = uuid();
  const agents = [{ name: "dev", token }];
  const created = await seedTemplate(server, { provisioner: "echo", resources: [{ name: "main", agents }] });
  return { template_id: created.template_id, token };
};

const createAs = (client: Client, template_id: string, name: string, owner = "ada"): Promise<Workspace> =>
  client.post<Workspace>(`/api/v2/organizations/default/members/${owner}/workspaces`, { name, template_id });

const runBuild = async (client: Client, id: string, transition: string, more: object = {}): Promise<void> => {
  await createBuild(client, id, transition, more);
  await awaitBuild(owner, id);
};

describe("a workspace that an organization's administrator", () => {
  test("[WK-33] created for a user gets none of the owner's data until the owner starts it", async () => {
    const { template_id, token } = await seedKnownAgent();
    const { id, latest_build } = await createAs(orgAdmin, template_id, "gift");
    expect(await hasUserData(id, token)).toBe(false);
    const external = await owner.withToken(token).fetch("GET", "/api/v2/workspaceagents/me/external-auth?id=any");
    expect(external.status).toBe(403);
    const logs = await owner.get<{ output: string }[]>(`/api/v2/workspacebuilds/${latest_build.id}/logs`);
    expect(logs.map(({ output }) => output).join("\n")).toContain("gets none of the owner's secrets");
    await runBuild(orgAdmin, id, "stop");
    await runBuild(orgAdmin, id, "start");
    expect(await hasUserData(id, token)).toBe(false);
    await runBuild(owner, id, "stop");
    // A wake does not count as a start by the owner: any web page can make the owner's browser connect.
    await owner.post<unknown>(`/api/v2/workspaces/${id}/wake`, {});
    expect(await hasUserData(id, token)).toBe(false);
    await runBuild(owner, id, "stop");
    await runBuild(owner, id, "start");
    expect(await hasUserData(id, token)).toBe(true);
  });

  test("[WK-33] starts loses the owner's data; a stop by the administrator changes nothing", async () => {
    const { template_id, token } = await seedKnownAgent();
    const { id } = await createAs(owner, template_id, "own");
    expect(await hasUserData(id, token)).toBe(true);
    await runBuild(orgAdmin, id, "stop");
    await runBuild(owner, id, "start");
    expect(await hasUserData(id, token)).toBe(true);
    await owner.fetch("PATCH", `/api/v2/workspaces/${id}/acl`, { user_roles: { [shared.idOf("amy")]: "admin" } });
    for (const [client, expected] of [
      [orgAdmin, false],
      [sharedAdmin, true],
      [orgAdmin, false],
      [siteOwner, true],
    ] as const) {
      await runBuild(owner, id, "stop");
      await runBuild(client, id, "start");
      expect(await hasUserData(id, token)).toBe(expected);
    }
  });

  test("[WK-33] cannot enter does not let them turn on automatic updates", async () => {
    const { template_id } = await seedKnownAgent();
    const { id } = await createAs(owner, template_id, "steady");
    await awaitBuild(owner, id);
    const setAutoUpdates = (client: Client, automatic_updates: string): Promise<Response> =>
      client.fetch("PUT", `/api/v2/workspaces/${id}/autoupdates`, { automatic_updates });
    const response = await setAutoUpdates(orgAdmin, "always");
    expect([response.status, await response.text()]).toEqual([
      403,
      expect.stringContaining("turn on automatic updates"),
    ]);
    expect((await owner.get<Workspace>(`/api/v2/workspaces/${id}`)).automatic_updates).toBe("never");
    expect((await setAutoUpdates(orgAdmin, "never")).status).toBe(204);
    expect((await setAutoUpdates(owner, "always")).status).toBe(204);
  });
});

test("[WK-34] the workspace of a user who was removed from the organization can be stopped and deleted, but not started or changed", async () => {
  const { template_id } = await seedKnownAgent();
  const bob = clients.member;
  const { id } = await createAs(bob, template_id, "left", "bob");
  await awaitBuild(bob, id);
  await siteOwner.delete(`/api/v2/organizations/default/members/${shared.idOf("bob")}`);
  await createBuild(bob, id, "stop");
  await awaitBuild(bob, id);
  for (const client of [bob, orgAdmin, siteOwner]) {
    const response = await client.fetch("POST", `/api/v2/workspaces/${id}/builds`, { transition: "start" });
    expect([response.status, await response.text()]).toEqual([403, expect.stringContaining("not a member of its org")]);
  }
  for (const operation of ["restart", "wake"]) {
    expect((await bob.fetch("POST", `/api/v2/workspaces/${id}/${operation}`, {})).status).toBe(403);
  }
  const sendChange = async (method: "PUT" | "POST", path: string, body: object): Promise<number> =>
    (await bob.fetch(method, `/api/v2/workspaces/${id}/${path}`, body)).status;
  const share = { agent_name: "dev", port: 3000, protocol: "http", share_level: "public" };
  const schedule = { schedule: "CRON_TZ=UTC 30 9 * * 1-5" };
  expect([await sendChange("POST", "port-share", share), await sendChange("PUT", "autostart", schedule)]).toEqual([
    403, 403,
  ]);
  for (const [method, path, body] of [
    ["POST", "snapshots", {}],
    ["PUT", "ttl", { ttl_ms: 3_600_000 }],
    ["PUT", "autoupdates", { automatic_updates: "always" }],
    ["PUT", "dormant", { dormant: false }],
    ["POST", "usage", {}],
  ] as const) {
    expect([path, await sendChange(method, path, body)]).toEqual([path, 403]);
  }
  const aclResponse = await bob.fetch("PATCH", `/api/v2/workspaces/${id}/acl`, { user_roles: {} });
  expect(aclResponse.status).toBe(403);
  expect(await sendChange("PUT", "autostart", { schedule: "" })).toBe(204);
  await siteOwner.post(`/api/v2/organizations/default/members/${shared.idOf("bob")}`);
  expect(await sendChange("PUT", "autostart", schedule)).toBe(204);
  await createBuild(bob, id, "start");
  await awaitBuild(bob, id);
  await siteOwner.delete(`/api/v2/organizations/default/members/${shared.idOf("bob")}`);
  expect((await bob.fetch("POST", `/api/v2/workspaces/${id}/restart`, {})).status).toBe(403);
  await createBuild(bob, id, "delete");
  await siteOwner.post(`/api/v2/organizations/default/members/${shared.idOf("bob")}`);
});
