// The one place where things are constructed, and taken down in reverse order. Tests pass another clock or other parts here.

import { AgentActor } from "#actors/agent/actor.ts";
import { AuditRetentionChore } from "#actors/audit/retention.ts";
import type { ChatActor } from "#actors/chat/actor.ts";
import { endForbiddenChatSharing } from "#actors/chat/background/sharing-limits.ts";
import { recoverChats } from "#actors/chat/recovery.ts";
import { type ChatServices, openChats } from "#actors/chat/services.ts";
import { MeteredModels } from "#actors/chat/spending/metered-models.ts";
import type { Generations } from "#actors/chat/turn/runner.ts";
import { openHooks } from "#actors/hooks/open.ts";
import { ModelSettings } from "#actors/models/model-settings.ts";
import { PrebuildKeeper } from "#actors/prebuilds/keeper.ts";
import { Directory } from "#actors/runtime/directory.ts";
import type { Events } from "#actors/runtime/events.ts";
import { JobQueue } from "#actors/runtime/job-queue.ts";
import { Scheduler } from "#actors/runtime/scheduler.ts";
import { TemplateVersionActor } from "#actors/template-version/actor.ts";
import { DRY_RUN, DryRunActor } from "#actors/template-version/dry-run-actor.ts";
import { DryRunRunner } from "#actors/template-version/dry-run-runner.ts";
import { ImportRunner } from "#actors/template-version/import-runner.ts";
import { recoverBlobs, recoverDryRuns, recoverImports } from "#actors/template-version/recovery.ts";
import { Usage } from "#actors/usage/usage.ts";
import { Uses } from "#actors/workspace/activity-uses.ts";
import { WorkspaceActor } from "#actors/workspace/actor.ts";
import { shutDownAgents } from "#actors/workspace/agent-shutdown.ts";
import { BuildRunner, type Provisioners } from "#actors/workspace/build-runner.ts";
import { lowerPortShares } from "#actors/workspace/port-limits.ts";
import { recoverBuilds, recoverWorkspaces } from "#actors/workspace/recovery.ts";
import { endForbiddenSharing } from "#actors/workspace/sharing-limits.ts";
import { type Clock, systemClock } from "#base/clock.ts";
import { type Config, onlyThisMachine } from "#base/config.ts";
import type { Encryption } from "#base/encryption.ts";
import { log } from "#base/log.ts";
import type { Metrics } from "#base/metrics.ts";
import { Outbound } from "#base/outbound.ts";
import { Topics } from "#base/topics.ts";
import { type ScheduledBackups, scheduledBackups } from "#db/backup/schedule.ts";
import { Blobs } from "#db/blobs.ts";
import { readAttachment } from "#db/chats/files.ts";
import { openLocalStore } from "#db/engine/local.ts";
import { openKeyOf } from "#db/engine/sealed.ts";
import type { Store } from "#db/engine/store.ts";
import type { Timer } from "#db/engine/timers.ts";
import { sealReadableVariables } from "#db/templates/variables.ts";
import { RefusedChanges } from "./api/audit/refused.ts";
import type { ApiContext } from "./api/context.ts";
import { Addresses } from "./api/http/address.ts";
import { OpenStreams } from "./api/http/open-streams.ts";
import { Requests } from "./api/http/requests.ts";
import { Sockets } from "./api/http/socket.ts";
import { countedModels } from "./api/metrics/models.ts";
import { TunnelDialer } from "./domain/agents/dialer.ts";
import { automaticBuilds } from "./domain/builds/automatic.ts";
import { stopForbiddenLocal } from "./domain/builds/local-limits.ts";
import { firstPrebuild } from "./domain/builds/prebuilds.ts";
import { equipped } from "./domain/builds/terraform-work.ts";
import { ChatToolServices } from "./domain/chats/tool-services.ts";
import { Links } from "./domain/external-auth/links.ts";
import { mcpAccess } from "./domain/mcp/access.ts";
import { Network } from "./domain/tailnet/network.ts";
import { ReadyTemplates } from "./domain/templates/starter.ts";
import { terraformImports } from "./domain/templates/terraform-imports.ts";
import { Accounts } from "./domain/users/accounts.ts";
import { prepareIdentity } from "./domain/users/first-user.ts";
import { OAuthClient } from "./git/oauth.ts";
import { providerOf } from "./git/provider.ts";
import type { Hooks } from "./hooks/hooks.ts";
import { ConfiguredModels } from "./llm/configured.ts";
import type { LanguageModels } from "./llm/model.ts";
import { makeProvisioners } from "./make-provisioners.ts";
import { Workers } from "./provisioners/external/workers.ts";
import { AgentHttp } from "./wire/agent-http.ts";

