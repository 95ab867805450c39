// Who may use a template: initially all members of its organization, later the people on its access list.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { uuid } from "#base/ids.ts";
import type { Template } from "#schema/templates/template.ts";
import type { TemplateAcl, TemplateAclAvailable } from "#schema/templates/template-acl.ts";
import type { Group } from "#schema/users/group.ts";
import type { Client } from "#src/client.ts";
import { seedUser } from "#test/support/seed.ts";
import {
  createTar,
  ECHO,
  importVersion,
  makeTemplate,
  sendFile,
  uniqueText,
  uploadFiles,
} from "#test/support/templates.ts";
import { awaitBuild, createBuild, createWorkspace, openWorld, type World } from "#test/support/workspaces.ts";
import { fetchStatus } from "../users/people.ts";

let world: World;
let organization_id: string;
const clients: Record<string, Client> = {};
const ids: Record<string, string> = {};
beforeAll(async () => {
  world = await openWorld();
  organization_id = (await world.admin.get<{ id: string }>("/api/v2/organizations/default")).id;
  for (const name of ["ada", "bob"]) {
    const { token, user_id } = await seedUser(world.server, { username: name, organization_id });
    clients[name] = world.admin.withToken(token);
    ids[name] = user_id;
  }
});
afterAll(() => world[Symbol.asyncDispose]());

const clientOf = (name: string): Client => clients[name] as Client;
const getId = (name: string): string => ids[name] as string;
const change = (template: Template, body: object, by = world.admin) =>
  fetchStatus(by, "PATCH", `/templates/${template.id}/acl`, body);
const listTemplates = async (who: Client): Promise<string[]> =>
  (await who.get<Template[]>("/api/v2/templates")).map(({ id }) => id);

test("[TA-1] every member may use a template until its access list decides; people who are not on it see nothing", async () => {
  const template = await makeTemplate(world.admin, uniqueText() + ECHO);
  const path = `/api/v2/templates/${template.id}`;
  const first = await world.admin.get<TemplateAcl>(`${path}/acl`);
  expect([first.users, first.group.map(({ name, role }) => [name, role])]).toEqual([[], [["Everyone", "use"]]]);
  expect(await listTemplates(clientOf("ada"))).toContain(template.id);

  expect(
    await change(template, { group_perms: { [organization_id]: "" }, user_perms: { [getId("bob")]: "use" } }),
  ).toBe(200);
  expect([await listTemplates(clientOf("ada")), await listTemplates(clientOf("bob"))]).toEqual([[], [template.id]]);
  const tails = ["", "/versions", "/acl", "/daus?tz_offset=0", "/acl/available"];
  for (const tail of tails) expect((await clientOf("ada").fetch("GET", `${path}${tail}`)).status).toBe(404);
  const version = `/api/v2/templateversions/${template.active_version_id}`;
  for (const tail of ["", "/rich-parameters", "/presets"]) {
    expect((await clientOf("ada").fetch("GET", `${version}${tail}`)).status).toBe(404);
    expect((await clientOf("bob").fetch("GET", `${version}${tail}`)).status).not.toBe(404);
  }
  for (const how of [{ template_id: template.id }, { template_version_id: template.active_version_id }]) {
    expect(await fetchStatus(clientOf("ada"), "POST", "/users/me/workspaces", { name: "no", ...how })).toBe(400);
  }
  expect(
    (await awaitBuild(clientOf("bob"), (await createWorkspace(clientOf("bob"), template.id, "yes")).id)).latest_build
      .status,
  ).toBe("running");
  // Auditors and template administrators are not on the list and see it anyway.
  expect(await listTemplates(world.admin)).toContain(template.id);
});

test("[TA-1] a group gives access to its members, and they lose it when they leave", async () => {
  const template = await makeTemplate(world.admin, uniqueText() + ECHO);
  const group = await world.admin.post<Group>("/api/v2/organizations/default/groups", { name: "makers" });
  await change(template, { group_perms: { [organization_id]: "", [group.id]: "use" } });
  expect(await listTemplates(clientOf("ada"))).not.toContain(template.id);
  await world.admin.patch(`/api/v2/groups/${group.id}`, { add_users: ["ada"] });
  expect(await listTemplates(clientOf("ada"))).toContain(template.id);
  await world.admin.patch(`/api/v2/groups/${group.id}`, { remove_users: ["ada"] });
  expect(await listTemplates(clientOf("ada"))).not.toContain(template.id);
  const acl = await world.admin.get<TemplateAcl>(`/api/v2/templates/${template.id}/acl`);
  expect(acl.group.map(({ name, role }) => [name, role])).toEqual([["makers", "use"]]);
  await world.admin.fetch("DELETE", `/api/v2/groups/${group.id}`);
  expect((await world.admin.get<TemplateAcl>(`/api/v2/templates/${template.id}/acl`)).group).toEqual([]);
});

