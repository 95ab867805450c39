// What the HTTP edge works with. src/context.ts builds it; tests override parts of it there.

import type { AgentActor } from "#actors/agent/agent-actor.ts";
import type { Diffs } from "#actors/chat/aside/diffs.ts";
import type { Titles } from "#actors/chat/aside/titles.ts";
import type { ChatActor } from "#actors/chat/chat-actor.ts";
import type { Generations } from "#actors/chat/turn/generations.ts";
import type { ChatMcp } from "#actors/chat/turn/mcp.ts";
import type { Directory } from "#actors/directory.ts";
import type { Events } from "#actors/events.ts";
import type { JobQueue } from "#actors/job-queue.ts";
import type { ModelSettings } from "#actors/model-settings.ts";
import type { DryRunActor } from "#actors/template-version/dry-run-actor.ts";
import type { TemplateVersionActor } from "#actors/template-version/template-version-actor.ts";
import type { Usage } from "#actors/usage/usage.ts";
import type { WorkspaceActor } from "#actors/workspace/workspace-actor.ts";
import type { Clock } from "#base/clock.ts";
import type { Config } from "#base/config.ts";
import type { Encryption } from "#base/encryption.ts";
import type { Topics } from "#base/topics.ts";
import type { Blobs } from "#db/blobs.ts";
import type { Store } from "#db/store.ts";
import type { LanguageModels } from "#src/llm/model.ts";
import type { Workers } from "#src/provisioners/external/workers.ts";
import type { AgentHttp } from "#src/wire/agent-http.ts";
import type { Addresses } from "./address.ts";
import type { TunnelDialer } from "./agents/dialer.ts";
import type { RefusedChanges } from "./audit/refused.ts";
import type { Links } from "./external-auth/links.ts";
import type { OpenStreams } from "./open-streams.ts";
import type { Requests } from "./requests.ts";
import type { Sockets } from "./socket.ts";
import type { Network } from "./tailnet/network.ts";
import type { Accounts } from "./users/accounts.ts";

export interface ApiContext {
  readonly config: Config;
  readonly clock: Clock;
  readonly store: Store;
  readonly topics: Topics<Events>;
  readonly sockets: Sockets;
  readonly requests: Requests;
  readonly streams: OpenStreams;
  readonly accounts: Accounts;
  readonly addresses: Addresses;
  /** Tells the audit log of changes that were refused. */
  readonly refused: RefusedChanges;
  /** Streams into workspaces. */
  readonly dialer: TunnelDialer;
  /** Coordinator and relay of the private network. */
  readonly tailnet: Network;
  /** Requests to the HTTP API of agents. */
  readonly agentHttp: AgentHttp;
  readonly agents: Directory<AgentActor>;
  readonly workspaces: Directory<WorkspaceActor>;
  readonly versions: Directory<TemplateVersionActor>;
  readonly dryRuns: Directory<DryRunActor>;
  readonly chats: Directory<ChatActor>;
  readonly generations: Generations;
  readonly titles: Titles;
  readonly mcp: ChatMcp;
  readonly diffs: Diffs;
  readonly models: LanguageModels;
  readonly modelSettings: ModelSettings;
  readonly blobs: Blobs;
  /** Seals what must be readable again. */
  readonly encryption: Encryption;
  /** Accounts at external providers that users have linked. */
  readonly links: Links;
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
