// Wire shapes of chats and of the requests to them (specification "Chat", "Chat message", facts/chats 3 and 4).
import { type Static, type TSchema, Type as t } from "@sinclair/typebox";
import { BudgetPause } from "../ai/budget.ts";
import { time, uuid } from "../fields.ts";
import { oneOf } from "../one-of.ts";
import { named, namedObject } from "../shape-names.ts";
import { strictObject } from "../strict.ts";
import { lineText } from "../text.ts";
import { AgentOption, ChosenOptions } from "./agent-option.ts";
import { ChatContext } from "./chat-context.ts";
import { DiffStatus } from "./chat-diff.ts";
import { ChatError } from "./chat-error.ts";
import { ChatFile } from "./chat-file.ts";
import { ChatMessagePart, InputPart } from "./chat-part.ts";
import { ChatPermissions, PermissionMode } from "./chat-permissions.ts";
import { ChatStatus } from "./chat-status.ts";

const absent = <T extends TSchema>(schema: T) => t.Optional(schema);
const client_type = named("ChatClientType", oneOf(["api", "ui"]));
const PlanMode = named("ChatPlanMode", oneOf(["plan"]));
const Awaits = named(
  "ChatAwaits",
  oneOf(
    ["answer", "approval"],
    "Set if the last turn ended with questions for the owner or with a plan. Absent after the next message.",
  ),
);
const Labels = t.Record(t.String(), t.String());

/** `children` are chats, nested one level deep. */
const chatSchema = <C extends TSchema>(children: C) =>
  t.Object({
    id: uuid(),
    organization_id: uuid(),
    owner_id: uuid(),
    owner_name: t.String(),
    owner_username: t.String(),
    workspace_id: absent(uuid()),
    agent_id: absent(uuid()),
    build_id: absent(uuid()),
    parent_chat_id: absent(uuid()),
    root_chat_id: absent(uuid()),
    coding_agent: absent(t.String({ description: "The coding agent of the chat." })),
    agent_options: absent(
      t.Array(AgentOption, {
        description:
          "The options of the coding agent, available once it has started. Only returned for a single chat; update them with `agent_options` of `PATCH /api/v2/chats/{chat}`.",
      }),
    ),
    last_model_config_id: uuid(),
    last_reasoning_effort: absent(t.String()),
    title: t.String(),
    summary: absent(t.String()),
    last_turn_summary: t.String(),
    created_at: time(),
    updated_at: time(),
    archived: t.Boolean(),
    has_unread: t.Boolean({
      description: "Whether the chat has messages from the assistant that the owner hasn't read.",
    }),
    shared: t.Boolean(),
    queued_for_capacity: t.Boolean({
      description: "Whether the chat waits for capacity. Only returned for a single chat.",
    }),
    client_type,
    plan_mode: absent(PlanMode),
    status: ChatStatus,
    awaits: absent(Awaits),
    pin_order: t.Integer({ description: "The position among the owner's pinned chats; 0 if the chat is not pinned." }),
    labels: Labels,
    permission_mode: PermissionMode,
    permissions: absent(ChatPermissions),
    mcp_server_ids: t.Array(uuid()),
    warnings: t.Array(t.String()),
    children,
    files: t.Array(ChatFile),
    context: absent(ChatContext),
    diff_status: absent(DiffStatus),
    last_error: absent(ChatError),
    budget_pause: absent(BudgetPause),
  });

const ChildChat = named("ChildChat", chatSchema(t.Array(t.Unknown(), { maxItems: 0, description: "Always empty." })));
export type ChildChat = Static<typeof ChildChat>;
export const Chat = named("Chat", chatSchema(t.Array(ChildChat, { description: "The sub-chats of a root chat." })));
export type Chat = Static<typeof Chat>;

export const ChatMessage = namedObject("ChatMessage", {
  id: t.Integer({
    description:
      "The message's ID, which increases with each message. Used as the cursor in `after_id` and `before_id`.",
  }),
  chat_id: uuid(),
  created_by: absent(uuid()),
  model_config_id: absent(uuid()),
  created_at: time(),
  role: named("ChatMessageRole", oneOf(["assistant", "system", "tool", "user"])),
  content: t.Array(ChatMessagePart),
  usage: absent(
    t.Record(t.String(), t.Integer(), {
      description: "The number of tokens used, by kind. Counters of 0 are omitted.",
    }),
  ),
  cost_micros: absent(
    t.Integer({
      description:
        "The cost of the message's model call in millionths of a US dollar; absent if the model has no price.",
    }),
  ),
});
export type ChatMessage = Static<typeof ChatMessage>;

export const QueuedMessage = namedObject("ChatQueuedMessage", {
  id: t.Integer(),
  chat_id: uuid(),
  model_config_id: absent(uuid()),
  created_at: time(),
  content: t.Array(ChatMessagePart),
});
export type QueuedMessage = Static<typeof QueuedMessage>;

const effort = () =>
  absent(
    t.String({
      maxLength: 64,
      description: "The reasoning effort: none, minimal, low, medium, high, xhigh or max. If empty, the default.",
    }),
  );
const planMode = () =>
  absent(t.String({ maxLength: 64, description: "`plan` enables plan mode; an empty string disables it." }));
