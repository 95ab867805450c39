// Access to templates: initially all members of the organization, later the people and groups on the access list.
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

const getClient = (name: string): Client => clients[name] as Client;
const getId = (name: string): string => ids[name] as string;
const updateAcl = (template: Template, body: object, client = world.admin) =>
  fetchStatus(client, "PATCH", `/templates/${template.id}/acl`, body);
const listTemplates = async (client: Client): Promise<string[]> =>
  (await client.get<Template[]>("/api/v2/templates")).map(({ id }) => id);

test("[TA-1] every member may use a template until its access list changes; then others see nothing of it", async () => {
  const template = await makeTemplate(world.admin, uniqueText() + ECHO);
  const path = `/api/v2/templates/${template.id}`;
  const initialAcl = await world.admin.get<TemplateAcl>(`${path}/acl`);
  expect([initialAcl.users, initialAcl.group.map(({ name, role }) => [name, role])]).toEqual([
    [],
    [["Everyone", "use"]],
  ]);
  expect(await listTemplates(getClient("ada"))).toContain(template.id);

  expect(
    await updateAcl(template, { group_perms: { [organization_id]: "" }, user_perms: { [getId("bob")]: "use" } }),
  ).toBe(200);
  expect([await listTemplates(getClient("ada")), await listTemplates(getClient("bob"))]).toEqual([[], [template.id]]);
  const subpaths = ["", "/versions", "/acl", "/daus?tz_offset=0", "/acl/available"];
  for (const subpath of subpaths) expect((await getClient("ada").fetch("GET", `${path}${subpath}`)).status).toBe(404);
  const version = `/api/v2/templateversions/${template.active_version_id}`;
  for (const subpath of ["", "/rich-parameters", "/presets"]) {
    expect((await getClient("ada").fetch("GET", `${version}${subpath}`)).status).toBe(404);
    expect((await getClient("bob").fetch("GET", `${version}${subpath}`)).status).not.toBe(404);
  }
  for (const source of [{ template_id: template.id }, { template_version_id: template.active_version_id }]) {
    expect(await fetchStatus(getClient("ada"), "POST", "/users/me/workspaces", { name: "no", ...source })).toBe(400);
  }
  expect(
    (await awaitBuild(getClient("bob"), (await createWorkspace(getClient("bob"), template.id, "yes")).id)).latest_build
      .status,
  ).toBe("running");
  // Template administrators see the template without being on the list.
  expect(await listTemplates(world.admin)).toContain(template.id);
});

test("[TA-1] a group gives access to its members, and they lose it when they leave", async () => {
  const template = await makeTemplate(world.admin, uniqueText() + ECHO);
  const group = await world.admin.post<Group>("/api/v2/organizations/default/groups", { name: "makers" });
  await updateAcl(template, { group_perms: { [organization_id]: "", [group.id]: "use" } });
  expect(await listTemplates(getClient("ada"))).not.toContain(template.id);
  await world.admin.patch(`/api/v2/groups/${group.id}`, { add_users: ["ada"] });
  expect(await listTemplates(getClient("ada"))).toContain(template.id);
  await world.admin.patch(`/api/v2/groups/${group.id}`, { remove_users: ["ada"] });
  expect(await listTemplates(getClient("ada"))).not.toContain(template.id);
  const acl = await world.admin.get<TemplateAcl>(`/api/v2/templates/${template.id}/acl`);
  expect(acl.group.map(({ name, role }) => [name, role])).toEqual([["makers", "use"]]);
  await world.admin.fetch("DELETE", `/api/v2/groups/${group.id}`);
  expect((await world.admin.get<TemplateAcl>(`/api/v2/templates/${template.id}/acl`)).group).toEqual([]);
});

