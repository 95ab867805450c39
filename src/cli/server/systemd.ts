// `slipway systemd [--user NAME] [--program PATH] [settings]`: prints a unit that runs the server as a separate user with minimal
// privileges. It contains the settings from the command line; secrets only as the files that contain them.
import { listSecretKeys, toFileKey } from "#base/config/secret-files.ts";
import { toFlag, toVariableName } from "#base/config/setting.ts";
import { SERVER_SETTINGS } from "#base/config/settings.ts";
import { type Config, loadConfig } from "#base/config.ts";
import { usageError } from "#base/usage-error.ts";
import { takeOptions } from "../options.ts";
import { EXIT, type RunVerb } from "../verb.ts";

const DATA_DIR = "/var/lib/slipway";

export const run: RunVerb = async (input) => {
  const secrets = listSecretKeys(SERVER_SETTINGS);
  const names = secrets.map((key) => toFlag(toFileKey(key)).slice(2));
  const { words, options, rest } = takeOptions<string>(input.argv, ["user", "program", ...names]);
  const credentials = secrets.flatMap((key, i) => {
    const path = options[names[i] ?? ""];
    return path === undefined ? [] : [{ key, path }];
  });
  if (words[0] !== undefined) throw usageError(words[0], "unexpected argument");
  const { user = "slipway", program = "/usr/local/bin/slipway" } = options;
  if (!/^[a-z_][a-z0-9_-]*$/.test(user)) throw usageError("--user", "expected the name of a system user");
  if (!/^\/[\w./-]+$/.test(program)) throw usageError("--program", "expected an absolute path without spaces");
  // These files are for the service; they need not exist yet.
  const argv = [...rest, ...credentials.map(({ key, path }) => `${toFlag(toFileKey(key))}=${path}`)];
  const readFile = (path: string): string => {
    const secret = credentials.find((one) => one.path === path);
    return secret ? toPlaceholder(secret.key) : input.readFile(path);
  };
  const { config, sources } = loadConfig({ ...input, argv, readFile });
  const flagSettings = Object.entries(SERVER_SETTINGS).filter(
    ([key]) => sources[key as keyof typeof sources].from === "flag",
  );
  const isCredential = (key: string): boolean => credentials.some((one) => one.key === key);
  const secret = flagSettings.find(([key, one]) => "secret" in one && one.secret && !isCredential(key));
  if (secret)
    throw usageError(
      toFlag(secret[0]),
      `don't put a secret in a unit: put it in a file and pass that, as ${toFlag(toFileKey(secret[0]))} /etc/slipway/...`,
    );
  const flags = flagSettings
    .filter(([key]) => key !== "data_dir" && !isCredential(key))
    .map(([key, one]) =>
      quoteArgument(`${toFlag(key)}=${one.kind.print(config[key as keyof typeof config] as never)}`),
    );
  const data_dir = sources.data_dir.from === "default" ? DATA_DIR : config.data_dir;
  for (const [name, path] of [
    ["--data-dir", data_dir],
    ...listPaths(config),
    ...credentials.map(toSecretFlag),
  ] as const) {
    if (path !== undefined && !path.startsWith("/")) throw usageError(name, "a unit needs an absolute path");
  }
  if (config.local_workspace_user !== undefined && user !== "root") {
    throw usageError("--local-workspace-user", "needs a server that runs as root: add --user root");
  }
  const lines = [...formatCredentials(credentials), ...formatFolders(data_dir, config), ...formatCapabilities(config)];
  input.print(
    formatUnit({
      user,
      program,
      data_dir,
      flags,
      lines,
      stopTimeoutSeconds: Math.ceil(config.shutdown_timeout / 1000) + 5,
    }),
  );
  return EXIT.ok;
};

/** A placeholder for a secret while the unit is written, valid for its setting. */
const toPlaceholder = (key: string): string => (key === "database_url" ? "postgres://host/database" : "[]");

type Credential = { readonly key: string; readonly path: string };

const toSecretFlag = ({ key, path }: Credential): [string, string] => [toFlag(toFileKey(key)), path];

/** systemd reads the files as root and makes them available only to the service, in a private folder. */
const formatCredentials = (credentials: readonly Credential[]): string[] => {
  const shown = credentials.length > 0 ? credentials : [{ key: "admin_password", path: "/etc/slipway/admin-password" }];
  const lines = shown.flatMap(({ key, path }) => [
    `LoadCredential=${key}:${path.replaceAll("%", "%%")}`,
    `Environment=${toVariableName(toFileKey(key))}=%d/${key}`,
  ]);
  if (credentials.length > 0) return ["# Secrets, one file each, readable only by root.", ...lines];
  return [
    "# Secrets, one file each, readable only by root: uncomment these lines, or pass the files when you print this unit.",
    ...lines.map((line) => `#${line}`),
  ];
};

