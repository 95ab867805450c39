// The verbs that run a server or look after one, and those that git and a workspace call.
import { DAEMON_ENV_PREFIX, DAEMON_SETTINGS } from "#base/config/daemon-settings.ts";
import { settingsHelp } from "#base/config/describe.ts";
import { SERVER_SETTINGS } from "#base/config/settings.ts";
import { WORKER_ENV_PREFIX, WORKER_SETTINGS } from "#base/config/worker-settings.ts";
import type { Verb } from "../verb.ts";

/** The verbs that run something until they are stopped. */
export const RUNNING: readonly Verb[] = [
  {
    name: "serve",
    area: "start",
    help: "Run the server.",
    usage: "[settings]",
    details: () => settingsHelp(SERVER_SETTINGS),
    load: () => import("../server/serve.ts"),
  },
  {
    name: "agent",
    area: "plumbing",
    help: "Run the daemon inside a workspace.",
    usage: "[settings]",
    details: () => settingsHelp(DAEMON_SETTINGS, DAEMON_ENV_PREFIX),
    load: () => import("../server/agent.ts"),
  },
  {
    name: "provisioner",
    area: "server",
    help: "Run a worker that takes builds from a server.",
    usage: "[settings]",
    details: () => settingsHelp(WORKER_SETTINGS, WORKER_ENV_PREFIX),
    load: () => import("../server/provisioner.ts"),
  },
];

/** What a workspace calls by itself. */
export const INSIDE: readonly Verb[] = [
  {
    name: "readonly",
    area: "plumbing",
    help: "Run a program that cannot write files, as chats in plan mode do.",
    usage: "[--writable FILE]... -- PROGRAM [ARGUMENT]...",
    details: () =>
      "Held back by Landlock, with all that it starts. Fails where the system has none of version 3 or later.",
    load: () => import("../server/readonly.ts"),
  },
  {
    name: "gitssh",
    area: "plumbing",
    help: "Be git's ssh inside a workspace, with its owner's key.",
    usage: "[arguments of ssh]",
    details: () => "Set as GIT_SSH_COMMAND by the daemon; takes SLIPWAY_AGENT_URL and SLIPWAY_AGENT_TOKEN_FILE.",
    load: () => import("../server/gitssh.ts"),
  },
  {
    name: "gitaskpass",
    area: "plumbing",
    help: "Answer git's questions for passwords inside a workspace, with its owner's linked accounts.",
    usage: "PROMPT",
    details: () => "Set as GIT_ASKPASS by the daemon; takes SLIPWAY_AGENT_URL and SLIPWAY_AGENT_TOKEN_FILE.",
    load: () => import("../server/gitaskpass.ts"),
  },
  {
    name: "external-auth",
    area: "plumbing",
    help: "Print the owner's token at a linked account, for scripts of a workspace.",
    usage: "access-token ID",
    details: () =>
      "Fails and prints where to link the account while there is none; takes SLIPWAY_AGENT_URL and SLIPWAY_AGENT_TOKEN_FILE.",
    load: () => import("../server/external-auth.ts"),
  },
];

/** What people call inside a workspace; no server is asked. */
export const WITHIN: readonly Verb[] = [
  {
    name: "stat",
    area: "workspaces",
    help: "Show how much processor, memory and disk a workspace uses, from inside it.",
    usage: "[cpu|memory|disk] [--path PATH] [--host] [--prefix Ki|Mi|Gi|Ti] [--json]",
    details: () =>
      [
        "--path PATH   a folder on the disk that is meant (default: the home folder)",
        "--host        the whole machine, also where this is a container with limits of its own",
        "--prefix Gi   the unit that bytes are shown in (default: one that fits)",
      ].join("\n"),
    load: () => import("../client/stat.ts"),
  },
  {
    name: "dotfiles",
    area: "workspaces",
    help: "Set up a workspace with your dotfiles from a git repository.",
    usage: "REPOSITORY [--branch NAME] [--folder FOLDER] [--yes] [--json]",
    details: () =>
      [
        "Runs install.sh, install, bootstrap.sh, bootstrap, setup.sh or setup of it, or the last two below script/; without one",
        "links its dotfiles into the home folder, inside of folders that are shared such as .config, and keeps what was there as",
        "NAME.before-dotfiles. A second run fetches first and links what is new.",
        "--folder FOLDER  where the copy of the repository is kept (default: ~/.config/slipway/dotfiles)",
        "--yes, -y        does not ask; without a terminal it is needed",
      ].join("\n"),
    load: () => import("../client/dotfiles.ts"),
  },
];

