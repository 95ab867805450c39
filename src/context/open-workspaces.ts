// Workspaces: their actors, the work of their builds, what notes their use, and those that are kept ready.
import { HomeBackupKeeper } from "#actors/home-backups/keeper.ts";
import { PrebuildKeeper } from "#actors/prebuilds/keeper.ts";
import { Directory } from "#actors/runtime/directory.ts";
import type { JobQueue } from "#actors/runtime/job-queue.ts";
import { Uses } from "#actors/workspace/activity-uses.ts";
import { WorkspaceActor } from "#actors/workspace/actor.ts";
import { shutDownAgents } from "#actors/workspace/agent-shutdown.ts";
import { BuildRunner, type Provisioners } from "#actors/workspace/build-runner.ts";
import { SnapshotRunner } from "#actors/workspace/snapshot-runner.ts";
import { automaticBuilds } from "#domain/builds/automatic.ts";
import type { BuildDeps } from "#domain/builds/new-build.ts";
import { firstPrebuild } from "#domain/builds/prebuilds.ts";
import { deriveRecoveryKey, HomeBackupStore } from "#src/home-backups/store.ts";
import type { ProvisionRequest } from "#src/provisioners/provisioner.ts";
import type { Base } from "./base.ts";
import { shutDownByOwner } from "./far-jobs.ts";
import type { openAgents } from "./open-agents.ts";

type Parts = Base &
  Pick<ReturnType<typeof openAgents>, "dialer" | "agentHttp"> & {
    /** What new builds are made with. */
    readonly building: BuildDeps;
    readonly jobs: JobQueue;
    readonly provisioners: Provisioners;
    /** Adds what a template of Terraform needs alongside the request. */
    readonly equip: (request: ProvisionRequest) => Promise<ProvisionRequest>;
    /** The variables this process was started with. */
    readonly environment: Readonly<Record<string, string | undefined>>;
  };

export const openWorkspaces = (parts: Parts) => {
  const { store, clock, topics, encryption, accessUrl, copy, elsewhere, jobs, provisioners, equip, building } = parts;
  const automatic = automaticBuilds(building, jobs);
  const uses = new Uses((id) => workspaces.ask(id, "noteUse", {}));
  const builds = new BuildRunner({
    clock,
    jobs,
    provisioners,
    encryption,
    equip,
    workspaces: () => workspaces,
    shutDown: shutDownByOwner(
      parts.far,
      clock,
      () => workspaces,
      (id, report, signal) => shutDownAgents(parts, id, report, signal),
    ),
  });
  const { config, environment } = parts;
  const recovery_key = deriveRecoveryKey(encryption);
  const backups = HomeBackupStore.open({ config, clock, path: environment.PATH, recovery_key });
  const homeBackups = new HomeBackupKeeper({ ...parts, config, provisioners, workspaces: () => workspaces, backups });
  const fetch: HomeBackupKeeper["fetch"] = (...args) => homeBackups.fetch(...args);
  const snapshots = new SnapshotRunner({ clock, provisioners, workspaces: () => workspaces, fetch });
  const deps = { store, clock, topics, uses, automatic, builds, snapshots, encryption, accessUrl };
  const workspaces: Directory<WorkspaceActor> = new Directory((id) => new WorkspaceActor(id, deps), clock, {
    copy,
    elsewhere: elsewhere("workspace"),
  });
  const firstBuild = firstPrebuild(building);
  const prebuilds = new PrebuildKeeper({ store, clock, workspaces: () => workspaces, automatic, firstBuild });
  return { workspaces, uses, prebuilds, builds, snapshots, homeBackups, homeBackupStore: backups };
};