/** Bytes of an answer about a pull request. */
const MOST_OF_DIFF = 4 * 1024 * 1024;

export type ContextOptions = {
  config: Config;
  clock?: Clock;
  /** Aborted by a part that finds the process unfit to go on; src/main.ts exits non-zero. */
  fatal?: (error: Error) => void;
  store?: Store;
  /** Messages to actors are copied, to prove that they are plain data: tests only. */
  copyMessages?: boolean;
  /** Other ways to bring workspaces to life: tests only. */
  provisioners?: Provisioners;
  /** Other language models: tests only. */
  models?: LanguageModels;
  /** The variables this process was started with; some reach local workspaces (PATH, LANG, TZ). */
  environment?: Readonly<Record<string, string | undefined>>;
};

/** Bytes of one answer of an MCP server. */
const MOST_OF_MCP = 16 * 1024 * 1024;

export class Context implements ApiContext, AsyncDisposable {
  readonly config: Config;
  readonly clock: Clock;
  readonly store: Store;
  readonly topics = new Topics<Events>();
  /** Undefined where nobody asks for figures: then nothing is counted. */
  readonly metrics: Metrics | undefined;
  readonly sockets: Sockets;
  readonly requests: Requests;
  readonly streams: OpenStreams;
  readonly accounts: Accounts;
  readonly addresses: Addresses;
  readonly dialer: TunnelDialer;
  readonly agentHttp: AgentHttp;
  readonly tailnet: Network;
  readonly agents: Directory<AgentActor>;
  readonly workspaces: Directory<WorkspaceActor>;
  readonly versions: Directory<TemplateVersionActor>;
  readonly dryRuns: Directory<DryRunActor>;
  readonly chats: Directory<ChatActor>;
  readonly generations: Generations;
  readonly titles: ChatServices["titles"];
  readonly mcp: ChatServices["mcp"];
  readonly diffs: ChatServices["diffs"];
  readonly chatUpkeep: ChatServices["upkeep"];
  /** Lets old entries of the audit log go. */
  readonly auditRetention: AuditRetentionChore;
  /** Asks the consumer of lifecycle hooks. */
  readonly hooks: Hooks;
  /** Tells the audit log of changes that were refused. */
  readonly refused: RefusedChanges;
  readonly models: LanguageModels;
  readonly modelSettings: ModelSettings;
  readonly blobs: Blobs;
  readonly encryption: Encryption;
  readonly outbound: Outbound;
  readonly mcpOutbound: Outbound;
  readonly links: Links;
  readonly jobs: JobQueue;
  readonly workers: Workers;
  readonly provisioners: Provisioners;
  readonly prebuilds: PrebuildKeeper;
  readonly scheduler: Scheduler;
  readonly backups: ScheduledBackups;
  readonly usage: Usage;
  /** Makes the templates that come with the server, once what they need is there. */
  readonly readyTemplates: ReadyTemplates;
  readonly uses = new Uses((id) => this.workspaces.ask(id, "noteUse", {}));
  accessUrl = new URL("http://localhost/");
  draining = false;

