// The table of the server's settings: the only list of them. Flags, environment, file, help, example, docs/configuration.md and the type of
// the result all come from here (rules CF-1, CF-2). Every entry is read somewhere; one that nothing reads is taken out.

import { EMAIL_PATTERN } from "../email-address.ts";
import { CLUSTER_SETTINGS } from "./cluster-settings.ts";
import { DOCKER_SETTINGS } from "./docker-settings.ts";
import { EXTERNAL_AUTH_SETTINGS } from "./external-auth-settings.ts";
import { HOME_BACKUP_SETTINGS } from "./home-backup-settings.ts";
import { HOOK_SETTINGS } from "./hook-settings.ts";
import {
  address,
  baseUrl,
  duration,
  flag,
  hosts,
  matching,
  networks,
  origins,
  path,
  programSchemes,
  text,
  whole,
  wildcardHost,
} from "./kinds.ts";
import { logSettings } from "./log-settings.ts";
import { NOTIFICATION_SETTINGS } from "./notification-settings.ts";
import { OIDC_SETTINGS } from "./oidc-settings.ts";
import { optional, setting, type Values } from "./setting.ts";
import { SIGN_IN_SETTINGS } from "./sign-in-settings.ts";
import { STORAGE_SETTINGS } from "./storage-settings.ts";
import { TERRAFORM_SERVER_SETTINGS, TERRAFORM_SETTINGS } from "./terraform-settings.ts";
import { TRACE_SETTINGS } from "./trace-settings.ts";

/** Where Ollama, LM Studio, vLLM and llama.cpp listen by default. */
const LOCAL_MODEL_SERVERS = [11_434, 1_234, 8_000, 8_080].map((port) => `http://127.0.0.1:${port}`);

