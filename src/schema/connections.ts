// Wire shapes of the connection log. Upstream clients read `web_info` and `ssh_info`.
import { type Static, Type as t } from "@sinclair/typebox";
import { LoggedOrganization } from "./audit.ts";
import { oneOf } from "./one-of.ts";
import { namedObject } from "./shape-names.ts";
import { User } from "./users/user.ts";

export const CONNECTION_TYPES = [
  ...(["ssh", "vscode", "jetbrains", "reconnecting_pty", "workspace_app", "port_forwarding"] as const),
] as const;
export type ConnectionType = (typeof CONNECTION_TYPES)[number];

/** Connections made by browsers. */
export const WEB_TYPES: readonly ConnectionType[] = ["workspace_app", "port_forwarding"];

export const CONNECTION_STATUSES = ["ongoing", "completed"] as const;

const Uuid = (description: string) => t.String({ format: "uuid", description });
const Time = (description: string) => t.String({ format: "date-time", description });
const MaybeUser = t.Union([User, t.Null()], { description: "Null if the person is unknown." });

export const ConnectionWebInfo = namedObject("ConnectionWebInfo", {
  user: MaybeUser,
  user_agent: t.String(),
  slug_or_port: t.String(),
  status_code: t.Integer({ description: "Of the first answer; 0 when it is not known." }),
});

export const ConnectionSshInfo = namedObject("ConnectionSSHInfo", {
  connection_id: Uuid("By what the agent calls it."),
  disconnect_time: t.Optional(Time("Absent while it is open.")),
  disconnect_reason: t.Optional(t.String()),
  exit_code: t.Optional(t.Integer()),
});

export const ConnectionLog = namedObject("ConnectionLog", {
  id: Uuid("The entry."),
  connect_time: Time("When it began."),
  disconnect_time: t.Union([Time("When it ended."), t.Null()], { description: "Null while it is open." }),
  disconnect_reason: t.String({ description: "Why it ended; empty while it is open or if no reason was given." }),
  type: oneOf(CONNECTION_TYPES, "How."),
  organization: LoggedOrganization,
  workspace_id: Uuid("The workspace."),
  workspace_name: t.String({ description: "Its name at the time." }),
  workspace_deleted: t.Boolean({ description: "Whether the workspace has since been deleted." }),
  workspace_owner_id: Uuid("Owner of the workspace."),
  workspace_owner_username: t.String(),
  agent_id: Uuid("The agent."),
  agent_name: t.String(),
  ip: t.Union([t.String(), t.Null()], {
    description: "Of the client; of the private network when its own is not known.",
  }),
  user: MaybeUser,
  user_agent: t.String({ description: "The client's name; empty if unknown." }),
  target: t.String({ description: "The app's slug, the port, or the name of an editor." }),
  web_info: t.Optional(ConnectionWebInfo),
  ssh_info: t.Optional(ConnectionSshInfo),
});
export type ConnectionLog = Static<typeof ConnectionLog>;

export const ConnectionLogs = namedObject("ConnectionLogs", {
  connection_logs: t.Array(ConnectionLog),
  count: t.Integer({ description: "All that match; one above `count_cap` means more than that." }),
  count_cap: t.Integer({ description: "Up to the limit of the count." }),
});

/** Retention period of entries in days; 0 means forever. */
export const ConnectionRetention = namedObject("ConnectionRetention", {
  days: t.Integer({ minimum: 0, maximum: 36_500, description: "Default 90." }),
});
export type ConnectionRetention = Static<typeof ConnectionRetention>;
