// Dry runs that take time: on an external worker, with a lost worker, and across a restart of the server.
import { expect, test } from "bun:test";
import type { ProvisionerJob } from "#schema/workspaces/job.ts";
import type { Client } from "#src/client.ts";
import { tempDirectory } from "#test/support/server.ts";
import { importVersion } from "#test/support/templates.ts";
import { type JobMessage, makeKey, openWorker } from "#test/support/worker.ts";
import { openWorld } from "#test/support/workspaces.ts";

const RESOURCES = "resources:\n  - name: main\n    agents:\n      - name: main\n";
const EXTERNAL = `provisioner: external\nexternal: {provisioner: echo}\n${RESOURCES}`;
const HANGING = `provisioner: echo\necho: {hang: true, logs: [begun]}\n${RESOURCES}`;

const startDryRun = async (admin: Client, yaml: string): Promise<string> => {
  const version = await importVersion(admin, yaml);
  const path = `/api/v2/templateversions/${version.id}/dry-run`;
  return `${path}/${(await admin.post<ProvisionerJob>(path, {})).id}`;
};

/** Follows the log until it has this line `count` times, or ends, and returns its lines. */
const awaitLine = async (client: Client, path: string, line?: string, count = 1): Promise<string[]> => {
  using socket = await client.socket(`${path}/logs?follow`);
  const lines: string[] = [];
  for await (const message of socket) {
    lines.push((JSON.parse(message as string) as { output: string }).output);
    if (lines.filter((received) => received === line).length === count) break;
  }
  return lines;
};

test("[DR-6] another worker takes over the dry run of a lost worker", async () => {
  await using world = await openWorld();
  const { admin, server } = world;
  const path = await startDryRun(admin, EXTERNAL);
  await awaitLine(admin, path, "No worker with the tags provisioner=echo is connected; the dry run waits for one.");
  const { key } = await makeKey(admin);
  const first = await openWorker(server.url, key, { name: "first" });
  const firstMessage = await first.socket.json<JobMessage>();
  expect([firstMessage.type, firstMessage.request.agents]).toEqual(["plan", []]);
  const second = await openWorker(server.url, key, { name: "second" });
  using _ = second.socket;
  first.socket.close();
  const secondMessage = await second.socket.json<JobMessage>();
  expect([secondMessage.type, secondMessage.request.job_id]).toEqual(["plan", firstMessage.request.job_id]);
  const { job_id } = secondMessage.request;
  second.say({ type: "log", job_id, lines: [{ level: "info", stage: "Planning", output: "could be done" }] });
  second.say({ type: "done", job_id, state: null });
  const lines = await awaitLine(admin, path);
  expect(lines.slice(-2)).toEqual(["could be done", "Would create external_workspace main with the agent main."]);
  expect(await admin.get<ProvisionerJob>(path)).toMatchObject({ status: "succeeded", worker_name: "second" });
});

test("[DR-6] restarts an interrupted dry run when the server starts again", async () => {
  using temp = tempDirectory();
  const directory = temp.path;
  let path = "";
  {
    await using world = await openWorld({ directory });
    path = await startDryRun(world.admin, HANGING);
    await awaitLine(world.admin, path, "begun");
  }
  await using world = await openWorld({ directory });
  await awaitLine(world.admin, path, "begun", 2);
  await world.admin.patch(`${path}/cancel`, {});
  await awaitLine(world.admin, path);
  expect(await world.admin.get<ProvisionerJob>(path)).toMatchObject({ status: "canceled" });
});
