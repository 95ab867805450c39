// Wire shapes of chats and of the requests to them (specification "Chat", "Chat message", facts/chats 3 and 4).
import { type Static, type TSchema, Type as t } from "@sinclair/typebox";
import { BudgetPause } from "../ai/budget.ts";
import { parentChatId, rootChatId, time, uuid } from "../fields.ts";
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

const client_type = named(
  "ChatClientType",
  oneOf(
    ["api", "ui"],
    "What created the chat. `api`: a program. `ui`: a user interface; its chats ask before they change anything in workspaces on the server's machine.",
  ),
);
const PlanMode = named("ChatPlanMode", oneOf(["plan"], "Set while the chat is in plan mode; see `permission_mode`."));
const Awaits = named(
  "ChatAwaits",
  oneOf(
    ["answer", "approval"],
    "Set if the last turn ended with questions for the owner or with a plan. Absent after the next message.",
  ),
);
const Labels = t.Record(t.String(), t.String(), {
  description:
    "Labels that clients set and search for: at most 50, with keys of up to 64 bytes and values of 1 to 256 bytes.",
});
const warnings = (description: string) => t.Array(t.String(), { description });

/** `children` are chats, nested one level deep. */
const chatSchema = <C extends TSchema>(children: C) =>
  t.Object({
    id: uuid(),
    organization_id: uuid(),
    owner_id: uuid(),
    owner_name: t.String({ description: "The owner's display name, or the username if the owner has none." }),
    owner_username: t.String(),
    workspace_id: t.Optional(uuid("The ID of the workspace that the chat works in; absent if it has none.")),
    agent_id: t.Optional(uuid("The ID of the agent that the chat's tools use; absent if the workspace has none.")),
    build_id: t.Optional(uuid("The ID of the latest build of the workspace.")),
    parent_chat_id: parentChatId,
    root_chat_id: rootChatId,
    coding_agent: t.Optional(t.String({ description: "The coding agent of the chat." })),
    agent_options: t.Optional(
      t.Array(AgentOption, {
        description:
          "The options of the coding agent, available once it has started. Only returned for a single chat; update them with `agent_options` of `PATCH /api/v2/chats/{chat}`.",
      }),
    ),
    last_model_config_id: uuid(
      "The ID of the model that the newest message chose. Messages that choose none use it too. All zeros for a coding agent without one.",
    ),
    last_reasoning_effort: t.Optional(
      t.String({ description: "The reasoning effort that the newest message chose; absent for the model's default." }),
    ),
    title: t.String(),
    summary: t.Optional(
      t.String({ description: "A summary of the whole chat, written by a model; absent until there is one." }),
    ),
    last_turn_summary: t.String({
      description: "A short summary of the last turn, written by a model; empty until there is one.",
    }),
    created_at: time(),
    updated_at: time("When the chat last changed. Lists are sorted by it."),
    archived: t.Boolean({ description: "Whether the chat is archived. Archived chats accept no messages." }),
    has_unread: t.Boolean({
      description: "Whether the chat has messages from the assistant that the owner hasn't read.",
    }),
    shared: t.Boolean({ description: "Whether the root chat is shared with users or groups." }),
    queued_for_capacity: t.Boolean({
      description: "Whether the chat waits for capacity. Only returned for a single chat.",
    }),
    client_type,
    plan_mode: t.Optional(PlanMode),
    status: ChatStatus,
    awaits: t.Optional(Awaits),
    pin_order: t.Integer({ description: "The position among the owner's pinned chats; 0 if the chat is not pinned." }),
    labels: Labels,
    permission_mode: PermissionMode,
    permissions: t.Optional({
      ...ChatPermissions,
      description: "The permission rules of the chat; absent if the model may do everything.",
    }),
    mcp_server_ids: t.Array(uuid(), {
      description:
        "The IDs of the organization's MCP servers that the chat chose. Servers that are `force_on` are always used too.",
    }),
    warnings: warnings("Always empty. Current warnings are sent in `status` events of the chat's stream."),
    children,
    files: t.Array(ChatFile, { description: "The files in the chat's messages. Only returned for a single chat." }),
    context: t.Optional({
      ...ChatContext,
      description: "The context that the workspace provides; absent until it is pinned to the chat.",
    }),
    diff_status: t.Optional({
      ...DiffStatus,
      description: "The branch and pull request of the chat; absent until the chat has pushed a branch.",
    }),
    last_error: t.Optional({
      ...ChatError,
      description: "Why the last turn failed; absent unless the status is `error`.",
    }),
    budget_pause: t.Optional({
      ...BudgetPause,
      description: "The budget that must be raised before the turn continues; absent if none is used up.",
    }),
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
  created_by: t.Optional(uuid("The ID of the user who wrote the message; absent for other roles than `user`.")),
  model_config_id: t.Optional(
    uuid("The ID of the model that wrote the message or, for the role `user`, that the message chose."),
  ),
  created_at: time(),
  role: named(
    "ChatMessageRole",
    oneOf(
      ["assistant", "system", "tool", "user"],
      "The author of the message. `system`: the context that the workspace provides. `tool`: results of the assistant's tool calls.",
    ),
  ),
  content: t.Array(ChatMessagePart, { description: "The parts of the message, in order." }),
  usage: t.Optional(
    t.Record(t.String(), t.Integer(), {
      description: "The number of tokens used, by kind. Counters of 0 are omitted.",
    }),
  ),
  cost_micros: t.Optional(
    t.Integer({
      description:
        "The cost of the message's model call in millionths of a US dollar; absent if the model has no price.",
    }),
  ),
});
export type ChatMessage = Static<typeof ChatMessage>;

