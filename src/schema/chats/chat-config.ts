// Wire shapes of the chat settings: those of the deployment and those of one user (specification, "config"; facts/chats 4.15).
import { type TSchema, Type as t } from "@sinclair/typebox";
import { namedObject } from "../shape-names.ts";
import { ChatPermissions } from "./chat-permissions.ts";

/** Maximum bytes of a prompt after cleaning. */
export const PROMPT_BYTES = 131_072;

const prompt = (description: string) => t.String({ description: `${description} At most 128 KiB.` });
const days = (description: string) => t.Integer({ description: `${description} At most 3650.` });
const forced_by_deployment = t.Boolean({
  description: "Whether the server's settings force recording for every chat.",
});

/** Bodies with one member each, under its name. */
export const ChatConfig = {
  auto_archive_days: days("The number of days without messages after which a chat is archived; 0 means never."),
  debug_retention_days: days("The number of days after which recorded model calls are deleted; 0 means never."),
  retention_days: days("The number of days after which archived chats are deleted; 0 means never."),
  workspace_ttl_ms: t.Integer({
    description:
      "The time to live of workspaces that chats create, in milliseconds: one minute to 30 days. 0 applies the template's value.",
  }),
  plan_mode_instructions: prompt("Instructions for every chat in plan mode."),
  custom_prompt: prompt("Instructions for all chats of this user."),
  system_prompt: prompt("Instructions for every chat of this deployment."),
  include_default_system_prompt: t.Boolean({ description: "Whether the default system prompt precedes this one." }),
  default_system_prompt: t.String({ description: "The text of the default system prompt." }),
  allow_users: t.Boolean({ description: "Whether users can enable this for themselves." }),
  debug_logging_enabled: t.Boolean({ description: "Whether this user's model calls are recorded." }),
  user_toggle_allowed: t.Boolean({ description: "Whether the user can change this setting." }),
  permissions: t.Union([ChatPermissions, t.Null()], {
    description: "The permissions of new chats for users who haven't set their own; null allows everything.",
  }),
  forced_by_deployment,
} satisfies Record<string, TSchema>;

export const CompactionThreshold = namedObject("CompactionThreshold", {
  model_config_id: t.String({ format: "uuid", description: "The ID of the model that the threshold applies to." }),
  threshold_percent: t.Integer({
    description:
      "The percentage of the context window at which the history is compacted, 0 to 100. 100 disables compaction.",
  }),
});
