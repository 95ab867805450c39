// The list of workspaces: visibility, order, and every search key.
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
const names = async (client: Client, q = "", more = ""): Promise<string[]> =>
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
  const hers = await createWorkspace(adaClient, plain.template_id, "hers");
  await Promise.all([running, stopped, failed, hers].map(({ id }) => awaitBuild(admin, id)));
  await createBuild(admin, stopped.id, "stop");
  await awaitBuild(admin, stopped.id);
  return { world, admin, ada: adaClient, running, hers, template: running.template_name };
};

test("[WK-17] members see their own, template admins see all; running ones first, then owner and name", async () => {
  const { world, admin, ada } = await openPopulated();
  await using _ = world;
  expect(await names(admin)).toEqual(["hers", "running", "failed", "stopped"]);
  expect(await names(ada)).toEqual(["hers", "failed"]);
  const page = await search(admin, "", "&limit=1&offset=1");
  expect([page.count, page.workspaces.map(({ name }) => name)]).toEqual([4, ["running"]]);
  expect((await search(ada)).workspaces[0]?.latest_build.resources[0]?.agents).toHaveLength(1);
});

test("[WL-7] cursor pages miss nothing while workspaces stop, and only an ID is a valid cursor", async () => {
  const { world, admin } = await openPopulated();
  await using _ = world;
  const page = async (after: string): Promise<string[]> => {
    const { workspaces, count } = await search(admin, "", `&limit=1&after_id=${after}`);
    expect(count).toBe(4);
    return workspaces.map(({ id }) => id);
  };
  const seen: string[] = [];
  for (let after = "00000000-0000-0000-0000-000000000000"; after !== ""; ) {
    const [next = ""] = await page(after);
    if (next !== "") seen.push(next);
    after = next;
    // The one shown so far is sorted after everything that is running.
    const listed = (await search(admin)).workspaces.find(({ id }) => id === next);
    if (listed?.latest_build.status === "running") {
      await createBuild(admin, next, "stop");
      await awaitBuild(admin, next);
    }
  }
  expect(seen).toEqual((await search(admin)).workspaces.map(({ id }) => id).sort());
  expect((await admin.fetch("GET", "/api/v2/workspaces?after_id=hers")).status).toBe(400);
});

test("[WK-18] each search key matches as documented, and an invalid one is named", async () => {
  const { world, admin, ada, running, hers, template } = await openPopulated();
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
    [`id:${running.id},${hers.id}`, ["hers", "running"]],
    ["organization:default", ["hers", "running", "failed", "stopped"]],
    ["last_used_after:2100-01-01T00:00:00Z", []],
    ["last_used_before:2100-01-01T00:00:00Z", ["hers", "running", "failed", "stopped"]],
  ];
  for (const [q, expected] of cases) expect([q, await names(admin, q)]).toEqual([q, expected]);
  const refused = await search(ada, "colour:red status:sleepy").catch((error: ApiError) => error);
  if (!(refused instanceof ApiError)) throw new Error("the search was not refused");
  expect([refused.status, refused.body.message]).toEqual([400, "Invalid workspace search query."]);
  expect(refused.body.validations?.map(({ field }) => field).sort()).toEqual(["colour", "status"]);

  // No workspace matched before; now one does.
  const { template_id } = running;
  const next = await importVersion(admin, `${uniqueText()}${JSON.stringify(ECHO)}`, { template_id });
  await admin.patch(`/api/v2/templates/${template_id}/versions`, { id: next.id });
  const lateWorkspace = await createWorkspace(admin, template_id, "late");
  await awaitBuild(admin, lateWorkspace.id);
  await admin.patch(`/api/v2/workspaces/${running.id}/acl`, { user_roles: { [hers.owner_id]: "use" } });
  await ada.put(`/api/v2/workspaces/${hers.id}/dormant`, { dormant: true });
  await awaitBuild(admin, hers.id);
  const [agent] =
    (await admin.get<Workspace>(`/api/v2/workspaces/${lateWorkspace.id}`)).latest_build.resources[0]?.agents ?? [];
  const { store, clock } = getContext(world.server);
  const now = clock.now();
  const connected = { first_connected_at: now, last_connected_at: now, disconnected_at: null };
  await store.commit([updateBy(agents, agents.id)(agent?.id ?? "", connected)]);
  const later: [string, string[]][] = [
    ["outdated:true", ["running", "stopped"]],
    ["outdated:false", ["late", "failed"]],
    ["shared:true", ["running"]],
    ["dormant:true", ["hers"]],
    ["has-agent:connected", ["late"]],
    ["last_used_after:2020-01-01T00:00:00Z", ["late", "running", "failed", "stopped"]],
    ["last_used_before:2020-01-01T00:00:00Z", []],
  ];
  for (const [q, expected] of later) expect([q, (await names(admin, q)).sort()]).toEqual([q, [...expected].sort()]);
});

