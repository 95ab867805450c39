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
const userAgent = t.String({ description: "The user agent of the client; empty if unknown." });
const MaybeUser = t.Union([User, t.Null()], { description: "The user who connected; null if unknown." });

export const ConnectionWebInfo = namedObject("ConnectionWebInfo", {
  user: MaybeUser,
  user_agent: userAgent,
  slug_or_port: t.String({ description: "The slug of the app, or the port." }),
  status_code: t.Integer({ description: "The status code of the first response; 0 if unknown." }),
});

export const ConnectionSshInfo = namedObject("ConnectionSSHInfo", {
  connection_id: Uuid("The agent's ID for the connection."),
  disconnect_time: t.Optional(Time("When the connection ended; absent while it is open.")),
  disconnect_reason: t.Optional(
    t.String({ description: "Why the connection ended; absent while it is open, and empty if no reason was given." }),
  ),
  exit_code: t.Optional(
    t.Integer({ description: "The exit code that the agent reported; absent while the connection is open." }),
  ),
});

export const ConnectionLog = namedObject("ConnectionLog", {
  id: Uuid("The ID of the log entry."),
  connect_time: Time("When the connection began."),
  disconnect_time: t.Union([Time("When it ended."), t.Null()], {
    description: "When the connection ended; null while it is open.",
  }),
  disconnect_reason: t.String({
    description: "Why the connection ended; empty while it is open or if no reason was given.",
  }),
  type: oneOf(CONNECTION_TYPES, "How the client connected. `reconnecting_pty`: with the web terminal."),
  organization: LoggedOrganization,
  workspace_id: Uuid("The ID of the workspace."),
  workspace_name: t.String({ description: "The name of the workspace when the connection began." }),
  workspace_deleted: t.Boolean({ description: "Whether the workspace has since been deleted." }),
  workspace_owner_id: Uuid("The ID of the workspace's owner."),
  workspace_owner_username: t.String({ description: "The username of the workspace's owner." }),
  agent_id: Uuid("The ID of the agent."),
  agent_name: t.String(),
  ip: t.Union([t.String(), t.Null()], {
    description: "The client's IP address, or its address in the private network if that is all that is known.",
  }),
  user: MaybeUser,
  user_agent: userAgent,
  target: t.String({ description: "The slug of the app, the port, or the name of the editor." }),
  web_info: t.Optional({
    ...ConnectionWebInfo,
    description: "Details of the types `workspace_app` and `port_forwarding`; absent for others.",
  }),
  ssh_info: t.Optional({
    ...ConnectionSshInfo,
    description: "Details of all other types; absent for `workspace_app` and `port_forwarding`.",
  }),
});
export type ConnectionLog = Static<typeof ConnectionLog>;

export const ConnectionLogs = namedObject("ConnectionLogs", {
  connection_logs: t.Array(ConnectionLog, { description: "The entries, newest first." }),
  count: t.Integer({
    description: "The number of matching entries. A value of `count_cap` + 1 means that there are more.",
  }),
  count_cap: t.Integer({ description: "The maximum number of entries that are counted." }),
});

/** Retention period of entries in days; 0 means forever. */
export const ConnectionRetention = namedObject("ConnectionRetention", {
  days: t.Integer({
    minimum: 0,
    maximum: 36_500,
    description: "How many days entries are kept, 0 keeps them forever; default 90.",
  }),
});
export type ConnectionRetention = Static<typeof ConnectionRetention>;
