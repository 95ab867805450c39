// The list of workspaces: visibility, order and search keys.
import { expect, test } from "bun:test";
import { updateBy } from "#db/engine/sql.ts";
import { agents } from "#db/schema/agents.ts";
import type { Workspace, Workspaces } from "#schema/workspaces/workspace.ts";
import { ApiError, type Client } from "#src/client.ts";
import { getContext, seedUser } from "#test/support/seed.ts";
import { seedMany } from "#test/support/seed-many.ts";
import { importVersion, makeTemplate, uniqueText } from "#test/support/templates.ts";
import { awaitBuild, createBuild, createWorkspace, ECHO, openWorld, seedTemplate } from "#test/support/workspaces.ts";

const search = (client: Client, q = "", more = "") =>
  client.get<Workspaces>(`/api/v2/workspaces?q=${encodeURIComponent(q)}${more}`);
const listNames = async (client: Client, q = "", more = ""): Promise<string[]> =>
  (await search(client, q, more)).workspaces.map(({ name }) => name);

const openPopulated = async () => {
  const world = await openWorld();
  const { admin, server } = world;
  const parameters = [{ name: "size", default: "small", mutable: true }];
  const plain = await seedTemplate(server, { ...ECHO, parameters });
  const broken = await seedTemplate(server, { ...ECHO, echo: { error: "no" } });
  const ada = await seedUser(server, { username: "ada", organization_id: plain.organization_id });
  const adaClient = admin.withToken(ada.token);
  const running = await createWorkspace(admin, plain.template_id, "running", {
    rich_parameter_values: [{ name: "size", value: "big" }],
  });
  const stopped = await createWorkspace(admin, plain.template_id, "stopped");
  const failed = await createWorkspace(adaClient, broken.template_id, "failed");
  const adasWorkspace = await createWorkspace(adaClient, plain.template_id, "hers");
  await Promise.all([running, stopped, failed, adasWorkspace].map(({ id }) => awaitBuild(admin, id)));
  await createBuild(admin, stopped.id, "stop");
  await awaitBuild(admin, stopped.id);
  return { world, admin, ada: adaClient, running, adasWorkspace, template: running.template_name };
};

test("[WK-17] members see their own workspaces, template admins see all; running ones come first, then owner and name", async () => {
  const { world, admin, ada } = await openPopulated();
  await using _ = world;
  expect(await listNames(admin)).toEqual(["hers", "running", "failed", "stopped"]);
  expect(await listNames(ada)).toEqual(["hers", "failed"]);
  const secondPage = await search(admin, "", "&limit=1&offset=1");
  expect([secondPage.count, secondPage.workspaces.map(({ name }) => name)]).toEqual([4, ["running"]]);
  expect((await search(ada)).workspaces[0]?.latest_build.resources[0]?.agents).toHaveLength(1);
});

test("[WL-7] cursor pages contain every workspace once while workspaces stop, and a cursor must be an ID", async () => {
  const { world, admin } = await openPopulated();
  await using _ = world;
  const listPage = async (afterId: string): Promise<string[]> => {
    const { workspaces, count } = await search(admin, "", `&limit=1&after_id=${afterId}`);
    expect(count).toBe(4);
    return workspaces.map(({ id }) => id);
  };
  const listedIds: string[] = [];
  for (let afterId = "00000000-0000-0000-0000-000000000000"; afterId !== ""; ) {
    const [nextId = ""] = await listPage(afterId);
    if (nextId !== "") listedIds.push(nextId);
    afterId = nextId;
    // Stop the listed workspace, so that the default order would move it after the running ones.
    const listed = (await search(admin)).workspaces.find(({ id }) => id === nextId);
    if (listed?.latest_build.status === "running") {
      await createBuild(admin, nextId, "stop");
      await awaitBuild(admin, nextId);
    }
  }
  expect(listedIds).toEqual((await search(admin)).workspaces.map(({ id }) => id).sort());
  expect((await admin.fetch("GET", "/api/v2/workspaces?after_id=hers")).status).toBe(400);
});

