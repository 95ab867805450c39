// Terraform parameters that depend on each other, in the live form and in builds with its values.
import { afterAll, beforeAll, expect } from "bun:test";
import { existsSync } from "node:fs";
import type { DynamicParameters } from "#schema/workspaces/dynamic-parameters.ts";
import { ApiError } from "#src/client.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import {
  makeTerraformTemplate,
  openTerraformWorld,
  readTemplateFiles,
  type TerraformWorld,
} from "#test/support/terraform.ts";
import { createBuild, createWorkspace } from "#test/support/workspaces.ts";

const requirements = [needs.terraform];
let world: TerraformWorld;
let version_id: string;
let template_id: string;
beforeAll(async () => {
  if (!needs.terraform.found) return;
  world = await openTerraformWorld();
  const { template, version } = await makeTerraformTemplate(world.admin, readTemplateFiles("parameters"), "questions");
  [template_id, version_id] = [template.id, version.id];
});
afterAll(() => world?.[Symbol.asyncDispose]());

const path = (): string => `/api/v2/templateversions/${version_id}/dynamic-parameters`;
const evaluateForm = (inputs: Record<string, string>): Promise<DynamicParameters> =>
  world.admin.post<DynamicParameters>(`${path()}/evaluate`, { id: 7, inputs });
const findParameter = ({ parameters }: DynamicParameters, name: string) =>
  parameters.find((parameter) => parameter.name === name);

testNeeding(
  requirements,
  "[TF-15] parameters, options and defaults depend on the values of other parameters",
  async () => {
    const first = await evaluateForm({});
    expect(first.id).toBe(7);
    expect(first.parameters.map(({ name }) => name)).toEqual([
      ...["notes", "required_one", "region", "cpus", "project", "gpu", "tools", "Zones of interest", "reset"],
    ]);
    expect(findParameter(first, "notes")?.styling).toEqual({ placeholder: "anything" });
    expect(findParameter(first, "required_one")?.diagnostics[0]?.extra.code).toBe("required");
    const inDefaultRegion = await evaluateForm({ gpu: "true", required_one: "x" });
    expect(findParameter(inDefaultRegion, "gpu_kind")?.default_value).toEqual({ value: "small", valid: true });
    const inOtherRegion = await evaluateForm({ gpu: "true", region: "us", required_one: "x" });
    expect(findParameter(inOtherRegion, "gpu_kind")?.default_value).toEqual({ value: "large", valid: true });
    // A value for a hidden parameter is not an error, but a name that the template does not have is one.
    expect((await evaluateForm({ gpu: "false", gpu_kind: "large", required_one: "x" })).diagnostics).toEqual([]);
    expect((await evaluateForm({ unknown: "x" })).diagnostics.map(({ detail }) => detail)).toEqual(["unknown"]);
  },
);

testNeeding(requirements, "[TF-15] each parameter shows the template's own error messages", async () => {
  const invalid = await evaluateForm({ cpus: "99", project: "NOT GOOD", required_one: "x" });
  expect(invalid.parameters.map(({ name }) => name)).toContain("cpus");
  expect(JSON.stringify(findParameter(invalid, "cpus")?.diagnostics)).toContain("99 is not between 1 and 16");
  expect(JSON.stringify(findParameter(invalid, "project")?.diagnostics)).toContain("small letters, digits and hyphens");
  expect(findParameter(invalid, "region")?.diagnostics).toEqual([]);
});

testNeeding(requirements, "[TF-15] the socket answers the newest request with its values", async () => {
  using socket = await world.admin.socket(path());
  expect((await socket.json<DynamicParameters>()).id).toBe(-1);
  for (const id of [1, 2, 3]) socket.send(JSON.stringify({ id, inputs: { gpu: "true", cpus: String(id) } }));
  let response = await socket.json<DynamicParameters>();
  while (response.id !== 3) response = await socket.json<DynamicParameters>();
  expect(findParameter(response, "cpus")?.value.value).toBe("3");
});

