// One connection in the list: user, type and workspace; below it the address and duration.
import type { ConnectionLog } from "#schema/connections.ts";
import { formatDuration } from "../../parts/format-time.ts";
import { State } from "../../parts/state.tsx";
import { now, Time } from "../../parts/time.tsx";

export const Entry = ({ entry }: { entry: ConnectionLog }) => {
  const isOpen = entry.disconnect_time === null;
  const workspace = `${entry.workspace_owner_username}/${entry.workspace_name}`;
  return (
    <li class="item">
      <State kind={isOpen ? "running" : "stopped"}>
        <span class="clip">
          <b class="med">{entry.user?.username ?? "Anonymous client"}</b>{" "}
          <span class="mut">{formatProtocol(entry)}</span>{" "}
          {entry.workspace_deleted ? workspace : <a href={`/workspaces/${entry.workspace_id}`}>{workspace}</a>}
        </span>
      </State>
      <span class="line small dim">
        <Time at={entry.connect_time} />
      </span>
      <span class="sub">
        {[
          isOpen ? "open" : "",
          formatLength(entry),
          entry.ip ?? "",
          entry.agent_name,
          entry.user_agent,
          formatEnd(entry),
        ]
          .filter(Boolean)
          .join(", ")}
      </span>
    </li>
  );
};

const CONNECTION_LABELS: Readonly<Record<ConnectionLog["type"], string>> = {
  ssh: "by SSH to",
  vscode: "by VS Code to",
  jetbrains: "by JetBrains to",
  reconnecting_pty: "by terminal to",
  workspace_app: "in the app",
  port_forwarding: "on port",
};

const formatProtocol = ({ type, target }: ConnectionLog): string => {
  if (type === "workspace_app" || type === "port_forwarding") return `${CONNECTION_LABELS[type]} ${target} of`;
  return target === "" ? CONNECTION_LABELS[type] : `by ${target} to`;
};

const formatLength = ({ connect_time, disconnect_time }: ConnectionLog): string => {
  const end = disconnect_time === null ? now.value : Date.parse(disconnect_time);
  return formatDuration(Math.max(0, end - Date.parse(connect_time)));
};

const formatEnd = ({ disconnect_reason, ssh_info, web_info }: ConnectionLog): string => {
  const code = ssh_info?.exit_code ?? 0;
  const status = web_info?.status_code ?? 0;
  const message = status >= 400 ? `status ${status}` : code === 0 ? "" : `code ${code}`;
  return [message, disconnect_reason].filter(Boolean).join(", ");
};
