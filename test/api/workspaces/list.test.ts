// The list of workspaces: who sees what, in which order, and every key of the search.
import { expect, test } from "bun:test";
import type { Workspaces } from "#schema/workspace.ts";
import { ApiError, type Client } from "#src/client.ts";
import { seedUser } from "#test/support/seed.ts";
import { awaitBuild, createBuild, createWorkspace, ECHO, openWorld, seedTemplate } from "#test/support/workspaces.ts";

const search = (client: Client, q = "", more = "") =>
  client.get<Workspaces>(`/api/v2/workspaces?q=${encodeURIComponent(q)}${more}`);
const names = async (client: Client, q = "", more = ""): Promise<string[]> =>
  (await search(client, q, more)).workspaces.map(({ name }) => name);

const populated = async () => {
  const world = await openWorld();
  const { admin, server } = world;
  const parameters = [{ name: "size", default: "small", mutable: true }];
  const plain = await seedTemplate(server, { ...ECHO, parameters });
  const broken = await seedTemplate(server, { ...ECHO, echo: { error: "no" } });
  const ada = await seedUser(server, { username: "ada", organization_id: plain.organization_id });
  const adaClient = admin.as(ada.token);
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

test("[WK-17] members see their own, those who look after templates see all; what runs comes first, then owner and name", async () => {
  const { world, admin, ada } = await populated();
  await using _ = world;
  expect(await names(admin)).toEqual(["hers", "running", "failed", "stopped"]);
  expect(await names(ada)).toEqual(["hers", "failed"]);
  const page = await search(admin, "", "&limit=1&offset=1");
  expect([page.count, page.workspaces.map(({ name }) => name)]).toEqual([4, ["running"]]);
  expect((await search(ada)).workspaces[0]?.latest_build.resources[0]?.agents).toHaveLength(1);
});

test("[WK-18] each key of the search matches what it says, and a wrong one is named", async () => {
  const { world, admin, ada, running, hers, template } = await populated();
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
});