testNeeding(
  requirements,
  "[TF-15] a build accepts the parameters that its values require, and rejects what the template rejects",
  async () => {
    const create = (name: string, values: Record<string, string>) =>
      createWorkspace(world.admin, template_id, name, {
        rich_parameter_values: Object.entries(values).map(([parameter, value]) => ({ name: parameter, value })),
      });
    const refused = await create("bad", { required_one: "x", cpus: "99" }).catch((error) => error);
    expect(refused).toBeInstanceOf(ApiError);
    expect([refused.status, JSON.stringify(refused.body)]).toEqual([400, expect.stringContaining('"field":"cpus"')]);
    const unknownParameter = await create("odd", { required_one: "x", unknown: "y" }).catch((error) => error);
    expect([unknownParameter.status, JSON.stringify(unknownParameter.body)]).toEqual([
      400,
      expect.stringContaining('"field":"unknown"'),
    ]);
    // The build waits for a worker with its tags, but its values are already stored.
    const { latest_build } = await create("good", { required_one: "x", gpu: "true", gpu_kind: "large" });
    type Value = { name: string; value: string };
    const values = await world.admin.get<Value[]>(`/api/v2/workspacebuilds/${latest_build.id}/parameters`);
    expect(values.find(({ name }) => name === "gpu_kind")?.value).toBe("large");
    expect(values.find(({ name }) => name === "Zones of interest")?.value).toBe('["a","b"]');
    // The tags depend on the values, and the delete has the same tags.
    const otherRegion = await create("far", { required_one: "x", region: "us" });
    await world.admin.patch(`/api/v2/workspacebuilds/${otherRegion.latest_build.id}/cancel`);
    const deletion = await createBuild(world.admin, otherRegion.id, "delete");
    const tags = { kind: "vm", provisioner: "terraform" };
    expect([latest_build, otherRegion.latest_build, deletion].map(({ job }) => job.tags)).toEqual([
      expect.objectContaining({ ...tags, region: "eu" }),
      expect.objectContaining({ ...tags, region: "us" }),
      expect.objectContaining({ ...tags, region: "us" }),
    ]);
  },
);

testNeeding(requirements, "[TF-15] a template without dependent parameters needs no plan", async () => {
  const { version } = await makeTerraformTemplate(world.admin, readTemplateFiles("presets-prebuilds"), "plain");
  const response = await world.admin.post<DynamicParameters>(
    `/api/v2/templateversions/${version.id}/dynamic-parameters/evaluate`,
    { inputs: { region: "us" } },
  );
  expect(findParameter(response, "region")?.value.value).toBe("us");
  expect(existsSync(`${world.server.directory}/terraform/forms/${version.id}`)).toBe(false);
});

testNeeding(
  requirements,
  "[TF-41] a plan checks a pattern that only Terraform can parse, and a list can be one of several options",
  async () => {
    const main = `terraform {
  required_providers {
    coder = { source = "coder/coder" }
  }
}
data "coder_parameter" "name" {
  name    = "name"
  default = "Ünder"
  validation {
    regex = "^(?i)\\\\p{L}+$"
    error = "letters"
  }
}
data "coder_parameter" "tools" {
  name    = "tools"
  type    = "list(string)"
  default = jsonencode(["git"])
  option {
    name  = "few"
    value = jsonencode(["git"])
  }
  option {
    name  = "many"
    value = jsonencode(["git", "vim"])
  }
}
`;
    const { template } = await makeTerraformTemplate(world.admin, { "main.tf": main }, "patterns");
    const create = (name: string, value: string) =>
      createWorkspace(world.admin, template.id, name, {
        rich_parameter_values: [
          { name: "name", value },
          { name: "tools", value: '["git","vim"]' },
        ],
      });
    const refused = await create("digits", "4711").catch((error) => error);
    expect([refused.status, JSON.stringify(refused.body)]).toEqual([400, expect.stringContaining("letters")]);
    const { latest_build } = await create("letters", "Äöü");
    const values = await world.admin.get<object[]>(`/api/v2/workspacebuilds/${latest_build.id}/parameters`);
    expect(values).toEqual([
      { name: "name", value: "Äöü" },
      { name: "tools", value: '["git","vim"]' },
    ]);
  },
);
