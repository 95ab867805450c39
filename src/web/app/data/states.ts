// Maps the state of a workspace or a chat to its glyph and label. Pure.
import type { Chat } from "#schema/chats/chat.ts";
import { CHAT_STATUS_LABELS, type ChatStatus } from "#schema/chats/chat-status-words.ts";
import type { WorkspaceSummary } from "#schema/workspaces/workspace-watch.ts";

/** The kinds of state that have a glyph. */
export type StateKind =
  | "running"
  | "busy"
  | "needs"
  | "failed"
  | "unread"
  | "stopped"
  | "done"
  | "dormant"
  | "deleting";

type WorkspaceLike = Pick<WorkspaceSummary, "status" | "dormant_at" | "healthy" | "reason" | "error" | "agents">;

const KINDS: Record<WorkspaceSummary["status"], StateKind> = {
  pending: "busy",
  starting: "busy",
  running: "running",
  stopping: "busy",
  stopped: "stopped",
  failed: "failed",
  canceling: "busy",
  canceled: "failed",
  deleting: "deleting",
  deleted: "done",
};

type WorkspaceStatusLike = Pick<WorkspaceLike, "status" | "dormant_at"> & Partial<Pick<WorkspaceLike, "agents">>;

const isDisconnected = ({ status }: WorkspaceLike["agents"][number]): boolean =>
  status === "disconnected" || status === "timeout";

/** A running workspace is ready only when its agents are connected. */
export const getWorkspaceState = ({ status, dormant_at, agents = [] }: WorkspaceStatusLike): StateKind => {
  if (status === "running" && agents.some(isDisconnected)) return "needs";
  if (status === "running" && agents.some(({ status }) => status === "connecting")) return "busy";
  return dormant_at && status === "stopped" ? "dormant" : KINDS[status];
};

// The same labels as in the API and the command line.
const STATUS_LABELS: Record<WorkspaceSummary["status"], string> = {
  pending: "Pending",
  starting: "Starting",
  running: "Running",
  stopping: "Stopping",
  stopped: "Stopped",
  failed: "Failed",
  canceling: "Canceling",
  canceled: "Canceled",
  deleting: "Deleting",
  deleted: "Deleted",
};

/** Returns the label of the state. */
export const formatStatus = ({ status }: Pick<WorkspaceLike, "status">, kind: StateKind): string =>
  kind === "dormant" ? "Dormant" : STATUS_LABELS[status];

const REASONS: Partial<Record<WorkspaceSummary["reason"], string>> = {
  autostart: "by schedule",
  autostop: "by schedule",
  dormancy: "unused",
  autodelete: "unused",
};

/** Explains the state: why the workspace stopped, or what an agent is waiting for. Empty if there is nothing to explain. */
export const explainState = (workspace: WorkspaceLike): string => {
  const { status, error, agents, reason } = workspace;
  if (error && (status === "failed" || status === "canceled")) return error;
  if (status === "stopped" || status === "stopping" || status === "starting") return REASONS[reason] ?? "";
  if (status !== "running") return "";
  const [agent] = agents.filter(({ healthy }) => !healthy);
  if (agent?.status === "disconnected") return `agent ${agent.name} disconnected`;
  if (agent?.status === "timeout") return `agent ${agent.name} not connected`;
  if (agent?.lifecycle_state === "start_error") return "startup script failed";
  if (agents.some(({ status }) => status === "connecting")) return "agent connecting";
  if (agents.some(({ lifecycle_state }) => lifecycle_state === "starting")) return "startup script running";
  return "";
};

export const isTransitional = ({ status }: Pick<WorkspaceLike, "status">): boolean =>
  status === "pending" || KINDS[status] === "busy" || status === "deleting";

export const canStart = ({ status }: Pick<WorkspaceLike, "status">): boolean =>
  status === "stopped" || status === "failed" || status === "canceled";

export const canStop = ({ status }: Pick<WorkspaceLike, "status">): boolean =>
  status === "running" || status === "failed";

const CHAT_KINDS: Readonly<Record<ChatStatus, StateKind>> = {
  waiting: "done",
  running: "busy",
  interrupting: "busy",
  requires_action: "needs",
  error: "failed",
};

/** Returns the state of a chat, as lists show it. */
export const getChatState = ({
  status,
  has_unread,
  awaits,
}: Pick<Chat, "status" | "has_unread" | "awaits">): { kind: StateKind; words: string } => {
  if (awaits === "answer") return { kind: "needs", words: "waiting for your answer" };
  if (awaits === "approval") return { kind: "needs", words: "waiting for your approval" };
  if (status === "waiting" && has_unread) return { kind: "unread", words: "unread answer" };
  return { kind: CHAT_KINDS[status], words: CHAT_STATUS_LABELS[status] };
};
