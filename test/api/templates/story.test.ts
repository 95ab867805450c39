// A template from the upload to the second active version, as with `templates push`, and access to it.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { uuid } from "#base/ids.ts";
import type { Template } from "#schema/templates/template.ts";
import type {
  PlannedResource,
  Preset,
  TemplateExample,
  TemplateParameter,
  TemplateVersion,
} from "#schema/templates/template-version.ts";
import { ApiError, Client } from "#src/client.ts";
import { newPerson, PASSWORD } from "#test/api/users/people.ts";
import { usesActiveNodes } from "#test/support/cluster/active-nodes.ts";
import { ADMIN, startTestServer, type TestServer } from "#test/support/server.ts";
import { ECHO, followImport, importVersion, makeTemplate, uniqueText, uploadFiles } from "#test/support/templates.ts";

let server: TestServer;
let admin: Client;
let member: Client;
let outsider: Client;
let otherOrganization: { id: string };
beforeAll(async () => {
  server = await startTestServer();
  admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  member = (await newPerson(admin, "member")).client;
  otherOrganization = await admin.post<{ id: string }>("/api/v2/organizations", { name: "elsewhere" });
  const [username, organization_ids] = ["stranger", [otherOrganization.id]];
  const email = "stranger@example.com";
  await admin.post("/api/v2/users", { email, username, password: PASSWORD, organization_ids });
  outsider = await new Client(server.url).signIn(email, PASSWORD);
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

const ORGANIZATION = "/api/v2/organizations/default";
const awaitRejection = async (call: Promise<unknown>): Promise<string> => {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof ApiError)) return "not rejected";
  const { detail, validations } = error.body;
  const fields = (validations ?? []).map((validation) => `${validation.field} ${validation.detail}`);
  return [error.status, detail, ...fields].filter(Boolean).join(" ");
};

describe("from upload to template", () => {
  test("[TP-13] a client follows the import's log until it closes with 1000; then the version exists", async () => {
    const file_id = await uploadFiles(admin, { "template.yaml": ECHO, "README.md": "# Read me\n" });
    const created = await admin.post<TemplateVersion>(`${ORGANIZATION}/templateversions`, {
      file_id,
      storage_method: "file",
      message: "first",
      tags: {},
    });
    expect(created.name).toMatch(/^[a-z]+_[a-z]+\d+$/);
    expect(created.template_id).toBeUndefined();
    expect(["pending", "running", "succeeded"]).toContain(created.job.status);
    const { lines, code } = await followImport(admin, created.id);
    expect(code).toBe(1000);
    expect(lines.map(({ output }) => output)).toEqual([
      "Found template.yaml.",
      "The template is valid: provisioner echo, 1 resource, 1 agent, 0 parameters.",
    ]);
    const version = await admin.get<TemplateVersion>(`/api/v2/templateversions/${created.id}`);
    expect(version).toMatchObject({ readme: "# Read me\n", message: "first", archived: false });
    expect(version.job).toMatchObject({ status: "succeeded", type: "template_version_import", file_id });
    expect(await admin.get<unknown[]>(`/api/v2/templateversions/${created.id}/logs`)).toEqual(lines);
    const text = await admin.fetch("GET", `/api/v2/templateversions/${created.id}/logs?format=text`);
    expect((await text.text()).split("\n")).toHaveLength(3);
  });

  test("[TP-17] creates one template from a version, with settings from the body, then from template.yaml", async () => {
    const version = await importVersion(
      admin,
      `${uniqueText()}schedule: {default_ttl_ms: 60000, activity_bump_ms: 5}\n${ECHO}`,
    );
    const body = { name: "Webshop", template_version_id: version.id, display_name: "Web shop", activity_bump_ms: 7 };
    const template = await admin.post<Template>(`${ORGANIZATION}/templates`, body);
    expect(template).toMatchObject({
      name: "Webshop",
      display_name: "Web shop",
      provisioner: "echo",
      active_version_id: version.id,
      created_by_name: ADMIN.username,
      default_ttl_ms: 60_000,
      activity_bump_ms: 7,
      deprecated: false,
      active_user_count: 0,
      build_time_stats: { start: { P50: null, P95: null } },
    });
    expect(await admin.get<Template>(`/api/v2/templates/${template.id}`)).toEqual(template);
    expect(await member.get<Template>(`${ORGANIZATION}/templates/webshop`)).toEqual(template);
    expect((await admin.get<TemplateVersion>(`/api/v2/templateversions/${version.id}`)).template_id).toBe(template.id);
    expect(await awaitRejection(admin.post(`${ORGANIZATION}/templates`, { ...body, name: "again" }))).toContain(
      "400 template_version_id already belongs to a template",
    );
    const otherVersion = await importVersion(admin, `${uniqueText()}${ECHO}`);
    const takenName = { name: "WEBSHOP", template_version_id: otherVersion.id };
    expect(await awaitRejection(admin.post(`${ORGANIZATION}/templates`, takenName))).toBe("409 name must be unique");
  });

  test("[TP-17] rejects a failed, archived or unknown version", async () => {
    const tryCreate = (id: string) =>
      awaitRejection(admin.post(`${ORGANIZATION}/templates`, { name: "x", template_version_id: id }));
    const failed = await importVersion(admin, "provisioner: magic\n");
    expect(await tryCreate(failed.id)).toContain("400 template_version_id its import failed: template.yaml line 1:");
    const archived = await importVersion(admin, `${uniqueText()}${ECHO}`);
    await admin.post(`/api/v2/templateversions/${archived.id}/archive`);
    expect(await tryCreate(archived.id)).toBe("400 template_version_id is archived");
    await admin.post(`/api/v2/templateversions/${archived.id}/unarchive`);
    expect(await tryCreate(uuid())).toContain("is not a template version of this organization");
    expect(await tryCreate("nonsense")).toContain("must be a UUID");
  });
});