export const QueuedMessage = namedObject("ChatQueuedMessage", {
  id: t.Integer({ description: "The ID of the queued message. The message in the history gets a different ID." }),
  chat_id: uuid(),
  model_config_id: t.Optional(uuid("The ID of the model that the message chose; absent if it chose none.")),
  created_at: time(),
  content: t.Array(ChatMessagePart, { description: "The parts of the message, in order." }),
});
export type QueuedMessage = Static<typeof QueuedMessage>;

const effort = () =>
  t.Optional(
    t.String({
      maxLength: 64,
      description: "The reasoning effort: none, minimal, low, medium, high, xhigh or max. If empty, the default.",
    }),
  );
const planMode = () =>
  t.Optional(t.String({ maxLength: 64, description: "`plan` enables plan mode; an empty string disables it." }));
const servers = (otherwise: string) =>
  t.Optional(
    t.Union([t.Array(uuid(), { maxItems: 100 }), t.Null()], {
      description: `The IDs of the organization's MCP servers that the chat can use. ${otherwise}`,
    }),
  );
const model = (otherwise: string) => t.Optional(uuid(`The ID of the model. ${otherwise}`));
const KEEPS_SERVERS = "Absent or null keeps those of the chat.";
const permissions = () =>
  t.Optional(
    t.Union([ChatPermissions, t.Null()], {
      description: "What the model may do without approval; null allows everything.",
    }),
  );
const content = () => t.Array(InputPart, { maxItems: 1_000, description: "The parts of the message; at least one." });

export const CreateChat = namedObject("CreateChat", {
  organization_id: uuid("The ID of the organization. You must be a member, and the workspace must belong to it."),
  content: content(),
  coding_agent: t.Optional(
    t.String({
      maxLength: 64,
      description: "The coding agent of the chat, which runs in the chat's workspace. See `GET /api/v2/ai/agents`.",
    }),
  ),
  client_type: t.Optional(
    t.String({ maxLength: 64, description: "The client type: `api` (default) or `ui`. It can't be changed." }),
  ),
  labels: t.Optional(Labels),
  mcp_server_ids: servers("Absent or null chooses the servers that are `default_on`."),
  model_config_id: model("If absent, the model you prefer for new chats, else the default model."),
  permission_mode: t.Optional(PermissionMode),
  permissions: permissions(),
  plan_mode: planMode(),
  reasoning_effort: effort(),
  system_prompt: t.Optional(
    t.String({
      description: "Instructions for this chat, in addition to those of the deployment. It can't be changed later.",
    }),
  ),
  unsafe_dynamic_tools: t.Optional(
    t.Array(
      t.Object({
        name: t.String({ description: "The name of the tool; unique in the chat." }),
        description: t.Optional(t.String({ description: "What the tool does, for the model." })),
        input_schema: t.Optional(t.Unknown({ description: "The JSON Schema of the arguments; default: any object." })),
      }),
      {
        description:
          "Tools that the client runs; at most 250. Calls that the chat's permissions allow are sent as `action_required`.",
      },
    ),
  ),
  workspace_id: t.Optional(
    uuid("The ID of the workspace that the chat works in. If absent, its model can create one."),
  ),
});
export type CreateChat = Static<typeof CreateChat>;

export const CreateMessage = namedObject("CreateChatMessage", {
  content: content(),
  busy_behavior: t.Optional(
    t.String({ maxLength: 64, description: "What to do while the chat is busy: `queue` (default) or `interrupt`." }),
  ),
  mcp_server_ids: servers(KEEPS_SERVERS),
  model_config_id: model("It is also used for later messages. If absent, `last_model_config_id` of the chat."),
  plan_mode: planMode(),
  reasoning_effort: effort(),
});
export type CreateMessage = Static<typeof CreateMessage>;

