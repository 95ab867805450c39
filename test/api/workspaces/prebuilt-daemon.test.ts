// Claims a prebuilt workspace with a real daemon, which continues as the new agent in the same process and keeps its files.
import { expect, test } from "bun:test";
import { readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import type { Uses } from "#actors/workspace/activity-uses.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { Client } from "#src/client.ts";
import { openLocalWorkspaces } from "#test/support/cluster/local-workspaces.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { awaitWorkspace, createBuild, openWorld } from "#test/support/workspaces.ts";

const MANIFEST = {
  presets: [{ name: "Ready", parameters: {}, prebuilds: 1 }],
  resources: [
    {
      name: "machine",
      agents: [
        {
          name: "main",
          env: { WHOSE: "{{ owner.username }}" },
          scripts: [
            {
              display_name: "Startup",
              run_on_start: true,
              start_blocks_login: true,
              script: 'echo "$WHOSE $SLIPWAY_WORKSPACE_OWNER_NAME $SLIPWAY_WORKSPACE_NAME" >> "$HOME/starts"',
            },
            { display_name: "Stop", run_on_stop: true, script: 'echo "stopped $WHOSE" >> "$HOME/starts"' },
          ],
        },
      ],
    },
  ],
};

type Page = { workspaces: Workspace[] };
const findAgent = ({ latest_build }: Workspace) => latest_build.resources[0]?.agents[0];
const isReady = (workspace: Workspace): boolean => findAgent(workspace)?.lifecycle_state === "ready";

/** Opens a terminal and waits until the server records the input as activity. */
const expectActivity = async (
  client: Client,
  id: string,
  agent_id: string,
  uses: Pick<Uses, "takeUsed">,
): Promise<void> => {
  uses.takeUsed(id);
  using terminal = await client.socket(`/api/v2/workspaceagents/${agent_id}/pty?reconnect=${id}&command=cat`);
  terminal.send(JSON.stringify({ data: "hello\n" }));
  await until(() => uses.takeUsed(id));
};

test("[PB-8] [PB-10] [TI-30] after a claim, the daemon continues in the same process as the new agent and runs the new owner's scripts", async () => {
  await using world = await openWorld({ env: { SLIPWAY_ALLOW_LOCAL_PROVISIONER_FOR_MEMBERS: "true" } });
  await using locals = await openLocalWorkspaces(world);
  const { admin, server } = world;
  const manifest = JSON.stringify({ ...locals.kind, ...MANIFEST });
  const { id: template_id, active_version_id } = await makeTemplate(admin, manifest);
  const [preset] = await admin.get<{ id: string }[]>(`/api/v2/templateversions/${active_version_id}/presets`);
  const findPrepared = async (): Promise<Workspace | undefined> =>
    (await admin.get<Page>("/api/v2/workspaces?q=owner:prebuilds")).workspaces.find(isReady);
  const prepared = await until(findPrepared, { what: "a ready prebuilt workspace" });
  const { id } = prepared;
  const folder = realpathSync(locals.getFolder(id));
  const readStarts = (): string[] =>
    readFileSync(join(folder, "home", "starts"), "utf8")
      .trim()
      .split("\n");
  const readPid = (): number => JSON.parse(readFileSync(join(folder, "daemon.json"), "utf8")).pid;
  const pidBefore = readPid();
  expect(readStarts()).toEqual([`prebuilds prebuilds ${prepared.name}`]);
  const body = { name: "mine", template_id, template_version_preset_id: preset?.id };
  const claimed = await admin.post<Workspace>("/api/v2/users/me/workspaces", body);
  expect(claimed).toMatchObject({ id, owner_name: "admin", name: "mine" });
  const ready = await awaitWorkspace(admin, id, isReady);
  expect(findAgent(ready)).toMatchObject({ status: "connected", health: { healthy: true } });
  expect(findAgent(ready)?.id).not.toBe(findAgent(prepared)?.id as string);
  expect(readStarts()).toEqual([`prebuilds prebuilds ${prepared.name}`, "admin admin mine"]);
  expect(readPid()).toBe(pidBefore);
  if (server.context) await expectActivity(admin, id, findAgent(ready)?.id ?? "", server.context.uses);
  await createBuild(admin, id, "stop");
  await awaitWorkspace(admin, id, ({ latest_build }) => latest_build.status === "stopped");
  expect(readStarts().at(-1)).toBe("stopped admin");
  await createBuild(admin, id, "start");
  await awaitWorkspace(admin, id, isReady);
  expect(readStarts().at(-1)).toBe("admin admin mine");
  expect(readPid()).not.toBe(pidBefore);
  // Wait for the next one: a daemon that is still starting would not notice that its folder is removed.
  await until(findPrepared, { what: "another ready prebuilt workspace" });
});
