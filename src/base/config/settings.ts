// The table of all server settings. Flags, environment, file, help, example, docs/configuration.md and the type of the result are derived
// from it (rules CF-1, CF-2). Every entry must be used somewhere.

import { EMAIL_PATTERN } from "../email-address.ts";
import { EDITOR_SCHEMES } from "../links/external-link.ts";
import { DOCKER_SETTINGS } from "./docker-settings.ts";
import { EXTERNAL_AUTH_SETTINGS } from "./external-auth-settings.ts";
import { HOME_BACKUP_SETTINGS } from "./home-backup-settings.ts";
import { HOOK_SETTINGS } from "./hook-settings.ts";
import {
  address,
  baseUrl,
  choice,
  duration,
  flag,
  hosts,
  integer,
  matching,
  networks,
  origins,
  path,
  programSchemes,
  text,
  wildcardHost,
  YEAR_MS,
} from "./kinds.ts";
import { logSettings } from "./log-settings.ts";
import { NOTIFICATION_SETTINGS } from "./notification-settings.ts";
import { OIDC_SETTINGS } from "./oidc-settings.ts";
import { optional, setting, type Values } from "./setting.ts";
import { SIGN_IN_SETTINGS } from "./sign-in-settings.ts";
import { STORAGE_SETTINGS } from "./storage-settings.ts";
import { TERRAFORM_SERVER_SETTINGS, TERRAFORM_SETTINGS } from "./terraform-settings.ts";
import { TRACE_SETTINGS } from "./trace-settings.ts";

// Settings of a server in a cluster, with PostgreSQL in place of the file in the data directory (docs/cluster.md).
const postgresUrl = matching(
  /^postgres(ql)?:\/\/[^/?\s]+\/[^/?\s]+(\?\S*)?$/,
  "an address such as postgres://user:password@host:5432/database; several hosts are separated by commas",
  "URL",
);

const CLUSTER_SETTINGS = {
  database_url: optional(postgresUrl, {
    group: "Cluster",
    help: "A PostgreSQL database that stores everything instead of the data directory, so that several nodes can form a cluster. Prefer a file, because the URL contains a password.",
    absent: "a single server with its data directory",
    secret: true,
  }),
  encryption_key: optional(text, {
    group: "Cluster",
    help: "The key that encrypts secrets in the database: 64 hexadecimal digits, the same on all nodes. Create one with `openssl rand -hex 32`. Prefer a file.",
    absent: "encryption.key in the data directory, created at the first start",
    secret: true,
  }),
  node_address: optional(address, {
    group: "Cluster",
    help: "The address where other nodes of the cluster reach this one. It is also the node's name.",
    absent: "the name of this machine and the port of address",
  }),
  cluster_lease: setting(duration(2000, 60_000), 6000, {
    group: "Cluster",
    help: "How long other nodes wait before they take over from a node that crashed or hangs. The same on all nodes.",
  }),
  cluster_active: setting(choice("one", "every"), "one", {
    group: "Cluster",
    help: "Whether one node is active while the others stand by, or all nodes share the work. The same on all nodes.",
  }),
  cluster_reads: setting(choice("active", "every"), "active", {
    group: "Cluster",
    help: "Which nodes serve read-only requests: the active one, or every node, even while none is active. Other requests are forwarded to the active node.",
  }),
};

