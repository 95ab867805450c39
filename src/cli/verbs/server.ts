// The verbs that run and maintain a server, and those called by git and workspaces.
import { DAEMON_ENV_PREFIX, DAEMON_SETTINGS } from "#base/config/daemon-settings.ts";
import { formatSettingsHelp } from "#base/config/describe.ts";
import { SERVER_SETTINGS } from "#base/config/settings.ts";
import { WORKER_ENV_PREFIX, WORKER_SETTINGS } from "#base/config/worker-settings.ts";
import type { Verb } from "../verb.ts";

/** The verbs that run until stopped. */
export const RUNNING: readonly Verb[] = [
  {
    name: "serve",
    area: "start",
    help: "Run the server.",
    usage: "[settings]",
    details: () => formatSettingsHelp(SERVER_SETTINGS),
    load: () => import("../server/serve.ts"),
  },
  {
    name: "agent",
    area: "plumbing",
    help: "Run the daemon inside a workspace.",
    usage: "[settings]",
    details: () => formatSettingsHelp(DAEMON_SETTINGS, DAEMON_ENV_PREFIX),
    load: () => import("../server/agent.ts"),
  },
  {
    name: "provisioner",
    area: "server",
    help: "Run a worker that builds workspaces for a server.",
    usage: "[settings]",
    details: () => formatSettingsHelp(WORKER_SETTINGS, WORKER_ENV_PREFIX),
    load: () => import("../server/provisioner.ts"),
  },
];

/** The verbs that a workspace calls automatically. */
export const WORKSPACE_VERBS: readonly Verb[] = [
  {
    name: "readonly",
    area: "plumbing",
    help: "Run a program without write access to files, as plan mode does.",
    usage: "[--writable FILE]... -- PROGRAM [ARGUMENT]...",
    details: () => "Restricts the program and its children with Landlock. Fails without Landlock version 3 or later.",
    load: () => import("../server/readonly.ts"),
  },
  {
    name: "gitssh",
    area: "plumbing",
    help: "Act as git's ssh command inside a workspace, with the owner's key.",
    usage: "[arguments of ssh]",
    details: () => "Set as GIT_SSH_COMMAND by the daemon; takes SLIPWAY_AGENT_URL and SLIPWAY_AGENT_TOKEN_FILE.",
    load: () => import("../server/gitssh.ts"),
  },
  {
    name: "gitaskpass",
    area: "plumbing",
    help: "Answer git's credential prompts inside a workspace from the owner's linked accounts.",
    usage: "PROMPT",
    details: () => "Set as GIT_ASKPASS by the daemon; takes SLIPWAY_AGENT_URL and SLIPWAY_AGENT_TOKEN_FILE.",
    load: () => import("../server/gitaskpass.ts"),
  },
  {
    name: "external-auth",
    area: "plumbing",
    help: "Print the token of the owner's linked account, for scripts in a workspace.",
    usage: "access-token ID",
    details: () =>
      "Without a linked account, fails and prints where to link one; takes SLIPWAY_AGENT_URL and SLIPWAY_AGENT_TOKEN_FILE.",
    load: () => import("../server/external-auth.ts"),
  },
];

/** The verbs that users call inside a workspace, without a server. */
export const WITHIN: readonly Verb[] = [
  {
    name: "stat",
    area: "workspaces",
    help: "Show CPU, memory and disk usage from inside a workspace.",
    usage: "[cpu|memory|disk] [--path PATH] [--host] [--prefix Ki|Mi|Gi|Ti] [--json]",
    details: () =>
      [
        "--path PATH   a folder on the disk to report (default: the home directory)",
        "--host        report the whole machine, even inside a container with limits",
        "--prefix Gi   unit for bytes (default: automatic)",
      ].join("\n"),
    load: () => import("../client/stat.ts"),
  },
  {
    name: "dotfiles",
    area: "workspaces",
    help: "Set up a workspace with your dotfiles from a git repository.",
    usage: "REPOSITORY [--branch NAME] [--install-command COMMAND] [--folder FOLDER] [--replace] [--yes] [--json]",
    details: () =>
      [
        "Runs its install.sh, install, bootstrap.sh, bootstrap, setup.sh or setup, also script/bootstrap and script/setup. Without one,",
        "links its dotfiles into the home directory, merging folders such as .config, and renames existing files to",
        "NAME.before-dotfiles. Later runs pull first and link new files.",
        "--install-command COMMAND  run this with sh in the clone instead",
        "--folder FOLDER            where to clone the repository (default: ~/.config/slipway/dotfiles)",
        "--replace                  rename a clone of another repository to NAME.before-dotfiles",
        "--yes, -y                  don't prompt; required without a terminal",
        "To install them in all of your workspaces, see `slipway account dotfiles`.",
      ].join("\n"),
    load: () => import("../client/dotfiles.ts"),
  },
];

