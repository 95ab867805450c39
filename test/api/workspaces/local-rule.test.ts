// Which users can create local workspaces, whose processes have the rights of the server's own user: only deployment owners, and no one if
// other machines can reach the server, unless settings allow more.

import { expect, test as testAnywhere } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Workspace, Workspaces } from "#schema/workspaces/workspace.ts";
import { ApiError, type Client } from "#src/client.ts";
import { runVerb } from "#test/cli/run-verb.ts";
import { testSingleServer } from "#test/support/one-server.ts";
import { seedUser } from "#test/support/seed.ts";
import { type TestServerOptions, tempDirectory } from "#test/support/server.ts";
import { importVersion, makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, awaitWorkspace, createBuild, createWorkspace, openWorld } from "#test/support/workspaces.ts";

const test = testSingleServer("local");

type NamedTemplate = { id: string; name: string; organization_id: string };

const awaitRejection = async (call: Promise<unknown>): Promise<{ status: number; message: string }> => {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return error instanceof ApiError ? error : { status: 200, message: "" };
};

/** Returns which of the starter templates `local` and `docker` are offered to this caller. */
const listOffered = async (caller: Client): Promise<string[]> =>
  (await caller.get<NamedTemplate[]>("/api/v2/templates/examples"))
    .map(({ id }) => id)
    .filter((id) => id === "local" || id === "docker");

/** A server with the template `local`, its first user and a member. */
const openLocal = async (options: TestServerOptions = {}) => {
  const world = await openWorld(options);
  const local = (await world.admin.get<NamedTemplate[]>("/api/v2/templates")).find(({ name }) => name === "local");
  if (!local) throw new Error("the server has no template local");
  const { organization_id } = local;
  const member = world.admin.withToken((await seedUser(world.server, { organization_id })).token);
  return { ...world, local, member };
};

test("[LP-9] [TP-36] a member is not shown the template and cannot create a workspace from it; the setting allows both", async () => {
  await using world = await openLocal();
  const { local, member } = world;
  expect(await member.get<NamedTemplate[]>("/api/v2/templates")).toEqual([]);
  expect(await member.get<NamedTemplate[]>("/api/v2/organizations/default/templates")).toEqual([]);
  expect(await listOffered(member)).toEqual(["docker"]);
  const refused = await awaitRejection(createWorkspace(member, local.id));
  expect(refused.status).toBe(403);
  expect(refused.message).toContain("Only owners of the deployment can have local workspaces");
  expect(refused.message).toContain("allow_local_provisioner_for_members");
  expect(await member.get<object>("/api/v2/workspaces")).toMatchObject({ count: 0 });

  await using open = await openLocal({ env: { SLIPWAY_ALLOW_LOCAL_PROVISIONER_FOR_MEMBERS: "true" } });
  expect((await open.member.get<NamedTemplate[]>("/api/v2/templates")).map(({ name }) => name)).toEqual(["local"]);
  expect(await listOffered(open.member)).toEqual(["local", "docker"]);
  const { id } = await createWorkspace(open.member, open.local.id);
  expect((await awaitBuild(open.member, id)).latest_build.status).toBe("running");
  await createBuild(open.member, id, "delete");
  await awaitBuild(open.member, id);
});

test("[LP-9] an owner cannot create one for a member, and cannot start a version that another person has written", async () => {
  await using world = await openLocal();
  const { admin, local } = world;
  const somebody = await seedUser(world.server, { organization_id: local.organization_id });
  const forThem = admin.post(`/api/v2/users/${somebody.user_id}/workspaces`, { name: "dev", template_id: local.id });
  expect((await awaitRejection(forThem)).status).toBe(403);
  const { organization_id } = local;
  const lead = admin.withToken((await seedUser(world.server, { organization_id, roles: ["template-admin"] })).token);
  expect((await lead.get<NamedTemplate[]>("/api/v2/templates")).map(({ name }) => name)).toEqual(["local"]);
  const leadTemplate = await makeTemplate(lead, "provisioner: local\nresources: [{name: a, agents: [{name: main}]}]\n");
  const started = await awaitRejection(createWorkspace(admin, leadTemplate.id));
  expect(started.status).toBe(403);
  expect(started.message).toContain("only from template versions that an owner created");
});

