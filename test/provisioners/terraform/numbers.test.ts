// Numbers are parsed with the same rules and errors in every place where values are entered: for a new workspace, a build, the live form, and on the
// command line. Tested with Terraform templates with and without planned parameters, and with a template.yaml.
import { afterAll, beforeAll, expect } from "bun:test";
import type { DynamicParameters } from "#schema/workspaces/dynamic-parameters.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { toProgramCommand } from "#test/support/program.ts";
import { importVersion } from "#test/support/templates.ts";
import { makeTerraformTemplate, openTerraformWorld, type TerraformWorld } from "#test/support/terraform.ts";
import { awaitBuild, createWorkspace } from "#test/support/workspaces.ts";

const requirements = [needs.terraform];
let world: TerraformWorld;
beforeAll(async () => {
  if (needs.terraform.found) world = await openTerraformWorld();
});
afterAll(() => world?.[Symbol.asyncDispose]());

const HEAD = `terraform {
  required_providers {
    coder = { source = "coder/coder" }
  }
}
`;
const STATIC_PARAMETERS = `
data "coder_parameter" "ruled" {
  name    = "cpu count"
  type    = "number"
  default = 2
  mutable = true
  validation {
    min = 1
    max = 16
  }
}
data "coder_parameter" "growing" {
  name    = "growing"
  type    = "number"
  default = 2
  mutable = true
  validation {
    monotonic = "increasing"
  }
}
data "coder_parameter" "bare" {
  name    = "bare"
  type    = "number"
  default = 2
  mutable = true
  validation {}
}
data "coder_parameter" "free" {
  name    = "free"
  type    = "number"
  default = 0.5
  mutable = true
}
`;
const PLANNED_PARAMETERS = `${STATIC_PARAMETERS}
data "coder_parameter" "gpu" {
  name    = "gpu"
  type    = "bool"
  default = false
  mutable = true
}
data "coder_parameter" "gpu_kind" {
  count   = data.coder_parameter.gpu.value == "true" ? 1 : 0
  name    = "Kind of GPU"
  type    = "number"
  default = 1
  mutable = true
  order   = 9
  validation {
    min = 1
    max = 4
  }
}
data "coder_parameter" "zones" {
  name    = "zones"
  type    = "list(string)"
  default = "[]"
  mutable = true
}
data "coder_parameter" "zone" {
  for_each = toset(jsondecode(data.coder_parameter.zones.value))
  name     = "size of \${each.key}"
  type     = "number"
  default  = 1
  mutable  = true
  validation {
    min = 1
    max = 4
  }
}
`;
const YAML = `provisioner: echo
parameters:
  - { name: cpu count, type: number, default: 2, mutable: true, validation: { min: 1, max: 16 } }
  - { name: growing, type: number, default: 2, mutable: true, validation: { monotonic: increasing } }
  - { name: bare, type: number, default: 2, mutable: true, validation: {} }
  - { name: free, type: number, default: 0.5, mutable: true }
resources:
  - name: main
`;

const INVALID_NUMBERS = ["5.5", "1e1", "99999999999999999999", "two", "", " 3", "0x3"];
const toParameterValues = (values: Record<string, string>) =>
  Object.entries(values).map(([name, value]) => ({ name, value }));

/** Returns the status and the names of the rejected values. */
const listRejected = async (path: string, body: object): Promise<[number, string[]]> => {
  const response = await world.admin.fetch("POST", path, body);
  const { validations = [] } = (await response.json()) as { validations?: { field: string }[] };
  return [response.status, validations.map(({ field }) => field)];
};

const createTemplate = async (kind: string, name = kind.replace(/\W/g, "")) => {
  if (kind !== "template.yaml") {
    const main = HEAD + (kind === "planned" ? PLANNED_PARAMETERS : STATIC_PARAMETERS);
    const { template, version } = await makeTerraformTemplate(world.admin, { "main.tf": main }, name);
    return { template_id: template.id, version_id: version.id };
  }
  const { id } = await importVersion(world.admin, YAML);
  const path = "/api/v2/organizations/default/templates";
  const template = await world.admin.post<{ id: string }>(path, { name, template_version_id: id });
  return { template_id: template.id, version_id: id };
};