describe("versions of a template", () => {
  test("[TP-18] activates only successful versions of the template, and does not archive the active one", async () => {
    const template = await makeTemplate(admin, `${uniqueText()}${ECHO}`);
    const path = `/api/v2/templates/${template.id}`;
    const second = await importVersion(admin, `${uniqueText()}${ECHO}`, { template_id: template.id, name: "v2" });
    expect((await admin.get<Template>(path)).active_version_id).toBe(template.active_version_id);
    await admin.patch(`${path}/versions`, { id: second.id });
    expect((await admin.get<Template>(path)).active_version_id).toBe(second.id);
    expect(await awaitRejection(admin.post(`/api/v2/templateversions/${second.id}/archive`))).toContain("400");
    await admin.post(`/api/v2/templateversions/${template.active_version_id}/archive`);
    const activate = (id: string) => awaitRejection(admin.patch(`${path}/versions`, { id }));
    expect(await activate(template.active_version_id)).toBe("400 id is archived");
    const otherTemplate = await makeTemplate(admin, `${uniqueText()}${ECHO}`);
    expect(await activate(otherTemplate.active_version_id)).toBe("400 id is not a version of this template");
    const failed = await importVersion(admin, "a: 1\n", { template_id: template.id });
    expect(await activate(failed.id)).toContain("400 id its import failed");
    expect(await activate(uuid())).toBe("404");
  });

  test("[TP-18] pages through versions, and requires unique names", async () => {
    const template = await makeTemplate(admin, `${uniqueText()}${ECHO}`);
    const path = `/api/v2/templates/${template.id}/versions`;
    for (const name of ["b", "c", "d"]) await importVersion(admin, ECHO, { template_id: template.id, name });
    const listNames = async (query = "") => (await admin.get<TemplateVersion[]>(path + query)).map(({ name }) => name);
    const [first, ...rest] = await listNames();
    expect(rest).toEqual(["b", "c", "d"]);
    expect(await listNames("?limit=2&offset=1")).toEqual(["b", "c"]);
    const b = await admin.get<TemplateVersion>(`${path}/b`);
    expect(await listNames(`?after_id=${b.id}&limit=1`)).toEqual(["c"]);
    await admin.post(`/api/v2/templateversions/${b.id}/archive`);
    expect(await listNames()).toEqual([first as string, "c", "d"]);
    expect(await listNames("?include_archived=true")).toHaveLength(4);
    const rename = (name: string) => awaitRejection(admin.patch(`/api/v2/templateversions/${b.id}`, { name }));
    expect(await rename("c")).toBe("409 name must be unique");
    expect(await rename("not a name")).toContain("400 name");
    expect(await rename("b2")).toBe("not rejected");
    expect((await admin.get<TemplateVersion>(`${path}/b2`)).id).toBe(b.id);
    const takenName = {
      file_id: await uploadFiles(admin, { "template.yaml": ECHO }),
      template_id: template.id,
      name: "c",
    };
    expect(await awaitRejection(admin.post(`${ORGANIZATION}/templateversions`, takenName))).toBe(
      "409 name must be unique",
    );
    expect(await awaitRejection(admin.get(`${path}/unknown`))).toBe("404");
  });
});

