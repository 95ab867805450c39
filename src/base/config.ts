// Settings of the server, daemon, client and worker as the rest of the code sees them. Pure: src/main.ts passes in the command line, the
// environment and the file reader. The tables are in ./config/.
import { isIPv4 } from "node:net";
import { CLIENT_ENV_PREFIX, CLIENT_SETTINGS, type ClientConfig } from "./config/client-settings.ts";
import { DAEMON_ENV_PREFIX, DAEMON_SETTINGS, type DaemonConfig } from "./config/daemon-settings.ts";
import { formatSettingsTable } from "./config/describe.ts";
import { checkRegistry } from "./config/docker-settings.ts";
import { address as addressKind } from "./config/kinds.ts";
import { type Input, type LoadedSettings, loadSettings } from "./config/resolve.ts";
import { listSecretVariables, listVariables } from "./config/secret-files.ts";
import { toFlag, toVariableName } from "./config/setting.ts";
import { type Config, SERVER_SETTINGS } from "./config/settings.ts";
import { WORKER_ENV_PREFIX, WORKER_SETTINGS, type WorkerConfig } from "./config/worker-settings.ts";
import { parseRecoveryKey } from "./recovery-key.ts";
import { type Problem, UsageError } from "./usage-error.ts";

export type { Config, DaemonConfig, Input };
export type LoadedConfig = LoadedSettings<typeof SERVER_SETTINGS>;

/** Returns the variables of test switches, which are not settings (see base/failpoint.ts and test/support). */
const findTestVariables = (env: Input["env"]): string[] =>
  Object.keys(env).filter((name) => name.startsWith("SLIPWAY_TEST_") || name === "SLIPWAY_FAILPOINT");

const CLIENT_VARIABLES = listVariables(CLIENT_SETTINGS, CLIENT_ENV_PREFIX);
const WORKER_VARIABLES = listVariables(WORKER_SETTINGS, WORKER_ENV_PREFIX);
const DAEMON_VARIABLES = listVariables(DAEMON_SETTINGS, DAEMON_ENV_PREFIX);

/** All variables with secret values, of every command, because a server can be started where variables of other commands are set. */
export const SECRET_VARIABLES: readonly string[] = [
  ...listSecretVariables(SERVER_SETTINGS),
  ...listSecretVariables(CLIENT_SETTINGS, CLIENT_ENV_PREFIX),
  ...listSecretVariables(WORKER_SETTINGS, WORKER_ENV_PREFIX),
  ...listSecretVariables(DAEMON_SETTINGS, DAEMON_ENV_PREFIX),
];

/** Loads the server's settings. Precedence: flag, environment, file, default. Throws UsageError. */
export const loadConfig = (input: Input): LoadedConfig =>
  loadSettings(
    {
      table: SERVER_SETTINGS,
      prefix: "SLIPWAY_",
      // A server can be started inside a workspace, where the daemon's variables are set.
      otherVariables: [...findTestVariables(input.env), ...DAEMON_VARIABLES, ...CLIENT_VARIABLES, ...WORKER_VARIABLES],
      checkTogether: (config) => [
        ...checkFirstUser(config),
        ...checkTls(config),
        ...checkHook(config),
        ...checkCluster(config),
        ...checkStorage(config),
        ...checkHomeBackups(config),
        ...checkRegistry(config),
      ],
    },
    input,
  );

/** Settings of the daemon. */
export type DaemonSettings = Omit<DaemonConfig, "url" | "token"> & { url: URL; token: string };

/** Loads the daemon's settings; the token is read from the token file unless given directly. Throws UsageError. */
export const loadDaemonConfig = (input: Input): DaemonSettings => {
  const { config } = loadSettings({ table: DAEMON_SETTINGS, prefix: DAEMON_ENV_PREFIX, otherVariables: [] }, input);
  const { url, token = readSecret("token_file", config.token_file, input) } = config;
  if (url === undefined) throw toDaemonMissingError("url", "the server's access URL is required");
  const auth = input.env.CODER_AGENT_AUTH;
  if (token === undefined && auth && auth !== "token") {
    throw toDaemonMissingError(
      "token",
      `signing in by ${auth} needs the cloud's own agent; this one signs in by token`,
    );
  }
  if (token === undefined) throw toDaemonMissingError("token", "the agent's token is required, or --token-file");
  return { ...config, url, token };
};

