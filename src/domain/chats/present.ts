// Presents chats, messages, queued messages and parts. All internal data is stripped here.
import type { Message, QueueItem } from "#actors/chat/machine/decision.ts";
import { toOptionalRfc3339, toRfc3339 } from "#base/clock.ts";
import type { ChatDiffView } from "#db/chats/diffs.ts";
import type { ChatFileRow } from "#db/chats/files.ts";
import type { ChatView } from "#db/chats/views.ts";
import type { AgentOption, AgentSessionState } from "#schema/chats/agent-option.ts";
import type { Chat, ChatMessage, ChildChat, QueuedMessage } from "#schema/chats/chat.ts";
import type { ChatContext, StoredResource } from "#schema/chats/chat-context.ts";
import type { DiffStatus } from "#schema/chats/chat-diff.ts";
import { type ChatMessagePart, type MessagePart, presentPart } from "#schema/chats/chat-part.ts";
import { toChatStatus } from "#schema/chats/chat-status.ts";
import { toPermissionMode } from "#src/tools/permission-mode.ts";

/** Omits members that are null or an empty string. */
const omitEmpty = <T extends Record<string, unknown>>(members: T): { [K in keyof T]?: NonNullable<T[K]> } =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null && value !== "")) as never;

/** Presents a chat without its children. `queued_for_capacity` is set only when a single chat is read. */
const presentChild = (
  { chat, build_id, agent_id, owner_name, owner_username, diff, shared, context }: ChatView,
  queued_for_capacity: boolean,
  files: readonly ChatFileRow[] = [],
): ChildChat => ({
  id: chat.id,
  organization_id: chat.organization_id,
  owner_id: chat.owner_id,
  owner_name: owner_name || owner_username,
  owner_username,
  ...omitEmpty({
    workspace_id: chat.workspace_id,
    agent_id,
    build_id,
    parent_chat_id: chat.parent_chat_id,
    root_chat_id: chat.root_chat_id,
    coding_agent: chat.coding_agent,
    last_reasoning_effort: chat.last_reasoning_effort,
    summary: chat.summary,
    plan_mode: chat.plan_mode,
    permissions: chat.permissions,
    last_error: chat.last_error,
    budget_pause: chat.budget_pause,
    diff_status: diff ? presentDiffStatus(chat.id, diff) : null,
  }),
  ...(context ? { context: presentContext(context) } : {}),
  ...presentQuestion(chat),
  permission_mode: toPermissionMode(chat),
  last_model_config_id: chat.last_model_config_id,
  title: chat.title,
  last_turn_summary: chat.last_turn_summary,
  created_at: toRfc3339(chat.created_at),
  updated_at: toRfc3339(chat.updated_at),
  archived: chat.archived,
  has_unread: chat.last_assistant_id > chat.read_cursor,
  shared,
  queued_for_capacity,
  client_type: chat.client_type,
  status: toChatStatus(chat.status),
  pin_order: chat.pin_order,
  labels: chat.labels,
  mcp_server_ids: chat.mcp_server_ids,
  warnings: [],
  children: [],
  files: files.map((file) => ({
    id: file.id,
    organization_id: file.organization_id,
    owner_id: file.owner_id,
    created_at: toRfc3339(file.created_at),
    mime_type: file.media_type,
    name: file.name,
    size_bytes: file.size,
  })),
});

/** A turn that ends with a question waits for a person, whose reply begins another turn. */
const presentQuestion = ({ status, asked_by }: ChatView["chat"]): Pick<ChildChat, "awaits"> => {
  if (status !== "waiting" || asked_by === null) return {};
  return { awaits: asked_by === "propose_plan" ? "approval" : "answer" };
};

/** Presents a root chat with the children in the same archive state. */
export const presentChat = (
  view: ChatView,
  children: readonly ChatView[],
  queuedForCapacity = false,
  files: readonly ChatFileRow[] = [],
): Chat => ({
  ...presentChild(view, queuedForCapacity, files),
  children: children
    .filter(({ chat }) => chat.parent_chat_id === view.chat.id && chat.archived === view.chat.archived)
    .map((child) => presentChild(child, false)),
});