export const SERVER_SETTINGS = {
  config: optional(path, {
    group: "Files",
    help: "A settings file in YAML. `slipway config example` prints one with every setting explained.",
    absent: "no file is read",
    file: false,
  }),
  data_dir: setting(path, "./data", {
    group: "Files",
    help: "The folder that holds everything the server keeps. It is created when it is missing. Back up this folder and you have it all.",
  }),
  address: setting(
    address,
    { host: "127.0.0.1", port: 7080 },
    {
      group: "Network",
      help: "Where the server listens. With port 0 the system chooses a free port, and the line printed at start names it.",
    },
  ),
  access_url: optional(baseUrl, {
    group: "Network",
    help: "How people and workspaces reach the server. Set it when the server stands behind a proxy or on another host name.",
    absent: "http:// (https:// with tls_cert_file) and the address the server listens on",
  }),
  allowed_hosts: optional(hosts, {
    group: "Network",
    help: "The host names that requests may be addressed to; any other is refused before anything else is looked at.",
    absent: "localhost, 127.0.0.1, [::1], the address the server listens on, and the host of the access URL",
  }),
  wildcard_access_url: optional(wildcardHost, {
    group: "Network",
    help: "The host under which each app and port of a workspace gets a name of its own, one label below it. Its DNS entry and certificate must cover all names. Best on another domain than the access URL, so that apps cannot set cookies for it.",
    absent:
      "where the access URL is a loopback name without TLS, apps and ports have hosts below apps.localhost; elsewhere they are reached below the access URL only, in a sandbox without an origin",
  }),
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
  trusted_proxies: setting(networks, [], {
    group: "Network",
    help: "The proxies whose X-Forwarded-For header is believed. Empty: none is.",
  }),
  max_connections: setting(whole(1, 1_000_000), 20_000, {
    group: "Network",
    help: "Maximum number of open connections. Further connections get 503, except a few health checks. Lowered at the start if the limit of open files is too small.",
  }),
  api_rate_limit: optional(whole(0, 1_000_000), {
    group: "Network",
    help: "Maximum number of API calls per minute of a user, or of a network address without a sign-in. Further calls get 429. Agents are not limited. Active nodes of a cluster count together; a spare that answers reads counts separately. 0: no limit.",
    absent: "512, and programs on this machine are not counted",
  }),
  shutdown_timeout: setting(duration(0, 600_000), 5000, {
    group: "Network",
    help: "How long a stop may take. When it has passed, what is still open is cut off and the exit code is 1.",
  }),
  tls_cert_file: optional(path, {
    group: "Network",
    help: "A certificate with its chain, in PEM form; then the server speaks https. Read at start: restart the server when it was renewed. Needs the setting below.",
    absent: "the server speaks http",
  }),
  tls_key_file: optional(path, {
    group: "Network",
    help: "The private key of the certificate, in PEM form and without a password.",
    absent: "none",
  }),
  metrics_address: optional(address, {
    group: "Network",
    help: "Address that serves metrics for Prometheus at /metrics, without authentication. Use an address that only your monitoring can reach.",
    absent: "they are not served",
  }),
  ...TRACE_SETTINGS,
  ...logSettings(
    "How much is logged, of everything and of single areas. `trace=debug` follows each request through mailbox and writer.",
  ),
  admin_email: optional(matching(new RegExp(EMAIL_PATTERN), "an email address", "EMAIL"), {
    group: "First user",
    help: "Email address of the first user, created at start when there is no user yet. Needs the two settings below.",
    absent: "the server prints a link to its setup page",
  }),
  admin_username: optional(
    matching(
      /^(?=.{1,32}$)[a-zA-Z0-9]+(-[a-zA-Z0-9]+)*$/,
      "1 to 32 letters and digits, in groups joined by single hyphens",
      "NAME",
    ),
    { group: "First user", help: "User name of the first user.", absent: "none" },
  ),
  admin_password: optional(text, {
    group: "First user",
    help: "Password of the first user. Best in a file of its own: flags can be read by others on the machine.",
    absent: "none",
    secret: true,
  }),
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
  ...SIGN_IN_SETTINGS,
  oauth2_provider: setting(flag, false, {
    group: "Signing in",
    help: "Whether programs may ask people for access with OAuth 2. Off: nothing is answered at /oauth2/ and /.well-known/, and editors ask for a token to paste.",
  }),
  oauth2_registration: setting(flag, true, {
    group: "Signing in",
    help: "Whether programs may register themselves for that, as editors do; they can be sent back only to programs on the same machine as the browser. Without it owners make every application. Counts with oauth2_provider.",
  }),
  ...OIDC_SETTINGS,
  provisioner_slots: setting(whole(1, 64), 2, {
    group: "Workspaces",
    help: "How many builds run at the same time; further ones wait in the queue. In a cluster: on each active node, of its own workspaces and templates; workers of their own have slots of their own.",
  }),
  ...DOCKER_SETTINGS,
  repository_images_mb: setting(whole(0, 16_777_216), 20_480, {
    group: "Workspaces",
    help: "How much the images may take that the Docker Engine has built for repositories, in MiB. Those used longest ago are removed first; one that runs stays.",
  }),
  ...TERRAFORM_SETTINGS,
  ...TERRAFORM_SERVER_SETTINGS,
  identity_certificates: optional(path, {
    group: "Workspaces",
    help: "A folder with what is trusted to say which cloud machine an agent runs on: certificates in a/*.pem, b/roots/*.pem and b/intermediates/*.pem, and key sets in c/*.json. Read again each minute.",
    absent: "no agent can sign in with a cloud identity",
  }),
  ...EXTERNAL_AUTH_SETTINGS,
  allow_workspace_renames: setting(flag, false, {
    group: "Workspaces",
    help: "Whether workspaces can be renamed. What keeps a workspace's name, such as a client's host list, does not learn of the new one.",
  }),
  chat_slots: setting(whole(1, 10_000), 5, {
    group: "Chats",
    help: "How many chats talk to a model at the same time; further ones wait in the queue. In a cluster: on each active node.",
  }),
  model_hosts: optional(hosts, {
    group: "Chats",
    help: "Hosts that base URLs of model providers may name although they are not on the public internet.",
    absent:
      "none; while only this machine uses the server (loopback as address and access URL, no proxy), all loopback and private addresses",
  }),
  local_model_servers: setting(origins, LOCAL_MODEL_SERVERS, {
    group: "Chats",
    help: "Where servers of models (Ollama, LM Studio, vLLM, llama.cpp) are looked for when an owner adds the first model. Empty: nowhere.",
  }),
  subchat_slots: setting(whole(1, 10_000), 10, {
    group: "Chats",
    help: "The same for chats that other chats have started: they have slots of their own, so that none waits for its own parent.",
  }),
  chat_titles: setting(flag, true, {
    group: "Chats",
    help: "Whether models are asked for titles and summaries of chats after their turns.",
  }),
  approval_timeout: setting(duration(60_000, 2_592_000_000), 86_400_000, {
    group: "Chats",
    help: "How long a chat waits for approval of a call. After that the call is denied, and the model continues without it.",
  }),
  mcp_silence_timeout: setting(duration(1_000, 3_600_000), 60_000, {
    group: "Chats",
    help: "How long a tool of an MCP server may run without an answer or a sign of progress.",
  }),
  mcp_call_timeout: setting(duration(1_000, 86_400_000), 1_800_000, {
    group: "Chats",
    help: "How long a tool of an MCP server may run in all, however often it reports progress.",
  }),
  chat_debug_logging: setting(flag, false, {
    group: "Chats",
    help: "Whether the model calls of every chat are recorded, with what was said in them. Otherwise administrators may allow users to switch it on for themselves.",
  }),
  ...HOOK_SETTINGS,
  ...NOTIFICATION_SETTINGS,
  agent_log_limit: setting(whole(1, 1_099_511_627_776), 1_048_576, {
    group: "Workspaces",
    help: "Bytes of log output that are kept of one agent over its life; what comes later is refused. Other values are meant for tests and benchmarks.",
  }),
  backup_interval: optional(duration(60_000, 366 * 86_400_000), {
    group: "Backups",
    help: "How often the server creates a backup automatically, such as 1d.",
    absent: "it makes none",
  }),
  backup_dir: optional(path, {
    group: "Backups",
    help: "The folder for these backups, and for `slipway backup` when none is named. Best on another disk: who loses the data directory would lose those inside of it, too.",
    absent: "the folder backups in the data directory",
  }),
  backup_keep: setting(whole(1, 10_000), 7, {
    group: "Backups",
    help: "How many of its own backups the server keeps; older ones are removed after the next was made.",
  }),
  backup_rate_mb: setting(whole(0, 100_000), 64, {
    group: "Backups",
    help: "How fast backups are written, in MiB a second, so that the server's own writes do not wait for the disk. 0: as fast as it goes.",
  }),
  release_url: optional(baseUrl, {
    group: "Upgrade",
    help: "Where `slipway upgrade` finds the newest release, such as https://downloads.example.com/slipway. Nothing else asks there.",
    absent: "`slipway upgrade` needs --file",
  }),
  release_key: optional(text, {
    group: "Upgrade",
    help: "Public keys that releases must be signed with, as minisign prints them (RW...), separated by spaces. They are accepted in addition to the built-in keys.",
    absent: "only the keys that the program was built with are trusted",
  }),
  ...HOME_BACKUP_SETTINGS,
  ...CLUSTER_SETTINGS,
  ...STORAGE_SETTINGS,
  database_cache_mb: setting(whole(1, 65_536), 64, {
    group: "Database",
    help: "Memory for the database's page cache, in MiB.",
  }),
} as const;

export type Config = Values<typeof SERVER_SETTINGS>;