test("[WK-18] among 305 workspaces has-ai-task and has_external_agent find those whose template says so", async () => {
  await using world = await openWorld();
  const { admin, server } = world;
  const { store, clock } = getContext(server);
  const many = await seedMany(store, clock.now(), { workspaces: 300, templates: 3, owners: 2 });
  const makeNamed = (manifest: object, name: string) =>
    makeTemplate(admin, uniqueText() + JSON.stringify(manifest), { name });
  const task = await makeNamed({ ...ECHO, ai_task: true }, "task");
  const outside = await makeNamed({ ...ECHO, provisioner: "external", external: { provisioner: "echo" } }, "outside");
  const no = await makeNamed({ ...ECHO, ai_task: false }, "no-task");
  for (const name of ["task-1", "task-2"]) await createWorkspace(admin, task.id, name);
  for (const name of ["out-1", "out-2"]) await createWorkspace(admin, outside.id, name);
  const plain = await createWorkspace(admin, no.id, "plain");
  const find = async (q: string) => {
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
  const totalCount = (await find("")).count;
  expect(totalCount).toBe(305);
  expect(await find("has-ai-task:true")).toEqual({ count: 2, names: ["task-1", "task-2"] });
  expect(await find("has-ai-task:false")).toEqual({ count: 303, names: ["out-1", "out-2", "plain"] });
  expect(await find("has_external_agent:true")).toEqual({ count: 2, names: ["out-1", "out-2"] });
  expect(await find("has_external_agent:false has-ai-task:false name:plain")).toEqual({ count: 1, names: ["plain"] });
  expect(await find("has_external_agent:true has-ai-task:true")).toEqual({ count: 0, names: [] });
  expect(many.workspaces.length).toBe(300);
  // The next template version changes this; earlier builds stay as they were.
  const next = await importVersion(admin, uniqueText() + JSON.stringify({ ...ECHO, ai_task: true }), {
    template_id: no.id,
  });
  await admin.patch(`/api/v2/templates/${no.id}/versions`, { id: next.id });
  expect((await find("has-ai-task:true")).count).toBe(2);
  await awaitBuild(admin, plain.id);
  await createBuild(admin, plain.id, "start", { template_version_id: next.id });
  expect((await find("has-ai-task:true")).names).toEqual(["plain", "task-1", "task-2"]);
  const templates = await admin.get<{ name: string }[]>("/api/v2/templates?q=has-ai-task:true");
  expect(templates.map(({ name }) => name)).toEqual(["no-task", "task"]);
  const otherTemplates = await admin.get<{ name: string }[]>("/api/v2/templates?q=has-ai-task:false");
  // The built-in template does not exist if several nodes share a deployment.
  const names = otherTemplates.map(({ name }) => name).filter((name) => name !== "local");
  expect(names).toEqual(["kind-0", "kind-1", "kind-2", "outside"]);
});