  constructor(options: ContextOptions, store: Store, encryption: Encryption, metrics: Metrics | undefined) {
    this.config = options.config;
    this.clock = options.clock ?? systemClock;
    this.store = store;
    this.usage = new Usage({ store, clock: this.clock });
    this.metrics = metrics;
    this.sockets = new Sockets(this.clock, this.config.max_connections);
    this.streams = new OpenStreams(this.clock, this.config.max_connections);
    this.requests = new Requests(this.clock, this.config.max_connections);
    this.accounts = new Accounts({ store, clock: this.clock, encryption });
    this.addresses = new Addresses(this.config.trusted_proxies, (request) => this.requests.peerOf(request));
    this.dialer = new TunnelDialer({ store, clock: this.clock });
    this.agentHttp = new AgentHttp(this.dialer, this.clock);
    this.tailnet = new Network({ store, clock: this.clock, topics: this.topics });
    const copy = options.copyMessages ? structuredClone : undefined;
    this.agents = new Directory(
      (id) =>
        new AgentActor(id, {
          ...{ store, clock: this.clock, topics: this.topics },
          log_limit: this.config.agent_log_limit,
        }),
      this.clock,
      { copy },
    );
    this.workers = new Workers(this.clock);
    this.jobs = new JobQueue(this.config.provisioner_slots, this.workers);
    this.provisioners = makeProvisioners(options, this.clock, () => this.accessUrl, this.workers);
    const builds = new BuildRunner({
      ...{ clock: this.clock, jobs: this.jobs, provisioners: this.provisioners },
      workspaces: () => this.workspaces,
      shutDown: (id, report, signal) => shutDownAgents(this, id, report, signal),
      ...{ encryption, equip: (request) => equipped(this, request) },
    });
    this.workspaces = new Directory(
      (id) =>
        new WorkspaceActor(id, {
          ...{ store, clock: this.clock, topics: this.topics, uses: this.uses, builds, encryption },
          automatic: automaticBuilds(this, this.jobs),
          accessUrl: () => this.accessUrl,
        }),
      this.clock,
      { copy },
    );
    this.prebuilds = new PrebuildKeeper({
      ...{ store, clock: this.clock, workspaces: () => this.workspaces },
      automatic: automaticBuilds(this, this.jobs),
      firstBuild: firstPrebuild(this),
    });
    this.blobs = new Blobs(this.config.data_dir);
    this.backups = scheduledBackups(this.config, this.clock);
    this.encryption = encryption;
    this.outbound = new Outbound({ clock: this.clock, allowed: this.config.allowed_private_networks });
    this.links = new Links({
      ...{ store, clock: this.clock, encryption: this.encryption, topics: this.topics },
      providers: this.config.external_auth.map(providerOf),
      client: new OAuthClient(this.outbound),
    });
    const imports = new ImportRunner({
      ...{ store, clock: this.clock, blobs: this.blobs, jobs: this.jobs, encryption },
      versions: () => this.versions,
      terraform: terraformImports(this),
    });
    this.versions = new Directory(
      (id) => new TemplateVersionActor(id, { store, clock: this.clock, topics: this.topics, imports }),
      this.clock,
      { copy },
    );
    this.readyTemplates = new ReadyTemplates(this);
    const runs = new DryRunRunner({
      ...{ clock: this.clock, jobs: this.jobs, provisioners: this.provisioners },
      equip: (request) => equipped(this, request),
      dryRuns: () => this.dryRuns,
    });
    this.dryRuns = new Directory(
      (id) =>
        new DryRunActor(id, {
          ...{ store, clock: this.clock, topics: this.topics, runs, encryption },
          accessUrl: () => this.accessUrl,
        }),
      this.clock,
      { copy },
    );
    const mayReach = { private: onlyThisMachine(this.config), hosts: this.config.model_hosts ?? [] };
    const configured = new ConfiguredModels({
      ...{ clock: this.clock, mayReach },
      attachments: (id) => readAttachment({ store, blobs: this.blobs }, id),
    });
    const asked = options.models ?? configured;
    const counted = this.metrics ? countedModels(asked, this.metrics) : asked;
    this.models = new MeteredModels({ store, clock: this.clock, models: counted });
    this.modelSettings = new ModelSettings({
      ...{ store, clock: this.clock, encryption: this.encryption, models: configured },
    });
    const { clock, topics, models } = this;
    const { allowed_private_networks: allowed } = this.config;
    this.mcpOutbound = new Outbound({ clock, allowed, max_bytes: MOST_OF_MCP, reaches_private: mayReach.private });
    const hookService = openHooks({ config: this.config, clock, store });
    this.hooks = hookService.hooks;
    const { chats, generations, titles, mcp, diffs, upkeep } = openChats({
      store,
      clock,
      topics,
      models,
      agentHttp: this.agentHttp,
      toolServices: (of) => new ChatToolServices(this, of),
      blobs: this.blobs,
      slots: { root: this.config.chat_slots, child: this.config.subchat_slots },
      recordsAll: this.config.chat_debug_logging,
      asksTitles: this.config.chat_titles,
      mcpAccess: mcpAccess(this),
      hookService,
      mcpFetch: (url, init) => this.mcpOutbound.open(new URL(url), init),
      accounts: this.links,
      outbound: new Outbound({ clock, allowed, max_bytes: MOST_OF_DIFF }),
      copy,
    });
    this.chats = chats;
    this.generations = generations;
    this.titles = titles;
    this.mcp = mcp;
    this.diffs = diffs;
    this.chatUpkeep = upkeep;
    this.auditRetention = new AuditRetentionChore({ store, clock });
    this.refused = new RefusedChanges({ store, clock });
    this.scheduler = new Scheduler(
      store,
      this.clock,
      (timer) => this.#deliver(timer),
      () => {
        for (const actors of [this.agents, this.workspaces, this.versions, this.dryRuns, this.chats]) actors.sweep();
        this.chatUpkeep.sweep();
        this.auditRetention.sweep();
      },
    );
  }