describe("changing and deleting", () => {
  test("[TP-19] keeps omitted fields; an empty message removes the deprecation", async () => {
    const template = await makeTemplate(admin, `${uniqueText()}${ECHO}`, { description: "d" });
    const path = `/api/v2/templates/${template.id}`;
    const updated = await admin.patch<Template>(path, {
      deprecation_message: "use the other",
      autostop_requirement: { days_of_week: ["sunday"], weeks: 2 },
      allow_user_autostop: false,
    });
    expect(updated).toMatchObject({ description: "d", deprecated: true, deprecation_message: "use the other" });
    expect(updated.autostop_requirement).toEqual({ days_of_week: ["sunday"], weeks: 2 });
    expect((await admin.patch<Template>(path, { deprecation_message: "" })).deprecated).toBe(false);
    expect((await admin.patch<Template>(path, {})).allow_user_autostop).toBe(false);
    for (const invalidBody of [
      { name: "two words" },
      { name: "x".repeat(33) },
      { display_name: " blank" },
      { default_ttl_ms: -1 },
      { default_ttl_ms: 9_000_000_000_000_000 },
      { autostart_requirement: { days_of_week: ["someday"] } },
      { max_port_share_level: "everybody" },
    ]) {
      expect(await awaitRejection(admin.patch(path, invalidBody))).toStartWith("400 ");
    }
  });

  test("[TP-19] a deleted template returns 404, and its name is free", async () => {
    const template = await makeTemplate(admin, `${uniqueText()}${ECHO}`, { name: "shortlived" });
    await admin.delete(`/api/v2/templates/${template.id}`);
    expect(await awaitRejection(admin.get(`/api/v2/templates/${template.id}`))).toBe("404");
    expect(await awaitRejection(admin.delete(`/api/v2/templates/${template.id}`))).toBe("404");
    expect((await makeTemplate(admin, `${uniqueText()}${ECHO}`, { name: "shortlived" })).id).not.toBe(template.id);
  });
});

describe("lists", () => {
  test("[TP-23] q filters by name, exact name, deprecation, organization and author", async () => {
    const first = await makeTemplate(admin, `${uniqueText()}${ECHO}`, { name: "zebra-one", display_name: "Striped" });
    const second = await makeTemplate(admin, `${uniqueText()}${ECHO}`, { name: "zebra-two" });
    await admin.patch(`/api/v2/templates/${second.id}`, { deprecation_message: "old" });
    const searchNames = async (q: string) =>
      (await member.get<Template[]>(`/api/v2/templates?q=${encodeURIComponent(q)}`)).map(({ name }) => name);
    expect(await searchNames("name:zebra")).toEqual(["zebra-one", "zebra-two"]);
    expect(await searchNames('exact_name:"Zebra-One"')).toEqual(["zebra-one"]);
    expect(await searchNames("striped")).toEqual(["zebra-one"]);
    expect(await searchNames("zebra deprecated:true")).toEqual(["zebra-two"]);
    expect(await searchNames("zebra deprecated:false")).toEqual(["zebra-one"]);
    expect(await searchNames(`zebra author:${ADMIN.username} organization:default`)).toHaveLength(2);
    expect(await searchNames("zebra author:me")).toEqual([]);
    expect(await searchNames("zebra has-ai-task:true")).toEqual([]);
    expect(await awaitRejection(member.get("/api/v2/templates?q=colour:red"))).toContain("400 colour");
    expect((await member.get<Template[]>(`${ORGANIZATION}/templates?q=zebra`)).map(({ id }) => id)).toEqual([
      first.id,
      second.id,
    ]);
  });
});

describe("access", () => {
  test("[TP-23] members can read templates, template admins change them, and others see nothing", async () => {
    const template = await makeTemplate(admin, `${uniqueText()}${ECHO}`);
    const version = `/api/v2/templateversions/${template.active_version_id}`;
    const file_id = await uploadFiles(admin, { "template.yaml": ECHO });
    const reads: string[] = ["", "/rich-parameters", "/presets", "/resources", "/external-auth", "/logs"];
    for (const path of [...reads.map((subpath) => version + subpath), `/api/v2/templates/${template.id}/versions`]) {
      expect([path, await awaitRejection(member.get(path))]).toEqual([path, "not rejected"]);
      expect([path, await awaitRejection(outsider.get(path))]).toEqual([path, "404"]);
    }
    expect(await awaitRejection(member.get(`${version}/variables`))).toStartWith("403");
    expect((await outsider.get<Template[]>("/api/v2/templates")).map(({ id }) => id)).not.toContain(template.id);
    const writes: [string, (client: Client) => Promise<unknown>][] = [
      ["version", (client) => client.post(`${ORGANIZATION}/templateversions`, { file_id })],
      ["template", (client) => client.post(`${ORGANIZATION}/templates`, { name: "n", template_version_id: uuid() })],
      ["patch", (client) => client.patch(`/api/v2/templates/${template.id}`, { name: "n" })],
      [
        "activate",
        (client) => client.patch(`/api/v2/templates/${template.id}/versions`, { id: template.active_version_id }),
      ],
      ["rename", (client) => client.patch(version, { name: "n" })],
      ["cancel", (client) => client.patch(`${version}/cancel`)],
      ["archive", (client) => client.post(`${version}/archive`)],
      ["delete", (client) => client.delete(`/api/v2/templates/${template.id}`)],
    ];
    for (const [name, write] of writes) {
      expect([name, await awaitRejection(write(member))]).toEqual([name, expect.stringMatching(/^403/)]);
      expect([name, await awaitRejection(write(outsider))]).toEqual([name, "404"]);
    }
  });

  test("[TP-23] users cannot create a version from another user's upload", async () => {
    const path = `/api/v2/organizations/${otherOrganization.id}`;
    await admin.put(`${path}/members/stranger/roles`, { roles: ["organization-template-admin"] });
    const file_id = await uploadFiles(admin, { "template.yaml": uniqueText() + ECHO });
    expect(await awaitRejection(outsider.post(`${path}/templateversions`, { file_id }))).toBe(
      "400 file_id is not a file you uploaded",
    );
  });
});