for (const kind of ["static", "planned", "template.yaml"]) {
  testNeeding(
    requirements,
    `[TF-46] a number with a rule must be an integer in every place where it is entered, for a ${kind === "template.yaml" ? kind : `${kind} template of Terraform`}`,
    async () => {
      const { admin, server } = world;
      const { template_id, version_id } = await createTemplate(kind);
      const formPath = `/api/v2/templateversions/${version_id}/dynamic-parameters/evaluate`;
      const name = kind.replace(/\W/g, "");
      const { id, latest_build } = await createWorkspace(admin, template_id, name, {
        rich_parameter_values: toParameterValues({ free: "5.5", growing: "3" }),
      });
      await awaitBuild(admin, id);
      for (const invalid of INVALID_NUMBERS) {
        const values = { "cpu count": invalid, growing: invalid, bare: invalid };
        const names = Object.keys(values);
        const rich_parameter_values = toParameterValues(values);
        const createRequest = { name: `${name}-no`, template_id, rich_parameter_values };
        const [status, fields] = await listRejected("/api/v2/users/me/workspaces", createRequest);
        expect([invalid, status, fields.sort()]).toEqual([invalid, 400, names.toSorted()]);
        const path = `/api/v2/workspaces/${id}/builds`;
        const buildResult = await listRejected(path, { transition: "start", rich_parameter_values });
        expect([invalid, buildResult[0], buildResult[1].sort()]).toEqual([invalid, 400, names.toSorted()]);
        const response = await admin.post<DynamicParameters>(formPath, { inputs: values });
        const invalidParameters = response.parameters.filter(({ diagnostics }) => diagnostics.length > 0);
        expect([invalid, invalidParameters.map((parameter) => parameter.name).sort(), response.diagnostics]).toEqual([
          invalid,
          names.toSorted(),
          [],
        ]);
      }
      const args = [`${name}-cli`, "--template", name, "--parameter", "cpu count=5.5"];
      const env = {
        PATH: process.env.PATH,
        HOME: world.folder,
        SLIPWAY_URL: server.url.href,
        SLIPWAY_TOKEN: admin.token,
      };
      const child = Bun.spawn([...toProgramCommand(), "workspaces", "create", ...args], { env, stderr: "pipe" });
      expect([await new Response(child.stderr).text(), await child.exited]).toEqual([
        expect.stringContaining("cpu count"),
        1,
      ]);
      const { workspaces } = await admin.get<{ workspaces: Workspace[] }>("/api/v2/workspaces");
      expect(workspaces.filter((found) => found.template_id === template_id).map((found) => found.name)).toEqual([
        name,
      ]);
      expect((await admin.get<Workspace>(`/api/v2/workspaces/${id}`)).latest_build.id).toBe(latest_build.id);
    },
  );
}

testNeeding(
  requirements,
  "[TF-46] the form shows an error of a parameter that the import did not have, with its name",
  async () => {
    const { template_id, version_id } = await createTemplate("planned", "kinds");
    const values = { gpu: "true", "Kind of GPU": "5.5", zones: '["a","b"]', "size of b": "9" };
    const path = "/api/v2/users/me/workspaces";
    const body = { name: "kinds", template_id, rich_parameter_values: toParameterValues(values) };
    const [status, fields] = await listRejected(path, body);
    expect([status, fields.sort()]).toEqual([400, ["Kind of GPU", "size of b"]]);
    const formPath = `/api/v2/templateversions/${version_id}/dynamic-parameters/evaluate`;
    const response = await world.admin.post<DynamicParameters>(formPath, { inputs: values });
    expect(response.diagnostics).toEqual([]);
    const summaries = response.parameters.map(
      ({ name, value, diagnostics }) => `${name}: ${value.value} ${diagnostics.map(({ detail }) => detail)}`,
    );
    expect(summaries.filter((summary) => /GPU|size/.test(summary))).toEqual([
      "size of a: 1 ",
      "size of b: 9 value 9 is more than the maximum 4",
      'Kind of GPU: 5.5 value "5.5" is not a number',
    ]);
  },
);

testNeeding(
  requirements,
  "[TF-47] omits a value for a hidden parameter, and refuses a name that the template never uses",
  async () => {
    const { admin } = world;
    const { template_id } = await createTemplate("planned", "conditional");
    const { id } = await createWorkspace(admin, template_id, "conditional", {
      rich_parameter_values: toParameterValues({ gpu: "true", "Kind of GPU": "3", zones: '["a"]', "size of a": "2" }),
    });
    await awaitBuild(admin, id);
    type Value = { name: string; value: string };
    const loadValues = async (): Promise<Value[]> => {
      const { latest_build } = await admin.get<Workspace>(`/api/v2/workspaces/${id}`);
      return admin.get<Value[]>(`/api/v2/workspacebuilds/${latest_build.id}/parameters`);
    };
    const before = await loadValues();
    expect(before.filter(({ name }) => /GPU|size/.test(name))).toEqual([
      { name: "Kind of GPU", value: "3" },
      { name: "size of a", value: "2" },
    ]);
    // Clients send all values of the previous build, with some of them changed.
    const path = `/api/v2/workspaces/${id}/builds`;
    const changeValues = (values: Record<string, string>) =>
      before.map(({ name, value }) => ({ name, value: values[name] ?? value }));
    const turnOff = { transition: "start", rich_parameter_values: changeValues({ gpu: "false", zones: "[]" }) };
    expect((await admin.fetch("POST", path, turnOff)).status).toBe(201);
    await awaitBuild(admin, id);
    expect((await loadValues()).filter(({ name }) => /GPU|size/.test(name))).toEqual([]);
    // When the parameter is shown again, it has its default, because its value was not stored.
    const turnOn = { transition: "start", rich_parameter_values: toParameterValues({ gpu: "true" }) };
    expect((await admin.fetch("POST", path, turnOn)).status).toBe(201);
    await awaitBuild(admin, id);
    expect((await loadValues()).find(({ name }) => name === "Kind of GPU")?.value).toBe("1");
    const unknownName = { transition: "start", rich_parameter_values: toParameterValues({ "Kind of CPU": "1" }) };
    expect(await listRejected(path, unknownName)).toEqual([400, ["Kind of CPU"]]);
  },
);
