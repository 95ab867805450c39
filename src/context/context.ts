// The whole server: constructed from its services, prepared, started, drained, and shut down in reverse order. Tests pass another clock or
// other services (`ContextOptions`).
import { auditRetention } from "#actors/audit/retention.ts";
import { WorkspaceHooks } from "#actors/chat/hooks/workspace-hooks.ts";
import { type ChatServices, openChats } from "#actors/chat/services.ts";
import { ledgerUpkeep } from "#actors/chat/spending/ledger.ts";
import { RecordingRetention } from "#actors/chat/spending/recording-retention.ts";
import { connectionUpkeep } from "#actors/connections/upkeep.ts";
import { ForkKeeper } from "#actors/forks/keeper.ts";
import { openHooks } from "#actors/hooks/open.ts";
import { ImagePrebuildKeeper } from "#actors/image-prebuilds/keeper.ts";
import { Notifier } from "#actors/notifications/notifier.ts";
import type { Events } from "#actors/runtime/events.ts";
import { JobQueue } from "#actors/runtime/job-queue.ts";
import { Scheduler } from "#actors/runtime/scheduler.ts";
import { type Service, Services } from "#actors/runtime/service.ts";
import { broadcastEvents, receiveFromOtherNodes } from "#actors/runtime/shared-events.ts";
import { TaskKeeper } from "#actors/tasks/keeper.ts";
import { recoverBlobs } from "#actors/template-version/recovery.ts";
import { TrialKeeper } from "#actors/trials/keeper.ts";
import { Usage } from "#actors/usage/usage.ts";
import type { Provisioners } from "#actors/workspace/build-runner.ts";
import { recoverWorkspaces } from "#actors/workspace/recovery.ts";
import { type Clock, EndingClock, systemClock } from "#base/clock.ts";
import { type Config, isUsedOnlyLocally, type LoadedConfig } from "#base/config.ts";
import type { Encryption } from "#base/encryption.ts";
import type { Metrics } from "#base/metrics.ts";
import { Outbound } from "#base/outbound.ts";
import { ALL_SHARDS, FIRST_SHARD, type Shards } from "#base/shards.ts";
import type { Telemetry } from "#base/spans.ts";
import { MemoryShare } from "#base/system/memory-share.ts";
import { Topics } from "#base/topics.ts";
import type { ManualBackups } from "#db/backup/by-hand.ts";
import { createManualBackups, createScheduledBackups, type ScheduledBackups } from "#db/backup/schedule.ts";
import { Blobs, type SharedBlobs } from "#db/blobs.ts";
import type { Store } from "#db/engine/store.ts";
import { ALL_ROWS } from "#db/own-rows.ts";
import type { BaseNode } from "#db/pg/base-node.ts";
import { ShardIndex } from "#db/shard-index.ts";
import { noteContainerKill } from "#domain/agents/container-kills.ts";
import { makeChatToken } from "#domain/ai/chat-token.ts";
import { makeWorkspaceToken } from "#domain/ai/workspace-token.ts";
import { makeLocalSweeps } from "#domain/builds/local-limits.ts";
import { checkStartNow } from "#domain/builds/new-build.ts";
import { makeProvisioners } from "#domain/builds/provisioners.ts";
import { addTerraformWork } from "#domain/builds/terraform-work.ts";
import { deleteObsoleteStates } from "#domain/builds/unstored-states.ts";
import { findTurnRefusal } from "#domain/chats/refusal.ts";
import { ChatToolServices } from "#domain/chats/tool-services.ts";
import { ConnectionLogger } from "#domain/connections/log.ts";
import { Links } from "#domain/external-auth/links.ts";
import { Health } from "#domain/health/health.ts";
import { createSingleLocation, type Location } from "#domain/location.ts";
import { makeMcpAccess } from "#domain/mcp/access.ts";
import { OidcProviders } from "#domain/oidc/providers.ts";
import { oidcRechecks } from "#domain/oidc/recheck.ts";
import { openRepositories } from "#domain/repositories/open.ts";
import { toImagePrebuildDeps } from "#domain/repositories/prebuilds.ts";
import type { Repositories } from "#domain/repositories/repositories.ts";
import { makeTaskChats } from "#domain/tasks/begin.ts";
import { ReadyTemplates } from "#domain/templates/starter.ts";
import { terraformImports } from "#domain/templates/terraform-imports.ts";
import { trialWork } from "#domain/trials/work.ts";
import { Accounts } from "#domain/users/accounts.ts";
import { hasAnyUser } from "#domain/users/first-user.ts";
import type { HashCost } from "#domain/users/passwords.ts";
import { reportHomeBackups } from "#domain/workspaces/home-backups.ts";
import { deleteObsoleteModules, makeModuleLoads } from "#domain/workspaces/snapshot-module.ts";
import { RejectedChanges } from "#src/api/audit/rejections.ts";
import type { ApiContext } from "#src/api/context.ts";
import { Addresses } from "#src/api/http/address.ts";
import { OpenStreams } from "#src/api/http/open-streams.ts";
import { Requests } from "#src/api/http/requests.ts";
import { Sockets } from "#src/api/http/socket.ts";
import type { Membership } from "#src/cluster/membership.ts";
import { OAuthClient } from "#src/git/oauth.ts";
import { toProvider } from "#src/git/provider.ts";
import type { LanguageModels } from "#src/llm/model.ts";
import { Mailer } from "#src/notify/mail.ts";
import { Workers } from "#src/provisioners/external/workers.ts";
import type { ProvisionRequest } from "#src/provisioners/provisioner.ts";
import type { RepositorySources } from "#src/provisioners/repository/sources.ts";
import type { ToolServicesFor } from "#src/tools/services.ts";
import { type Base, openAgents, openModels, openTemplates, openWorkspaces } from "./features.ts";
import { adoptShards, endForbidden, prepareFirst, releaseShards } from "./lifecycle.ts";
import type { OpenedStore } from "./open-store.ts";

