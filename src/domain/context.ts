// Dependencies of the use cases. Built by src/context/context.ts, where tests override parts of it.

import type { AgentActor } from "#actors/agent/actor.ts";
import type { ChatActor } from "#actors/chat/actor.ts";
import type { PullRequestTracker } from "#actors/chat/background/pull-requests.ts";
import type { Titles } from "#actors/chat/background/titles.ts";
import type { ModelLedger } from "#actors/chat/spending/ledger.ts";
import type { RecordingRetention } from "#actors/chat/spending/recording-retention.ts";
import type { Generations } from "#actors/chat/turn/runner.ts";
import type { ChatWarnings } from "#actors/chat/turn/warnings.ts";
import type { ForkKeeper } from "#actors/forks/keeper.ts";
import type { HomeBackupKeeper } from "#actors/home-backups/keeper.ts";
import type { ModelSettings } from "#actors/models/model-settings.ts";
import type { Notifier } from "#actors/notifications/notifier.ts";
import type { Directory } from "#actors/runtime/directory.ts";
import type { Events } from "#actors/runtime/events.ts";
import type { JobQueue } from "#actors/runtime/job-queue.ts";
import type { TaskKeeper } from "#actors/tasks/keeper.ts";
import type { TemplateVersionActor } from "#actors/template-version/actor.ts";
import type { DryRunActor } from "#actors/template-version/dry-run-actor.ts";
import type { TrialKeeper } from "#actors/trials/keeper.ts";
import type { Usage } from "#actors/usage/usage.ts";
import type { WorkspaceActor } from "#actors/workspace/actor.ts";
import type { Provisioners } from "#actors/workspace/build-runner.ts";
import type { Clock } from "#base/clock.ts";
import type { Config, LoadedConfig } from "#base/config.ts";
import type { Encryption } from "#base/encryption.ts";
import type { Outbound } from "#base/outbound.ts";
import type { MemoryShare } from "#base/system/memory-share.ts";
import type { Topics } from "#base/topics.ts";
import type { ManualBackups } from "#db/backup/by-hand.ts";
import type { Blobs } from "#db/blobs.ts";
import type { Store } from "#db/engine/store.ts";
import type { AgentsDialer } from "#domain/agents/dialer.ts";
import type { ConnectionLogger } from "#domain/connections/log.ts";
import type { Links } from "#domain/external-auth/links.ts";
import type { Health } from "#domain/health/health.ts";
import type { Location } from "#domain/location.ts";
import type { OidcProviders } from "#domain/oidc/providers.ts";
import type { Repositories } from "#domain/repositories/repositories.ts";
import type { Network } from "#domain/tailnet/network.ts";
import type { Accounts } from "#domain/users/accounts.ts";
import type { HomeBackupStore } from "#src/home-backups/store.ts";
import type { Hooks } from "#src/hooks/hooks.ts";
import type { GuardedFetch } from "#src/llm/fetch.ts";
import type { LanguageModels } from "#src/llm/model.ts";
import type { Mailer } from "#src/notify/mail.ts";
import type { Workers } from "#src/provisioners/external/workers.ts";
import type { AgentHttp } from "#src/wire/index.ts";

export interface DomainContext {
  readonly config: Config;
  /** Where each setting came from; undefined if unknown. */
  readonly sources: LoadedConfig["sources"] | undefined;
  /** Sends notifications. */
  readonly notifier: Notifier;
  readonly mailer: Mailer;
  /** The deployment's health. */
  readonly health: Health;
  /** Backups that an administrator starts. */
  readonly backupsByHand: ManualBackups;
  readonly clock: Clock;
  readonly store: Store;
  readonly topics: Topics<Events>;
  readonly accounts: Accounts;
  /** Opens streams into workspaces. */
  readonly dialer: AgentsDialer;
  /** Coordinator and relay of the private network. */
  readonly tailnet: Network;
  /** Requests to the HTTP API of agents. */
  readonly agentHttp: AgentHttp;
  readonly agents: Directory<AgentActor>;
  readonly workspaces: Directory<WorkspaceActor>;
  /**
   * Wake-on-connect starts being planned on this node, by workspace: later connections wait for the same one. Between nodes, the actor
   * decides.
   */
  readonly wakes: Map<string, Promise<string | undefined>>;
  readonly versions: Directory<TemplateVersionActor>;
  readonly dryRuns: Directory<DryRunActor>;
  readonly chats: Directory<ChatActor>;
  /** Creates the workspaces of forks. */
  readonly forks: Pick<ForkKeeper, "wait">;
  /** Creates home backups. */
  readonly homeBackups: Pick<HomeBackupKeeper, "sweep" | "counts" | "standing">;
  /** Storage of home backups; undefined if not configured. */
  readonly homeBackupStore: HomeBackupStore | undefined;
  /** Runs trials to completion. */
  readonly trials: Pick<TrialKeeper, "wait" | "applyEvent">;
  /** Sends tasks their prompts. */
  readonly tasks: Pick<TaskKeeper, "wait">;
  readonly provisioners: Provisioners;
  readonly generations: Generations;
  readonly titles: Titles;
  readonly warnings: ChatWarnings;
  readonly diffs: PullRequestTracker;
  readonly hooks: Hooks;
  readonly models: LanguageModels;
  readonly modelSettings: ModelSettings;
  /** The memory for model requests of chats and the AI gateway, and for large results of tools. */
  readonly callMemory: MemoryShare;
  /** Sends requests to model providers, as far as settings allow. */
  readonly modelFetch: GuardedFetch;
  /** Reservations and usage of model calls. */
  readonly ledger: ModelLedger;
  /** Deletes recordings of model calls by age and size. */
  readonly recordingRetention: Pick<RecordingRetention, "onStored">;
  readonly blobs: Blobs;
  /** Encrypts secrets that must be readable again. */
  readonly encryption: Encryption;
  /** Accounts at external providers that users have linked. */
  readonly links: Links;
  /** Which workspaces, chats and template versions this node works on. */
  readonly location: Pick<Location, "isHere" | "countArrivals">;
  /** Reads repositories that users name. */
  readonly repositories: Repositories;
  /** OpenID Connect sign-in providers. */
  readonly oidc: OidcProviders;
  /** Requests to hosts that settings and people name. */
  readonly outbound: Outbound;
  /** Requests to MCP servers, which may be on private addresses if models may. */
  readonly mcpOutbound: Outbound;
  /** Requests to push services, which members' browsers choose. */
  readonly pushOutbound: Outbound;
  /** Records connections to workspaces. */
  readonly connections: ConnectionLogger;
  /** Usage data for insights. */
  readonly usage: Usage;
  readonly jobs: JobQueue;
  /** External workers that are connected now. */
  readonly workers: Workers;
  /** The URL people and workspaces use, known once the server listens. */
  readonly accessUrl: URL;
  /** True once the server has started to stop: /readyz returns 503. */
  readonly draining: boolean;
}
