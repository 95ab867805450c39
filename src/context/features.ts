// The features of the server, each constructed from shared dependencies: agents, workspaces, templates, models.

import { AgentActor } from "#actors/agent/actor.ts";
import { ModelLedger } from "#actors/chat/spending/ledger.ts";
import { MeteredModels } from "#actors/chat/spending/metered-models.ts";
import { HomeBackupKeeper } from "#actors/home-backups/keeper.ts";
import { ModelSettings } from "#actors/models/model-settings.ts";
import { PrebuildKeeper } from "#actors/prebuilds/keeper.ts";
import type { Directory } from "#actors/runtime/directory.ts";
import type { Events } from "#actors/runtime/events.ts";
import type { JobQueue } from "#actors/runtime/job-queue.ts";
import type { Service } from "#actors/runtime/service.ts";
import { TemplateVersionActor } from "#actors/template-version/actor.ts";
import { DRY_RUN, DryRunActor } from "#actors/template-version/dry-run-actor.ts";
import { DryRunRunner } from "#actors/template-version/dry-run-runner.ts";
import { ImportRunner } from "#actors/template-version/import-runner.ts";
import type { TerraformImports } from "#actors/template-version/import-terraform.ts";
import { recoverDryRuns, recoverImports } from "#actors/template-version/recovery.ts";
import { Uses } from "#actors/workspace/activity-uses.ts";
import { WorkspaceActor } from "#actors/workspace/actor.ts";
import { shutDownAgents } from "#actors/workspace/agent-shutdown.ts";
import { BuildRunner, type Provisioners } from "#actors/workspace/build-runner.ts";
import { recoverBuilds, recoverSnapshots } from "#actors/workspace/recovery.ts";
import { type ModuleLoads, SnapshotRunner } from "#actors/workspace/snapshot-runner.ts";
import { EMPTY_TRASH } from "#actors/workspace/trash.ts";
import type { Clock } from "#base/clock.ts";
import { type Config, isUsedOnlyLocally } from "#base/config.ts";
import type { Encryption } from "#base/encryption.ts";
import type { Metrics } from "#base/metrics.ts";
import { markSideEffect, runWhileWaiting } from "#base/network/current-request.ts";
import type { Shards } from "#base/shards.ts";
import { isTraced } from "#base/spans.ts";
import type { MemoryShare } from "#base/system/memory-share.ts";
import type { Topics } from "#base/topics.ts";
import type { Blobs } from "#db/blobs.ts";
import { readAttachment } from "#db/chats/files.ts";
import type { Store } from "#db/engine/store.ts";
import type { Timer } from "#db/engine/timers.ts";
import { findOwnRows } from "#db/own-rows.ts";
import { LOST_ACCESS } from "#db/workspaces/sharing.ts";
import { AgentsDialer } from "#domain/agents/dialer.ts";
import { automaticBuilds } from "#domain/builds/automatic.ts";
import type { BuildDeps } from "#domain/builds/new-build.ts";
import { planFirstPrebuild } from "#domain/builds/prebuilds.ts";
import { findOwnerRefusal } from "#domain/chats/refusal.ts";
import type { Location } from "#domain/location.ts";
import { Network } from "#domain/tailnet/network.ts";
import { traceModels } from "#src/api/metrics/model-spans.ts";
import { countModels } from "#src/api/metrics/models.ts";
import { deriveRecoveryKey, HomeBackupStore } from "#src/home-backups/store.ts";
import { ConfiguredModels } from "#src/llm/configured.ts";
import { createGuardedFetch } from "#src/llm/fetch.ts";
import type { LanguageModels } from "#src/llm/model.ts";
import type { ProvisionRequest } from "#src/provisioners/provisioner.ts";
import { AgentHttp } from "#src/wire/index.ts";

export type Base = {
  readonly config: Config;
  readonly clock: Clock;
  readonly store: Store;
  readonly topics: Topics<Events>;
  readonly encryption: Encryption;
  /** The shards this node owns; all of them on a single server. */
  readonly shards: Shards;
  /** Reaches actors, agents and jobs on any node. */
  readonly location: Location;
  /** Returns the URL where people and workspaces reach the server; known once it listens. */
  readonly accessUrl: () => URL;
};