/** The session that the command line stores after sign-in. */
type StoredSession = { url: string; token: string };

/**
 * Loads the server's URL and the token for client commands. Precedence: flag, environment, stored session. The session's token is used only
 * for the session's server (rule CV-2). Other SLIPWAY_ variables are ignored, because these commands also run in workspaces and next to
 * servers. Throws UsageError.
 */
export const loadClientConfig = (
  { env, readFile }: Omit<Input, "argv">,
  flags: { url?: string; token?: string },
  session?: StoredSession,
): ClientConfig => {
  const argv = Object.entries(flags).flatMap(([key, value]) =>
    value === undefined ? [] : [`${toFlag(key)}=${value}`],
  );
  const variables = Object.fromEntries(CLIENT_VARIABLES.map((name) => [name, env[name]]));
  const rules = { table: CLIENT_SETTINGS, prefix: CLIENT_ENV_PREFIX, otherVariables: [] };
  const { config, sources } = loadSettings(rules, { argv, env: variables, readFile });
  const url = sources.url.from === "default" && session ? new URL(session.url) : config.url;
  const isSessionServer = session !== undefined && url.origin === new URL(session.url).origin;
  return { url, token: config.token ?? (isSessionServer ? session.token : undefined) };
};

/** Settings of an external worker. */
export type WorkerSettings = Omit<WorkerConfig, "url" | "key"> & { url: URL; key: string };

/** Loads the settings of the `provisioner` command; the key is read from the key file unless given directly. Throws UsageError. */
export const loadWorkerConfig = (input: Input): WorkerSettings => {
  const checkWorker = (config: WorkerConfig) => checkRegistry(config, WORKER_ENV_PREFIX);
  const rules = { table: WORKER_SETTINGS, prefix: WORKER_ENV_PREFIX, otherVariables: [], checkTogether: checkWorker };
  const { config } = loadSettings(rules, input);
  const { url, key = readSecret("key_file", config.key_file, input) } = config;
  const toMissingError = (name: string, detail: string): UsageError =>
    new UsageError([
      { name: `${toFlag(name)} or ${toVariableName(name, WORKER_ENV_PREFIX)}`, from: "not given", detail },
    ]);
  if (url === undefined) throw toMissingError("url", "the server's access URL is required");
  if (key === undefined) throw toMissingError("key", "a provisioner key is required, or --key-file");
  const isUnencrypted = url.protocol === "http:" && !isLoopback(url.hostname);
  if (isUnencrypted && config.provisioners.includes("terraform") && !config.insecure) {
    const detail = "Terraform states and secrets would be sent unencrypted: use an https URL, or pass --insecure";
    throw new UsageError([{ name: toFlag("url"), from: url.origin, detail }]);
  }
  return { ...config, url, key };
};

const toDaemonMissingError = (key: string, detail: string): UsageError =>
  new UsageError([{ name: `${toFlag(key)} or ${toVariableName(key, DAEMON_ENV_PREFIX)}`, from: "not given", detail }]);

function readSecret(setting: string, file: string | undefined, input: Input): string | undefined {
  if (file === undefined) return undefined;
  try {
    return input.readFile(file).trim() || undefined;
  } catch (error) {
    const detail = `cannot be read: ${error instanceof Error ? error.message : String(error)}`;
    throw new UsageError([{ name: toFlag(setting), from: file, detail }]);
  }
}

/** Returns the URL of the server: the setting, or the bound address. `port` is the actual port. */
export const getAccessUrl = (config: Config, port: number): URL => {
  if (config.access_url !== undefined) return config.access_url;
  // A wildcard address cannot be connected to, so its loopback equivalent is used.
  const host = { "0.0.0.0": "127.0.0.1", "::": "::1" }[config.address.host] ?? config.address.host;
  const scheme = config.tls_cert_file === undefined ? "http" : "https";
  return new URL(`${scheme}://${addressKind.print({ host, port })}`);
};

/** Returns the allowed Host header names: lower case, without port, IPv6 in brackets. */
export const getAllowedHosts = (config: Config): readonly string[] => {
  if (config.allowed_hosts !== undefined) return config.allowed_hosts;
  const boundHost = config.address.host.includes(":") ? `[${config.address.host}]` : config.address.host;
  const accessHost = config.access_url?.hostname;
  const containerHost =
    config.docker_access_url?.hostname ?? (accessHost && !isLoopback(accessHost) ? accessHost : CONTAINER_HOST_NAME);
  return [
    ...new Set(["localhost", "127.0.0.1", "[::1]", boundHost, ...(accessHost ? [accessHost] : []), containerHost]),
  ];
};

