// The table of verbs. Each is loaded by a literal import, so that the bundler sees it and only what runs is read.
import { CLIENT_ENV_PREFIX, CLIENT_SETTINGS } from "#base/config/client-settings.ts";
import { DAEMON_ENV_PREFIX, DAEMON_SETTINGS } from "#base/config/daemon-settings.ts";
import { settingsHelp } from "#base/config/describe.ts";
import { SERVER_SETTINGS } from "#base/config/settings.ts";
import { WORKER_ENV_PREFIX, WORKER_SETTINGS } from "#base/config/worker-settings.ts";
import type { Verb } from "./verb.ts";

const serverSettings = (): string => settingsHelp(SERVER_SETTINGS);

const ON_MACHINE = "Works on the data directory, so no server may run on it. Takes the settings of `serve`.";
const CONNECTION = (): string => settingsHelp(CLIENT_SETTINGS, CLIENT_ENV_PREFIX);
const PASSWORDS = "A password is made up and printed, or read with --password-file FILE (/dev/stdin for a pipe).";

export const VERBS: readonly Verb[] = [
  {
    name: "serve",
    help: "Run the server.",
    usage: "[settings]",
    details: serverSettings,
    load: () => import("./server/serve.ts"),
  },
  {
    name: "agent",
    help: "Run the daemon inside a workspace.",
    usage: "[settings]",
    details: () => settingsHelp(DAEMON_SETTINGS, DAEMON_ENV_PREFIX),
    load: () => import("./server/agent.ts"),
  },
  {
    name: "provisioner",
    help: "Run a worker of its own that takes builds from a server.",
    usage: "[settings]",
    details: () => settingsHelp(WORKER_SETTINGS, WORKER_ENV_PREFIX),
    load: () => import("./server/provisioner.ts"),
  },
  {
    name: "login",
    help: "Sign in to a server and keep the session for the other verbs.",
    usage: "[URL] [--email EMAIL --password-stdin [--code CODE] | --token-stdin] [--json]",
    details: () =>
      [
        "Asks for e-mail and password, or for a token, which the page /cli-auth of the server shows.",
        "--password-stdin, --token-stdin  read the secret from a pipe instead",
        "--code CODE  of the second factor, where the account has one; otherwise it is asked for",
        "The session is kept in $XDG_CONFIG_HOME/slipway/session.json (~/.config without it), readable for you alone.",
      ].join("\n"),
    load: () => import("./client/login.ts"),
  },
  {
    name: "logout",
    help: "End the session that `login` has kept.",
    usage: "[--json]",
    load: () => import("./client/logout.ts"),
  },
  {
    name: "whoami",
    help: "Say who you are to the server.",
    usage: "[--json] [settings]",
    details: CONNECTION,
    load: () => import("./client/whoami.ts"),
  },
  {
    name: "workspaces",
    help: "List, make, start, stop and delete workspaces, read their logs, open a terminal.",
    usage: "list|show|create|start|stop|delete|logs|shell [WORKSPACE] [--json] [settings]",
    details: () =>
      [
        "list [WORDS] [--all]      yours, or all that you may see; words search, such as status:running",
        "show WORKSPACE            one with its agents and apps; somebody else's is OWNER/NAME",
        "create NAME               --template NAME, --parameter NAME=VALUE (again for more), --preset NAME, --ttl 8h,",
        "                          --schedule 'CRON_TZ=Europe/Berlin 0 9 * * 1-5'; waits until it runs, or not with --no-wait",
        "start WORKSPACE           --update takes the template's active version; --parameter, --no-wait",
        "stop WORKSPACE            --no-wait",
        "delete WORKSPACE          asks first, or --yes; --orphan forgets what cannot be removed; --no-wait",
        "logs WORKSPACE            --follow goes on as they come",
        "shell WORKSPACE[.AGENT]   a terminal, or `-- COMMAND`, whose exit code is passed on; --container NAME,",
        "                          --container-user NAME; ~. leaves it running, --reconnect ID comes back to it",
        "",
        CONNECTION(),
      ].join("\n"),
    load: () => import("./client/workspaces.ts"),
  },
  {
    name: "templates",
    help: "List templates, or push a folder as a template's new version.",
    usage: "list|push [FOLDER] [--json] [settings]",
    details: () =>
      [
        "list           what workspaces can be made of",
        "push [FOLDER]  a folder with a template.yaml (default: the one you are in) becomes the active version of the template",
        "               --name NAME (default: the folder's), --version NAME, --message TEXT, --variable NAME=VALUE (again for",
        "               more), --organization NAME, --no-activate",
        "",
        CONNECTION(),
      ].join("\n"),
    load: () => import("./client/templates.ts"),
  },
  {
    name: "chat",
    help: "Talk to a model, in a workspace or without one.",
    usage: "list|new|send|watch [CHAT] [TEXT] [--json] [settings]",
    details: () =>
      [
        "list              your chats",
        "new TEXT          a chat, and its answer as it comes; --workspace NAME, --model NAME, --no-wait",
        "send CHAT TEXT    goes on with it; --interrupt instead of waiting for the turn that runs, --model NAME, --no-wait",
        "watch CHAT        what is said, from the beginning and as it comes; --until-idle ends with the turn",
        "CHAT is an id or as much of its beginning as is unique. TEXT comes from a pipe where it is left out.",
        "--permissions ask|allow|deny  what calls are answered that wait for permission: by you on a terminal (the default), or all alike;",
        "                  where nobody can be asked, or with --json, they are only told",
        "Ctrl-C in `new` and `send` interrupts the turn, in `watch` it only stops watching.",
        "",
        CONNECTION(),
      ].join("\n"),
    load: () => import("./client/chat.ts"),
  },
  {
    name: "logs",
    help: "Print what a workspace's newest build and its agents wrote.",
    usage: "WORKSPACE [--follow] [--json] [settings]",
    details: CONNECTION,
    load: () => import("./client/logs.ts"),
  },
  {
    name: "gitssh",
    help: "Be git's ssh inside a workspace, with its owner's key.",
    usage: "[arguments of ssh]",
    details: () => "Set as GIT_SSH_COMMAND by the daemon; takes SLIPWAY_AGENT_URL and SLIPWAY_AGENT_TOKEN_FILE.",
    load: () => import("./server/gitssh.ts"),
  },
  {
    name: "gitaskpass",
    help: "Answer git's questions for passwords inside a workspace, with its owner's linked accounts.",
    usage: "PROMPT",
    details: () => "Set as GIT_ASKPASS by the daemon; takes SLIPWAY_AGENT_URL and SLIPWAY_AGENT_TOKEN_FILE.",
    load: () => import("./server/gitaskpass.ts"),
  },
  {
    name: "health",
    help: "Ask a running server whether it is ready; exit code 0 or 1.",
    usage: "[--json] [settings]",
    details: () => "Takes the settings of `serve` to find the server.",
    load: () => import("./server/health.ts"),
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
    load: () => import("./server/backup.ts"),
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
    load: () => import("./server/restore.ts"),
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
    load: () => import("./server/config.ts"),
  },
  {
    name: "setup",
    help: "Make the data directory and its first owner, before the first start.",
    usage: "NAME --email EMAIL [--password-file FILE] [--json] [settings]",
    details: () => `${PASSWORDS}\n${ON_MACHINE}`,
    load: () => import("./offline/setup.ts"),
  },
  {
    name: "user",
    help: "List, create and suspend users, or reset their passwords and second factors, while no server runs.",
    usage: "list|create|suspend|activate|reset-password|reset-factors [NAME] [--json] [settings]",
    details: () =>
      [
        "list                                 everybody, with status and roles",
        "create NAME --email EMAIL            an active user; --roles owner,auditor,template-admin,user-admin gives roles",
        "suspend NAME, activate NAME          whether somebody may sign in",
        "reset-password NAME                  ends all sign-ins and tokens of the user, too",
        "reset-factors NAME                   for who has lost the second factor: the password alone signs in again",
        `create and reset-password: ${PASSWORDS}`,
        ON_MACHINE,
      ].join("\n"),
    load: () => import("./offline/user.ts"),
  },
  {
    name: "token",
    help: "List, create and revoke tokens, while no server runs.",
    usage: "list|create|revoke [TOKEN] [--user NAME] [--json] [settings]",
    details: () =>
      [
        "list [--user NAME]                   those of everybody, or of one user",
        "create --user NAME [--name TEXT] [--lifetime 168h]   prints the token, once",
        "revoke ID, or revoke NAME --user NAME",
        ON_MACHINE,
      ].join("\n"),
    load: () => import("./offline/token.ts"),
  },
  {
    name: "migrate",
    help: "Bring the database to this version, as a start of the server does.",
    usage: "[--check] [--json] [settings]",
    details: () =>
      ["--check  only say what there is to do; exit code 1 when there is something", ON_MACHINE].join("\n"),
    load: () => import("./server/migrate.ts"),
  },
  {
    name: "doctor",
    help: "Look whether everything here is as a server needs it.",
    usage: "[--json] [--quick] [settings]",
    details: () =>
      [
        "--quick  do not read all of the database",
        "Exit code 0 when nothing is wrong, 1 when something is. Changes nothing. Takes the settings of `serve`.",
      ].join("\n"),
    load: () => import("./server/doctor.ts"),
  },
  {
    name: "support-bundle",
    help: "Collect what somebody who helps wants to know, without secrets, in one file.",
    usage: "FILE.tar [--log-file FILE] [--json] [settings]",
    details: () =>
      [
        "Version, machine, settings, findings of `doctor`, sizes of tables; nothing is sent anywhere.",
        "--log-file FILE  its last 2000 lines, without what looks like a secret (`journalctl -u slipway > FILE` makes one)",
        "Takes the settings of `serve`.",
      ].join("\n"),
    load: () => import("./server/support-bundle.ts"),
  },
  {
    name: "systemd",
    help: "Print a unit for systemd.",
    usage: "[--user NAME] [--program PATH] [settings]",
    details: () =>
      [
        "--user NAME     the user it runs as (default: slipway)",
        "--program PATH  where the program is (default: /usr/local/bin/slipway)",
        "Settings that are given stand in the unit. Takes the settings of `serve`.",
      ].join("\n"),
    load: () => import("./server/systemd.ts"),
  },
  {
    name: "completion",
    help: "Print what a shell needs to complete this program's verbs and flags.",
    usage: "bash|zsh|fish",
    load: async () => ({ run: (await import("./completion.ts")).completionOf(VERBS) }),
  },
  {
    name: "version",
    help: "Print the version.",
    usage: "[--json]",
    load: () => import("./version.ts"),
  },
];