test("[WK-18] each search key matches as documented, and errors name invalid keys and values", async () => {
  const { world, admin, ada, running, adasWorkspace, template } = await openPopulated();
  await using _ = world;
  const cases: [string, string[]][] = [
    ["owner:me", ["running", "stopped"]],
    ["owner:ADA", ["hers", "failed"]],
    ["ada/hers", ["hers"]],
    ["name:top", ["stopped"]],
    ["unn", ["running"]],
    [`template:${template}`, ["hers", "running", "stopped"]],
    ["status:running", ["hers", "running"]],
    ["status:stopped", ["stopped"]],
    ["status:failed", ["failed"]],
    ["status:deleted", []],
    ["has-agent:connecting", ["hers", "running"]],
    ["has-agent:connected", []],
    ["healthy:true", ["hers", "running", "failed", "stopped"]],
    ["healthy:false", []],
    ["dormant:true", []],
    ["outdated:false", ["hers", "running", "failed", "stopped"]],
    ["outdated:true", []],
    ["param:size=big", ["running"]],
    ["param:size", ["hers", "running", "stopped"]],
    ["shared:true", []],
    ["has-ai-task:true", []],
    ["has_external_agent:false", ["hers", "running", "failed", "stopped"]],
    [`id:${running.id},${adasWorkspace.id}`, ["hers", "running"]],
    ["organization:default", ["hers", "running", "failed", "stopped"]],
    ["last_used_after:2100-01-01T00:00:00Z", []],
    ["last_used_before:2100-01-01T00:00:00Z", ["hers", "running", "failed", "stopped"]],
  ];
  for (const [q, expected] of cases) expect([q, await listNames(admin, q)]).toEqual([q, expected]);
  const error = await search(ada, "colour:red status:sleepy").catch((error: ApiError) => error);
  if (!(error instanceof ApiError)) throw new Error("the search was not rejected");
  expect([error.status, error.body.message]).toEqual([400, "Invalid workspace search query."]);
  expect(error.body.validations?.map(({ field }) => field).sort()).toEqual(["colour", "status"]);

  // Now at least one workspace matches each of the keys that had no match.
  const { template_id } = running;
  const newVersion = await importVersion(admin, `${uniqueText()}${JSON.stringify(ECHO)}`, { template_id });
  await admin.patch(`/api/v2/templates/${template_id}/versions`, { id: newVersion.id });
  const lateWorkspace = await createWorkspace(admin, template_id, "late");
  await awaitBuild(admin, lateWorkspace.id);
  await admin.patch(`/api/v2/workspaces/${running.id}/acl`, { user_roles: { [adasWorkspace.owner_id]: "use" } });
  await ada.put(`/api/v2/workspaces/${adasWorkspace.id}/dormant`, { dormant: true });
  await awaitBuild(admin, adasWorkspace.id);
  const [agent] =
    (await admin.get<Workspace>(`/api/v2/workspaces/${lateWorkspace.id}`)).latest_build.resources[0]?.agents ?? [];
  const { store, clock } = getContext(world.server);
  const now = clock.now();
  const connected = { first_connected_at: now, last_connected_at: now, disconnected_at: null };
  await store.commit([updateBy(agents, agents.id)(agent?.id ?? "", connected)]);
  const laterCases: [string, string[]][] = [
    ["outdated:true", ["running", "stopped"]],
    ["outdated:false", ["late", "failed"]],
    ["shared:true", ["running"]],
    ["dormant:true", ["hers"]],
    ["has-agent:connected", ["late"]],
    ["last_used_after:2020-01-01T00:00:00Z", ["late", "running", "failed", "stopped"]],
    ["last_used_before:2020-01-01T00:00:00Z", []],
  ];
  for (const [q, expected] of laterCases)
    expect([q, (await listNames(admin, q)).sort()]).toEqual([q, [...expected].sort()]);
});

test("[WK-18] among 305 workspaces, has-ai-task and has_external_agent find those whose template declares it", async () => {
  await using world = await openWorld();
  const { admin, server } = world;
  const { store, clock } = getContext(server);
  const seeded = await seedMany(store, clock.now(), { workspaces: 300, templates: 3, owners: 2 });
  const makeNamed = (manifest: object, name: string) =>
    makeTemplate(admin, uniqueText() + JSON.stringify(manifest), { name });
  const taskTemplate = await makeNamed({ ...ECHO, ai_task: true }, "task");
  const externalTemplate = await makeNamed(
    { ...ECHO, provisioner: "external", external: { provisioner: "echo" } },
    "outside",
  );
  const plainTemplate = await makeNamed({ ...ECHO, ai_task: false }, "no-task");
  for (const name of ["task-1", "task-2"]) await createWorkspace(admin, taskTemplate.id, name);
  for (const name of ["out-1", "out-2"]) await createWorkspace(admin, externalTemplate.id, name);
  const plain = await createWorkspace(admin, plainTemplate.id, "plain");
  const searchAndCheck = async (q: string) => {
    const { count, workspaces } = await search(admin, q);
    expect(workspaces.length).toBe(count);
    for (const { latest_build } of workspaces) {
      if (q.includes("ai-task:")) expect(latest_build.has_ai_task).toBe(q.includes("ai-task:true"));
      if (q.includes("agent:")) expect(latest_build.has_external_agent).toBe(q.includes("agent:true"));
    }
    return {
      count,
      names: workspaces
        .map(({ name }) => name)
        .filter((name) => !name.startsWith("ws-"))
        .sort(),
    };
  };
  const totalCount = (await searchAndCheck("")).count;
  expect(totalCount).toBe(305);
  expect(await searchAndCheck("has-ai-task:true")).toEqual({ count: 2, names: ["task-1", "task-2"] });
  expect(await searchAndCheck("has-ai-task:false")).toEqual({ count: 303, names: ["out-1", "out-2", "plain"] });
  expect(await searchAndCheck("has_external_agent:true")).toEqual({ count: 2, names: ["out-1", "out-2"] });
  expect(await searchAndCheck("has_external_agent:false has-ai-task:false name:plain")).toEqual({
    count: 1,
    names: ["plain"],
  });
  expect(await searchAndCheck("has_external_agent:true has-ai-task:true")).toEqual({ count: 0, names: [] });
  expect(seeded.workspaces.length).toBe(300);
  // A new template version changes the result, but only for builds that use it.
  const newVersion = await importVersion(admin, uniqueText() + JSON.stringify({ ...ECHO, ai_task: true }), {
    template_id: plainTemplate.id,
  });
  await admin.patch(`/api/v2/templates/${plainTemplate.id}/versions`, { id: newVersion.id });
  expect((await searchAndCheck("has-ai-task:true")).count).toBe(2);
  await awaitBuild(admin, plain.id);
  await createBuild(admin, plain.id, "start", { template_version_id: newVersion.id });
  expect((await searchAndCheck("has-ai-task:true")).names).toEqual(["plain", "task-1", "task-2"]);
  const templates = await admin.get<{ name: string }[]>("/api/v2/templates?q=has-ai-task:true");
  expect(templates.map(({ name }) => name)).toEqual(["no-task", "task"]);
  const otherTemplates = await admin.get<{ name: string }[]>("/api/v2/templates?q=has-ai-task:false");
  // The built-in template does not exist if several nodes share a deployment.
  const listNames = otherTemplates.map(({ name }) => name).filter((name) => name !== "local");
  expect(listNames).toEqual(["kind-0", "kind-1", "kind-2", "outside"]);
});
