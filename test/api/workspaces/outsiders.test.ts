// Workspaces started by someone who may not enter them: what their agents get of their owner's data.
import { describe, expect, test } from "bun:test";
import { uuid } from "#base/ids.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { Client } from "#src/client.ts";
import { forFile } from "#test/support/for-file.ts";
import { awaitBuild, createBuild, seedTemplate } from "#test/support/workspaces.ts";
import { openSharedWorkspace } from "./shared-workspace.ts";

const shared = await forFile(openSharedWorkspace());
const { server, clients } = shared;
const { owner, "organization admin": outsider, "shared admin": sharer, "site owner": site } = clients;

/** Returns whether the agents of the latest build get the owner's data, using the agent's own token. */
const hasUserData = async (id: string, token: string): Promise<boolean> => {
  await awaitBuild(owner, id);
  const { status } = await owner.withToken(token).fetch("GET", "/api/v2/workspaceagents/me/gitsshkey");
  expect([200, 403]).toContain(status);
  return status === 200;
};

/** A template whose agent has a known token. */
const seedKnownAgent = async () => {
  const token = uuid();
  const agents = [{ name: "dev", token }];
  const created = await seedTemplate(server, { provisioner: "echo", resources: [{ name: "main", agents }] });
  return { template_id: created.template_id, token };
};

const createFor = (client: Client, template_id: string, name: string, owner = "ada"): Promise<Workspace> =>
  client.post<Workspace>(`/api/v2/organizations/default/members/${owner}/workspaces`, { name, template_id });

const runBuild = async (client: Client, id: string, transition: string, more: object = {}): Promise<void> => {
  await createBuild(client, id, transition, more);
  await awaitBuild(owner, id);
};

describe("a workspace that an organization's administrator", () => {
  test("[WK-33] has created for a user gets none of the owner's data until the owner starts it", async () => {
    const { template_id, token } = await seedKnownAgent();
    const { id, latest_build } = await createFor(outsider, template_id, "gift");
    expect(await hasUserData(id, token)).toBe(false);
    const external = await owner.withToken(token).fetch("GET", "/api/v2/workspaceagents/me/external-auth?id=any");
    expect(external.status).toBe(403);
    const logs = await owner.get<{ output: string }[]>(`/api/v2/workspacebuilds/${latest_build.id}/logs`);
    expect(logs.map(({ output }) => output).join("\n")).toContain("gets none of the owner's secrets");
    await runBuild(outsider, id, "stop");
    await runBuild(outsider, id, "start");
    expect(await hasUserData(id, token)).toBe(false);
    await runBuild(owner, id, "stop");
    // Any page can make the owner's browser connect.
    await owner.post<unknown>(`/api/v2/workspaces/${id}/wake`, {});
    expect(await hasUserData(id, token)).toBe(false);
    await runBuild(owner, id, "stop");
    await runBuild(owner, id, "start");
    expect(await hasUserData(id, token)).toBe(true);
  });

  test("[WK-33] has started or changed loses the owner's data, and a stop changes nothing", async () => {
    const { template_id, token } = await seedKnownAgent();
    const { id } = await createFor(owner, template_id, "own");
    expect(await hasUserData(id, token)).toBe(true);
    await runBuild(outsider, id, "stop");
    await runBuild(owner, id, "start");
    expect(await hasUserData(id, token)).toBe(true);
    await owner.fetch("PATCH", `/api/v2/workspaces/${id}/acl`, { user_roles: { [shared.idOf("amy")]: "admin" } });
    for (const [who, wanted] of [
      [outsider, false],
      [sharer, true],
      [outsider, false],
      [site, true],
    ] as const) {
      await runBuild(owner, id, "stop");
      await runBuild(who, id, "start");
      expect(await hasUserData(id, token)).toBe(wanted);
    }
  });

  test("[WK-33] cannot be set to follow new versions by a person who cannot enter the workspace", async () => {
    const { template_id } = await seedKnownAgent();
    const { id } = await createFor(owner, template_id, "steady");
    await awaitBuild(owner, id);
    const follow = (client: Client, automatic_updates: string): Promise<Response> =>
      client.fetch("PUT", `/api/v2/workspaces/${id}/autoupdates`, { automatic_updates });
    const refused = await follow(outsider, "always");
    expect([refused.status, await refused.text()]).toEqual([403, expect.stringContaining("turn on automatic updates")]);
    expect((await owner.get<Workspace>(`/api/v2/workspaces/${id}`)).automatic_updates).toBe("never");
    expect((await follow(outsider, "never")).status).toBe(204);
    expect((await follow(owner, "always")).status).toBe(204);
  });
});

test("[WK-34] the workspace of a user who was removed from its organization can be stopped and deleted, but not started", async () => {
  const { template_id } = await seedKnownAgent();
  const bob = clients.member;
  const { id } = await createFor(bob, template_id, "left", "bob");
  await awaitBuild(bob, id);
  await site.delete(`/api/v2/organizations/default/members/${shared.idOf("bob")}`);
  await createBuild(bob, id, "stop");
  await awaitBuild(bob, id);
  for (const who of [bob, outsider, site]) {
    const refused = await who.fetch("POST", `/api/v2/workspaces/${id}/builds`, { transition: "start" });
    expect([refused.status, await refused.text()]).toEqual([403, expect.stringContaining("not a member of its org")]);
  }
  for (const way of ["restart", "wake"]) {
    expect((await bob.fetch("POST", `/api/v2/workspaces/${id}/${way}`, {})).status).toBe(403);
  }
  const change = async (method: "PUT" | "POST", path: string, body: object): Promise<number> =>
    (await bob.fetch(method, `/api/v2/workspaces/${id}/${path}`, body)).status;
  const share = { agent_name: "dev", port: 3000, protocol: "http", share_level: "public" };
  const schedule = { schedule: "CRON_TZ=UTC 30 9 * * 1-5" };
  expect([await change("POST", "port-share", share), await change("PUT", "autostart", schedule)]).toEqual([403, 403]);
  for (const [method, path, body] of [
    ["POST", "snapshots", {}],
    ["PUT", "ttl", { ttl_ms: 3_600_000 }],
    ["PUT", "autoupdates", { automatic_updates: "always" }],
    ["PUT", "dormant", { dormant: false }],
    ["POST", "usage", {}],
  ] as const) {
    expect([path, await change(method, path, body)]).toEqual([path, 403]);
  }
  const acl = await bob.fetch("PATCH", `/api/v2/workspaces/${id}/acl`, { user_roles: {} });
  expect(acl.status).toBe(403);
  expect(await change("PUT", "autostart", { schedule: "" })).toBe(204);
  await site.post(`/api/v2/organizations/default/members/${shared.idOf("bob")}`);
  expect(await change("PUT", "autostart", schedule)).toBe(204);
  await createBuild(bob, id, "start");
  await awaitBuild(bob, id);
  await site.delete(`/api/v2/organizations/default/members/${shared.idOf("bob")}`);
  expect((await bob.fetch("POST", `/api/v2/workspaces/${id}/restart`, {})).status).toBe(403);
  await createBuild(bob, id, "delete");
  await site.post(`/api/v2/organizations/default/members/${shared.idOf("bob")}`);
});