test("[TP-13] returns a version's parameters, presets and resources before any workspace exists", async () => {
  const version = await importVersion(
    admin,
    `${uniqueText()}${ECHO}parameters:
  - {name: size, type: number, mutable: true, default: 2, description: "How **big**", validation: {min: 1, max: 4}}
  - {name: name}
presets:
  - {name: Large, default: true, parameters: {size: 4}}
`,
  );
  const path = `/api/v2/templateversions/${version.id}`;
  const [size, name] = await admin.get<TemplateParameter[]>(`${path}/rich-parameters`);
  expect(size).toMatchObject({
    type: "number",
    form_type: "input",
    default_value: "2",
    required: false,
    mutable: true,
  });
  expect(size).toMatchObject({ validation_min: 1, validation_max: 4, description_plaintext: "How big" });
  expect(name).toMatchObject({ type: "string", required: true, default_value: "" });
  const presets = await admin.get<Preset[]>(`${path}/presets`);
  expect(presets).toMatchObject([{ name: "Large", default: true, parameters: [{ name: "size", value: "4" }] }]);
  expect(await admin.get<Preset[]>(`${path}/presets`)).toEqual(presets);
  const resources = await admin.get<PlannedResource[]>(`${path}/resources`);
  expect(resources).toMatchObject([{ name: "main", type: "echo_workspace", agents: [{ name: "main", apps: [] }] }]);
  expect(await admin.get<unknown[]>(`${path}/external-auth`)).toEqual([]);
});

test("[TP-8] the JSON Schema of template.yaml is public", async () => {
  const schema = await new Client(server.url).get<{ $schema: string; required: string[] }>("/api/v2/templates/schema");
  expect(schema.$schema).toContain("json-schema.org");
  expect(schema.required).toEqual(["provisioner", "resources"]);
});

test("[TP-36] lists the bundled templates, and imports each of them", async () => {
  const examples = await admin.get<TemplateExample[]>("/api/v2/templates/examples");
  // A cluster has no local workspaces.
  expect(examples.some(({ provisioner }) => provisioner === "local")).toBe(!usesActiveNodes);
  for (const { id, name, markdown, provisioner } of examples) {
    expect([id, name === "", markdown.startsWith("#")]).toEqual([id, false, true]);
    // These need Terraform and providers: starters.test.ts imports them.
    if (provisioner === "terraform") continue;
    const created = await admin.post<TemplateVersion>("/api/v2/organizations/default/templateversions", {
      example_id: id,
    });
    await followImport(admin, created.id);
    const version = await admin.get<TemplateVersion>(`/api/v2/templateversions/${created.id}`);
    expect([version.job.status, version.readme]).toEqual(["succeeded", markdown]);
  }
});

test("[TP-24][TP-19] creates a workspace with a preset; its template cannot be deleted", async () => {
  const template = await makeTemplate(
    admin,
    `${uniqueText()}${ECHO}parameters:\n  - {name: size, type: number, default: 2}\npresets:\n  - {name: Large, parameters: {size: 4}}\n`,
  );
  const [preset] = await admin.get<Preset[]>(`/api/v2/templateversions/${template.active_version_id}/presets`);
  const workspace = await admin.post<{ latest_build: { id: string } }>("/api/v2/users/me/workspaces", {
    name: "with-preset",
    template_id: template.id,
    template_version_preset_id: preset?.id,
  });
  const parameters = `/api/v2/workspacebuilds/${workspace.latest_build.id}/parameters`;
  expect(await admin.get<unknown[]>(parameters)).toEqual([{ name: "size", value: "4" }]);
  expect((await admin.get<Template>(`/api/v2/templates/${template.id}`)).active_user_count).toBe(1);
  expect(await awaitRejection(admin.delete(`/api/v2/templates/${template.id}`))).toBe(
    "400 Delete its 1 workspace first.",
  );
});
