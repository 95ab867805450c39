// Wire shapes of log sources, from which an agent's log lines come (specification "Log source", facts/platform 4).
import { type Static, Type as t } from "@sinclair/typebox";
import { iconUrl } from "../fields.ts";
import { namedObject } from "../shape-names.ts";

/** Lines without a source belong to this one, which is created on first use. */
export const DEFAULT_SOURCE = {
  id: "3b579bf4-1ed8-4b99-87a8-e9a1e3410410",
  display_name: "External",
  icon: "/emojis/1f310.png",
} as const;

export const LogSource = namedObject("LogSource", {
  id: t.String({ format: "uuid", description: "The ID of the log source, chosen by the agent and unique within it." }),
  workspace_agent_id: t.String({ format: "uuid" }),
  display_name: t.String({ description: "The display name, such as that of the script; may be empty." }),
  icon: iconUrl,
  created_at: t.String({ format: "date-time" }),
});
export type LogSource = Static<typeof LogSource>;

export const CreateLogSource = namedObject("CreateLogSource", {
  id: t.String({ format: "uuid", description: "The ID of the log source, chosen by the agent." }),
  display_name: t.Optional(
    t.String({ maxLength: 127, description: "The display name of the log source; may be empty." }),
  ),
  icon: t.Optional(
    t.String({ maxLength: 1024, description: "The icon of the log source: a URL, a path on this server, or empty." }),
  ),
});
export type CreateLogSource = Static<typeof CreateLogSource>;