/** Looking after a server. */
export const OPERATING: readonly Verb[] = [
  {
    name: "health",
    area: "server",
    help: "Ask a running server whether it is ready; exit code 0 or 1.",
    usage: "[--url URL] [--json] [settings]",
    details: () =>
      "--url URL  a server elsewhere, whose certificate must be good; without it the one on this machine.\nTakes the settings of `serve` to find that one.",
    load: () => import("../server/health.ts"),
  },
  {
    name: "backup",
    area: "server",
    help: "Make a backup of the data directory, also while the server runs.",
    usage: "[FOLDER|FILE.tar] [--json] [settings]",
    details: () =>
      [
        "FOLDER    a folder slipway-<time> is made in it (default: the setting backup_dir)",
        "FILE.tar  everything in one file",
        "A backup holds the key of the server's secrets: keep it as you keep the data directory. Takes the settings of `serve`.",
      ].join("\n"),
    load: () => import("../server/backup.ts"),
  },
  {
    name: "restore",
    area: "server",
    help: "Put a backup into an empty data directory.",
    usage: "BACKUP [--check] [--json] [settings]",
    details: () =>
      [
        "BACKUP   a folder slipway-<time> or a .tar file, as `slipway backup` has made it",
        "--check  only look whether it is whole and could be restored",
        "The data directory (--data-dir) must be empty or missing. Takes the settings of `serve`.",
      ].join("\n"),
    load: () => import("../server/restore.ts"),
  },
  {
    name: "salvage",
    area: "server",
    help: "Copy what can be read of a damaged database into a new data directory.",
    usage: "FOLDER [--json] [settings]",
    details: () =>
      [
        "FOLDER  the new data directory, empty or missing; the damaged one (--data-dir) stays as it is",
        "Copies readable rows, the uploads and the key, and lists the tables with losses. No server may run. Prefer a backup",
        "where there is one: `slipway restore`. Takes the settings of `serve`.",
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
    help: "Bring the database to this version, as a start of the server does.",
    usage: "[--check] [--to postgres://USER:PASSWORD@HOST/DATABASE | --to postgres | --to sqlite] [--json] [settings]",
    details: () =>
      [
        "--check  only say what there is to do; exit code 1 when there is something",
        "--to     move all of the data directory into an empty PostgreSQL (`postgres`: the one in database_url), or back into an empty data directory",
        "Works on the data directory, so no server may run on it. Takes the settings of `serve`.",
      ].join("\n"),
    load: () => import("../server/migrate.ts"),
  },
  {
    name: "doctor",
    area: "server",
    help: "Check that this machine has everything a server needs.",
    usage: "[--json] [--quick] [settings]",
    details: () =>
      [
        "--quick  do not read all of the database",
        "Exit code 0 when nothing is wrong, 1 when something is. Changes nothing. Takes the settings of `serve`.",
      ].join("\n"),
    load: () => import("../server/doctor.ts"),
  },
  {
    name: "support-bundle",
    area: "server",
    help: "Collect diagnostics, without secrets, in one file.",
    usage: "FILE.tar [--url URL | --log-file FILE] [--json] [settings]",
    details: () =>
      [
        "Version, machine, settings, findings of `doctor`, sizes of tables; nothing is sent anywhere.",
        "--url URL        that of a running server, with its log, for owners of it: `slipway login` signs you in",
        "--log-file FILE  its last 2000 lines, without what looks like a secret (`journalctl -u slipway > FILE` makes one)",
        "Takes the settings of `serve`.",
      ].join("\n"),
    load: () => import("../server/support-bundle.ts"),
  },
  {
    name: "upgrade",
    area: "server",
    help: "Replace this program by a newer release, and restart its service.",
    usage:
      "[--check | --back | --file FILE] [--allow-downgrade] [--no-backup] [--unit NAME] [--program PATH] [settings]",
    details: () =>
      [
        "--check            only say whether there is a newer release; exit code 1 when there is",
        "--file FILE        a program that was downloaded, slipway-<system>.gz, with its .minisig in the same folder",
        "--back             put the program of before back, and the data when the newer one has changed it",
        "--allow-downgrade  install an older version, too",
        "--no-backup        do not back up the data before",
        "--unit NAME        the service that runs the program (default: slipway.service)",
        "--program PATH     the program to replace (default: this one)",
        "Looks at the address in release_url and checks the signature. When the newer version does not come up, the program and the",
        "data of before are put back. Takes the settings of `serve`; without any, those that the running service was started with.",
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
        "--program PATH  where the program is (default: /usr/local/bin/slipway)",
        "Settings that are given stand in the unit. Takes the settings of `serve`.",
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