/** Maximum bytes of a response about a pull request. */
const MAX_DIFF_BYTES = 4 * 1024 * 1024;

export type ContextOptions = {
  config: Config;
  /** Where each setting came from, for administrators. */
  sources?: LoadedConfig["sources"];
  clock?: Clock;
  /** Called by a service that cannot continue; src/main.ts exits with a non-zero code. */
  fatal?: (error: Error) => void;
  store?: Store;
  /** The storage of uploads outside the data directory. */
  sharedBlobs?: SharedBlobs | undefined;
  /** The shards of this node and of other nodes. By default, this is the only node. */
  shards?: Shards | undefined;
  /** The cluster membership, already joined. */
  membership?: Membership | undefined;
  /** Copies messages to actors and their replies to prove that they are plain data; tests only. */
  copyMessages?: <T>(message: T) => T;
  /** The cost of hashing new passwords, overriding the recommended one; tests only. */
  hashCost?: HashCost | undefined;
  /** Alternative provisioners; tests only. */
  provisioners?: Provisioners;
  /** Alternative language models; tests only. */
  models?: LanguageModels;
  /** The memory for model calls, instead of one computed from the machine's memory; tests only. */
  callMemory?: MemoryShare | undefined;
  /** The program and command that runs the daemon of local workspaces; default: this program. */
  daemon?: readonly string[] | undefined;
  /** The environment this process was started with; some variables are passed to local workspaces (PATH, LANG, TZ). */
  environment?: Readonly<Record<string, string | undefined>>;
};

/** Metrics and traces, if enabled. */
type Observability = { readonly metrics: Metrics | undefined; readonly telemetry: Telemetry | undefined };

/** Maximum bytes of one response of an MCP server. */
const MAX_MCP_BYTES = 16 * 1024 * 1024;

type Agents = ReturnType<typeof openAgents>;
type Workspaces = ReturnType<typeof openWorkspaces>;
type Templates = ReturnType<typeof openTemplates>;

