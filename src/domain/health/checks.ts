// The checks of `slipway doctor` and of `GET /debug/health`. Each one examines one thing and returns a line; none of them changes anything.
import { accessSync, constants, existsSync, readdirSync, statfsSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { join, resolve } from "node:path";
import { makeConsumer } from "#actors/hooks/open.ts";
import { type Clock, systemClock, toRfc3339 } from "#base/clock.ts";
import { toImageRegistry } from "#base/config/docker-settings.ts";
import { type Address, address } from "#base/config/kinds.ts";
import { type Config, findContainerAccessProblem, getAccessUrl, listensOnLoopback } from "#base/config.ts";
import { EncryptionKeyError, getKeyPath, openEncryption } from "#base/encryption.ts";
import { formatSize } from "#base/format-size.ts";
import { getOwnBinary } from "#base/program.ts";
import { computeMaxConnections, openFilesLimit } from "#base/system/open-files.ts";
import { readTls, TlsError } from "#base/tls.ts";
import { isBackupName, parseBackupTime, readManifest } from "#db/backup/manifest.ts";
import { toBackupFolder } from "#db/backup/schedule.ts";
import { isDamage, NEXT_STEP } from "#db/engine/damage.ts";
import { describeUndecryptableSecrets, inspectDatabase, isInUse, runQuickCheck } from "#db/engine/inspect.ts";
import { findUnfinishedMove } from "#db/engine/move-installation.ts";
import { probeConsumer } from "#src/hooks/probe.ts";
import { DockerProvisioner } from "#src/provisioners/docker/docker.ts";
import { findProgram } from "#src/provisioners/terraform/program.ts";
import { makeAppHosts } from "../applications/names.ts";
import type { Finding } from "./finding.ts";
import { checkHomeBackupTarget } from "./home-backups.ts";
import { checkLocalWorkspaces, checkLocalWorkspaceUser } from "./local.ts";
import { checkPostgres } from "./postgres.ts";

/** A configured program that is missing is a mistake; a machine without one is not. */
const checkTerraform = async (
  { terraform_binary, terraform_cli_config, agent_binary, agent_binaries }: Config,
  env: Readonly<Record<string, string | undefined>>,
): Promise<Finding> => {
  const name = "terraform";
  const found = await findProgram({ setting: terraform_binary, env });
  if (typeof found === "string") {
    return {
      name,
      status: terraform_binary === undefined ? "ok" : "wrong",
      detail: `Terraform templates are not available: ${found}`,
    };
  }
  // Workspaces download this program from the server.
  const isServed = (getOwnBinary() ?? agent_binary ?? agent_binaries) !== undefined;
  const hint = isServed
    ? ""
    : "; this server runs from source, so agents have no program to fetch: `bun run build` makes one for the setting agent_binary";
  const detail = `${found.name} ${found.version} at ${found.path}${hint}`;
  if (terraform_cli_config === undefined || existsSync(terraform_cli_config)) return { name, status: "ok", detail };
  return { name, status: "warn", detail: `${detail}; ${terraform_cli_config} does not exist and is ignored` };
};

const LIST_TIMEOUT_MS = 3000;

/** Returns no finding when uploads are in the database and belong there. */
const checkBucket = async (config: Config & { database_url: string }): Promise<Finding[]> => {
  const name = "uploads";
  // Imported lazily, because a single server does not need it.
  const [{ makeBucket, describeBucketMismatch }, { listStoredObjects }] = await Promise.all([
    import("#db/pg/uploads.ts"),
    import("#db/pg/expected-objects.ts"),
  ]);
  const found = makeBucket(config, systemClock);
  try {
    await found?.check();
    // A database that does not respond is reported separately.
    const objects = await listStoredObjects(config.database_url, { wait_ms: LIST_TIMEOUT_MS }).catch(() => []);
    const problem = await describeBucketMismatch(found, objects);
    if (problem !== undefined) return [{ name, status: "wrong", detail: problem }];
  } catch (error) {
    return [{ name, status: "wrong", detail: (error as Error).message }];
  }
  if (!found) return [];
  if (config.s3_endpoint?.protocol === "http:" && !/^(127\.|localhost$|\[::1\]$)/.test(config.s3_endpoint.hostname)) {
    return [{ name, status: "warn", detail: `in ${found.name}, which uploads reach unencrypted` }];
  }
  return [{ name, status: "ok", detail: `in ${found.name}; written, read and removed there` }];
};

const BYTES_PER_MB = 1024 * 1024;
/** Below this, the next growth of the write-ahead log may fail. */
const MIN_FREE_BYTES = 256 * BYTES_PER_MB;
const MAX_WAL_BYTES = 512 * BYTES_PER_MB;
const DAY_MS = 86_400_000;
const EXPIRES_SOON_MS = 14 * DAY_MS;

type Env = Readonly<Record<string, string | undefined>>;

export const examine = async (config: Config, clock: Clock, quick: boolean, env: Env): Promise<Finding[]> => {
  const { data_dir } = config;
  const folder = checkDataDirectory(config);
  const findings = [
    ...checkOpenFiles(config),
    ...checkCertificate(config, clock),
    ...checkExposure(config),
    checkAppHosts(config),
  ];
  findings.push(checkLocalWorkspaces(config), ...checkLocalWorkspaceUser(config), await checkDocker(config, clock));
  findings.push(...(await checkImageRegistry(config, clock)));
  findings.push(await checkTerraform(config, env), ...(await checkHookConsumer(config, clock)));
  findings.push(await checkHomeBackupTarget(config, env, clock));
  const { database_url } = config;
  if (database_url !== undefined) {
    const cluster = { ...config, database_url };
    findings.push(...(await Promise.all([checkPostgres(cluster), checkBucket(cluster)])).flat());
  }
  if (!existsSync(data_dir)) return [folder, ...(await checkPorts(config, false)), checkClock(clock, 0), ...findings];
  if (folder.status === "wrong") return [folder];
  const isRunning = isInUse(data_dir);
  // A node's data directory contains only copies.
  if (database_url !== undefined) return [folder, checkDiskSpace(data_dir), checkClock(clock, 0), ...findings];
  return [
    folder,
    checkDiskSpace(data_dir),
    await checkEncryptionKey(data_dir),
    { name: "server", status: "ok", detail: isRunning ? "runs on this data directory" : "does not run" },
    ...(await checkDatabase(data_dir, clock, quick)),
    ...(await checkPorts(config, isRunning)),
    ...checkBackups(config, clock),
    ...findings,
  ];
};

const checkDataDirectory = ({ data_dir, local_workspace_user }: Config): Finding => {
  const name = "data directory";
  const path = resolve(data_dir);
  const found = statSync(data_dir, { throwIfNoEntry: false });
  if (!found) return { name, status: "warn", detail: `${path} does not exist yet; the first start creates it` };
  if (!found.isDirectory()) return { name, status: "wrong", detail: `${path} is not a folder` };
  try {
    accessSync(data_dir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch {
    return { name, status: "wrong", detail: `${path} cannot be read and written by this user` };
  }
  // The group of the user that local workspaces run as needs access.
  const forbiddenMode = local_workspace_user === undefined ? 0o077 : 0o067;
  if ((found.mode & forbiddenMode) !== 0) {
    return { name, status: "warn", detail: `${path} is accessible to other users of this machine: chmod 700 ${path}` };
  }
  return { name, status: "ok", detail: path };
};

const checkDiskSpace = (data_dir: string): Finding => {
  const { bavail, bsize } = statfsSync(data_dir);
  const free = bavail * bsize;
  const detail = `${formatSize(free)} free`;
  return { name: "disk", status: free < MIN_FREE_BYTES ? "wrong" : "ok", detail };
};

const checkEncryptionKey = async (data_dir: string): Promise<Finding> => {
  const name = "encryption key";
  const file = getKeyPath(data_dir);
  const found = statSync(file, { throwIfNoEntry: false });
  const hasData = existsSync(join(data_dir, "slipway.db"));
  if (!found) {
    if (!hasData) return { name, status: "ok", detail: "created at the first start" };
    const undecryptable = await describeUndecryptableSecrets(data_dir).catch(() => "unknown data");
    if (!undecryptable)
      return { name, status: "warn", detail: "encryption.key is missing; nothing is encrypted with it yet" };
    return {
      name,
      status: "wrong",
      detail: `encryption.key is missing, but is needed to decrypt ${undecryptable}: restore it from a backup`,
    };
  }
  if ((found.mode & 0o077) !== 0)
    return { name, status: "wrong", detail: `other users can read it: chmod 600 ${file}` };
  try {
    const encryption = openEncryption(data_dir);
    // The database check reports an unreadable database.
    const undecryptable = hasData
      ? await describeUndecryptableSecrets(data_dir, encryption).catch(() => undefined)
      : undefined;
    if (undecryptable)
      return {
        name,
        status: "wrong",
        detail: `does not match the key that encrypted ${undecryptable}: restore that key, or enter these again`,
      };
  } catch (error) {
    if (!(error instanceof EncryptionKeyError)) throw error;
    return { name, status: "wrong", detail: error.message };
  }
  return { name, status: "ok", detail: "present, readable only by this user" };
};

const checkDatabase = async (data_dir: string, clock: Clock, quick: boolean): Promise<Finding[]> => {
  const name = "database";
  try {
    const { exists, schema, problem, missing, migrated_at, database_bytes, wal_bytes } = inspectDatabase(data_dir);
    const unfinished = findUnfinishedMove(data_dir);
    if (unfinished !== undefined) return [{ name, status: "wrong", detail: unfinished }, checkClock(clock, 0)];
    if (!exists) return [{ name, status: "ok", detail: "none yet" }, checkClock(clock, 0)];
    const damage = quick ? undefined : await runQuickCheck(data_dir);
    const detail =
      damage === undefined
        ? `${formatSize(database_bytes)}, ${quick ? "not checked" : "intact"}`
        : `${damage}. ${NEXT_STEP}`;
    const wal = formatSize(wal_bytes);
    return [
      { name, status: damage === undefined ? "ok" : "wrong", detail },
      checkSchema(schema, problem, missing),
      { name: "write-ahead log", status: wal_bytes > MAX_WAL_BYTES ? "warn" : "ok", detail: wal },
      checkClock(clock, migrated_at),
    ];
  } catch (error) {
    const { message } = error as Error;
    return [{ name, status: "wrong", detail: isDamage(error) ? `damaged: ${message}. ${NEXT_STEP}` : message }];
  }
};

const checkSchema = (schema: number, problem: string | undefined, missing: readonly string[]): Finding => {
  const name = "schema";
  if (problem) return { name, status: "wrong", detail: problem };
  if (missing.length > 0)
    return { name, status: "warn", detail: `${missing.length} pending migrations run at the next start` };
  return { name, status: "ok", detail: `${schema}, up to date` };
};

/** `pastEvent` is the time of a past event; a clock before it is wrong. */
const checkClock = (clock: Clock, pastEvent: number): Finding => {
  const now = clock.now();
  const detail = toRfc3339(now);
  if (now < pastEvent)
    return {
      name: "clock",
      status: "wrong",
      detail: `${detail} is before the last migration, ${toRfc3339(pastEvent)}`,
    };
  return { name: "clock", status: now < Date.UTC(2026, 0, 1) ? "wrong" : "ok", detail };
};

/** Checks that the addresses are available; a running server is using them. */
const checkPorts = async ({ address: main, metrics_address }: Config, isRunning: boolean): Promise<Finding[]> => {
  const found = [await checkPort("address", main, isRunning)];
  if (metrics_address) found.push(await checkPort("metrics address", metrics_address, isRunning));
  return found;
};

const PORT_PROBLEMS: Readonly<Record<string, string>> = {
  EADDRINUSE: "is in use by another program",
  EADDRNOTAVAIL: "is not an address of this machine",
  EACCES: "requires more privileges than this user has",
};

const checkPort = async (name: string, target: Address, isRunning: boolean): Promise<Finding> => {
  const shown = address.print(target);
  if (isRunning || target.port === 0) return { name, status: "ok", detail: shown };
  const probe = createServer();
  const { promise, resolve: settle } = Promise.withResolvers<Finding>();
  probe.once("error", ({ code = "", message }: NodeJS.ErrnoException) =>
    settle({ name, status: "wrong", detail: `${shown} ${PORT_PROBLEMS[code] ?? `cannot be used: ${message}`}` }),
  );
  probe.listen(target.port, target.host.replace(/^\[|\]$/g, ""), () =>
    probe.close(() => settle({ name, status: "ok", detail: `${shown} is available` })),
  );
  return promise;
};

const checkBackups = (config: Config, clock: Clock): Finding[] => {
  const name = "backups";
  const folder = toBackupFolder(config);
  const { backup_interval } = config;
  try {
    const all = existsSync(folder) ? readdirSync(folder).filter(isBackupName).sort() : [];
    const newest = all.findLast((one) => parseBackupTime(one) <= clock.now());
    if (newest === undefined) {
      const detail = backup_interval ? `none yet in ${folder}` : "automatic backups are off; set backup_interval";
      return [{ name, status: backup_interval ? "ok" : "warn", detail }];
    }
    const { created_at } = readManifest(join(folder, newest));
    const isOverdue =
      backup_interval !== undefined && clock.now() - Date.parse(created_at) > 2 * backup_interval + DAY_MS / 24;
    return [{ name, status: isOverdue ? "wrong" : "ok", detail: `the newest is from ${created_at}` }];
  } catch (error) {
    return [{ name, status: "wrong", detail: (error as Error).message }];
  }
};

/** The server raises its limit to what the system allows; this command's limit can differ from a service's. */
const checkOpenFiles = ({ max_connections }: Config): Finding[] => {
  const name = "open files";
  const limit = openFilesLimit();
  if (limit === undefined) return [];
  const maxConnections = computeMaxConnections(limit, 1);
  if (maxConnections >= max_connections) return [{ name, status: "ok", detail: `the limit is ${limit}` }];
  const detail = `the limit of ${limit} allows ${maxConnections} connections, but max_connections is ${max_connections}: raise LimitNOFILE or \`ulimit -n\``;
  return [{ name, status: "warn", detail }];
};

/** Checks whether Docker templates can be used; a machine without an engine is valid too. */
const checkDocker = async (config: Config, clock: Clock): Promise<Finding> => {
  const { docker_host, agent_binary } = config;
  const accessUrl = (): URL => new URL("http://localhost/");
  const problem = await new DockerProvisioner({
    host: docker_host,
    program: agent_binary,
    clock,
    accessUrl,
  }).findProblem();
  const accessProblem = problem === undefined ? findContainerAccessProblem(config) : undefined;
  if (accessProblem !== undefined)
    return { name: "docker", status: "warn", detail: `the engine responds. ${accessProblem}` };
  const detail = problem === undefined ? "the engine responds" : `Docker workspaces are not available: ${problem}`;
  return { name: "docker", status: problem !== undefined && docker_host !== undefined ? "warn" : "ok", detail };
};

/** Checks whether repository images can be shared; builds work without sharing, too. */
const checkImageRegistry = async (config: Config, clock: Clock): Promise<Finding[]> => {
  const { docker_host: host, repository_registry } = config;
  const name = "image registry";
  if (repository_registry === undefined) return [];
  const accessUrl = (): URL => new URL("http://localhost/");
  const docker = new DockerProvisioner({ host, clock, accessUrl, registry: toImageRegistry(config) });
  try {
    const problem = await docker.checkRegistry();
    if (!problem) return [{ name, status: "ok", detail: `${repository_registry} responds` }];
    const detail = `images of repositories are not shared through ${repository_registry}: ${problem.message}`;
    return [{ name, status: problem.kind === "wrong" ? "wrong" : "warn", detail }];
  } catch (error) {
    return [{ name, status: "warn", detail: `cannot be reached: ${(error as Error).message}` }];
  }
};

const checkCertificate = (config: Config, clock: Clock): Finding[] => {
  const name = "certificate";
  try {
    const tls = readTls(config, clock.now());
    if (!tls) return [];
    const expiresSoon = tls.expires_at - clock.now() < EXPIRES_SOON_MS;
    return [{ name, status: expiresSoon ? "warn" : "ok", detail: `valid until ${toRfc3339(tls.expires_at)}` }];
  } catch (error) {
    if (!(error instanceof TlsError)) throw error;
    return [{ name, status: "wrong", detail: error.message }];
  }
};

/** Warns about combinations of settings that are valid one by one. */
const checkExposure = (config: Config): Finding[] => {
  const found: Finding[] = [];
  const warn = (detail: string): unknown => found.push({ name: "settings", status: "warn", detail });
  const isPlain = config.tls_cert_file === undefined;
  if (!listensOnLoopback(config) && config.access_url === undefined) {
    warn("the server listens for other machines, but access_url is not set: links may not work there");
  }
  if (config.access_url?.protocol === "http:" && isPlain && !listensOnLoopback(config)) {
    warn("access_url is http: passwords and tokens cross the network unencrypted");
  }
  if (config.access_url?.protocol === "https:" && isPlain && config.trusted_proxies.length === 0) {
    warn(
      "access_url is https through a proxy that trusted_proxies does not list: all requests appear to come from the proxy",
    );
  }
  const metrics = config.metrics_address?.host;
  if (metrics !== undefined && !/^(127\.|localhost$|::1$)/.test(metrics))
    warn("metrics are served to other machines without authentication");
  return found;
};

/** Checks whether apps and ports have their own hosts. Without them, most apps stay blank, and people should know before they try. */
const checkAppHosts = (config: Config): Finding => {
  const name = "app hosts";
  const hosts = makeAppHosts({ config, accessUrl: getAccessUrl(config, config.address.port) });
  if (hosts.exist) return { name, status: "ok", detail: `apps open at ${hosts.wildcard}` };
  const remedy =
    "set wildcard_access_url, such as *.apps.example.com, with a DNS entry and a certificate for these names";
  if (config.disable_path_apps) {
    return {
      name,
      status: "warn",
      detail: `apps cannot be opened: disable_path_apps is set and they have no hosts; ${remedy}`,
    };
  }
  if (config.path_apps_same_origin) {
    return {
      name,
      status: "warn",
      detail: `apps have no hosts and can act as their viewer (path_apps_same_origin); ${remedy}`,
    };
  }
  return {
    name,
    status: "warn",
    detail: `apps have no hosts, and most of them stay blank below the access URL; ${remedy}`,
  };
};

/** Calls the lifecycle hook consumer as the server would. */
const checkHookConsumer = async (config: Config, clock: Clock): Promise<Finding[]> => {
  const name = "hooks";
  const consumer = makeConsumer(config);
  if (!consumer) return [];
  if (!config.hook_enabled) return [{ name, status: "warn", detail: "turned off by hook_enabled" }];
  const problem = await probeConsumer(clock, consumer);
  if (problem !== undefined)
    return [{ name, status: "wrong", detail: `the consumer did not return a valid response: ${problem}` }];
  if (config.hook_mode === "observe") {
    return [{ name, status: "warn", detail: "the consumer responds; hook_mode observe enforces nothing" }];
  }
  return [{ name, status: "ok", detail: "the consumer responds" }];
};
