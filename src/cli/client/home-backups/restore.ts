// `slipway home-backups restore WORKSPACE [BACKUP]`: replaces the workspace's files with those of a backup, after taking a snapshot of
// them, or creates another workspace from the backup.
import { usageError } from "#base/usage-error.ts";
import type { Snapshot } from "#schema/workspaces/snapshot.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { Client } from "#src/client.ts";
import { readArguments } from "../../arguments.ts";
import { VerbFailure } from "../../failure.ts";
import { requireConfirmable, requireConfirmation } from "../../missing-arguments.ts";
import { toPlainLine } from "../../text.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { waitForSnapshot } from "../snapshots/find.ts";
import { finishBuild } from "../workspaces/build.ts";
import { getWorkspace } from "../workspaces/find.ts";
import { waitForFork } from "../workspaces/fork.ts";
import { finishRestart } from "../workspaces/restart.ts";
import { findHomeBackup } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, {
    values: ["as"],
    switches: ["yes", "no-snapshot"],
    short: { y: "yes" },
  });
  const [name, wanted, ...more] = words;
  if (name === undefined || more.length > 0) throw usageError("home-backups restore", "expected a workspace");
  if (value.as === undefined) requireConfirmable(input, has.yes, "restored");
  return withServer("home-backups restore", input, value, async (remote) => {
    const { client } = remote;
    const workspace = await getWorkspace(client, name);
    const backup = await findHomeBackup(client, workspace, wanted);
    if (value.as !== undefined) {
      const body = { names: [value.as], home_backup_id: backup.id };
      const created = await client.post(`/api/v2/workspaces/${workspace.id}/forks`, body);
      const fork = await waitForFork(client, workspace, created);
      const problem = fork.error || fork.copies.find(({ status }) => status === "failed")?.error;
      if (problem) throw new VerbFailure(`${toPlainLine(value.as)} failed: ${toPlainLine(problem)}`);
      const start = `Start it with: slipway start ${toPlainLine(value.as)}`;
      input.print(has.json ? JSON.stringify(fork) : `${toPlainLine(value.as)} is ready. ${start}`);
      return EXIT.ok;
    }
    if (!has.yes)
      await requireConfirmation(input, `Replace all files of ${workspace.name} with those of ${backup.created_at}?`);
    const path = `/api/v2/workspaces/${workspace.id}` as const;
    if (!has["no-snapshot"]) {
      await requireReady(client, workspace, client.post(`${path}/snapshots`, { name: "Before the restore" }));
    }
    const fetched = await requireReady(client, workspace, client.post(`${path}/home-backups/${backup.id}/fetch`));
    const build = await client.post(`${path}/snapshots/${fetched.id}/restore`);
    const follow = workspace.latest_build.status === "running" ? finishRestart : finishBuild;
    const code = await follow(input, remote, workspace, build, { "no-wait": false, json: has.json });
    // The backup contains the same files.
    if (code === EXIT.ok) await client.delete(`${path}/snapshots/${fetched.id}`);
    return code;
  });
};

const requireReady = async (client: Client, workspace: Workspace, creation: Promise<Snapshot>): Promise<Snapshot> => {
  const snapshot = await waitForSnapshot(client, workspace, await creation);
  if (snapshot.status === "ready") return snapshot;
  throw new VerbFailure(`The files could not be copied: ${toPlainLine(snapshot.error)}`);
};
