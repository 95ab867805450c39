// The table of verbs. Each is loaded by a literal import, so that the bundler sees it and only what runs is read.
import { CLIENT_ENV_PREFIX, CLIENT_SETTINGS } from "#base/config/client-settings.ts";
import { DAEMON_ENV_PREFIX, DAEMON_SETTINGS } from "#base/config/daemon-settings.ts";
import { settingsHelp } from "#base/config/describe.ts";
import { SERVER_SETTINGS } from "#base/config/settings.ts";
import { WORKER_ENV_PREFIX, WORKER_SETTINGS } from "#base/config/worker-settings.ts";
import type { Verb } from "./verb.ts";

const serverSettings = (): string => settingsHelp(SERVER_SETTINGS);

export const VERBS: readonly Verb[] = [
  {
    name: "serve",
    help: "Run the server.",
    usage: "[settings]",
    details: serverSettings,
    load: () => import("./serve.ts"),
  },
  {
    name: "agent",
    help: "Run the daemon inside a workspace.",
    usage: "[settings]",
    details: () => settingsHelp(DAEMON_SETTINGS, DAEMON_ENV_PREFIX),
    load: () => import("./agent.ts"),
  },
  {
    name: "provisioner",
    help: "Run a worker of its own that takes builds from a server.",
    usage: "[settings]",
    details: () => settingsHelp(WORKER_SETTINGS, WORKER_ENV_PREFIX),
    load: () => import("./provisioner.ts"),
  },
  {
    name: "logs",
    help: "Print what a workspace's newest build and its agents wrote.",
    usage: "WORKSPACE [--follow] [settings]",
    details: () => settingsHelp(CLIENT_SETTINGS, CLIENT_ENV_PREFIX),
    load: () => import("./logs.ts"),
  },
  {
    name: "gitssh",
    help: "Be git's ssh inside a workspace, with its owner's key.",
    usage: "[arguments of ssh]",
    details: () => "Set as GIT_SSH_COMMAND by the daemon; takes SLIPWAY_AGENT_URL and SLIPWAY_AGENT_TOKEN.",
    load: () => import("./gitssh.ts"),
  },
  {
    name: "gitaskpass",
    help: "Answer git's questions for passwords inside a workspace, with its owner's linked accounts.",
    usage: "PROMPT",
    details: () => "Set as GIT_ASKPASS by the daemon; takes SLIPWAY_AGENT_URL and SLIPWAY_AGENT_TOKEN.",
    load: () => import("./gitaskpass.ts"),
  },
  {
    name: "health",
    help: "Ask a running server whether it is ready; exit code 0 or 1.",
    usage: "[settings]",
    details: () => "Takes the settings of `serve` to find the server.",
    load: () => import("./health.ts"),
  },
  {
    name: "backup",
    help: "Make a backup of the data directory, also while the server runs.",
    usage: "[FOLDER|FILE.tar] [--json] [settings]",
    details: () =>
      [
        "FOLDER    a folder slipway-<time> is made in it (default: the setting backup_dir)",
        "FILE.tar  everything in one file",
        "A backup holds the key of the server's secrets: keep it as you keep the data directory. Takes the settings of `serve`.",
      ].join("\n"),
    load: () => import("./backup.ts"),
  },
  {
    name: "restore",
    help: "Put a backup into an empty data directory.",
    usage: "BACKUP [--check] [--json] [settings]",
    details: () =>
      [
        "BACKUP   a folder slipway-<time> or a .tar file, as `slipway backup` has made it",
        "--check  only look whether it is whole and could be restored",
        "The data directory (--data-dir) must be empty or missing. Takes the settings of `serve`.",
      ].join("\n"),
    load: () => import("./restore.ts"),
  },
  {
    name: "config",
    help: "Show, check or explain the settings.",
    usage: "show|check|example [--json] [settings]",
    details: () =>
      [
        "show     every setting, its value and where it comes from; secrets are hidden (--json for programs)",
        "check    whether the server would start with these settings",
        "example  a settings file with every setting explained",
      ].join("\n"),
    load: () => import("./config.ts"),
  },
  {
    name: "version",
    help: "Print the version.",
    usage: "[--json]",
    load: () => import("./version.ts"),
  },
];