// Workspace agents and access to them: their actors, streams and requests into workspaces, the private network.

/** Maximum idle agents kept in memory. Loading an agent takes 0.1 ms; keeping it takes a kilobyte or more. */
const MAX_IDLE_AGENTS = 1_000;

type AgentNeeds = Pick<Base, "config" | "clock" | "store" | "topics" | "location">;

export const openAgents = ({ config, clock, store, topics, location }: AgentNeeds) => {
  const tailnet = new Network({ store, clock, topics });
  location.joinNetwork(tailnet);
  const dialer = new AgentsDialer({ store, clock, topics, tailnet });
  const deps = { store, clock, topics, log_limit: config.agent_log_limit };
  const agents = location.openDirectory("agent", (id) => new AgentActor(id, deps), { most: MAX_IDLE_AGENTS });
  return {
    dialer,
    agentHttp: new AgentHttp(location.openDialer(dialer), clock, { begin: markSideEffect, wait: runWhileWaiting }),
    tailnet,
    agents,
    services: [agents],
  };
};

// Workspaces: their actors, builds, usage tracking, and prebuilt workspaces.

type WorkspaceNeeds = Base &
  Pick<ReturnType<typeof openAgents>, "dialer" | "agentHttp"> & {
    /** Dependencies of new builds. */
    readonly building: BuildDeps;
    readonly jobs: JobQueue;
    readonly provisioners: Provisioners;
    /** Adds what a Terraform template needs to the request. */
    readonly equip: (request: ProvisionRequest) => Promise<ProvisionRequest>;
    /** What a template module needs to create and remove a snapshot. */
    readonly module: ModuleLoads;
    /** The environment this process was started with. */
    readonly environment: Readonly<Record<string, string | undefined>>;
  };

export const openWorkspaces = (needs: WorkspaceNeeds) => {
  const { store, clock, topics, encryption, accessUrl, location, jobs, provisioners, equip, building } = needs;
  const automatic = automaticBuilds(building, jobs);
  const uses = new Uses(clock, (id) => workspaces.ask(id, "noteUse", {}));
  const builds = new BuildRunner({
    clock,
    jobs,
    provisioners,
    encryption,
    equip,
    workspaces: () => workspaces,
    shutDownAgents: location.shutDownOnOwner(
      () => workspaces,
      (id, report, signal) => shutDownAgents(needs, id, report, signal),
    ),
  });
  const { config, environment } = needs;
  const recovery_key = deriveRecoveryKey(encryption);
  const backups = HomeBackupStore.open({ config, clock, path: environment.PATH, recovery_key });
  const findRows = () => findOwnRows(needs.shards);
  const homeBackups = new HomeBackupKeeper({ ...needs, findOwnRows: findRows, workspaces: () => workspaces, backups });
  const fetch: HomeBackupKeeper["fetch"] = (...args) => homeBackups.fetch(...args);
  const snapshots = new SnapshotRunner({
    clock,
    provisioners,
    workspaces: () => workspaces,
    fetch,
    module: needs.module,
  });
  const deps = { store, clock, topics, uses, automatic, builds, snapshots, encryption, accessUrl };
  const workspaces: Directory<WorkspaceActor> = location.openDirectory(
    "workspace",
    (id) => new WorkspaceActor(id, deps),
  );
  const firstBuild = planFirstPrebuild(building);
  const prebuilds = new PrebuildKeeper({ store, clock, workspaces: () => workspaces, automatic, firstBuild });
  const services: Service[] = [
    workspaces,
    {
      timers: {
        workspace: (timer) => deliverToWorkspace(workspaces, timer),
        prebuilds: ({ actor_id }) => prebuilds.reconcile(actor_id),
      },
      recover: (own) => recoverBuilds({ store, workspaces, jobs }, own),
    },
    { recover: (own) => recoverSnapshots({ store, snapshots }, own) },
    uses,
    snapshots,
    homeBackups,
  ];
  return { workspaces, uses, prebuilds, builds, homeBackups, homeBackupStore: backups, services };
};