export class Context implements ApiContext, AsyncDisposable {
  readonly config: Config;
  /** Its repeating timers end with the context. */
  readonly clock: EndingClock;
  readonly store: Store;
  /** The shards this node owns. */
  readonly shards: Shards;
  readonly location: Location;
  /** Looks up the shard of an ID. */
  readonly shardIndex: ShardIndex;
  readonly topics = new Topics<Events>();
  /** Undefined when metrics are disabled: nothing is counted. */
  readonly metrics: Metrics | undefined;
  /** Undefined without a collector: no spans are created. */
  readonly telemetry: Telemetry | undefined;
  readonly sockets: Sockets;
  readonly requests: Requests;
  readonly streams: OpenStreams;
  readonly accounts: Accounts;
  readonly addresses: Addresses;
  readonly dialer: Agents["dialer"];
  readonly agentHttp: Agents["agentHttp"];
  readonly tailnet: Agents["tailnet"];
  readonly agents: Agents["agents"];
  readonly workspaces: Workspaces["workspaces"];
  readonly wakes: ApiContext["wakes"] = new Map();
  readonly versions: Templates["versions"];
  readonly dryRuns: Templates["dryRuns"];
  readonly chats: ChatServices["chats"];
  readonly tasks: TaskKeeper;
  readonly forks: ForkKeeper;
  readonly trials: TrialKeeper;
  readonly generations: ChatServices["generations"];
  readonly titles: ChatServices["titles"];
  readonly warnings: ChatServices["warnings"];
  readonly diffs: ChatServices["diffs"];
  readonly connections: ConnectionLogger;
  /** Calls the consumer of lifecycle hooks. */
  readonly hooks: ReturnType<typeof openHooks>["hooks"];
  /** Records rejected changes in the audit log. */
  readonly refused: RejectedChanges;
  readonly models: LanguageModels;
  readonly modelSettings: ReturnType<typeof openModels>["modelSettings"];
  readonly modelFetch: ReturnType<typeof openModels>["modelFetch"];
  readonly callMemory: MemoryShare;
  readonly ledger: ReturnType<typeof openModels>["ledger"];
  readonly recordingRetention: RecordingRetention;
  readonly blobs: Blobs;
  readonly encryption: Encryption;
  readonly membership: Membership | undefined;
  /** This process as a cluster node; undefined on a single server. */
  readonly cluster: BaseNode | undefined;
  readonly outbound: Outbound;
  readonly pushOutbound: Outbound;
  readonly mcpOutbound: Outbound;
  readonly links: Links;
  readonly repositories: Repositories;
  readonly oidc: OidcProviders;
  readonly jobs: JobQueue;
  readonly workers: Workers;
  readonly provisioners: Provisioners;
  readonly prebuilds: Workspaces["prebuilds"];
  readonly scheduler: Scheduler;
  /** Everything that starts, runs in the background or ends with the server. */
  readonly services: Services;
  readonly backups: ScheduledBackups;
  /** Backups that an administrator starts. */
  readonly backupsByHand: ManualBackups;
  readonly usage: Usage;
  /** Creates the built-in templates once their requirements are available. */
  readonly readyTemplates: ReadyTemplates;
  readonly uses: Workspaces["uses"];
  readonly homeBackups: Workspaces["homeBackups"];
  readonly homeBackupStore: Workspaces["homeBackupStore"];
  readonly sources: LoadedConfig["sources"] | undefined;
  readonly health: Health;
  readonly mailer: Mailer;
  readonly notifier: Notifier;
  accessUrl = new URL("http://localhost/");
  draining = false;
  /** This node accepts no more connections, because another one is about to become active. */
  handingOver = false;