test("[TA-2] the admin role can change only its template, with the versions and the access list", async () => {
  const [template, otherTemplate] = [
    await makeTemplate(world.admin, uniqueText() + ECHO),
    await makeTemplate(world.admin, uniqueText() + ECHO),
  ];
  const ada = getClient("ada");
  await expect(importVersion(ada, uniqueText() + ECHO)).rejects.toThrow();
  expect(await fetchStatus(ada, "PATCH", `/templates/${template.id}`, { description: "mine" })).toBe(403);
  expect(await updateAcl(template, { user_perms: { [getId("ada")]: "admin" } })).toBe(200);
  expect(await fetchStatus(ada, "PATCH", `/templates/${template.id}`, { description: "mine" })).toBe(200);
  const version = await importVersion(ada, uniqueText() + ECHO, { template_id: template.id });
  expect(version.job.status).toBe("succeeded");
  const versionBody = { id: version.id };
  expect(await fetchStatus(ada, "PATCH", `/templates/${template.id}/versions`, versionBody)).toBe(200);
  expect(await updateAcl(template, { user_perms: { [getId("bob")]: "use" } }, ada)).toBe(200);
  const available = await world.admin.get<TemplateAclAvailable>(`/api/v2/templates/${template.id}/acl/available`);
  expect(available.users.map(({ username }) => username)).toEqual(expect.arrayContaining(["ada", "bob"]));
  expect(available.groups[0]).toMatchObject({ id: organization_id, name: "Everyone" });
  expect((await ada.get<TemplateAclAvailable>(`/api/v2/templates/${template.id}/acl/available`)).users).toEqual([]);
  expect(await fetchStatus(ada, "PATCH", `/templates/${otherTemplate.id}`, { description: "mine" })).toBe(403);
  await expect(importVersion(ada, uniqueText() + ECHO)).rejects.toThrow();
});

test("[TA-3] rejects outsiders, unknown groups and unknown roles by name, and changes nothing", async () => {
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
  // Removing someone who is not listed is not an error.
  expect(await updateAcl(template, { user_perms: { [uuid()]: "" } })).toBe(200);
});

test("[TA-4] people who may no longer use a template keep their workspaces", async () => {
  const template = await makeTemplate(world.admin, uniqueText() + ECHO);
  const { id } = await createWorkspace(getClient("ada"), template.id, "kept");
  await awaitBuild(getClient("ada"), id);
  await updateAcl(template, { group_perms: { [organization_id]: "" } });
  for (const transition of ["stop", "start", "delete"]) {
    await createBuild(getClient("ada"), id, transition);
    if (transition !== "delete") {
      expect((await awaitBuild(getClient("ada"), id)).latest_build.job.status).toBe("succeeded");
    }
  }
});

test("[TF-34] an admin of only the template cannot import Terraform, whose plan runs code as the server's user", async () => {
  const template = await makeTemplate(world.admin, uniqueText() + ECHO);
  expect(await updateAcl(template, { user_perms: { [getId("ada")]: "admin" } })).toBe(200);
  const files = { "main.tf": 'terraform {}\ndata "external" "x" { program = ["id"] }\n' };
  const push = async (client: Client): Promise<number> => {
    const body = { storage_method: "file", file_id: await uploadFiles(client, files), template_id: template.id };
    return fetchStatus(client, "POST", `/organizations/${organization_id}/templateversions`, body);
  };
  expect([await push(getClient("ada")), await push(world.admin)]).toEqual([403, 201]);
  // An unreadable archive may contain Terraform files.
  const truncated = (await createTar(files)).slice(0, 600);
  const { hash } = (await (await sendFile(getClient("ada"), truncated)).json()) as { hash: string };
  const versionWithTruncated = { storage_method: "file", file_id: hash, template_id: template.id };
  expect(
    await fetchStatus(
      getClient("ada"),
      "POST",
      `/organizations/${organization_id}/templateversions`,
      versionWithTruncated,
    ),
  ).toBe(403);
  expect((await importVersion(getClient("ada"), uniqueText() + ECHO, { template_id: template.id })).job.status).toBe(
    "succeeded",
  );
});