test("[LP-16] a version for local workspaces that the server would not start cannot be promoted", async () => {
  await using world = await openLocal();
  const { admin, local, server } = world;
  const { organization_id } = local;
  const template = await makeTemplate(admin);
  const { token, user_id } = await seedUser(server, { organization_id });
  const lead = admin.withToken(token);
  await admin.patch(`/api/v2/templates/${template.id}/acl`, { user_perms: { [user_id]: "admin" } });
  const files = "provisioner: local\nresources: [{name: a, agents: [{name: main}]}]\n";
  const leadVersion = await importVersion(lead, files, { template_id: template.id });
  for (const by of [lead, admin]) {
    const { status, message } = await awaitRejection(
      by.patch(`/api/v2/templates/${template.id}/versions`, { id: leadVersion.id }),
    );
    expect([status, message.includes("allow_local_provisioner_for_members")]).toEqual([403, true]);
  }
  const ownVersion = await importVersion(admin, files, { template_id: template.id });
  await admin.patch(`/api/v2/templates/${template.id}/versions`, { id: ownVersion.id });
});

test("[LP-8] [TP-36] a data directory that moves behind a proxy starts no more local workspaces and says why; stop and delete still work", async () => {
  using temp = tempDirectory();
  const directory = temp.path;
  let id = "";
  {
    await using world = await openLocal({ directory });
    ({ id } = await createWorkspace(world.admin, world.local.id));
    expect((await awaitBuild(world.admin, id)).latest_build.status).toBe("running");
  }
  const env = { SLIPWAY_ACCESS_URL: "https://slipway.example.com", SLIPWAY_ALLOWED_HOSTS: "127.0.0.1" };
  await using moved = await openLocal({ directory, env });
  const { admin, local } = moved;
  for (const call of [createBuild(admin, id, "start"), createWorkspace(admin, local.id, "another")]) {
    const { status, message } = await awaitRejection(call);
    expect(status).toBe(403);
    expect(message).toContain("access_url is https://slipway.example.com");
    expect(message).toContain("allow_local_provisioner_off_loopback");
  }
  expect(await listOffered(admin)).toEqual(["docker"]);
  // The start stops what was running before (rule LP-15), so it can be deleted.
  expect((await awaitBuild(admin, id)).latest_build).toMatchObject({ status: "stopped", reason: "autostop" });
  await createBuild(admin, id, "delete");
  expect((await awaitBuild(admin, id)).latest_build.status).toBe("deleted");
});

test("[LP-15] an owner who loses the role has their running local workspaces stopped, and cannot start more", async () => {
  await using world = await openLocal();
  const { admin, local, server } = world;
  const seeded = await seedUser(server, { organization_id: local.organization_id, roles: ["owner"] });
  const other = admin.withToken(seeded.token);
  const { id } = await createWorkspace(other, local.id, "theirs");
  expect((await awaitBuild(other, id)).latest_build.status).toBe("running");
  const ownWorkspace = await createWorkspace(admin, local.id, "mine");
  expect((await awaitBuild(admin, ownWorkspace.id)).latest_build.status).toBe("running");
  await admin.put(`/api/v2/users/${seeded.user_id}/roles`, { roles: [] });
  const stopped = await awaitWorkspace(admin, id, ({ latest_build }) => latest_build.status === "stopped");
  expect(stopped.latest_build.reason).toBe("autostop");
  expect((await awaitRejection(createBuild(other, id, "start"))).status).toBe(403);
  expect((await awaitBuild(admin, ownWorkspace.id)).latest_build.status).toBe("running");
  await createBuild(admin, ownWorkspace.id, "delete");
  await awaitBuild(admin, ownWorkspace.id);
});

