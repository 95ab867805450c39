// Terraform parameters that depend on each other: in the live form, and in builds created from its values.
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

const wanted = [needs.terraform];
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
const findParameter = ({ parameters }: DynamicParameters, name: string) => parameters.find((one) => one.name === name);

testNeeding(wanted, "[TF-15] the parameters, options and defaults depend on earlier answers", async () => {
  const first = await evaluateForm({});
  expect(first.id).toBe(7);
  expect(first.parameters.map(({ name }) => name)).toEqual([
    ...["notes", "required_one", "region", "cpus", "project", "gpu", "tools", "Zones of interest", "reset"],
  ]);
  expect(findParameter(first, "notes")?.styling).toEqual({ placeholder: "anything" });
  expect(findParameter(first, "required_one")?.diagnostics[0]?.extra.code).toBe("required");
  const near = await evaluateForm({ gpu: "true", required_one: "x" });
  expect(findParameter(near, "gpu_kind")?.default_value).toEqual({ value: "small", valid: true });
  const far = await evaluateForm({ gpu: "true", region: "us", required_one: "x" });
  expect(findParameter(far, "gpu_kind")?.default_value).toEqual({ value: "large", valid: true });
  // A value for a parameter that is no longer shown is not an error; a name that the template does not have is one.
  expect((await evaluateForm({ gpu: "false", gpu_kind: "large", required_one: "x" })).diagnostics).toEqual([]);
  expect((await evaluateForm({ unknown: "x" })).diagnostics.map(({ detail }) => detail)).toEqual(["unknown"]);
});

testNeeding(wanted, "[TF-15] the template's refusals are shown next to their parameter, in its own words", async () => {
  const wrong = await evaluateForm({ cpus: "99", project: "NOT GOOD", required_one: "x" });
  expect(wrong.parameters.map(({ name }) => name)).toContain("cpus");
  expect(JSON.stringify(findParameter(wrong, "cpus")?.diagnostics)).toContain("99 is not between 1 and 16");
  expect(JSON.stringify(findParameter(wrong, "project")?.diagnostics)).toContain("small letters, digits and hyphens");
  expect(findParameter(wrong, "region")?.diagnostics).toEqual([]);
});

testNeeding(wanted, "[TF-15] on the socket the newest request wins, and its response is for its values", async () => {
  using socket = await world.admin.socket(path());
  expect((await socket.json<DynamicParameters>()).id).toBe(-1);
  for (const id of [1, 2, 3]) socket.send(JSON.stringify({ id, inputs: { gpu: "true", cpus: String(id) } }));
  let answer = await socket.json<DynamicParameters>();
  while (answer.id !== 3) answer = await socket.json<DynamicParameters>();
  expect(findParameter(answer, "cpus")?.value.value).toBe("3");
});

testNeeding(
  wanted,
  "[TF-15] a build accepts the parameters that its values require, and rejects what the template rejects",
  async () => {
    const create = (name: string, values: Record<string, string>) =>
      createWorkspace(world.admin, template_id, name, {
        rich_parameter_values: Object.entries(values).map(([one, value]) => ({ name: one, value })),
      });
    const refused = await create("bad", { required_one: "x", cpus: "99" }).catch((error) => error);
    expect(refused).toBeInstanceOf(ApiError);
    expect([refused.status, JSON.stringify(refused.body)]).toEqual([400, expect.stringContaining('"field":"cpus"')]);
    const strange = await create("odd", { required_one: "x", unknown: "y" }).catch((error) => error);
    expect([strange.status, JSON.stringify(strange.body)]).toEqual([400, expect.stringContaining('"field":"unknown"')]);
    // It requests tags and waits for a worker that has them; its values are stored by then.
    const { latest_build } = await create("good", { required_one: "x", gpu: "true", gpu_kind: "large" });
    type Value = { name: string; value: string };
    const values = await world.admin.get<Value[]>(`/api/v2/workspacebuilds/${latest_build.id}/parameters`);
    expect(values.find(({ name }) => name === "gpu_kind")?.value).toBe("large");
    expect(values.find(({ name }) => name === "Zones of interest")?.value).toBe('["a","b"]');
    // The worker must have the tags for these values, and so must the delete's.
    const far = await create("far", { required_one: "x", region: "us" });
    await world.admin.patch(`/api/v2/workspacebuilds/${far.latest_build.id}/cancel`);
    const gone = await createBuild(world.admin, far.id, "delete");
    const kind = { kind: "vm", provisioner: "terraform" };
    expect([latest_build, far.latest_build, gone].map(({ job }) => job.tags)).toEqual([
      expect.objectContaining({ ...kind, region: "eu" }),
      expect.objectContaining({ ...kind, region: "us" }),
      expect.objectContaining({ ...kind, region: "us" }),
    ]);
  },
);

testNeeding(wanted, "[TF-15] a template without dependent parameters is answered without a plan", async () => {
  const { version } = await makeTerraformTemplate(world.admin, readTemplateFiles("presets-prebuilds"), "plain");
  const answer = await world.admin.post<DynamicParameters>(
    `/api/v2/templateversions/${version.id}/dynamic-parameters/evaluate`,
    { inputs: { region: "us" } },
  );
  expect(findParameter(answer, "region")?.value.value).toBe("us");
  expect(existsSync(`${world.server.directory}/terraform/forms/${version.id}`)).toBe(false);
});

testNeeding(
  wanted,
  "[TF-41] a pattern that only Terraform can parse is checked by a plan, and one of several lists can be selected",
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