  /** The link to the setup page while there is no user yet. */
  setupUrl(_url: URL): string | undefined {
    if (!this.accounts.setupNeeded) return undefined;
    const url = new URL("/setup", this.accessUrl);
    url.searchParams.set("token", this.accounts.setup.offer());
    return url.href;
  }

  /** Called before the server listens: what a fresh data directory lacks is made. */
  async prepare(): Promise<void> {
    const { store, clock, accounts } = this;
    accounts.setupNeeded = await prepareIdentity({ store, clock, passwords: accounts.passwords }, this.config);
    await sealReadableVariables(store, this.encryption);
    await recoverBlobs(store, this.blobs);
    for (const one of this.provisioners.values()) await one.prepare?.();
    await this.modelSettings.load();
  }

  /** Called once the server listens and its URL is known: what was interrupted goes on, and a fresh install gets its template. */
  async started(): Promise<void> {
    await recoverImports(this.store, this.versions);
    await recoverDryRuns(this.store, this.dryRuns);
    await lowerPortShares(this.store, this.workspaces);
    await endForbiddenSharing(this.store, this.workspaces);
    await endForbiddenChatSharing(this.store, this.chats);
    await recoverBuilds(this.store, this.workspaces).then(() => stopForbiddenLocal(this));
    await recoverChats(this.store, this.chats, this.clock.now());
    await recoverWorkspaces(this.store, this.provisioners);
    await this.readyTemplates.start();
    this.scheduler.start();
    this.uses.start(this.clock);
    this.usage.start();
    await this.backups.start();
  }

  /** Refuses new messages and waits until every waiting one is answered and on disk. */
  async drain(): Promise<void> {
    this.scheduler.stop();
    for (const one of this.provisioners.values()) one.stop?.();
    await this.readyTemplates.stop();
    await this.backups.stop();
    // Builds that run go on after the next start; what they say until then still finds its actor.
    await this.jobs.stop();
    this.uses.stop();
    await this.uses.flush();
    await this.usage.stop();
    await this.generations.stop();
    await this.chats.stop();
    await this.chatUpkeep.stop();
    await this.auditRetention.stop();
    await this.refused.settled();
    await this.versions.stop();
    await this.dryRuns.stop();
    await this.workspaces.stop();
    await this.agents.stop();
  }

  async #deliver(timer: Timer): Promise<void> {
    if (timer.actor === "chat") await this.chats.ask(timer.actor_id, "deadlinePassed", {});
    if (timer.actor === "chat_diff") await this.diffs.due(timer.actor_id);
    if (timer.actor === "template_version") await this.versions.ask(timer.actor_id, "reap", {});
    if (timer.actor === DRY_RUN) await this.dryRuns.ask(timer.actor_id, "reap", {});
    if (timer.actor === "workspace") await this.#tellWorkspace(timer);
    if (timer.actor === "prebuilds") await this.prebuilds.reconcile(timer.actor_id);
  }

  async #tellWorkspace({ actor_id, name }: Timer): Promise<void> {
    if (name === "reap") await this.workspaces.ask(actor_id, "reap", {});
    if (name === "schedule") await this.workspaces.ask(actor_id, "runSchedule", {});
    if (name === "reset_used" || name === "reset_dormant") await this.workspaces.ask(actor_id, "resetTimes", { name });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.scheduler.stop();
    for (const one of this.provisioners.values()) one.stop?.();
    this.workers.stop();
    await this.store.close();
  }
}

/** Opens the data directory and builds everything on it. */
export const openContext = async (options: ContextOptions): Promise<Context> => {
  const clock = options.clock ?? systemClock;
  // Loaded only where figures are served: the library takes 27 ms of a start.
  const metrics = options.config.metrics_address ? await openMetrics(clock) : undefined;
  const store =
    options.store ??
    openLocalStore({
      directory: options.config.data_dir,
      cacheMb: options.config.database_cache_mb,
      now: clock.now(),
      fatal: (error) => {
        log("db").fatal("the data can no longer be written safely; stopping", { error });
        options.fatal?.(error);
      },
    });
  const encryption = await openKeyOf(store, options.config.data_dir);
  const context = new Context(options, store, encryption, metrics);
  try {
    await context.prepare();
    return context;
  } catch (error) {
    await context[Symbol.asyncDispose]();
    throw error;
  }
};

const openMetrics = async (clock: Clock): Promise<Metrics> => {
  const [{ Metrics }, { showProcess }] = await Promise.all([
    import("#base/metrics.ts"),
    import("#base/process-figures.ts"),
  ]);
  const metrics = new Metrics(clock);
  showProcess(metrics);
  return metrics;
};