/** Default addresses of Ollama, LM Studio, vLLM and llama.cpp. */
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
    help: "The folder with all of the server's data. It is created if it doesn't exist.",
  }),
  address: setting(
    address,
    { host: "127.0.0.1", port: 7080 },
    {
      group: "Network",
      help: "The address the server listens on. With port 0, the system chooses a free port, which the server prints at start.",
    },
  ),
  access_url: optional(baseUrl, {
    group: "Network",
    help: "The URL at which people and workspaces reach the server. Set it if the server runs behind a proxy or under another host name.",
    absent: "http:// (https:// with tls_cert_file) and the address the server listens on",
  }),
  allowed_hosts: optional(hosts, {
    group: "Network",
    help: "The host names that the server responds to. Requests to other hosts are rejected.",
    absent: "localhost, 127.0.0.1, [::1], the address the server listens on, and the host of the access URL",
  }),
  wildcard_access_url: optional(wildcardHost, {
    group: "Network",
    help: "The wildcard host that gives each app and port of a workspace its own host name. DNS and certificate must cover all names. Prefer another domain than the access URL's, so that apps cannot set cookies for it.",
    absent:
      "if the access URL is a loopback name without TLS, hosts under apps.localhost; otherwise apps and ports are available only under the access URL, in a sandbox without an origin",
  }),
  disable_path_apps: setting(flag, false, {
    group: "Network",
    help: "Disables apps and ports under the access URL. Without a wildcard access URL, none can be opened.",
  }),
  path_apps_same_origin: setting(flag, false, {
    group: "Network",
    help: "Runs apps under the access URL in the server's own origin for the workspace's owner, so that cookies, storage and sockets work. Their scripts can then do everything the owner can, so any program in the workspace can take over the owner's account. If off, apps run in a sandbox without an origin, as apps of other users' workspaces always do.",
  }),
  app_message_mb: setting(integer(5, 1024), 32, {
    group: "Network",
    help: "The maximum size of a WebSocket message from an app to its user, in MiB. The user's messages can have a quarter of it, but at least 5 MiB. A larger message closes the WebSocket with 1009. Each message is buffered in memory as a whole, so a higher value allows fewer visitors without an account.",
  }),
  external_app_schemes: setting(programSchemes, EDITOR_SCHEMES, {
    group: "Network",
    help: "URL schemes of external apps that can receive a key for their workspace, after the workspace's owner has agreed. Any program that opens such links gets the key, so list only programs that you trust. If empty, external apps get no key.",
  }),
  trusted_proxies: setting(networks, [], {
    group: "Network",
    help: "Proxies whose X-Forwarded-For header is trusted. If empty, none.",
  }),
  max_connections: setting(integer(1, 1_000_000), 20_000, {
    group: "Network",
    help: "The maximum number of open connections. Further connections get 503, except a few health checks. A person, and the agents of an owner, can open more while they have fewer than are free; parts are kept for agents and for people with few connections. Lowered at start if the limit of open files is too low.",
  }),
  api_rate_limit: optional(integer(0, 1_000_000), {
    group: "Network",
    help: "The maximum number of API calls per minute for a user, or for a network address that is not signed in. Further calls get 429. Agents are not limited. Active nodes of a cluster count together; a spare that serves reads counts separately. 0 means no limit.",
    absent: "512; programs on this machine are not limited",
  }),
  shutdown_timeout: setting(duration(0, 600_000), 5000, {
    group: "Network",
    help: "How long a shutdown can take. After that, open connections are closed and the exit code is 1.",
  }),
  tls_cert_file: optional(path, {
    group: "Network",
    help: "The TLS certificate with its chain, in PEM format, for serving https. Read at start: restart the server after renewing it. Requires tls_key_file.",
    absent: "the server uses http",
  }),
  tls_key_file: optional(path, {
    group: "Network",
    help: "The private key of the certificate, in PEM format, without a password.",
    absent: "none",
  }),
  metrics_address: optional(address, {
    group: "Network",
    help: "The address that serves metrics for Prometheus at /metrics, without authentication. Use an address that only your monitoring can reach.",
    absent: "metrics are not served",
  }),
  ...TRACE_SETTINGS,
  ...logSettings(
    "The log level, for everything and for single areas. `trace=debug` logs each request through mailbox and writer.",
  ),
  admin_email: optional(matching(new RegExp(EMAIL_PATTERN), "an email address", "EMAIL"), {
    group: "First user",
    help: "The email address of the first user, who is created at start if there are no users. Requires admin_username and admin_password.",
    absent: "the server prints a link to its setup page",
  }),
  admin_username: optional(
    matching(
      /^(?=.{1,32}$)[a-zA-Z0-9]+(-[a-zA-Z0-9]+)*$/,
      "1 to 32 letters and digits, in groups joined by single hyphens",
      "NAME",
    ),
    { group: "First user", help: "The username of the first user.", absent: "none" },
  ),
  admin_password: optional(text, {
    group: "First user",
    help: "The password of the first user. Prefer a file: other users of the machine can read flags.",
    absent: "none",
    secret: true,
  }),
  allow_local_provisioner_off_loopback: setting(flag, false, {
    group: "Workspaces",
    help: "Local workspaces run on the server's own machine, as the server's user unless local_workspace_user is set. They are therefore available only if other machines can't reach the server: it listens on loopback, the access URL is a loopback address, and no proxy is trusted. `true` always makes them available.",
  }),
  allow_local_provisioner_for_members: setting(flag, false, {
    group: "Workspaces",
    help: "Whether everyone with an account can have local workspaces. The owner of a local workspace can read the server's key, database and secrets unless local_workspace_user is set. If off, only owners of the deployment can have them.",
  }),
  local_workspace_user: optional(matching(/^[a-z_][a-z0-9_.-]{0,31}$/i, "the name of a user of this machine", "NAME"), {
    group: "Workspaces",
    help: "The user that all local workspaces run as. Because it cannot read the data directory, everyone can have local workspaces. The server must run as root to start programs as another user.",
    absent: "local workspaces run as the server's user",
  }),
  local_daemon_orphan_timeout: setting(duration(1_000, YEAR_MS), 86_400_000, {
    group: "Workspaces",
    help: "How long the server can be unreachable before the daemons of local workspaces exit. The server starts them again when it is back.",
  }),
  ...SIGN_IN_SETTINGS,
  oauth2_provider: setting(flag, false, {
    group: "Signing in",
    help: "Whether applications can request access to accounts with OAuth 2. If off, /oauth2/ and /.well-known/ return 404, and editors ask for a token instead.",
  }),
  oauth2_registration: setting(flag, true, {
    group: "Signing in",
    help: "Whether applications can register themselves, as editors do. They can redirect only to programs on the same machine as the browser. If off, owners create all applications. Requires oauth2_provider.",
  }),
  ...OIDC_SETTINGS,
  provisioner_slots: setting(integer(1, 64), 2, {
    group: "Workspaces",
    help: "The maximum number of concurrent builds; further ones wait in the queue. In a cluster, the limit applies to each active node. External workers have their own limits.",
  }),
  ...DOCKER_SETTINGS,
  repository_images_mb: setting(integer(0, 16_777_216), 20_480, {
    group: "Workspaces",
    help: "The maximum total size of repository images on the Docker Engine, in MiB. The least recently used images are removed first; images in use are kept.",
  }),
  ...TERRAFORM_SETTINGS,
  ...TERRAFORM_SERVER_SETTINGS,
  identity_certificates: optional(path, {
    group: "Workspaces",
    help: "The folder with the trusted certificates and keys for cloud identities of agents: certificates in a/*.pem (AWS), b/roots/*.pem and b/intermediates/*.pem (Azure), and key sets in c/*.json (Google). Reloaded every minute.",
    absent: "no agent can sign in with a cloud identity",
  }),
  ...EXTERNAL_AUTH_SETTINGS,
  allow_workspace_renames: setting(flag, false, {
    group: "Workspaces",
    help: "Whether workspaces can be renamed. Clients that stored the old name, such as an SSH host list, don't learn the new one.",
  }),
  chat_slots: setting(integer(1, 10_000), 5, {
    group: "Chats",
    help: "The maximum number of concurrent chats; further ones wait in the queue. In a cluster, the limit applies to each active node.",
  }),
  model_hosts: optional(hosts, {
    group: "Chats",
    help: "Private hosts that base URLs of model providers can use.",
    absent:
      "none; if only this machine can reach the server (loopback address and access URL, no proxy), all loopback and private addresses",
  }),
  local_model_servers: setting(origins, LOCAL_MODEL_SERVERS, {
    group: "Chats",
    help: "The addresses of local model servers (Ollama, LM Studio, vLLM, llama.cpp) that are checked when an owner adds the first model. If empty, none.",
  }),
  subchat_slots: setting(integer(1, 10_000), 10, {
    group: "Chats",
    help: "The maximum number of concurrent sub-chats. They have their own limit so that none waits for its parent.",
  }),
  chat_titles: setting(flag, true, {
    group: "Chats",
    help: "Whether models generate titles and summaries of chats after their turns.",
  }),
  approval_timeout: setting(duration(60_000, 2_592_000_000), 86_400_000, {
    group: "Chats",
    help: "How long a chat waits for the approval of a call. After that, the call is denied and the model continues without it.",
  }),
  mcp_silence_timeout: setting(duration(1_000, 3_600_000), 60_000, {
    group: "Chats",
    help: "How long a tool of an MCP server can run without a response or progress.",
  }),
  mcp_call_timeout: setting(duration(1_000, 86_400_000), 1_800_000, {
    group: "Chats",
    help: "How long a tool of an MCP server can run in total, regardless of progress.",
  }),
  chat_debug_logging: setting(flag, false, {
    group: "Chats",
    help: "Whether the model calls of every chat are recorded, including their contents. Otherwise, administrators can let users turn this on for themselves.",
  }),
  ...HOOK_SETTINGS,
  ...NOTIFICATION_SETTINGS,
  agent_log_limit: setting(integer(1, 1_099_511_627_776), 1_048_576, {
    group: "Workspaces",
    help: "The maximum log output of an agent over its lifetime, in bytes; further output is rejected. Change it only for tests and benchmarks.",
  }),
  backup_interval: optional(duration(60_000, YEAR_MS), {
    group: "Backups",
    help: "How often the server creates a backup automatically, such as 1d.",
    absent: "no automatic backups",
  }),
  backup_dir: optional(path, {
    group: "Backups",
    help: "The folder for automatic backups, and the default of `slipway backup`. Prefer another disk: backups in the data directory are lost with it.",
    absent: "the folder backups in the data directory",
  }),
  backup_keep: setting(integer(1, 10_000), 7, {
    group: "Backups",
    help: "How many automatic backups to keep. Older ones are removed after the next backup.",
  }),
  backup_rate_mb: setting(integer(0, 100_000), 64, {
    group: "Backups",
    help: "The maximum write rate of backups in MiB per second, so that the server's own writes don't wait for the disk. 0 means no limit.",
  }),
  release_url: optional(baseUrl, {
    group: "Upgrade",
    help: "The URL where `slipway upgrade` finds the newest release, such as https://downloads.example.com/slipway. Nothing else connects to it.",
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
  database_cache_mb: setting(integer(1, 65_536), 64, {
    group: "Database",
    help: "The memory for the database's page cache, in MiB.",
  }),
} as const;

export type Config = Values<typeof SERVER_SETTINGS>;