const deliverToWorkspace = async (workspaces: Directory<WorkspaceActor>, { actor_id, name }: Timer): Promise<void> => {
  if (name === "reap") await workspaces.ask(actor_id, "reap", {});
  if (name === EMPTY_TRASH) await workspaces.ask(actor_id, "emptyTrash", {});
  if (name === "schedule") await workspaces.ask(actor_id, "runSchedule", {});
  if (name === LOST_ACCESS) await workspaces.ask(actor_id, "handleLostAccess", {});
  if (name === "reset_used" || name === "reset_dormant") await workspaces.ask(actor_id, "resetTimes", { name });
};

// Template versions: their actors, imports and dry runs.

type TemplateNeeds = Base & {
  readonly blobs: Blobs;
  readonly jobs: JobQueue;
  readonly provisioners: Provisioners;
  /** Plans Terraform templates; undefined if they are not supported here. */
  readonly terraform: TerraformImports | undefined;
  /** Adds what a Terraform template needs to the request. */
  readonly equip: (request: ProvisionRequest) => Promise<ProvisionRequest>;
};

export const openTemplates = (needs: TemplateNeeds) => {
  const { store, clock, topics, encryption, accessUrl, location, blobs, jobs, provisioners, terraform, equip } = needs;
  const imports = new ImportRunner({ store, clock, blobs, jobs, encryption, terraform, versions: () => versions });
  const versions: Directory<TemplateVersionActor> = location.openDirectory(
    "template_version",
    (id) => new TemplateVersionActor(id, { store, clock, topics, imports }),
  );
  const runs = new DryRunRunner({ clock, jobs, provisioners, equip, dryRuns: () => dryRuns });
  const dryRuns: Directory<DryRunActor> = location.openDirectory(
    "job",
    (id) => new DryRunActor(id, { store, clock, topics, runs, encryption, accessUrl }),
  );
  const services: Service[] = [
    versions,
    {
      timers: { template_version: ({ actor_id }) => versions.ask(actor_id, "reap", {}) },
      recover: (own) => recoverImports({ store, versions, jobs }, own),
    },
    dryRuns,
    {
      timers: { [DRY_RUN]: ({ actor_id }) => dryRuns.ask(actor_id, "reap", {}) },
      recover: (own) => recoverDryRuns({ store, dryRuns, jobs }, own),
    },
  ];
  return { versions, dryRuns, imports, runs, services };
};

// Language models: configuration, metrics and costs. Each node keeps the models in memory; one node writes their settings.

type ModelNeeds = Pick<Base, "config" | "clock" | "store" | "encryption" | "topics" | "location"> & {
  readonly blobs: Blobs;
  readonly metrics: Metrics | undefined;
  readonly memory: MemoryShare;
  /** Alternative models; tests only. */
  readonly models: LanguageModels | undefined;
};

export const openModels = ({
  config,
  clock,
  store,
  encryption,
  topics,
  blobs,
  metrics,
  memory,
  models,
  location,
}: ModelNeeds) => {
  const hosts = config.model_hosts ?? [];
  const mayReach = { private: isUsedOnlyLocally(config), hosts, continuesTrace: config.otlp_propagate_to_models };
  const configured = new ConfiguredModels({
    clock,
    mayReach,
    loadAttachment: (id) => readAttachment({ store, blobs }, id),
  });
  const usedModels = models ?? configured;
  const counted = metrics ? countModels(usedModels, metrics) : usedModels;
  const traced = isTraced() ? traceModels(counted) : counted;
  // A node that does not confirm in time reloads the settings with the next event that it receives, or after a period without events.
  const onChanged = location.share("models", () => modelSettings.load());
  const modelSettings: ModelSettings = new ModelSettings({
    store,
    clock,
    encryption,
    topics,
    models: configured,
    onChanged,
  });
  const modelFetch = createGuardedFetch(mayReach);
  const ledger = new ModelLedger({ store, clock, onNotified: (user_id) => topics.publish("notified", user_id, {}) });
  return {
    models: new MeteredModels({
      store,
      ledger,
      memory,
      models: traced,
      findOwnerRefusal: (id) => findOwnerRefusal({ store, config }, id),
    }),
    modelSettings,
    modelFetch,
    ledger,
  };
};