test("[LP-15] a snapshot or a fork in progress does not keep the workspaces of a former owner running", async () => {
  await using world = await openLocal();
  const { admin, local, server } = world;
  const seeded = await seedUser(server, { organization_id: local.organization_id, roles: ["owner"] });
  const other = admin.withToken(seeded.token);
  const [copied, forked] = await Promise.all(
    ["copied", "forked"].map((name) => createWorkspace(other, local.id, name)),
  );
  for (const created of [copied, forked]) await awaitBuild(other, created?.id ?? "");
  const copiedFolder = join(server.directory, "workspaces", copied?.id ?? "");
  // So that the snapshot takes longer than the change of the role.
  writeFileSync(join(copiedFolder, "home", "large"), new Uint8Array(400 * 1024 * 1024));
  const { pid } = JSON.parse(readFileSync(join(copiedFolder, "daemon.json"), "utf8"));
  await Promise.all([
    other.post(`/api/v2/workspaces/${copied?.id}/snapshots`, {}),
    other.post(`/api/v2/workspaces/${forked?.id}/forks`, { names: ["fork"], start: true }),
  ]);
  await admin.put(`/api/v2/users/${seeded.user_id}/roles`, { roles: [] });
  await until(() => !existsSync(`/proc/${pid}`));
  for (const created of [copied, forked])
    await awaitWorkspace(admin, created?.id ?? "", ({ latest_build }) => latest_build.status === "stopped");
  const isFork = ({ name }: Workspace): boolean => name === "fork";
  await until(async () => (await admin.get<Workspaces>("/api/v2/workspaces")).workspaces.some(isFork));
  const fork = (await admin.get<Workspaces>("/api/v2/workspaces")).workspaces.find(isFork);
  const { job } = (await awaitBuild(admin, fork?.id ?? "")).latest_build;
  expect(job).toMatchObject({ status: "failed", error: expect.stringContaining("can't have local workspaces") });
});

test("[FO-9] a fork that a user requested before they were removed from the organization does not start", async () => {
  await using world = await openLocal({ env: { SLIPWAY_ALLOW_LOCAL_PROVISIONER_FOR_MEMBERS: "true" } });
  const { admin, local, server } = world;
  const { user_id, token } = await seedUser(server, { organization_id: local.organization_id });
  const member = admin.withToken(token);
  const { id } = await createWorkspace(member, local.id, "forked");
  await awaitBuild(member, id);
  writeFileSync(join(server.directory, "workspaces", id, "home", "large"), new Uint8Array(400 * 1024 * 1024));
  await member.post(`/api/v2/workspaces/${id}/forks`, { names: ["fork"], start: true });
  await admin.delete(`/api/v2/organizations/${local.organization_id}/members/${user_id}`);
  const isFork = ({ name }: Workspace): boolean => name === "fork";
  const findFork = async () => (await admin.get<Workspaces>("/api/v2/workspaces")).workspaces.find(isFork);
  await until(async () => (await findFork()) !== undefined);
  const { job } = (await awaitBuild(admin, (await findFork())?.id ?? "")).latest_build;
  expect(job).toMatchObject({ status: "failed", error: expect.stringContaining("not a member of its organization") });
  await createBuild(admin, id, "delete");
  await awaitBuild(admin, id);
});

testAnywhere(
  "[LP-10] a template for local workspaces with two agents, or none, fails at its import with an explanation",
  async () => {
    await using world = await openWorld();
    const two = "provisioner: local\nresources:\n  - name: a\n    agents:\n      - name: one\n      - name: two\n";
    const { job } = await importVersion(world.admin, two);
    expect(job.status).toBe("failed");
    expect(job.error).toContain("line 6");
    expect(job.error).toContain("a local workspace has exactly one agent, this template has 2");
    const none = await importVersion(world.admin, "provisioner: local\nresources:\n  - name: a\n");
    expect(none.job.error).toContain("a local workspace has exactly one agent, this template has none");
  },
);

testAnywhere("[CF-15] doctor says whether local workspaces are offered, to whom, and what that means", async () => {
  using temp = tempDirectory();
  const line = async (...flags: string[]): Promise<string> => {
    const { printed } = await runVerb([
      "doctor",
      "--quick",
      "--data-dir",
      temp.path,
      "--address=127.0.0.1:0",
      ...flags,
    ]);
    return printed.split("\n").find((one) => one.includes("local workspaces")) ?? "";
  };
  expect(await line()).toMatch(/^ok .*available to owners of the deployment/);
  expect(await line("--allow-local-provisioner-for-members")).toMatch(/^WARN .*available to everyone with an account/);
  const behind = "--access-url=https://slipway.example.com";
  expect(await line(behind)).toMatch(/^ok .*off, because access_url is https:\/\/slipway\.example\.com/);
  expect(await line(behind, "--allow-local-provisioner-off-loopback")).toMatch(
    /^WARN .*everything there that the server's user can/,
  );
});
