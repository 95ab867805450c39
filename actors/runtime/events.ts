// Every event that is announced inside the process, by kind of topic. A topic's ID is the ID of the actor that announces it.

import type { PendingCall } from "../chat/machine/decision.ts";
import type { ChatNotice } from "../chat/messages.ts";
import type { PartBatch } from "../chat/turn/stream-buffer.ts";

export type Events = {
  /** A transition of the chat has been committed. */
  chat: ChatNotice;
  /** More output of the chat's turn, before it becomes a message. */
  chat_parts: PartBatch;
  /** Current warnings about the chat; may be empty. */
  chat_warnings: { warnings: readonly string[] };
  /** A budget blocked a model call of the chat's coding agent. */
  agent_refused: Record<string, never>;
  /** A turn of the chat starts or stops waiting for a slot. */
  chat_waits: { isWaiting: boolean };
  /** A chat of the user with the topic's ID has changed in a way that lists show. */
  owner_chats: { kind: OwnerChatKind; chat_id: string; pending_calls?: readonly PendingCall[] };
  /** A change visible to watchers of the workspace has been committed. `version` is the workspace's own counter. */
  workspace: { version: number; latest_build_id: string };
  /** Log lines of a provisioner job; `done` once the job has ended and no more follow. The topic's ID is the job's. */
  job: { logs: readonly JobLogLine[]; done: boolean };
  /** Log lines of an agent, in the order of their IDs. */
  agent_logs: { logs: readonly AgentLogLine[] };
  /** Lines of an agent may have been stored without being announced. */
  agent_logs_missed: Record<string, never>;
  /** A change of an agent that its workspace shows has been committed. The topic's ID is the workspace's. */
  workspace_changed: { agent_id: string };
  /**
   * A property that workspaces show of a template, template version, user or organization, such as its name, has been committed. The
   * topic's ID is that entity's. Every writer of such a column publishes this after the commit.
   */
  shown_changed: Record<string, never>;
  /** This connection is now the agent's current one; all others end. */
  agent_connection: { connection_id: string };
  /** A prebuild was claimed by this owner, so its agents restart. The topic's ID is the workspace's. */
  reinit: { owner_id: string };
  /** The user with the topic's ID has linked an account at this external-auth provider. */
  external_auth: { provider_id: string };
  /** New results of the agent's metadata have been committed. */
  agent_metadata: Record<string, never>;
  /** An API key was revoked, or every key of a user except one. Streams opened with it end. The topic's ID is the key's or the user's. */
  key_gone: { except?: string };
  /**
   * Access to a workspace, chat or organization, or a user's permissions, have changed, or a repository prebuild was removed, so streams and
   * running work check again. The topic's ID is the ID of the workspace, chat, organization, user or prebuild.
   */
  access_changed: Record<string, never>;
  /** Events of other nodes may have been missed, so subscribers must check their state. The topic's ID is empty. */
  missed: Record<string, never>;
  /** Secrets of the user with the topic's ID were created, changed or deleted, so the daemons of their workspaces fetch them again. */
  secrets_changed: Record<string, never>;
  /** Notifications were written, for the user with the topic's ID or for several. */
  notified: Record<string, never>;
  /** The inbox of the user with the topic's ID has changed. */
  inbox: Record<string, never>;
  /** Language model providers or their models have changed. The topic's ID is empty. */
  models_changed: Record<string, never>;
  /** The agent has a new token, so connections opened with the previous one end. */
  agent_token_renewed: Record<string, never>;
  /** The agent's build is no longer the latest, so its token is invalid and its streams end. */
  agent_gone: Record<string, never>;
};

/** Events that are sent to every node of a cluster that serves streams: rare, and not needed later. */
export const EVENTS_FOR_ALL_NODES = [
  "key_gone",
  "access_changed",
  "inbox",
] as const satisfies readonly (keyof Events)[];

/**
 * Events that are sent to every node if several nodes are active, each with its own actors. Events of chats, agent and job logs, and
 * metadata stay on the node of their
 * shard: there are many of them, and no other node needs them.
 */
export const EVENTS_FOR_ACTIVE_NODES = [
  ...EVENTS_FOR_ALL_NODES,
  ...(["owner_chats", "workspace", "workspace_changed", "shown_changed", "agent_gone"] as const),
  ...(["external_auth", "secrets_changed", "notified", "models_changed", "agent_refused"] as const),
] as const satisfies readonly (keyof Events)[];

/** Kinds of events of the stream `/chats/watch` (facts/chats 2.10). */
export type OwnerChatKind =
  | "created"
  | "deleted"
  | "status_change"
  | "title_change"
  | "summary_change"
  | "chat_summary_change"
  | "diff_status_change"
  | "action_required"
  | "context_dirty"
  | "trial_change";

export type JobLogLine = {
  id: number;
  created_at: string;
  log_source: "provisioner_daemon" | "provisioner";
  log_level: "trace" | "debug" | "info" | "warn" | "error";
  stage: string;
  output: string;
};

export type AgentLogLine = {
  id: number;
  created_at: string;
  level: "trace" | "debug" | "info" | "warn" | "error";
  output: string;
  source_id: string;
};
