// Settings of the apps of workspaces: those shown below the access URL, and external ones.
import { flag, programSchemes, whole } from "./kinds.ts";
import { setting } from "./setting.ts";

export const APP_SETTINGS = {
  disable_path_apps: setting(flag, false, {
    group: "Network",
    help: "Apps and ports are shown on hosts of their own only, not below the access URL. Needs a wildcard access URL for people to reach any.",
  }),
  path_apps_same_origin: setting(flag, false, {
    group: "Network",
    help: "Apps shown below the access URL run in the server's own origin for the workspace's owner: cookies, storage and sockets work. Their scripts can then do everything the owner can, so any program in the workspace can take over the owner's account. Off: they are shown in a sandbox without an origin, as apps of other people's workspaces always are.",
  }),
  app_message_mb: setting(whole(5, 1024), 32, {
    group: "Network",
    help: "The longest WebSocket message between an app and its user, in MiB, either way. A longer one closes the WebSocket with 1009. Each message is held in memory as a whole while it passes.",
  }),
  external_app_schemes: setting(
    programSchemes,
    [
      ...["vscode", "vscode-insiders", "vscodium", "cursor", "windsurf", "kiro", "positron", "antigravity", "trae"],
      ...["jetbrains", "jetbrains-gateway", "fleet", "zed"],
    ],
    {
      group: "Network",
      help: "Schemes of links to which an external app of a template may pass a key for its workspace, once the workspace's owner has agreed. Any program that opens such links gets the key, so list only programs that you trust. Empty: no external app gets a key.",
    },
  ),
} as const;
