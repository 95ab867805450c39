// Every event that is announced inside the process, by kind of topic. The topic's id is the id of the actor that announced it.

import type { PendingCall } from "../chat/machine/decision.ts";
import type { ChatNotice } from "../chat/messages.ts";
import type { PartBatch } from "../chat/turn/stream-buffer.ts";

export type Events = {
  /** A transition of the chat has been committed. */
  chat: ChatNotice;
  /** More of what the chat's turn says, before it is a message. */
  chat_parts: PartBatch;
  /** What is wrong around a turn of the chat now, in words; empty when nothing is. */
  chat_warnings: { warnings: readonly string[] };
  /** A budget has kept a model call of the chat's coding agent from beginning. */
  agent_refused: Record<string, never>;
  /** A turn of the chat begins or ceases to wait until others have ended. */
  chat_waits: { isWaiting: boolean };
  /** Something about a chat of the user with the topic's id that lists show. */
  owner_chats: { kind: OwnerChatKind; chat_id: string; pending_calls?: readonly PendingCall[] };
  /** Something a watcher of the workspace can see has been committed; `version` is the workspace's own counter. */
  workspace: { version: number; latest_build_id: string };
  /** Log lines of a provisioner job; `done` once the job has ended and nothing follows. The topic's id is the job's. */
  job: { logs: readonly JobLogLine[]; done: boolean };
  /** Log lines of an agent, in the order of their ids. */
  agent_logs: { logs: readonly AgentLogLine[] };
  /** Lines of an agent may be stored that nobody was told. */
  agent_logs_missed: Record<string, never>;
  /** Something of an agent that its workspace shows has been committed; the topic's id is the workspace's. */
  workspace_changed: { agent_id: string };
  /**
   * Something that workspaces show of the template, template version, user or organization with the topic's id has been committed,
   * such as its name. Anyone who writes such a column publishes this after the commit.
   */
  shown_changed: Record<string, never>;
  /** This connection speaks for the agent from now on; any other ends. */
  agent_connection: { connection_id: string };
  /** A workspace that was kept ready was given to this owner: its agents start over. The topic's id is the workspace's. */
  reinit: { owner_id: string };
  /** The user with the topic's id has linked an account at this external-auth provider. */
  external_auth: { provider_id: string };
  /** New results of the agent's metadata have been committed. */
  agent_metadata: Record<string, never>;
  /** The API key with the topic's id, or every key of the user with that id except one, counts no more: what it opened ends. */
  key_gone: { except?: string };
  /** Who may do what with the workspace or chat, or what the user may do (the topic's id is either's), has changed: streams look again. */
  access_changed: Record<string, never>;
  /** Events of other nodes may have been missed: anyone who depends on one looks for itself. Its id is empty. */
  missed: Record<string, never>;
  /** Secrets of the user with the topic's id were made, changed or deleted: daemons of their workspaces ask for them again. */
  secrets_changed: Record<string, never>;
  /** Notices were written, for the user with the topic's id or for several. */
  notified: Record<string, never>;
  /** Something in the inbox of the user with the topic's id has changed. */
  inbox: Record<string, never>;
  /** Providers of language models or their models are others now. Its id is empty. */
  models_changed: Record<string, never>;
  /** The agent's build is no longer the latest: its token is void and its streams end. */
  agent_gone: Record<string, never>;
};

/** What is heard on every node of a cluster that answers streams: little, and nothing that lasts. */
export const HEARD_EVERYWHERE = ["key_gone", "access_changed", "inbox"] as const satisfies readonly (keyof Events)[];

/**
 * The same where several nodes are active, each with actors of its own. Streams of a chat, of the log of an agent or a job and of metadata are
 * on the node of their part: they would be many, and nobody else needs them.
 */
export const HEARD_AMONG_ACTIVE = [
  ...HEARD_EVERYWHERE,
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
