// Workspaces that are processes on the server's own machine: when they are offered, to whom, and as which user they run.
import { duration, flag, matching } from "./kinds.ts";
import { optional, setting } from "./setting.ts";

export const LOCAL_SETTINGS = {
  allow_local_provisioner_off_loopback: setting(flag, false, {
    group: "Workspaces",
    help: "Local workspaces run on the server's own machine, as its own user unless local_workspace_user names another. So they are offered only while nothing suggests that others use the server: it listens on loopback, the access URL is a loopback address, and no proxy is trusted. `true` offers them everywhere.",
  }),
  allow_local_provisioner_for_members: setting(flag, false, {
    group: "Workspaces",
    help: "Whether everyone with an account can have local workspaces. The owner of a local workspace can read the server's key, database and secrets unless local_workspace_user is set. Off: only owners of the deployment can have them.",
  }),
  local_workspace_user: optional(matching(/^[a-z_][a-z0-9_.-]{0,31}$/i, "the name of a user of this machine", "NAME"), {
    group: "Workspaces",
    help: "The user that local workspaces run as, all of them the same one. It cannot read the data directory, so everybody may have local workspaces. The server must run as root to start programs as another user.",
    absent: "they run as the server's user",
  }),
  local_daemon_orphan_timeout: setting(duration(1_000, 366 * 86_400_000), 86_400_000, {
    group: "Workspaces",
    help: "How long the server can be unreachable before the daemons of local workspaces exit. The server starts them again when it is back.",
  }),
} as const;
