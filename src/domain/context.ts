// What use cases work with. src/context/context.ts builds it; tests override parts of it there.

import type { AgentActor } from "#actors/agent/actor.ts";
import type { ChatActor } from "#actors/chat/actor.ts";
import type { Diffs } from "#actors/chat/background/pull-requests.ts";
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
import type { Parts } from "#base/parts.ts";
import type { Topics } from "#base/topics.ts";
import type { BackupsByHand } from "#db/backup/by-hand.ts";
import type { Blobs } from "#db/blobs.ts";
import type { Store } from "#db/engine/store.ts";
import type { AgentsDialer } from "#domain/agents/dialer.ts";
import type { ConnectionLogger } from "#domain/connections/log.ts";
import type { Links } from "#domain/external-auth/links.ts";
import type { Health } from "#domain/health/health.ts";
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
  /** Where each setting came from; undefined where nobody has said. */
  readonly sources: LoadedConfig["sources"] | undefined;
  /** Sends what people are told. */
  readonly notifier: Notifier;
  readonly mailer: Mailer;
  /** How the deployment fares. */
  readonly health: Health;
  /** Backups that someone asks for. */
  readonly backupsByHand: BackupsByHand;
  readonly clock: Clock;
  readonly store: Store;
  readonly topics: Topics<Events>;
  readonly accounts: Accounts;
  /** Streams into workspaces. */
  readonly dialer: AgentsDialer;
  /** Coordinator and relay of the private network. */
  readonly tailnet: Network;
  /** Requests to the HTTP API of agents. */
  readonly agentHttp: AgentHttp;
  readonly agents: Directory<AgentActor>;
  readonly workspaces: Directory<WorkspaceActor>;
  /** Starts by connecting that this node plans now, by workspace: later connections wait for the same one. Between nodes the actor decides. */
  readonly wakes: Map<string, Promise<string | undefined>>;
  readonly versions: Directory<TemplateVersionActor>;
  readonly dryRuns: Directory<DryRunActor>;
  readonly chats: Directory<ChatActor>;
  /** Makes the workspaces of forks. */
  readonly forks: Pick<ForkKeeper, "wait">;
  /** Makes home backups. */
  readonly homeBackups: Pick<HomeBackupKeeper, "sweep" | "counts" | "standing">;
  /** Where they go; undefined where the settings name no place. */
  readonly homeBackupStore: HomeBackupStore | undefined;
  /** Leads trials of several ways to their end. */
  readonly trials: Pick<TrialKeeper, "wait" | "tell">;
  /** Gives tasks their prompts. */
  readonly tasks: Pick<TaskKeeper, "wait">;
  readonly provisioners: Provisioners;
  readonly generations: Generations;
  readonly titles: Titles;
  readonly warnings: ChatWarnings;
  readonly diffs: Diffs;
  readonly hooks: Hooks;
  readonly models: LanguageModels;
  readonly modelSettings: ModelSettings;
  /** Sends requests to model providers, where settings allow it. */
  readonly modelFetch: GuardedFetch;
  /** What model calls may use and have used. */
  readonly ledger: ModelLedger;
  /** Deletes recordings of model calls that are old or too large. */
  readonly recordingRetention: Pick<RecordingRetention, "added">;
  readonly blobs: Blobs;
  /** Seals what must be readable again. */
  readonly encryption: Encryption;
  /** Accounts at external providers that users have linked. */
  readonly links: Links;
  /** What of the deployment is this node's. */
  readonly parts: Parts;
  /** Reads repositories that people name. */
  readonly repositories: Repositories;
  /** Where people sign in by OpenID Connect. */
  readonly oidc: OidcProviders;
  /** Requests to hosts that settings and people name, and to MCP servers, which may stand where models may. */
  readonly outbound: Outbound;
  readonly mcpOutbound: Outbound;
  /** Requests to push services, which browsers of members name. */
  readonly pushOutbound: Outbound;
  /** Notes who was connected to which workspace. */
  readonly connections: ConnectionLogger;
  /** Who used what, for insights. */
  readonly usage: Usage;
  readonly jobs: JobQueue;
  /** Workers of their own that are connected now. */
  readonly workers: Workers;
  /** The URL people and workspaces use, known once the server listens. */
  readonly accessUrl: URL;
  /** True once the server has begun to stop: /readyz answers 503. */
  readonly draining: boolean;
}
