// A form with parameters that depend on each other: by WebSocket, by POST, and in a workspace created from the values.
import { expect, test } from "bun:test";
import type { DynamicParameters } from "#schema/workspaces/dynamic-parameters.ts";
import { serverForFile } from "#test/support/for-file.ts";
import { awaitStatus } from "#test/support/net/status.ts";
import { importVersion, makeTemplate } from "#test/support/templates.ts";
import { createWorkspace } from "#test/support/workspaces.ts";

const { admin } = await serverForFile();

const YAML = JSON.stringify({
  provisioner: "echo",
  parameters: [
    {
      name: "cloud",
      default: "near",
      options: [
        { name: "Near", value: "near" },
        { name: "Far", value: "far" },
      ],
    },
    {
      name: "region",
      default: "here",
      defaults: [{ when: { cloud: "far" }, value: "mars" }],
      options: [
        { name: "Here", value: "here", when: { cloud: "near" } },
        { name: "Mars", value: "mars", when: { cloud: "far" } },
        { name: "Moon", value: "moon", when: { cloud: ["far"] } },
      ],
    },
    { name: "fuel", type: "number", when: { cloud: "far" }, validation: { min: 3, max: 9 } },
  ],
  resources: [{ name: "main", agents: [{ name: "main" }] }],
});
const template = await makeTemplate(admin, YAML);

const PARAMETERS_PATH = `/api/v2/templateversions/${template.active_version_id}/dynamic-parameters`;
const summarize = ({ id, diagnostics: formDiagnostics, parameters }: DynamicParameters) => ({
  id,
  faults: formDiagnostics.map(({ detail }) => detail),
  asked: parameters.map(({ name, value, options, diagnostics }) =>
    [name, value.value, options.map((option) => option.value.value).join("|"), diagnostics[0]?.detail ?? ""]
      .join(" ")
      .trim(),
  ),
});

test("[DY-1] parameters, options and defaults depend on earlier values", async () => {
  const evaluate = (inputs: object) => admin.post<DynamicParameters>(`${PARAMETERS_PATH}/evaluate`, { id: 4, inputs });
  expect(summarize(await evaluate({}))).toEqual({
    id: 4,
    faults: [],
    asked: ["cloud near near|far", "region here here"],
  });
  const farForm = await evaluate({ cloud: "far" });
  expect(summarize(farForm)).toEqual({
    id: 4,
    faults: [],
    asked: ["cloud far near|far", "region mars mars|moon", "fuel   The parameter fuel has no default."],
  });
  expect(farForm.parameters[2]).toMatchObject({ required: true, value: { value: "", valid: false } });
  expect(farForm.parameters[2]?.diagnostics[0]).toMatchObject({ severity: "error", extra: { code: "required" } });
});

test("[DY-2] returns errors next to the parameter, and accepts the request", async () => {
  const inputs = { cloud: "far", region: "here", fuel: "12", wings: "two" };
  const form = await admin.post<DynamicParameters>(`${PARAMETERS_PATH}/evaluate`, { inputs });
  expect(summarize(form)).toEqual({
    id: 0,
    faults: ["wings"],
    asked: ["cloud far near|far", "region here mars|moon must be one of mars, moon", "fuel 12  must be at most 9"],
  });
});

test("[DY-3] a workspace follows the same rules: only visible parameters have values, and need them", async () => {
  const create = (name: string, values: Record<string, string>) =>
    createWorkspace(admin, template.id, name, {
      rich_parameter_values: Object.entries(values).map(([key, value]) => ({ name: key, value })),
    });
  const listBuildParameters = async (id: string) => {
    const { latest_build } = await admin.get<{ latest_build: { id: string } }>(`/api/v2/workspaces/${id}`);
    return admin.get<{ name: string; value: string }[]>(`/api/v2/workspacebuilds/${latest_build.id}/parameters`);
  };
  expect(await awaitStatus(create("far", { cloud: "far" }))).toBe(400);
  expect(await awaitStatus(create("far", { cloud: "far", fuel: "5", region: "here" }))).toBe(400);
  const near = await create("near", { fuel: "5" });
  expect(await listBuildParameters(near.id)).toEqual([
    { name: "cloud", value: "near" },
    { name: "region", value: "here" },
  ]);
  const farWorkspace = await create("far", { cloud: "far", fuel: "5" });
  expect(await listBuildParameters(farWorkspace.id)).toEqual([
    { name: "cloud", value: "far" },
    { name: "fuel", value: "5" },
    { name: "region", value: "mars" },
  ]);
});

test("[DY-4] rejects conditions on later parameters or impossible values", async () => {
  const parameters = [
    { name: "a", type: "bool", default: true, when: { b: "x" } },
    { name: "b", default: "x", when: { a: "maybe" }, defaults: [{ when: { a: true }, value: "y" }] },
  ];
  const resources = [{ name: "main" }];
  const { job, id } = await importVersion(admin, JSON.stringify({ provisioner: "echo", parameters, resources }));
  expect(job.status).toBe("failed");
  const logs = await admin.get<{ output: string }[]>(`/api/v2/templateversions/${id}/logs`);
  const log = logs.map(({ output }) => output).join("\n");
  expect(log).toContain("is not an earlier parameter");
  expect(log).toContain("can never be: must be true or false");
});

test("[DY-5] a WebSocket sends an initial response, then one for each request with its ID", async () => {
  using socket = await admin.socket(PARAMETERS_PATH);
  expect(summarize(await socket.json<DynamicParameters>()).id).toBe(-1);
  const ids = [3, 1, 2];
  for (const id of ids) socket.send(JSON.stringify({ id, inputs: id === 1 ? { cloud: "far" } : {} }));
  const responses: DynamicParameters[] = [];
  for (const _ of ids) responses.push(await socket.json<DynamicParameters>());
  expect(responses.map(({ id, parameters }) => [id, parameters.length])).toEqual([
    [3, 2],
    [1, 3],
    [2, 2],
  ]);
});

test("[DY-6] closes the WebSocket after an invalid message", async () => {
  for (const message of [
    "no",
    "{}",
    JSON.stringify({ id: 1, inputs: { a: 1 } }),
    JSON.stringify({ id: "x", inputs: {} }),
  ]) {
    using socket = await admin.socket(PARAMETERS_PATH);
    await socket.json();
    socket.send(message);
    expect([message, (await socket.closed).code]).toEqual([message, 1008]);
  }
});

test("[DY-7] rejects a version whose import failed before the upgrade", async () => {
  const broken = await importVersion(admin, "provisioner: nowhere\n");
  const path = `/api/v2/templateversions/${broken.id}/dynamic-parameters`;
  expect(await awaitStatus(admin.post(`${path}/evaluate`, { inputs: {} }))).toBe(400);
  const errorMessage = await admin.socket(path).then(
    () => "opened",
    (error: Error) => error.message,
  );
  expect(errorMessage).toContain("400");
});
