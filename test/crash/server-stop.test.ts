// A server that is killed while it waits for a workspace's stop scripts, and restarted.
import { expect } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { WorkspaceAgent } from "#schema/agents/agent.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { testSingleServer } from "#test/support/one-server.ts";
import { until } from "#test/support/until.ts";
import { read } from "./oracle/calls.ts";
import { ServerSlot } from "./server.ts";
import { makeTemplate, makeWorkspace, signInAdmin } from "./server-world.ts";

const test = testSingleServer("needsLocalServerProcess");

test("[WK-27] [CR-2] killed while a stop waits for its scripts, a server stops the workspace and keeps all script output", async () => {
  await using place = await ServerSlot.make();
  const server = await place.start();
  const world = await signInAdmin(place);
  const { admin } = world;
  const script = 'echo begun; while [ ! -e "$HOME/go" ]; do sleep 0.05; done; echo ended; exit 5';
  const stop = { display_name: "Stop", run_on_stop: true, script, timeout: 60 };
  const template_id = await makeTemplate(world, "stopping", {
    provisioner: "local",
    resources: [{ name: "main", agents: [{ name: "dev", scripts: [stop] }] }],
  });
  const { id } = await makeWorkspace(admin, "dev", template_id);
  const findAgent = async (): Promise<WorkspaceAgent | undefined> =>
    (await read<Workspace>(admin, `/api/v2/workspaces/${id}`)).latest_build.resources[0]?.agents[0];
  await until(async () => (await findAgent())?.lifecycle_state === "ready");
  const agent = (await findAgent()) as WorkspaceAgent;
  const loadAgent = (): Promise<WorkspaceAgent> => read<WorkspaceAgent>(admin, `/api/v2/workspaceagents/${agent.id}`);
  const listLines = async (): Promise<string[]> =>
    (await read<{ output: string }[]>(admin, `/api/v2/workspaceagents/${agent.id}/logs`)).map(({ output }) => output);
  await admin.post(`/api/v2/workspaces/${id}/builds`, { transition: "stop" });
  await until(
    async () => (await listLines()).includes("begun") && (await loadAgent()).lifecycle_state === "shutting_down",
  );
  server.kill("SIGKILL");
  await server.ended;
  await place.start();
  writeFileSync(join(place.directory, "workspaces", id, "home", "go"), "");
  await until(async () => (await read<Workspace>(admin, `/api/v2/workspaces/${id}`)).latest_build.status === "stopped");
  expect(await listLines()).toEqual(["begun", "ended", "The script failed with exit code 5."]);
  expect(await loadAgent()).toMatchObject({ lifecycle_state: "shutdown_error", scripts: [{ exit_code: 5 }] });
  await place.stop();
});