  constructor(options: ContextOptions, opened: OpenedStore, encryption: Encryption, observability: Observability) {
    const { store, membership, sharedBlobs } = opened;
    const { metrics, telemetry } = observability;
    const { config, shards = membership?.active?.shards ?? ALL_SHARDS } = options;
    const clock = new EndingClock(options.clock ?? systemClock);
    const { topics } = this;
    const { max_connections, allowed_private_networks: allowed } = config;
    const copy = options.copyMessages;
    const index = new ShardIndex(store);
    const location =
      membership?.active?.openLocation({ clock, index, encryption, copy }) ??
      createSingleLocation({ clock, shards, copy });
    const accessUrl = (): URL => this.accessUrl;
    const base: Base = { config, clock, store, shards, topics, encryption, location, accessUrl };
    this.shardIndex = index;
    this.config = config;
    this.sources = options.sources;
    this.clock = clock;
    this.store = store;
    this.shards = shards;
    this.location = location;
    this.encryption = encryption;
    this.metrics = metrics;
    this.telemetry = telemetry;
    // Events that end or update streams are also sent to the other nodes.
    broadcastEvents(this);
    this.usage = new Usage({ store, clock, flushOthers: location.share("flush", () => this.usage.flush()) });
    this.sockets = new Sockets(clock, max_connections, location.isHere, config.app_message_mb * 1024 * 1024);
    this.streams = new OpenStreams(clock, max_connections, location.isHere);
    this.requests = new Requests(clock, max_connections);
    this.addresses = new Addresses(config.trusted_proxies, (request) => this.requests.getPeer(request));
    this.accounts = new Accounts({ store, clock, encryption, hashCost: options.hashCost });
    const agents = openAgents(base);
    this.dialer = agents.dialer;
    this.agentHttp = agents.agentHttp;
    this.tailnet = agents.tailnet;
    this.agents = agents.agents;
    this.membership = membership;
    this.cluster = membership?.node;
    this.blobs = new Blobs(config.data_dir, sharedBlobs, shards !== ALL_SHARDS);
    this.backups = createScheduledBackups(config, clock);
    this.backupsByHand = createManualBackups(config, clock);
    this.workers = new Workers(clock);
    // All nodes of a cluster report the same ID.
    const worker_id = sharedBlobs && encryption.deriveUuid("built-in worker");
    const otherJobs = location.openJobs({ queue: () => this.jobs, work: () => ({ ...workspaces, ...templates }) });
    this.jobs = new JobQueue(config.provisioner_slots, this.workers, worker_id, otherJobs);
    const repositories: RepositorySources = {
      open: (plan, owner_id, signal) => this.repositories.open(plan, owner_id, signal),
      loadFeature: (id, owner_id, signal) => this.repositories.loadFeature(id, owner_id, signal),
      fetchPullToken: (image, owner_id, signal) => this.repositories.fetchPullToken(image, owner_id, signal),
    };
    this.provisioners = makeProvisioners({ ...options, repositories }, clock, base.accessUrl, this.workers);
    const { environment = {} } = options;
    const { tailnet, workers, jobs, provisioners, blobs } = this;
    const lazyDeps = {
      prebuilds: () => this.prebuilds,
      modelSettings: () => this.modelSettings,
      homeBackups: () => reportHomeBackups(this),
    };
    this.health = new Health({ ...base, tailnet, workers, environment, ...lazyDeps });
    const equip = (request: ProvisionRequest) => addTerraformWork(this, request);
    const equipBuild = async (request: ProvisionRequest) => {
      await checkStartNow(this, request);
      return equip(request);
    };
    const workspaces = openWorkspaces({
      ...base,
      ...agents,
      jobs,
      provisioners,
      equip: equipBuild,
      module: makeModuleLoads(this),
      building: this,
      environment,
    });
    this.workspaces = workspaces.workspaces;
    this.uses = workspaces.uses;
    this.homeBackups = workspaces.homeBackups;
    this.homeBackupStore = workspaces.homeBackupStore;
    this.prebuilds = workspaces.prebuilds;
    const terraform = terraformImports(this);
    const templates = openTemplates({ ...base, blobs, jobs, provisioners, terraform, equip });
    this.versions = templates.versions;
    this.dryRuns = templates.dryRuns;
    this.readyTemplates = new ReadyTemplates(this);
    this.outbound = new Outbound({ clock, allowed });
    const setting = "webpush_private_networks";
    this.pushOutbound = new Outbound({ clock, allowed: config[setting], setting });
    this.oidc = new OidcProviders({ clock, settings: config.oidc_providers, outbound: this.outbound });
    this.mailer = new Mailer(config);
    this.notifier = new Notifier({
      ...base,
      isSender: () => shards.isFirst,
      mailer: this.mailer,
      outbound: this.pushOutbound,
    });
    this.mcpOutbound = new Outbound({
      clock,
      allowed,
      max_bytes: MAX_MCP_BYTES,
      reaches_private: isUsedOnlyLocally(config),
    });
    const client = new OAuthClient(this.outbound);
    this.links = new Links({
      store,
      clock,
      encryption,
      topics,
      providers: config.external_auth.map(toProvider),
      client,
      // A provider that accepts each refresh token once would revoke the grant if two nodes used it.
      refreshRemotely: location.runOnFirst("external_auth", (requested) => this.links.refresh(requested)),
    });
    this.repositories = openRepositories({ ...base, links: this.links, env: environment });
    const { callMemory: memory = new MemoryShare() } = options;
    this.callMemory = memory;
    const { models, modelSettings, modelFetch, ledger } = openModels({
      ...base,
      blobs,
      metrics,
      memory,
      models: options.models,
    });
    this.models = models;
    this.modelSettings = modelSettings;
    this.modelFetch = modelFetch;
    this.ledger = ledger;
    this.recordingRetention = new RecordingRetention({ store, clock });
    const toolServices = (scope: ToolServicesFor) => new ChatToolServices(this, scope);
    const recordsContents = config.hook_ledger_contents;
    const workspaceHooks = new WorkspaceHooks({
      store,
      clock,
      agentHttp: this.agentHttp,
      toolServices,
      recordsContents,
    });
    const hookService = openHooks({ config, clock, store, workspaces: workspaceHooks });
    this.hooks = hookService.hooks;
    const {
      chats,
      generations,
      titles,
      warnings,
      diffs,
      services: chatServices,
    } = openChats({
      ...base,
      openDirectory: location.openDirectory,
      isHere: location.isHere,
      models,
      memory,
      agentHttp: this.agentHttp,
      toolServices,
      findTurnRefusal: (chat_id, prompted_at) => findTurnRefusal(this, chat_id, prompted_at),
      blobs,
      ledger,
      modelTokens: (scope) => ({
        of_workspace: makeWorkspaceToken(encryption, scope.agent_id),
        of_chat: makeChatToken(encryption, scope),
      }),
      mcpAccess: makeMcpAccess(this),
      hookService,
      mcpFetch: (url, init) => this.mcpOutbound.open(new URL(url), init),
      accounts: this.links,
      outbound: new Outbound({ clock, allowed, max_bytes: MAX_DIFF_BYTES }),
    });
    this.chats = chats;
    this.tasks = new TaskKeeper({ store, clock, topics, ...makeTaskChats(this) });
    const imagePrebuilds = new ImagePrebuildKeeper({ store, clock, topics, ...toImagePrebuildDeps(this) });
    this.forks = new ForkKeeper({ store, clock, topics, workspaces: this.workspaces, chats });
    this.trials = new TrialKeeper({ store, clock, topics, workspaces: this.workspaces, chats, ...trialWork(this) });
    this.generations = generations;
    this.titles = titles;
    this.warnings = warnings;
    this.diffs = diffs;
    this.connections = new ConnectionLogger({ store, clock, isAlone: shards === ALL_SHARDS });
    this.refused = new RejectedChanges({ store, clock });
    this.scheduler = new Scheduler(
      store,
      clock,
      (timer) => this.services.deliver(timer),
      () => this.services.sweep(),
      shards,
    );
    this.services = new Services(
      [
        ...agents.services,
        ...templates.services,
        ...workspaces.services,
        { stop: () => this.refused.flush() },
        this.notifier,
        { stop: () => this.connections.stop() },
        connectionUpkeep({ store, clock }),
        oidcRechecks(this),
        { stop: () => ledger.stop() },
        this.recordingRetention,
        ledgerUpkeep({ ledger, clock }),
        auditRetention({ store, clock }),
        ...chatServices,
        // Workspaces on the server's own machine, which are not available with several nodes.
        { recover: (own) => own.areAll && recoverWorkspaces(store, provisioners) },
        makeLocalSweeps(this),
        this.trials,
        imagePrebuilds,
        this.forks,
        this.tasks,
        this.usage,
        this.usage.folding,
        // Only after the jobs have ended. They continue on the node that becomes the first one.
        {
          release: (isLeaving) => isLeaving(FIRST_SHARD) && workers.closeAll("another node has the workers now"),
        },
        // Running builds continue after the next start; until then, their reports still reach their actors.
        this.jobs,
        { start: () => otherJobs?.start(), stop: () => otherJobs?.stop() },
        { stop: () => this.backupsByHand.stop() },
        // Not awaited, because the backups' folder can be on a file system that hangs.
        { start: () => void this.backups.start(), stop: () => this.backups.stop() },
        { runsOn: "one node", release: () => this.readyTemplates.stop(), stop: () => this.readyTemplates.stop() },
        ...[...provisioners.values()].map((provisioner) => ({
          start: () => provisioner.followKills?.((kill) => void noteContainerKill(this, kill)),
          stop: () => provisioner.stop?.(),
        })),
        {
          start: () => this.scheduler.start(),
          whenIdle: () => this.scheduler.whenSettled(),
          stop: () => this.scheduler.stop(),
        },
      ] satisfies Service[],
      shards,
    );
  }