/** The verbs for server administration. */
export const OPERATING: readonly Verb[] = [
  {
    name: "health",
    area: "server",
    help: "Check whether a running server is ready; exit code 0 or 1.",
    usage: "[--url URL] [--json] [settings]",
    details: () =>
      "--url URL  check a remote server with a valid certificate (default: the server on this machine,\nfound with the settings of `serve`).",
    load: () => import("../server/health.ts"),
  },
  {
    name: "backup",
    area: "server",
    help: "Back up the data directory, even while the server is running.",
    usage: "[FOLDER|FILE.tar] [--json] [settings]",
    details: () =>
      [
        "FOLDER    writes a folder slipway-<time> in it (default: the setting backup_dir)",
        "FILE.tar  writes a single file",
        "A backup contains the encryption key: protect it like the data directory. Takes the settings of `serve`.",
      ].join("\n"),
    load: () => import("../server/backup.ts"),
  },
  {
    name: "restore",
    area: "server",
    help: "Restore a backup into an empty data directory.",
    usage: "BACKUP [--check] [--json] [settings]",
    details: () =>
      [
        "BACKUP   a folder slipway-<time> or a .tar file written by `slipway backup`",
        "--check only check that it is intact and could be restored",
        "The data directory (--data-dir) must be empty or missing. Takes the settings of `serve`.",
      ].join("\n"),
    load: () => import("../server/restore.ts"),
  },
  {
    name: "salvage",
    area: "server",
    help: "Recover a damaged database into a new data directory.",
    usage: "FOLDER [--json] [settings]",
    details: () =>
      [
        "FOLDER  the new data directory, empty or missing; the damaged one (--data-dir) is not changed",
        "Copies readable rows, uploads and the key, and lists the tables that lost rows. Stop the server first. If you have a",
        "backup, use `slipway restore` instead. Takes the settings of `serve`.",
      ].join("\n"),
    load: () => import("../server/salvage.ts"),
  },
  {
    name: "config",
    area: "server",
    help: "Show, check or explain the settings.",
    usage: "show|check|example [--json] [settings]",
    details: () =>
      [
        "show     every setting, its value and where it comes from; secrets are hidden (--json for programs)",
        "check    whether the server would start with these settings",
        "example  a settings file with every setting explained",
      ].join("\n"),
    load: () => import("../server/config.ts"),
  },
  {
    name: "migrate",
    area: "server",
    help: "Upgrade the database to this version, as starting the server does.",
    usage: "[--check] [--to postgres://USER:PASSWORD@HOST/DATABASE | --to postgres | --to sqlite] [--json] [settings]",
    details: () =>
      [
        "--check  only report pending migrations; exit code 1 if there are any",
        "--to     move all of the data directory into an empty PostgreSQL (`postgres`: the one in database_url), or back into an empty data directory",
        "Works on the data directory. Stop the server first. Takes the settings of `serve`.",
      ].join("\n"),
    load: () => import("../server/migrate.ts"),
  },
  {
    name: "doctor",
    area: "server",
    help: "Check that this machine meets the server's requirements.",
    usage: "[--json] [--quick] [settings]",
    details: () =>
      [
        "--quick  do not read all of the database",
        "Exit code 0 if all checks pass, else 1. Changes nothing. Takes the settings of `serve`.",
      ].join("\n"),
    load: () => import("../server/doctor.ts"),
  },
  {
    name: "support-bundle",
    area: "server",
    help: "Collect server diagnostics, without secrets, into one file.",
    usage: "FILE.tar [--url URL | --log-file FILE] [--json] [settings]",
    details: () =>
      [
        "Contains the version, machine, settings, `doctor` findings and table sizes. Nothing is sent anywhere.",
        "--url URL        collect from a running server, including its log; requires the owner role (`slipway login`)",
        "--log-file FILE  include its last 2000 lines, secrets redacted (create one with `journalctl -u slipway > FILE`)",
        "Takes the settings of `serve`.",
      ].join("\n"),
    load: () => import("../server/support-bundle.ts"),
  },
  {
    name: "upgrade",
    area: "server",
    help: "Upgrade this program to a newer release and restart its service.",
    usage:
      "[--check | --back | --file FILE] [--allow-downgrade] [--no-backup] [--unit NAME] [--program PATH] [settings]",
    details: () =>
      [
        "--check            only report whether there is a newer release; exit code 1 if there is",
        "--file FILE        a downloaded program, slipway-<system>.gz, with its .minisig in the same folder",
        "--back             restore the previous program, and its data if the newer one changed it",
        "--allow-downgrade allow an older version",
        "--no-backup        do not back up the data first",
        "--unit NAME        the service that runs the program (default: slipway.service)",
        "--program PATH     the program to replace (default: this one)",
        "Downloads from release_url and verifies the signature. If the newer version does not start, the previous program and data are",
        "restored. Takes the settings of `serve`; without any, the settings of the running service.",
      ].join("\n"),
    load: () => import("../server/upgrade/upgrade.ts"),
  },
  {
    name: "systemd",
    area: "server",
    help: "Print a systemd unit.",
    usage: "[--user NAME] [--program PATH] [settings]",
    details: () =>
      [
        "--user NAME     the user it runs as (default: slipway)",
        "--program PATH  path of the program (default: /usr/local/bin/slipway)",
        "The unit contains the settings you pass. Takes the settings of `serve`.",
      ].join("\n"),
    load: () => import("../server/systemd.ts"),
  },
];

export const VERSION: Verb = {
  name: "version",
  area: "start",
  help: "Print the version.",
  usage: "[--json]",
  load: () => import("../version.ts"),
};
