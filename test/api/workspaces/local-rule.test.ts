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

test("[LP-9] [TP-36] members neither see nor can use the template, unless the setting allows it", async () => {
  await using world = await openLocal();
  const { local, member } = world;
  expect(await member.get<NamedTemplate[]>("/api/v2/templates")).toEqual([]);
  expect(await member.get<NamedTemplate[]>("/api/v2/organizations/default/templates")).toEqual([]);
  expect(await listOffered(member)).toEqual(["docker"]);
  const rejection = await awaitRejection(createWorkspace(member, local.id));
  expect(rejection.status).toBe(403);
  expect(rejection.message).toContain("Only owners of the deployment can have local workspaces");
  expect(rejection.message).toContain("allow_local_provisioner_for_members");
  expect(await member.get<object>("/api/v2/workspaces")).toMatchObject({ count: 0 });

  await using forMembers = await openLocal({ env: { SLIPWAY_ALLOW_LOCAL_PROVISIONER_FOR_MEMBERS: "true" } });
  expect((await forMembers.member.get<NamedTemplate[]>("/api/v2/templates")).map(({ name }) => name)).toEqual([
    "local",
  ]);
  expect(await listOffered(forMembers.member)).toEqual(["local", "docker"]);
  const { id } = await createWorkspace(forMembers.member, forMembers.local.id);
  expect((await awaitBuild(forMembers.member, id)).latest_build.status).toBe("running");
  await createBuild(forMembers.member, id, "delete");
  await awaitBuild(forMembers.member, id);
});

test("[LP-9] an owner can create local workspaces neither for a member nor from another person's template version", async () => {
  await using world = await openLocal();
  const { admin, local } = world;
  const member = await seedUser(world.server, { organization_id: local.organization_id });
  const createForMember = admin.post(`/api/v2/users/${member.user_id}/workspaces`, {
    name: "dev",
    template_id: local.id,
  });
  expect((await awaitRejection(createForMember)).status).toBe(403);
  const { organization_id } = local;
  const templateAdmin = admin.withToken(
    (await seedUser(world.server, { organization_id, roles: ["template-admin"] })).token,
  );
  expect((await templateAdmin.get<NamedTemplate[]>("/api/v2/templates")).map(({ name }) => name)).toEqual(["local"]);
  const othersTemplate = await makeTemplate(
    templateAdmin,
    "provisioner: local\nresources: [{name: a, agents: [{name: main}]}]\n",
  );
  const rejection = await awaitRejection(createWorkspace(admin, othersTemplate.id));
  expect(rejection.status).toBe(403);
  expect(rejection.message).toContain("only from template versions that an owner created");
});

test("[LP-16] a version for local workspaces that the server would not start cannot be promoted to active", async () => {
  await using world = await openLocal();
  const { admin, local, server } = world;
  const { organization_id } = local;
  const template = await makeTemplate(admin);
  const { token, user_id } = await seedUser(server, { organization_id });
  const templateAdmin = admin.withToken(token);
  await admin.patch(`/api/v2/templates/${template.id}/acl`, { user_perms: { [user_id]: "admin" } });
  const files = "provisioner: local\nresources: [{name: a, agents: [{name: main}]}]\n";
  const adminsVersion = await importVersion(templateAdmin, files, { template_id: template.id });
  for (const client of [templateAdmin, admin]) {
    const { status, message } = await awaitRejection(
      client.patch(`/api/v2/templates/${template.id}/versions`, { id: adminsVersion.id }),
    );
    expect([status, message.includes("allow_local_provisioner_for_members")]).toEqual([403, true]);
  }
  const ownersVersion = await importVersion(admin, files, { template_id: template.id });
  await admin.patch(`/api/v2/templates/${template.id}/versions`, { id: ownersVersion.id });
});

test("[LP-8] [TP-36] after a move behind a proxy, starts of local workspaces fail with the reason; stop and delete still work", async () => {
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
  // The server stops the running workspace when it starts (rule LP-15), so the workspace can be deleted.
  expect((await awaitBuild(admin, id)).latest_build).toMatchObject({ status: "stopped", reason: "autostop" });
  await createBuild(admin, id, "delete");
  expect((await awaitBuild(admin, id)).latest_build.status).toBe("deleted");
});