// systemd expands `%` and `$` in commands and splits at spaces.
const quoteArgument = (argument: string): string =>
  `"${argument.replace(/["\\]/g, "\\$&").replaceAll("%", "%%").replaceAll("$", "$$$$")}"`;

const PATHS = [
  "config",
  "backup_dir",
  "home_backup_dir",
  "tls_cert_file",
  "tls_key_file",
  "identity_certificates",
  "agent_binary",
] as const;

/** Returns the paths in the settings, which must be absolute because a unit starts in `/`. */
const listPaths = (config: Config): [string, string | undefined][] => PATHS.map((key) => [toFlag(key), config[key]]);

type Unit = {
  user: string;
  program: string;
  data_dir: string;
  flags: readonly string[];
  lines: readonly string[];
  stopTimeoutSeconds: number;
};

/** systemd creates folders below /var/lib; others must exist. Everything else is read-only. */
const formatFolders = (data_dir: string, { backup_dir, home_backup_dir }: Config): string[] => {
  const ownFolder = /^\/var\/lib\/([\w-]+)$/.exec(data_dir)?.[1];
  const others = [ownFolder ? undefined : data_dir, backup_dir, home_backup_dir].filter((path) => path !== undefined);
  return [
    ...(ownFolder ? [`StateDirectory=${ownFolder}`, "StateDirectoryMode=0700"] : []),
    ...(others.length > 0 ? [`ReadWritePaths=${others.map(toUnitPath).join(" ")}`] : []),
  ];
};

const toUnitPath = (path: string): string => {
  const escaped = path.replaceAll("%", "%%");
  return /[\s"\\]/.test(path) ? `"${escaped.replace(/["\\]/g, "\\$&")}"` : escaped;
};

/** Capabilities to start programs as another user, change the owner of its home, and inspect and kill its processes. */
const USER_CAPABILITIES = [
  ...["CAP_SETUID", "CAP_SETGID", "CAP_CHOWN", "CAP_FOWNER"],
  ...["CAP_DAC_OVERRIDE", "CAP_SYS_PTRACE", "CAP_KILL"],
];

/**
 * Capabilities that the settings require: ports below 1024, files in users' homes, and another user for local workspaces. None otherwise.
 */
const formatCapabilities = (config: Config): string[] => {
  const ports = [config.address, config.metrics_address].map((one) => one?.port ?? 0);
  const capabilities = [
    ...(ports.some((port) => port > 0 && port < 1024) ? ["CAP_NET_BIND_SERVICE"] : []),
    ...(config.local_workspace_user === undefined ? [] : USER_CAPABILITIES),
  ].join(" ");
  const usesHomes = [config.data_dir, ...listPaths(config).map(([, path]) => path ?? "")].some((path) =>
    /^\/(home|root|run\/user)\//.test(path),
  );
  return [
    "",
    "NoNewPrivileges=yes",
    `CapabilityBoundingSet=${capabilities}`,
    `AmbientCapabilities=${capabilities}`,
    `ProtectHome=${usesHomes ? "no" : "yes"}`,
  ];
};

const formatUnit = ({
  user,
  program,
  data_dir,
  flags,
  lines,
  stopTimeoutSeconds,
}: Unit): string => `# /etc/systemd/system/slipway.service
[Unit]
Description=Slipway
After=network-online.target docker.service
Wants=network-online.target

[Service]
User=${user}
Group=${user}
ExecStart=${[program, "serve", quoteArgument(`--data-dir=${data_dir}`), ...flags].join(" ")}
ExecReload=/bin/kill -HUP $MAINPID
# More settings, as variables.
EnvironmentFile=-/etc/slipway/env
Restart=on-failure
RestartSec=2
TimeoutStopSec=${stopTimeoutSeconds}
LimitNOFILE=1048576
# A program of a workspace or a git process that runs out of memory must not end the server.
OOMPolicy=continue
UMask=0077
${lines.join("\n")}
ProtectSystem=strict
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM
# MemoryDenyWriteExecute stays off: the JavaScript engine compiles at run time.

[Install]
WantedBy=multi-user.target`;