  /**
   * Returns a new link to the setup page if there is no user yet. Undefined on all nodes but the first, because a new link invalidates
   * earlier links.
   */
  async setupUrl(): Promise<string | undefined> {
    const { accounts, store, shards } = this;
    // Another node may have created the user since.
    if (accounts.setupNeeded && shards !== ALL_SHARDS) accounts.setupNeeded = !(await hasAnyUser(store));
    if (!accounts.setupNeeded || !shards.isFirst) return undefined;
    const url = new URL("/setup", this.accessUrl);
    url.searchParams.set("token", await accounts.setup.offer());
    return url.href;
  }

  /** Called before the server listens. Prepares this node; the first node also prepares a new database. */
  async prepare(): Promise<void> {
    if (this.shards.isFirst) await prepareFirst(this);
    // With other nodes, an upload without a row may still be in progress on one of them.
    await recoverBlobs(this.store, this.blobs, this.shards === ALL_SHARDS);
    for (const provisioner of this.provisioners.values()) await provisioner.prepare?.();
    if (this.shards !== ALL_SHARDS) receiveFromOtherNodes(this);
    await this.modelSettings.load();
    if (this.shards === ALL_SHARDS) await this.connections.recover();
  }

  /** Called once the server listens and its URL is known. Resumes interrupted work, and creates the built-in templates. */
  async onListening(): Promise<void> {
    void deleteObsoleteStates(this);
    void deleteObsoleteModules(this);
    // With several nodes, each node gets its shards later (`adoptShards`).
    if (this.shards === ALL_SHARDS) {
      await endForbidden(this);
      await this.services.recover(ALL_ROWS);
      await this.readyTemplates.start();
    }
    await this.services.start();
  }

  /** Takes over shards, and continues work that their previous node did not finish. Rejects when the database does not respond. */
  adoptShards(shards: readonly number[]): Promise<void> {
    return adoptShards(this, shards);
  }

  /**
   * Hands off shards that `this.shards` no longer contains. Their running work ends as on a shutdown, followers are asked to reconnect, and
   * buffered data is written. Resolves when this node has no work of these shards, or after a timeout; after that, the database rejects
   * writes to them.
   */
  releaseShards(shards: readonly number[]): Promise<void> {
    return releaseShards(this, shards);
  }

  /** Rejects new messages, and waits until every pending message is answered and on disk. */
  drain(): Promise<void> {
    return this.services.stop();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.scheduler.stop();
    for (const provisioner of this.provisioners.values()) provisioner.stop?.();
    this.workers.stop();
    await this.dialer.network.close();
    await this.store.close();
    if (this.cluster) await this.membership?.leave();
    await this.telemetry?.[Symbol.asyncDispose]();
    this.clock[Symbol.dispose]();
  }
}