/** The hostname of the host machine inside containers. */
const CONTAINER_HOST_NAME = "host.docker.internal";

/** Returns whether a name or address means this machine; IPv6 with or without brackets. */
export const isLoopback = (host: string): boolean =>
  /^(.+\.)?localhost$/i.test(host) || host === "[::1]" || host === "::1" || (isIPv4(host) && host.startsWith("127."));

/**
 * Returns the URL at which containers reach the server: the setting, or the access URL with a hostname that also works inside containers.
 */
export const getContainerAccessUrl = (setting: URL | undefined, access: URL): URL => {
  if (setting) return setting;
  const url = new URL(access);
  if (isLoopback(url.hostname)) url.hostname = CONTAINER_HOST_NAME;
  return url;
};

/**
 * Returns why local containers cannot reach the server and which settings fix that; undefined if they can or it is unknown. On Linux, a
 * container reaches its host through a bridge address, where a server bound to loopback does not listen.
 */
export const findContainerAccessProblem = (config: Config, platform: string = process.platform): string | undefined => {
  const { docker_access_url, access_url } = config;
  const hasOtherRoute = docker_access_url !== undefined || (access_url !== undefined && !isOwnUrl(access_url, config));
  if (platform !== "linux" || hasOtherRoute || !listensOnLoopback(config)) return undefined;
  const { port } = config.address;
  return `Containers cannot reach the server, which listens only on ${addressKind.print(config.address)}. Set address to ${addressKind.print({ host: "0.0.0.0", port })}, or docker_access_url to a URL that leads to the server from a container.`;
};

/** Returns false for the URL of another machine or of a proxy on this one. */
const isOwnUrl = ({ hostname, port, protocol }: URL, { address }: Config): boolean =>
  isLoopback(hostname) && Number(port || (protocol === "https:" ? 443 : 80)) === address.port;

/** Returns whether only this machine can connect directly; a reverse proxy may still let others in. */
export const listensOnLoopback = (config: Config): boolean => isLoopback(config.address.host);

/**
 * Returns the settings that suggest people on other machines use the server, as text such as `access_url is https://s.example`. Empty if
 * no setting suggests it. A reverse proxy connects from loopback, so the bound address alone does not show such use.
 */
export const listSharedUseSettings = (config: Config): string[] => {
  const { access_url, wildcard_access_url: wildcard, trusted_proxies, allowed_hosts = [] } = config;
  const appsHost = wildcard?.replace(/^\*\./, "").replace(/:\d+$/, "");
  const names = allowed_hosts.filter((host) => !isLoopback(host) && host !== CONTAINER_HOST_NAME);
  return [
    ...(listensOnLoopback(config) ? [] : [`address is ${addressKind.print(config.address)}`]),
    ...(access_url === undefined || isLoopback(access_url.hostname) ? [] : [`access_url is ${access_url.origin}`]),
    ...(appsHost === undefined || isLoopback(appsHost) ? [] : [`wildcard_access_url is ${wildcard}`]),
    ...(trusted_proxies.length === 0 ? [] : ["trusted_proxies names a proxy"]),
    ...(names.length === 0 ? [] : [`allowed_hosts names ${names.join(", ")}`]),
  ];
};

/**
 * Returns whether nothing suggests that people on other machines use the server. Decides whether local workspaces are offered by default,
 * and whether private addresses of models can be reached.
 */
export const isUsedOnlyLocally = (config: Config): boolean => listSharedUseSettings(config).length === 0;

function checkFirstUser(config: Config): Problem[] {
  const keys = ["admin_email", "admin_username", "admin_password"] as const;
  const missing = keys.filter((key) => config[key] === undefined);
  if (missing.length === 0 || missing.length === keys.length) return [];
  return missing.map((key) => ({
    name: toVariableName(key),
    from: "not given",
    detail: `the first user needs all of ${keys.join(", ")}, or none of them`,
  }));
}

