// Dry runs of a template version before it has workspaces: a job like any other that leaves nothing behind.
import { expect, test } from "bun:test";
import type { PlannedResource } from "#schema/templates/template-version.ts";
import type { ProvisionerJob } from "#schema/workspaces/job.ts";
import type { Client } from "#src/client.ts";
import { newPerson } from "#test/api/users/people.ts";
import { serverForFile } from "#test/support/for-file.ts";
import { awaitStatus } from "#test/support/net/status.ts";
import { importVersion } from "#test/support/templates.ts";

const { admin } = await serverForFile();
const member = (await newPerson(admin, "member")).client;

const RESOURCES =
  "resources:\n  - name: main\n    agents:\n      - name: main\n        directory: /srv/{{ parameters.place }}\n";
const PARAMETERS = "parameters:\n  - name: place\n    default: here\n";
const GOOD = `provisioner: echo\necho: {logs: [one, two]}\n${PARAMETERS}${RESOURCES}`;
const BAD = `provisioner: echo\necho: {error: no room}\n${PARAMETERS}${RESOURCES}`;
const HANGING = `provisioner: echo\necho: {hang: true}\n${PARAMETERS}${RESOURCES}`;

const begin = async (who: Client, yaml: string, body: object = {}) => {
  const version = await importVersion(admin, yaml);
  const at = `/api/v2/templateversions/${version.id}/dry-run`;
  const job = await who.post<ProvisionerJob>(at, body);
  return { at: `${at}/${job.id}`, job };
};
const follow = async (who: Client, at: string) => {
  using socket = await who.socket(`${at}/logs?follow`);
  const lines: string[] = [];
  for await (const message of socket) lines.push((JSON.parse(message as string) as { output: string }).output);
  return { lines, code: (await socket.closed).code };
};

test("[DR-1] a dry run plans with the given values, is followed to its end, and creates no workspace", async () => {
  const values = [{ name: "place", value: "there" }];
  const { at, job } = await begin(member, GOOD, { workspace_name: "mine", rich_parameter_values: values });
  expect(job).toMatchObject({ type: "template_version_dry_run", metadata: { workspace_name: "mine" } });
  expect(Object.keys(job.input)).toEqual(["template_version_id"]);
  const { lines, code } = await follow(member, at);
  expect(lines).toEqual(["one", "two", "Would create echo_workspace main with the agent main."]);
  expect(code).toBe(1000);
  expect(await member.get<ProvisionerJob>(at)).toMatchObject({ status: "succeeded" });
  const [resource] = await member.get<PlannedResource[]>(`${at}/resources`);
  expect(resource).toMatchObject({ job_id: job.id, agents: [{ directory: "/srv/there" }] });
  expect(await member.get(`${at}/matched-provisioners`)).toMatchObject({ count: 1, available: 1 });
  expect(await member.get("/api/v2/workspaces")).toMatchObject({ count: 0 });
  expect(await awaitStatus(member.patch(`${at}/cancel`, {}))).toBe(412);
});

test("[DR-2] an error from the provisioner becomes the job's error", async () => {
  const { at } = await begin(admin, BAD);
  const { lines } = await follow(admin, at);
  expect(lines).toEqual(["no room"]);
  expect(await admin.get<ProvisionerJob>(at)).toMatchObject({ status: "failed", error: "no room" });
  expect(await awaitStatus(admin.get(`${at}/resources`))).toBe(400);
});

test("[DR-3] a running dry run can be canceled, and has no resources until it has ended", async () => {
  const { at } = await begin(member, HANGING);
  expect(await awaitStatus(member.get(`${at}/resources`))).toBe(412);
  await member.patch(`${at}/cancel`, {});
  await follow(member, at);
  expect(await member.get<ProvisionerJob>(at)).toMatchObject({ status: "canceled" });
});

test("[DR-4] values are validated as for a workspace, and the number per person is limited", async () => {
  const version = await importVersion(admin, HANGING);
  const at = `/api/v2/templateversions/${version.id}/dry-run`;
  expect(await awaitStatus(admin.post(at, { rich_parameter_values: [{ name: "nowhere", value: "x" }] }))).toBe(400);
  expect(await awaitStatus(admin.post(at, { template_version_preset_id: version.id }))).toBe(400);
  const created: string[] = [];
  for (let i = 0; i < 10; i++) created.push((await admin.post<ProvisionerJob>(at, {})).id);
  expect(await awaitStatus(admin.post(at, {}))).toBe(429);
  for (const id of created) await admin.patch(`${at}/${id}/cancel`, {});
  await Promise.all(created.map((id) => follow(admin, `${at}/${id}`)));
  expect(await awaitStatus(admin.post(at, { workspace_name: "no good!" }))).toBe(400);
});

test("[DR-5] template admins see a dry run, other users do not; a job of another version or kind is not found", async () => {
  const { at, job } = await begin(member, GOOD);
  await follow(member, at);
  const other = (await newPerson(admin, "other")).client;
  const routes = ["", "/resources", "/logs", "/matched-provisioners"];
  for (const route of routes) {
    expect([route, await awaitStatus(other.get(at + route))]).toEqual([route, 404]);
    expect([route, await awaitStatus(admin.get(at + route))]).toEqual([route, 200]);
  }
  expect(await awaitStatus(other.patch(`${at}/cancel`, {}))).toBe(404);
  const version = await importVersion(admin, GOOD);
  expect(await awaitStatus(admin.get(`/api/v2/templateversions/${version.id}/dry-run/${job.id}`))).toBe(404);
  expect(await awaitStatus(admin.get(`/api/v2/templateversions/${version.id}/dry-run/${version.job.id}`))).toBe(404);
});