const servers = () => absent(t.Union([t.Array(uuid(), { maxItems: 100 }), t.Null()]));
const permissions = () =>
  absent(
    t.Union([ChatPermissions, t.Null()], {
      description: "What the model may do without approval; null allows everything.",
    }),
  );
const content = () => t.Array(InputPart, { maxItems: 1_000 });

export const CreateChat = namedObject("CreateChat", {
  organization_id: uuid(),
  content: content(),
  coding_agent: absent(
    t.String({
      maxLength: 64,
      description: "The coding agent of the chat, which runs in the chat's workspace. See `GET /api/v2/ai/agents`.",
    }),
  ),
  client_type: absent(
    t.String({ maxLength: 64, description: "The client type: `api` (default) or `ui`. It can't be changed." }),
  ),
  labels: absent(Labels),
  mcp_server_ids: servers(),
  model_config_id: absent(uuid()),
  permission_mode: absent(PermissionMode),
  permissions: permissions(),
  plan_mode: planMode(),
  reasoning_effort: effort(),
  system_prompt: absent(t.String()),
  unsafe_dynamic_tools: absent(
    t.Array(t.Object({ name: t.String(), description: absent(t.String()), input_schema: absent(t.Unknown()) }), {
      description: "Tools that the client runs. Calls that the chat's permissions allow are sent as `action_required`.",
    }),
  ),
  workspace_id: absent(uuid()),
});
export type CreateChat = Static<typeof CreateChat>;

export const CreateMessage = namedObject("CreateChatMessage", {
  content: content(),
  busy_behavior: absent(
    t.String({ maxLength: 64, description: "What to do while the chat is busy: `queue` (default) or `interrupt`." }),
  ),
  mcp_server_ids: servers(),
  model_config_id: absent(uuid()),
  plan_mode: planMode(),
  reasoning_effort: effort(),
});
export type CreateMessage = Static<typeof CreateMessage>;

export const CreatedMessage = namedObject("CreatedChatMessage", {
  queued: t.Boolean(),
  message: absent(ChatMessage),
  messages: t.Array(ChatMessage),
  queued_message: absent(QueuedMessage),
  warnings: t.Array(t.String()),
});
export type CreatedMessage = Static<typeof CreatedMessage>;

export const EditMessage = namedObject("EditChatMessage", {
  content: content(),
  restore_files: absent(
    t.Boolean({
      description: "Whether to also restore the workspace's files to their state when the message was sent.",
    }),
  ),
  mcp_server_ids: servers(),
  model_config_id: absent(uuid()),
  reasoning_effort: effort(),
});
export type EditMessage = Static<typeof EditMessage>;

export const EditedMessage = namedObject("EditedChatMessage", {
  deleted_message_ids: t.Array(t.Integer()),
  message: ChatMessage,
  messages: t.Array(ChatMessage),
  warnings: t.Array(t.String()),
});
export type EditedMessage = Static<typeof EditedMessage>;

export const MessagePage = namedObject("ChatMessages", {
  messages: t.Array(ChatMessage),
  queued_messages: t.Array(QueuedMessage, { description: "The queued messages. Only returned if no cursor is given." }),
  has_more: t.Boolean(),
});
export type MessagePage = Static<typeof MessagePage>;

export const UpdateChat = namedObject("UpdateChat", {
  title: absent(lineText()),
  archived: absent(t.Boolean()),
  agent_options: absent(ChosenOptions),
  labels: absent(
    t.Union([Labels, t.Null()], {
      description: "The chat's labels. Replaces all existing labels; null changes nothing.",
    }),
  ),
  permission_mode: absent(PermissionMode),
  permissions: permissions(),
  pin_order: absent(
    t.Integer({ description: "0 unpins the chat. Any other value pins an unpinned chat in the last position." }),
  ),
  plan_mode: planMode(),
  workspace_id: absent(
    t.String({
      format: "uuid",
      description: "The ID of the chat's workspace. All zeros detaches the workspace.",
      "x-zero": "detaches",
    }),
  ),
});
export type UpdateChat = Static<typeof UpdateChat>;

export const ForkChat = namedObject("ForkChat", {
  message_id: absent(
    t.Integer({ description: "The ID of the last message to copy. If absent, all messages are copied." }),
  ),
  title: absent(lineText({ description: "The title of the new chat; default: the title of the original chat." })),
});
export type ForkChat = Static<typeof ForkChat>;

export const CompactChat = named(
  "CompactChat",
  strictObject({
    instructions: absent(t.String({ maxLength: 4_096, description: "Instructions for the summary." })),
  }),
);
export type CompactChat = Static<typeof CompactChat>;

export const ToolResults = namedObject("ToolResults", {
  results: t.Array(
    t.Object({
      tool_call_id: t.String({ maxLength: 1_024 }),
      output: t.Unknown({ description: "The result of the call, as any JSON value." }),
      is_error: absent(t.Boolean()),
    }),
    { maxItems: 1_000 },
  ),
});
export type ToolResults = Static<typeof ToolResults>;

export const Prompts = namedObject("ChatPrompts", {
  prompts: t.Array(t.Object({ id: t.Integer(), text: t.String() })),
});
export type Prompts = Static<typeof Prompts>;