function checkTls({ tls_cert_file, tls_key_file }: Config): Problem[] {
  if ((tls_cert_file === undefined) === (tls_key_file === undefined)) return [];
  const name = toVariableName(tls_cert_file === undefined ? "tls_cert_file" : "tls_key_file");
  return [{ name, from: "not given", detail: "https needs both tls_cert_file and tls_key_file, or none of them" }];
}

type BucketKey = `${"" | "home_backup_"}s3_${"bucket" | "access_key" | "secret_key" | "endpoint"}`;

/** Rejects partial settings of a bucket, because an operator who sets one of them expects the bucket to be used. */
function checkBucket(config: Config, keys: readonly BucketKey[], endpoint: BucketKey, purpose: string) {
  const setKeys = [...keys, endpoint].filter((key) => config[key] !== undefined);
  const missing = setKeys.length === 0 ? [] : keys.filter((key) => config[key] === undefined);
  const detail = `${purpose} all of ${keys.join(", ")}`;
  const problems: Problem[] = missing.map((key) => ({ name: toVariableName(key), from: "not given", detail }));
  return { setKeys, problems };
}

function checkStorage(config: Config): Problem[] {
  const keys = ["s3_bucket", "s3_access_key", "s3_secret_key"] as const;
  const { setKeys, problems } = checkBucket(config, keys, "s3_endpoint", "object storage for uploads needs");
  if (setKeys.length === 0 || config.database_url !== undefined) return problems;
  const single = "a single server stores uploads in its data directory; remove s3_bucket, or set database_url";
  return [
    ...problems,
    { name: toVariableName(setKeys[0] ?? "s3_bucket"), from: "without database_url", detail: single },
  ];
}

function checkHomeBackups(config: Config): Problem[] {
  const keys = ["home_backup_s3_bucket", "home_backup_s3_access_key", "home_backup_s3_secret_key"] as const;
  const endpoint = "home_backup_s3_endpoint";
  const { setKeys, problems } = checkBucket(config, keys, endpoint, "home backups in object storage need");
  const addProblem = (key: string, from: string, problem: string): unknown =>
    problems.push({ name: toVariableName(key), from, detail: problem });
  const { home_backup_dir, home_backup_interval, home_backup_recovery_key, home_backup_engine } = config;
  if (home_backup_dir !== undefined && setKeys.length > 0) {
    addProblem(
      "home_backup_dir",
      "alongside home_backup_s3_bucket",
      "home backups go to a folder or to a bucket: set only one",
    );
  }
  if (home_backup_dir !== undefined && config.database_url !== undefined) {
    addProblem(
      "home_backup_dir",
      "alongside database_url",
      "nodes have folders of their own: set home_backup_s3_bucket",
    );
  }
  if (home_backup_interval !== undefined && home_backup_dir === undefined && setKeys.length === 0) {
    addProblem("home_backup_interval", "alone", "it needs home_backup_dir or home_backup_s3_bucket");
  }
  if (home_backup_recovery_key !== undefined && parseRecoveryKey(home_backup_recovery_key) === undefined) {
    addProblem(
      "home_backup_recovery_key",
      "given",
      "a recovery key has 32 hexadecimal digits, as `slipway home-backups key` prints it",
    );
  }
  if (home_backup_engine === "archive" && config.home_backup_restic !== undefined) {
    addProblem(
      "home_backup_restic",
      "alongside home_backup_engine",
      "the engine archive does not use restic: remove one of the two",
    );
  }
  return problems;
}

function checkHook({ hook_url, hook_secret, hook_previous_secret }: Config): Problem[] {
  const isSecretNeeded = hook_url !== undefined || hook_previous_secret !== undefined;
  if (!isSecretNeeded || hook_secret !== undefined) return [];
  const detail = "hooks are signed: hook_url and hook_previous_secret need hook_secret";
  return [{ name: toVariableName("hook_secret"), from: "not given", detail }];
}

/** Returns the part of docs/configuration.md that lists all settings. */
export const formatSettingsMarkdown = (): string => formatSettingsTable(SERVER_SETTINGS);

function checkCluster({ database_url, backup_interval }: Config): Problem[] {
  if (database_url === undefined || backup_interval === undefined) return [];
  const detail = "backup_interval backs up a data directory; remove it and back up PostgreSQL with its own tools";
  return [{ name: toVariableName("backup_interval"), from: "alongside database_url", detail }];
}
