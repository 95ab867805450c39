// Wire shapes of the chat settings: those of the deployment and those of one user (specification, "config"; facts/chats 4.15).
import { type TSchema, Type as t } from "@sinclair/typebox";
import { namedObject } from "../shape-names.ts";
import { ChatPermissions } from "./chat-permissions.ts";

/** Maximum bytes of a prompt after cleaning. */
export const PROMPT_BYTES = 131_072;

const prompt = (description: string) => t.String({ description: `${description} At most 128 KiB.` });
const days = (description: string) => t.Integer({ description: `${description} 0 to 3650.` });
const forced_by_deployment = t.Boolean({ description: "Set by the server's settings: every chat is recorded." });

/** Bodies with one member each, under its name. */
export const ChatConfig = {
  auto_archive_days: days("Chats in which nothing was said for so many days are archived; 0: never."),
  debug_retention_days: days("Recorded model calls are deleted after so many days; 0: never."),
  retention_days: days("Archived chats are deleted after so many days; 0: never."),
  workspace_ttl_ms: t.Integer({
    description:
      "Time to live of workspaces that chats make, in milliseconds: one minute to 30 days; 0: as their template says.",
  }),
  plan_mode_instructions: prompt("Instructions for every chat in plan mode."),
  custom_prompt: prompt("Instructions for all chats of this user."),
  system_prompt: prompt("Instructions for every chat of this deployment."),
  include_default_system_prompt: t.Boolean({ description: "The default system prompt precedes it." }),
  default_system_prompt: t.String({ description: "The default system prompt." }),
  allow_users: t.Boolean({ description: "Users can enable this for themselves." }),
  debug_logging_enabled: t.Boolean({ description: "This user's model calls are recorded." }),
  user_toggle_allowed: t.Boolean({ description: "The user can change it." }),
  permissions: t.Union([ChatPermissions, t.Null()], {
    description: "Applies to new chats of users without permissions of their own; null: everything is allowed.",
  }),
  forced_by_deployment,
} satisfies Record<string, TSchema>;

export const CompactionThreshold = namedObject("CompactionThreshold", {
  model_config_id: t.String({ format: "uuid" }),
  threshold_percent: t.Integer({
    description: "Percentage of the context at which the history is compacted: 0 to 100; 100: never.",
  }),
});
