// Workspaces that are processes on the server's own machine: when they are offered, to whom, and as which user they run.
import { flag } from "./kinds.ts";
import { setting } from "./setting.ts";

export const LOCAL_SETTINGS = {
  allow_local_provisioner_off_loopback: setting(flag, false, {
    group: "Workspaces",
    help: "Local workspaces run on the server's own machine, as its own user unless local_workspace_user names another. So they are offered only while nothing suggests that others use the server: it listens on loopback, the access URL is a loopback address, and no proxy is trusted. `true` offers them everywhere.",
  }),
  allow_local_provisioner_for_members: setting(flag, false, {
    group: "Workspaces",
    help: "Whether everybody with an account may have local workspaces. Whoever has one can read the server's key, database and secrets, unless local_workspace_user is set; without that only owners of the deployment have them.",
  }),
} as const;
