// The tools that find templates and create a chat's workspace, with the owner's permissions.
import { expect, test } from "bun:test";
import { systemClock } from "#base/clock.ts";
import type { Chat } from "#schema/chats/chat.ts";
import type { WakeLevel } from "#schema/workspaces/wake.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { Client } from "#src/client.ts";
import { createChat } from "#test/support/chats.ts";
import { ScriptedModels } from "#test/support/models/scripted-models.ts";
import { seedUser } from "#test/support/seed.ts";
import { ECHO, openWorld, seedTemplate } from "#test/support/workspaces.ts";
import { callTools } from "./world.ts";

type NamedItem = { id: string; name: string };

/** Starts a server with the built-in template `local`. `startChat` creates a chat of the first user, without a workspace. */
const openServices = async () => {
  const models = new ScriptedModels();
  const world = await openWorld({ models, clock: systemClock });
  const [organization] = await world.admin.get<NamedItem[]>("/api/v2/organizations");
  const organization_id = organization?.id ?? "";
  const owner = new Client(world.server.url, world.admin.token);
  const startChat = async (options: Record<string, unknown> = {}) => {
    const chat = await createChat({ owner, organization_id }, "go", options);
    return { id: chat.id, call: await models.next() };
  };
  return {
    ...world,
    models,
    owner,
    organization_id,
    startChat,
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  };
};

test("[TO-15] [WO-9] a chat finds a template, creates a workspace from it, works in it, stops it and starts it", async () => {
  await using services = await openServices();
  const { id, call } = await services.startChat();
  const search = await callTools(
    services,
    call,
    ["list_templates", { query: "local" }],
    ["list_templates", { page: 2 }],
  );
  const [list, empty] = search.results as { templates: NamedItem[]; recommended_template_id: string }[];
  expect(list?.templates).toMatchObject([{ name: "local" }]);
  expect(empty?.templates).toEqual([]);
  const template_id = list?.recommended_template_id;
  expect(template_id).toBe(list?.templates[0]?.id as string);
  const readCall = await callTools(services, search.next, ["read_template", { template_id }]);
  expect(readCall.results).toMatchObject([
    { name: "local", parameters: expect.arrayContaining([expect.objectContaining({ name: "startup_script" })]) },
  ]);
  const built = await callTools(services, readCall.next, ["create_workspace", { template_id, name: "made" }]);
  expect(built.results).toMatchObject([{ created: true, workspace_name: "made", status: "running" }]);
  const [{ workspace_id } = {}] = built.results;
  expect(await services.owner.get<Chat>(`/api/v2/chats/${id}`)).toMatchObject({ workspace_id });
  // The next step has the workspace's tools. A second create_workspace returns the same workspace.
  const firstCommand = await callTools(
    services,
    built.next,
    ["execute", { command: "echo here > file; cat file", timeout: "60s" }],
    ["create_workspace", { template_id }],
  );
  expect(firstCommand.results).toMatchObject([{ output: "here\n" }, { created: false, existing: true, workspace_id }]);
  const stopped = await callTools(services, firstCommand.next, ["stop_workspace"]);
  expect(stopped.results).toMatchObject([{ stopped: true, workspace_name: "made" }]);
  const setWake = (wake_on_connect: WakeLevel) =>
    services.owner.patch(`/api/v2/templates/${template_id}`, { wake_on_connect });
  await setWake("off");
  const refused = await callTools(services, stopped.next, ["execute", { command: "true" }]);
  expect(refused.results).toMatchObject([{ error: expect.stringContaining("does not start workspaces on connect") }]);
  await setWake("people");
  const started = await callTools(services, refused.next, ["start_workspace"]);
  expect(started.results).toMatchObject([{ started: true, workspace_id, status: "running" }]);
  const secondCommand = await callTools(
    services,
    started.next,
    ["execute", { command: "cat file", timeout: "60s" }],
    ["start_workspace"],
  );
  expect(secondCommand.results).toMatchObject([{ output: "here\n" }, { started: true }]);
  const ended = await callTools(services, secondCommand.next, ["stop_workspace"]);
  const wokenByCall = await callTools(services, ended.next, ["read_file", { path: "file" }]);
  expect(wokenByCall.results).toMatchObject([{ content: expect.stringContaining("here") }]);
  expect((await services.owner.get<Workspace>(`/api/v2/workspaces/${workspace_id}`)).latest_build.status).toBe(
    "running",
  );
});

test("[TO-16] templates and workspaces follow the owner's current permissions", async () => {
  await using services = await openServices();
  const outsider = await seedUser(services.server);
  const otherChat = await createChat(
    { owner: new Client(services.server.url, outsider.token), organization_id: outsider.organization_id },
    "go",
  );
  const call = await services.models.next();
  const seeded = await seedTemplate(services.server, ECHO);
  const { template_id } = seeded;
  const refused = await callTools(
    services,
    call,
    ["list_templates"],
    ["read_template", { template_id }],
    ["create_workspace", { template_id }],
  );
  expect(refused.results).toMatchObject([
    { templates: [] },
    { error: expect.stringContaining("not found") },
    { error: expect.stringContaining("not found") },
  ]);
  expect(
    (await new Client(services.server.url, outsider.token).get<Chat>(`/api/v2/chats/${otherChat.id}`)).workspace_id,
  ).toBeFalsy();
  const ownerChat = await services.startChat();
  const invalidRequests = await callTools(
    services,
    ownerChat.call,
    ["create_workspace", { template_id: seeded.template_id, name: "not a name" }],
    ["create_workspace", { template_id: seeded.template_id, parameters: { nothing: "1" } }],
  );
  expect(invalidRequests.results).toMatchObject([
    { error: expect.stringContaining("name ") },
    { error: expect.stringContaining("nothing") },
  ]);
});
