// Dry runs of a template version: jobs that plan a workspace without creating anything.
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
const VALID = `provisioner: echo\necho: {logs: [one, two]}\n${PARAMETERS}${RESOURCES}`;
const FAILING = `provisioner: echo\necho: {error: no room}\n${PARAMETERS}${RESOURCES}`;
const HANGING = `provisioner: echo\necho: {hang: true}\n${PARAMETERS}${RESOURCES}`;

const startDryRun = async (client: Client, yaml: string, body: object = {}) => {
  const version = await importVersion(admin, yaml);
  const path = `/api/v2/templateversions/${version.id}/dry-run`;
  const job = await client.post<ProvisionerJob>(path, body);
  return { path: `${path}/${job.id}`, job };
};
/** Follows the log to its end. */
const followLog = async (client: Client, path: string) => {
  using socket = await client.socket(`${path}/logs?follow`);
  const lines: string[] = [];
  for await (const message of socket) lines.push((JSON.parse(message as string) as { output: string }).output);
  return { lines, code: (await socket.closed).code };
};

test("[DR-1] a dry run plans with the given values, and creates no workspace", async () => {
  const values = [{ name: "place", value: "there" }];
  const { path, job } = await startDryRun(member, VALID, { workspace_name: "mine", rich_parameter_values: values });
  expect(job).toMatchObject({ type: "template_version_dry_run", metadata: { workspace_name: "mine" } });
  expect(Object.keys(job.input)).toEqual(["template_version_id"]);
  const { lines, code } = await followLog(member, path);
  expect(lines).toEqual(["one", "two", "Would create echo_workspace main with the agent main."]);
  expect(code).toBe(1000);
  expect(await member.get<ProvisionerJob>(path)).toMatchObject({ status: "succeeded" });
  const [resource] = await member.get<PlannedResource[]>(`${path}/resources`);
  expect(resource).toMatchObject({ job_id: job.id, agents: [{ directory: "/srv/there" }] });
  expect(await member.get(`${path}/matched-provisioners`)).toMatchObject({ count: 1, available: 1 });
  expect(await member.get("/api/v2/workspaces")).toMatchObject({ count: 0 });
  expect(await awaitStatus(member.patch(`${path}/cancel`, {}))).toBe(412);
});

test("[DR-2] an error from the provisioner becomes the job's error", async () => {
  const { path } = await startDryRun(admin, FAILING);
  const { lines } = await followLog(admin, path);
  expect(lines).toEqual(["no room"]);
  expect(await admin.get<ProvisionerJob>(path)).toMatchObject({ status: "failed", error: "no room" });
  expect(await awaitStatus(admin.get(`${path}/resources`))).toBe(400);
});

test("[DR-3] a running dry run can be canceled, and has no resources until it has ended", async () => {
  const { path } = await startDryRun(member, HANGING);
  expect(await awaitStatus(member.get(`${path}/resources`))).toBe(412);
  await member.patch(`${path}/cancel`, {});
  await followLog(member, path);
  expect(await member.get<ProvisionerJob>(path)).toMatchObject({ status: "canceled" });
});

test("[DR-4] validates values as for a workspace, and limits the number of dry runs per person", async () => {
  const version = await importVersion(admin, HANGING);
  const path = `/api/v2/templateversions/${version.id}/dry-run`;
  expect(await awaitStatus(admin.post(path, { rich_parameter_values: [{ name: "nowhere", value: "x" }] }))).toBe(400);
  expect(await awaitStatus(admin.post(path, { template_version_preset_id: version.id }))).toBe(400);
  const created: string[] = [];
  for (let i = 0; i < 10; i++) created.push((await admin.post<ProvisionerJob>(path, {})).id);
  expect(await awaitStatus(admin.post(path, {}))).toBe(429);
  for (const id of created) await admin.patch(`${path}/${id}/cancel`, {});
  await Promise.all(created.map((id) => followLog(admin, `${path}/${id}`)));
  expect(await awaitStatus(admin.post(path, { workspace_name: "no good!" }))).toBe(400);
});

test("[DR-5] hides a dry run from other users except template admins, and jobs of another version or kind", async () => {
  const { path, job } = await startDryRun(member, VALID);
  await followLog(member, path);
  const otherUser = (await newPerson(admin, "other")).client;
  const routes = ["", "/resources", "/logs", "/matched-provisioners"];
  for (const route of routes) {
    expect([route, await awaitStatus(otherUser.get(path + route))]).toEqual([route, 404]);
    expect([route, await awaitStatus(admin.get(path + route))]).toEqual([route, 200]);
  }
  expect(await awaitStatus(otherUser.patch(`${path}/cancel`, {}))).toBe(404);
  const version = await importVersion(admin, VALID);
  expect(await awaitStatus(admin.get(`/api/v2/templateversions/${version.id}/dry-run/${job.id}`))).toBe(404);
  expect(await awaitStatus(admin.get(`/api/v2/templateversions/${version.id}/dry-run/${version.job.id}`))).toBe(404);
});
