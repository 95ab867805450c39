// Presents a connection log entry. Pure.
import { toRfc3339 } from "#base/clock.ts";
import type { ListedConnection } from "#db/connections/search.ts";
import { type ConnectionLog, WEB_TYPES } from "#schema/connections.ts";
import { presentUser } from "../users/present.ts";

export const presentConnection = (shown: ListedConnection): ConnectionLog => {
  const { entry, memberships, organization, owner, workspace } = shown;
  const user = shown.user ? presentUser(shown.user, memberships) : null;
  const disconnect_time = entry.disconnect_time === null ? null : toRfc3339(entry.disconnect_time);
  const { disconnect_reason, status_code, user_agent, target } = entry;
  const isWeb = WEB_TYPES.includes(entry.type);
  return {
    id: entry.id,
    connect_time: toRfc3339(entry.connect_time),
    disconnect_time,
    disconnect_reason,
    type: entry.type,
    organization: organization ?? { id: entry.organization_id, name: "", display_name: "", icon: "" },
    workspace_id: entry.workspace_id,
    workspace_name: entry.workspace_name,
    workspace_deleted: workspace?.deleted ?? true,
    workspace_owner_id: entry.owner_id,
    workspace_owner_username: owner?.username ?? "",
    agent_id: entry.agent_id,
    agent_name: entry.agent_name,
    ip: entry.ip,
    user,
    user_agent,
    target,
    ...(isWeb && { web_info: { user, user_agent, slug_or_port: target, status_code: status_code ?? 0 } }),
    ...(!isWeb && {
      ssh_info: {
        connection_id: entry.connection_id ?? entry.id,
        ...(disconnect_time !== null && { disconnect_time, disconnect_reason }),
        ...(status_code !== null && { exit_code: status_code }),
      },
    }),
  };
};