test("[TA-2] the admin role changes the template, its versions and its access list, uploads for them, and nothing else", async () => {
  const [template, other] = [
    await makeTemplate(world.admin, uniqueText() + ECHO),
    await makeTemplate(world.admin, uniqueText() + ECHO),
  ];
  const ada = clientOf("ada");
  await expect(importVersion(ada, uniqueText() + ECHO)).rejects.toThrow();
  expect(await fetchStatus(ada, "PATCH", `/templates/${template.id}`, { description: "mine" })).toBe(403);
  expect(await change(template, { user_perms: { [getId("ada")]: "admin" } })).toBe(200);
  expect(await fetchStatus(ada, "PATCH", `/templates/${template.id}`, { description: "mine" })).toBe(200);
  const version = await importVersion(ada, uniqueText() + ECHO, { template_id: template.id });
  expect(version.job.status).toBe("succeeded");
  const active = { id: version.id };
  expect(await fetchStatus(ada, "PATCH", `/templates/${template.id}/versions`, active)).toBe(200);
  expect(await change(template, { user_perms: { [getId("bob")]: "use" } }, ada)).toBe(200);
  const available = await world.admin.get<TemplateAclAvailable>(`/api/v2/templates/${template.id}/acl/available`);
  expect(available.users.map(({ username }) => username)).toEqual(expect.arrayContaining(["ada", "bob"]));
  expect(available.groups[0]).toMatchObject({ id: organization_id, name: "Everyone" });
  expect((await ada.get<TemplateAclAvailable>(`/api/v2/templates/${template.id}/acl/available`)).users).toEqual([]);
  expect(await fetchStatus(ada, "PATCH", `/templates/${other.id}`, { description: "mine" })).toBe(403);
  await expect(importVersion(ada, uniqueText() + ECHO)).rejects.toThrow();
});

test("[TA-3] people from outside, unknown groups and roles are refused by name, and nothing is changed", async () => {
  const template = await makeTemplate(world.admin, uniqueText() + ECHO);
  const eve = await seedUser(world.server, { username: "eve" });
  const path = `/api/v2/templates/${template.id}/acl`;
  const before = await world.admin.get<object>(path);
  const problems = [
    { user_perms: { [eve.user_id]: "use" } },
    { user_perms: { [uuid()]: "use" } },
    { user_perms: { ada: "use" } },
    { user_perms: { [getId("ada")]: "owner" } },
    { group_perms: { [eve.organization_id]: "use" } },
    { group_perms: { [uuid()]: "use" } },
    { groups: {} },
  ];
  for (const body of problems) {
    const response = await world.admin.fetch("PATCH", path, { ...body });
    const { validations = [] } = (await response.json()) as { validations?: { field: string }[] };
    const [[field, roles = {}] = ["", {}]] = Object.entries(body);
    const [id] = Object.keys(roles);
    expect([response.status, validations[0]?.field]).toEqual([400, id === undefined ? field : `${field}.${id}`]);
  }
  expect(await world.admin.get<object>(path)).toEqual(before);
  // Removing someone who is not listed is not an error: lists are cleared in one request.
  expect(await change(template, { user_perms: { [uuid()]: "" } })).toBe(200);
});

test("[TA-4] people who may no longer use a template keep their workspaces", async () => {
  const template = await makeTemplate(world.admin, uniqueText() + ECHO);
  const { id } = await createWorkspace(clientOf("ada"), template.id, "kept");
  await awaitBuild(clientOf("ada"), id);
  await change(template, { group_perms: { [organization_id]: "" } });
  for (const transition of ["stop", "start", "delete"]) {
    await createBuild(clientOf("ada"), id, transition);
    if (transition !== "delete") {
      expect((await awaitBuild(clientOf("ada"), id)).latest_build.job.status).toBe("succeeded");
    }
  }
});

test("[TF-34] an admin through the access list alone cannot import Terraform, whose plan runs code as the server's user", async () => {
  const template = await makeTemplate(world.admin, uniqueText() + ECHO);
  expect(await change(template, { user_perms: { [getId("ada")]: "admin" } })).toBe(200);
  const files = { "main.tf": 'terraform {}\ndata "external" "x" { program = ["id"] }\n' };
  const push = async (who: Client): Promise<number> => {
    const body = { storage_method: "file", file_id: await uploadFiles(who, files), template_id: template.id };
    return fetchStatus(who, "POST", `/organizations/${organization_id}/templateversions`, body);
  };
  expect([await push(clientOf("ada")), await push(world.admin)]).toEqual([403, 201]);
  // An unreadable archive may be anything.
  const torn = (await createTar(files)).slice(0, 600);
  const { hash } = (await (await sendFile(clientOf("ada"), torn)).json()) as { hash: string };
  const half = { storage_method: "file", file_id: hash, template_id: template.id };
  expect(await fetchStatus(clientOf("ada"), "POST", `/organizations/${organization_id}/templateversions`, half)).toBe(
    403,
  );
  expect((await importVersion(clientOf("ada"), uniqueText() + ECHO, { template_id: template.id })).job.status).toBe(
    "succeeded",
  );
});