export const CreatedMessage = namedObject("CreatedChatMessage", {
  queued: t.Boolean({ description: "Whether the message was queued because the chat is busy." }),
  message: t.Optional({ ...ChatMessage, description: "The message in the history; absent if it was queued." }),
  messages: t.Array(ChatMessage, {
    description:
      "All messages that the request added to the history: the message, and results of canceled calls before it.",
  }),
  queued_message: t.Optional({ ...QueuedMessage, description: "The queued message; absent if it was not queued." }),
  warnings: warnings("Always empty."),
});
export type CreatedMessage = Static<typeof CreatedMessage>;

export const EditMessage = namedObject("EditChatMessage", {
  content: content(),
  restore_files: t.Optional(
    t.Boolean({
      description: "Whether to also restore the workspace's files to their state when the message was sent.",
    }),
  ),
  mcp_server_ids: servers(KEEPS_SERVERS),
  model_config_id: model("It is also used for later messages. If absent, the model of the edited message."),
  reasoning_effort: effort(),
});
export type EditMessage = Static<typeof EditMessage>;

export const EditedMessage = namedObject("EditedChatMessage", {
  deleted_message_ids: t.Array(t.Integer(), {
    description: "The IDs of the edited message and of all later messages, which were deleted.",
  }),
  message: { ...ChatMessage, description: "The message that replaces the edited one. It has a new ID." },
  messages: t.Array(ChatMessage, {
    description:
      "All messages that the request added to the history: the message, and results of canceled calls before it.",
  }),
  warnings: warnings("What could not be restored with `restore_files`."),
});
export type EditedMessage = Static<typeof EditedMessage>;

export const MessagePage = namedObject("ChatMessages", {
  messages: t.Array(ChatMessage, {
    description: "The messages, newest first; oldest first if only `after_id` is given.",
  }),
  queued_messages: t.Array(QueuedMessage, { description: "The queued messages. Only returned if no cursor is given." }),
  has_more: t.Boolean({ description: "Whether there are more messages beyond this page." }),
});
export type MessagePage = Static<typeof MessagePage>;

export const UpdateChat = namedObject("UpdateChat", {
  title: t.Optional(lineText({ description: "The title, 1 to 200 characters." })),
  archived: t.Optional(
    t.Boolean({
      description: "Whether the chat and its sub-chats are archived. Only for root chats of which none is busy.",
    }),
  ),
  agent_options: t.Optional(ChosenOptions),
  labels: t.Optional(
    t.Union([Labels, t.Null()], {
      description: "The chat's labels. Replaces all existing labels; null changes nothing.",
    }),
  ),
  permission_mode: t.Optional(PermissionMode),
  permissions: permissions(),
  pin_order: t.Optional(
    t.Integer({ description: "0 unpins the chat. Any other value pins an unpinned chat in the last position." }),
  ),
  plan_mode: planMode(),
  workspace_id: t.Optional(
    t.String({
      format: "uuid",
      description: "The ID of the chat's workspace. All zeros detaches the workspace.",
      "x-zero": "detaches",
    }),
  ),
});
export type UpdateChat = Static<typeof UpdateChat>;

export const ForkChat = namedObject("ForkChat", {
  message_id: t.Optional(
    t.Integer({ description: "The ID of the last message to copy. If absent, all messages are copied." }),
  ),
  title: t.Optional(lineText({ description: "The title of the new chat; default: the title of the original chat." })),
});
export type ForkChat = Static<typeof ForkChat>;

export const CompactChat = named(
  "CompactChat",
  strictObject({
    instructions: t.Optional(t.String({ maxLength: 4_096, description: "Instructions for the summary." })),
  }),
);
export type CompactChat = Static<typeof CompactChat>;

export const ToolResults = namedObject("ToolResults", {
  results: t.Array(
    t.Object({
      tool_call_id: t.String({ maxLength: 1_024, description: "The ID of a waiting call, as in `action_required`." }),
      output: t.Unknown({ description: "The result of the call, as any JSON value." }),
      is_error: t.Optional(t.Boolean({ description: "Whether the call failed; default false." })),
    }),
    { maxItems: 1_000, description: "Exactly one result for each waiting call." },
  ),
});
export type ToolResults = Static<typeof ToolResults>;

export const Prompts = namedObject("ChatPrompts", {
  prompts: t.Array(
    t.Object({
      id: t.Integer({ description: "The ID of the message." }),
      text: t.String({ description: "The text of the message, without files and quoted code." }),
    }),
    { description: "The messages that the user wrote, newest first." },
  ),
});
export type Prompts = Static<typeof Prompts>;