/** Options chosen since the agent's last message apply from the next one on, if the agent still offers them. */
export const presentAgentOptions = (session: AgentSessionState | null): AgentOption[] =>
  (session?.options ?? []).map((option) => {
    const chosen = option.choices.find(({ id }) => id === session?.chosen?.[option.id]);
    return chosen ? { ...option, current: chosen.id } : option;
  });

/** Resources are included only when a single chat is read. */
export const presentContext = (
  { error, dirty_since }: NonNullable<ChatView["context"]>,
  resources: readonly StoredResource[] = [],
): ChatContext => ({
  dirty: dirty_since !== null,
  ...(dirty_since === null ? {} : { dirty_since: toRfc3339(dirty_since) }),
  error,
  resources: resources.map(({ body: _, truncated: __, tools, ...shown }) => ({
    ...shown,
    ...(tools
      ? { tools: tools.map(({ name, description }) => ({ name: removePrefix(name, shown.source), description })) }
      : {}),
  })),
});

const removePrefix = (name: string, server: string): string =>
  name.startsWith(`${server}__`) ? name.slice(server.length + 2) : name;

type PresentableMessage = Omit<Message, "usage" | "revision"> & {
  readonly usage: Message["usage"] | Record<string, number>;
};

/** `compat`: for a client that signs in under the upstream names. */
export const presentMessage = (chat_id: string, message: PresentableMessage, compat: boolean): ChatMessage => {
  const { id, role, content, created_by, model_config_id, created_at } = message;
  const { cost_micros, ...counters } = (message.usage ?? {}) as Record<string, number>;
  const usage = Object.entries(counters).filter(([, count]) => count > 0);
  return {
    id,
    chat_id,
    ...omitEmpty({ created_by, model_config_id }),
    created_at: toRfc3339(created_at),
    role,
    content: presentContent(content, compat),
    ...(usage.length > 0 ? { usage: Object.fromEntries(usage) } : {}),
    ...(cost_micros === undefined ? {} : { cost_micros }),
  };
};

export const presentQueued = (chat_id: string, queued: QueueItem, compat: boolean): QueuedMessage => {
  const { id, content, model_config_id, created_at } = queued;
  return {
    id,
    chat_id,
    ...omitEmpty({ model_config_id }),
    created_at: toRfc3339(created_at),
    content: presentContent(content, compat),
  };
};

/** Hides what hooks add for the model from everyone else (rule HK-10). */
const presentContent = (content: readonly MessagePart[], compat: boolean): ChatMessagePart[] =>
  content.filter(({ type }) => type !== "hook-context").map((part) => presentPart(part, compat));

const presentDiffStatus = (chat_id: string, diff: ChatDiffView): DiffStatus => ({
  chat_id,
  ...(diff.url ? { url: diff.url } : {}),
  ...(diff.pr_state ? { pull_request_state: diff.pr_state } : {}),
  pull_request_title: diff.pr_title,
  pull_request_draft: diff.pr_draft,
  ...(diff.pr_number === null ? {} : { pr_number: diff.pr_number }),
  changes_requested: diff.changes_requested,
  approved: diff.approved,
  reviewer_count: diff.reviewer_count,
  additions: diff.additions,
  deletions: diff.deletions,
  changed_files: diff.changed_files,
  commits: diff.commits,
  ...(diff.author_login ? { author_login: diff.author_login } : {}),
  ...(diff.author_avatar_url ? { author_avatar_url: diff.author_avatar_url } : {}),
  ...(diff.base_branch ? { base_branch: diff.base_branch } : {}),
  head_branch: diff.head_branch || diff.branch,
  ...(diff.refreshed_at === null ? {} : { refreshed_at: toOptionalRfc3339(diff.refreshed_at) }),
  stale_at: toRfc3339(diff.stale_at),
});