test("[LP-15] when an owner loses the role, their local workspaces stop and cannot be started", async () => {
  await using world = await openLocal();
  const { admin, local, server } = world;
  const secondOwnerUser = await seedUser(server, { organization_id: local.organization_id, roles: ["owner"] });
  const secondOwner = admin.withToken(secondOwnerUser.token);
  const { id } = await createWorkspace(secondOwner, local.id, "theirs");
  expect((await awaitBuild(secondOwner, id)).latest_build.status).toBe("running");
  const ownWorkspace = await createWorkspace(admin, local.id, "mine");
  expect((await awaitBuild(admin, ownWorkspace.id)).latest_build.status).toBe("running");
  await admin.put(`/api/v2/users/${secondOwnerUser.user_id}/roles`, { roles: [] });
  const stopped = await awaitWorkspace(admin, id, ({ latest_build }) => latest_build.status === "stopped");
  expect(stopped.latest_build.reason).toBe("autostop");
  expect((await awaitRejection(createBuild(secondOwner, id, "start"))).status).toBe(403);
  expect((await awaitBuild(admin, ownWorkspace.id)).latest_build.status).toBe("running");
  await createBuild(admin, ownWorkspace.id, "delete");
  await awaitBuild(admin, ownWorkspace.id);
});

test("[LP-15] the workspaces of a former owner stop even while a snapshot or a fork is in progress", async () => {
  await using world = await openLocal();
  const { admin, local, server } = world;
  const secondOwnerUser = await seedUser(server, { organization_id: local.organization_id, roles: ["owner"] });
  const secondOwner = admin.withToken(secondOwnerUser.token);
  const [withSnapshot, withFork] = await Promise.all(
    ["copied", "forked"].map((name) => createWorkspace(secondOwner, local.id, name)),
  );
  for (const workspace of [withSnapshot, withFork]) await awaitBuild(secondOwner, workspace?.id ?? "");
  const folder = join(server.directory, "workspaces", withSnapshot?.id ?? "");
  // A large file, so that the snapshot is still in progress when the role changes.
  writeFileSync(join(folder, "home", "large"), new Uint8Array(400 * 1024 * 1024));
  const { pid } = JSON.parse(readFileSync(join(folder, "daemon.json"), "utf8"));
  await Promise.all([
    secondOwner.post(`/api/v2/workspaces/${withSnapshot?.id}/snapshots`, {}),
    secondOwner.post(`/api/v2/workspaces/${withFork?.id}/forks`, { names: ["fork"], start: true }),
  ]);
  await admin.put(`/api/v2/users/${secondOwnerUser.user_id}/roles`, { roles: [] });
  await until(() => !existsSync(`/proc/${pid}`));
  for (const workspace of [withSnapshot, withFork])
    await awaitWorkspace(admin, workspace?.id ?? "", ({ latest_build }) => latest_build.status === "stopped");
  const isFork = ({ name }: Workspace): boolean => name === "fork";
  await until(async () => (await admin.get<Workspaces>("/api/v2/workspaces")).workspaces.some(isFork));
  const fork = (await admin.get<Workspaces>("/api/v2/workspaces")).workspaces.find(isFork);
  const { job } = (await awaitBuild(admin, fork?.id ?? "")).latest_build;
  expect(job).toMatchObject({ status: "failed", error: expect.stringContaining("can't have local workspaces") });
});

test("[FO-9] a fork does not start if its creator is removed from the organization in the meantime", async () => {
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
  "[LP-10] importing a template for local workspaces fails with an explanation unless it has exactly one agent",
  async () => {
    await using world = await openWorld();
    const twoAgents =
      "provisioner: local\nresources:\n  - name: a\n    agents:\n      - name: one\n      - name: two\n";
    const { job } = await importVersion(world.admin, twoAgents);
    expect(job.status).toBe("failed");
    expect(job.error).toContain("line 6");
    expect(job.error).toContain("a local workspace has exactly one agent, this template has 2");
    const withoutAgents = await importVersion(world.admin, "provisioner: local\nresources:\n  - name: a\n");
    expect(withoutAgents.job.error).toContain("a local workspace has exactly one agent, this template has none");
  },
);

testAnywhere(
  "[CF-15] doctor reports whether local workspaces are available, to whom, and what that means",
  async () => {
    using temp = tempDirectory();
    const runDoctor = async (...flags: string[]): Promise<string> => {
      const { printed } = await runVerb([
        "doctor",
        "--quick",
        "--data-dir",
        temp.path,
        "--address=127.0.0.1:0",
        ...flags,
      ]);
      return printed.split("\n").find((line) => line.includes("local workspaces")) ?? "";
    };
    expect(await runDoctor()).toMatch(/^ok .*available to owners of the deployment/);
    expect(await runDoctor("--allow-local-provisioner-for-members")).toMatch(
      /^WARN .*available to everyone with an account/,
    );
    const accessUrlFlag = "--access-url=https://slipway.example.com";
    expect(await runDoctor(accessUrlFlag)).toMatch(/^ok .*off, because access_url is https:\/\/slipway\.example\.com/);
    expect(await runDoctor(accessUrlFlag, "--allow-local-provisioner-off-loopback")).toMatch(
      /^WARN .*everything there that the server's user can/,
    );
  },
);
