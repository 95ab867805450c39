// `slipway serve`: reads the settings, opens the context, starts the server, announces it, and stops it on a signal.
import { resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Clock } from "#base/clock.ts";
import { logLevels } from "#base/config/log-levels.ts";
import {
  type Config,
  findContainerAccessProblem,
  getAllowedHosts,
  type LoadedConfig,
  loadConfig,
  SECRET_VARIABLES,
} from "#base/config.ts";
import { armFailpoint } from "#base/failpoint.ts";
import { log } from "#base/log.ts";
import { waitForAbort } from "#base/retry.ts";
import { computeMaxConnections, openFilesLimit } from "#base/system/open-files.ts";
import { readTls } from "#base/tls.ts";
import { VERSION } from "#base/version.ts";
import { checkLocalWorkspaces } from "#domain/health/local.ts";
import type { Membership, StandbyServices, StandingBy } from "#src/cluster/membership.ts";
import { startLogging } from "../logging.ts";
import { explainReason } from "../reason.ts";
import { EXIT, type RunVerb, type VerbInput } from "../verb.ts";

/** The functions of src/context and src/server.ts that `serve` calls. */
export interface ServeDeps<Context extends ServedContext> {
  openContext(options: OpenOptions): Promise<Context>;
  startServer(context: Context): Promise<StartedServer>;
}

interface StartedServer {
  url: URL;
  /** The metrics listener, if configured. */
  metrics?: URL | undefined;
  stop(reason: string): Promise<void>;
}

interface OpenOptions {
  config: Config;
  sources: LoadedConfig["sources"];
  clock: Clock;
  signal: AbortSignal;
  /** Called by a part that finds the process unable to continue, such as on a full disk. */
  fatal(error: Error): void;
  /** Environment variables of this process; a few are passed to local workspaces. */
  environment: Readonly<Record<string, string | undefined>>;
  /** The membership in a cluster, once this node is the active one. */
  membership?: Membership | undefined;
}

export interface ServedContext extends AsyncDisposable {
  /** Returns a new link to the setup page if there are no users. */
  setupUrl(): Promise<string | undefined>;
}

export const run: RunVerb = async (input) => {
  const { config: loadedConfig, sources } = loadConfig(input);
  input.forgetVariables?.(SECRET_VARIABLES);
  startLogging(loadedConfig, input);
  const config = limitConnections(loadedConfig, sources.max_connections.from !== "default");
  const startSettings = collectSettings(loadedConfig, input.clock);
  input.onReload?.(() => reload(input, startSettings));
  if (input.env.SLIPWAY_FAILPOINT) armFailpoint(input.env.SLIPWAY_FAILPOINT);
  const [{ openContext }, { startServer }] = await Promise.all([
    import("#src/context/open.ts"),
    import("#src/server.ts"),
  ]);
  try {
    return await serve(input, { config, sources }, { openContext, startServer });
  } catch (error) {
    const reason = explainReason(error, config);
    if (reason === undefined) throw error;
    input.printError(`slipway serve: ${reason}\n`);
    return EXIT.failed;
  }
};

/** Open files per connection in a cluster: forwarding to another node uses two more connections. */
const DESCRIPTORS_PER_CONNECTION = 3;

/** A limit of open files above this is normal, even if it lowers `max_connections`, and causes no warning. */
const WARNING_THRESHOLD = 4_096;

/** Lowers `max_connections` to fit the limit of open files. */
const limitConnections = (config: Config, isConfigured: boolean): Config => {
  const limit = openFilesLimit();
  const supported =
    limit && computeMaxConnections(limit, config.cluster_active === "every" ? DESCRIPTORS_PER_CONNECTION : 1);
  if (supported === undefined || supported >= config.max_connections) return config;
  log("server")[isConfigured || supported < WARNING_THRESHOLD ? "warn" : "debug"](
    "max_connections is lowered to fit the limit on open files. Raise LimitNOFILE of the service or `ulimit -n`",
    { max_connections: supported, configured: config.max_connections, limit },
  );
  return { ...config, max_connections: supported };
};

/** Reloads the settings. Only log settings apply to a running server; the log lists settings that require a restart. */
function reload(input: VerbInput, startSettings: StartSettings): void {
  try {
    const { config } = loadConfig(input);
    startLogging(config, input);
    const needsRestart = listChanges(startSettings, collectSettings(config, input.clock));
    const { log_level, log_format } = config;
    log("server").info("the settings were reloaded", {
      log_level: logLevels.print(log_level),
      log_format,
      ...(needsRestart.length > 0 ? { with_the_next_start: needsRestart } : {}),
    });
  } catch (error) {
    log("server").error("the settings are invalid; the previous ones stay in effect", { error: formatError(error) });
  }
}

/** Descriptions of the settings and the certificate with which the server started. */
type StartSettings = ReadonlyMap<string, unknown>;

/** Throws `TlsError`, also for renewed files that could not be loaded at start. */
const collectSettings = (config: Config, clock: Clock): StartSettings =>
  new Map<string, unknown>([
    ...Object.entries(config).map(([key, value]): [string, unknown] => [
      key,
      value instanceof URL ? value.href : value,
    ]),
    ["the certificate in tls_cert_file", readTls(config, clock.now())?.cert],
  ]);

const listChanges = (startSettings: StartSettings, now: StartSettings): string[] =>
  [...now.keys()].filter((key) => !key.startsWith("log_") && !isDeepStrictEqual(startSettings.get(key), now.get(key)));

const formatError = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/**
 * Serves until the signal aborts, then shuts down: refuses new work, ends streams, flushes writes to disk. Returns 0 if that completes
 * within `shutdown_timeout`, else 1 (rule CF-8). If a part reports a fatal error, returns 1 immediately.
 */
export const serve = async <Context extends ServedContext>(
  input: VerbInput,
  { config, sources }: Pick<LoadedConfig, "config" | "sources">,
  deps: ServeDeps<Context>,
): Promise<number> => {
  const { signal } = input;
  const { promise: fatalError, resolve: fatal } = Promise.withResolvers<Error>();
  const isNode = config.database_url !== undefined;
  const clock = isNode ? new (await import("#src/cluster/database-clock.ts")).DatabaseClock(input.clock) : input.clock;
  const membership = isNode ? await standBy({ ...input, clock }, config, fatal) : undefined;
  if (membership === "stopped") return EXIT.ok;
  const context = await deps.openContext({
    config,
    sources,
    clock,
    signal,
    fatal,
    environment: input.env,
    membership,
  });
  let server: StartedServer;
  try {
    server = await deps.startServer(context);
  } catch (error) {
    await context[Symbol.asyncDispose]();
    throw error;
  }
  await announce(input, config, server, context);
  void warnOfContainers(config, clock);
  // After a fatal error, a graceful shutdown would try to write. Acknowledged writes are on disk, so exiting immediately loses nothing.
  if ((await Promise.race([waitForAbort(signal), fatalError])) instanceof Error) return EXIT.failed;
  const stopped = (async () => {
    await server.stop("the server is shutting down");
    await context[Symbol.asyncDispose]();
  })();
  return stopWithin(clock, config.shutdown_timeout, stopped);
};

/** Waits as a node of a cluster until it is the active one. A standby node has nothing to write when it stops. */
const standBy = async (
  input: VerbInput,
  config: Config,
  fatal: (error: Error) => void,
): Promise<Membership | "stopped"> => {
  const { clock, signal } = input;
  if (config.cluster_active === "every") return await joinOthers(input, config, fatal);
  const { joinCluster } = await import("#src/cluster/membership.ts");
  const spareMetrics = config.metrics_address && (await import("#src/api/metrics/spare.ts"));
  const readsModule = config.cluster_reads === "every" ? await import("./reads.ts") : undefined;
  const onStandby = (standby: StandingBy): StandbyServices => {
    const { port, node } = standby;
    input.print(`Slipway ${VERSION} is on standby on port ${port}: another node of the cluster is active`);
    const metrics =
      spareMetrics &&
      config.metrics_address &&
      spareMetrics.serveSpareMetrics(node, clock, config.metrics_address, getAllowedHosts(config));
    if (metrics) input.print(`Metrics: ${metrics.url.href}`);
    const reads = readsModule?.serveReads(standby, { config, clock });
    return {
      get reads() {
        return reads?.port;
      },
      async [Symbol.asyncDispose]() {
        await metrics?.[Symbol.asyncDispose]();
        await reads?.[Symbol.asyncDispose]();
      },
    };
  };
  try {
    return await joinCluster({ config, clock, signal, fatal, standsBy: onStandby });
  } catch (error) {
    if (signal.aborted) return "stopped";
    throw error;
  }
};

/** Runs as one of several active nodes. */
const joinOthers = async (
  { clock, signal }: VerbInput,
  config: Config,
  fatal: (error: Error) => void,
): Promise<Membership | "stopped"> => {
  const [{ joinActive }, { serveReads }] = await Promise.all([import("#src/cluster/active.ts"), import("./reads.ts")]);
  try {
    return await joinActive({ config, clock, signal, fatal, openReads: (as) => serveReads(as, { config, clock }) });
  } catch (error) {
    if (signal.aborted) return "stopped";
    throw error;
  }
};

const announce = async (
  input: VerbInput,
  config: Config,
  { url, metrics }: StartedServer,
  context: ServedContext,
): Promise<void> => {
  const address = url.href.replace(/\/$/, "");
  input.print(`Slipway ${VERSION} is listening on ${address}`);
  const setup = await context.setupUrl();
  if (setup !== undefined) input.print(`Create the first user (the link works once, for 30 minutes): ${setup}`);
  input.print(`API documentation: ${address}/swagger`);
  if (metrics) input.print(`Metrics: ${metrics.href}`);
  input.print(`Data directory: ${await describeDataLocation(config)}`);
  input.print(`Local workspaces are ${checkLocalWorkspaces(config).detail}`);
};

/** Warns if a Docker Engine is available whose containers could not reach this server. */
const warnOfContainers = async (config: Config, clock: Clock): Promise<void> => {
  const problem = findContainerAccessProblem(config);
  if (problem === undefined) return;
  const { DockerProvisioner } = await import("#src/provisioners/docker/docker.ts");
  const { docker_host: host, agent_binary: program } = config;
  const accessUrl = (): URL => new URL("http://localhost/");
  const engineProblem = await new DockerProvisioner({ host, program, clock, accessUrl }).findProblem();
  if (engineProblem === undefined) log("server").warn(problem);
};

const describeDataLocation = async ({ database_url, data_dir }: Config): Promise<string> => {
  if (database_url === undefined) return resolve(data_dir);
  // Loaded only here: a single server does not need it.
  return (await import("#db/pg/hosts.ts")).redactPassword(database_url);
};

async function stopWithin(clock: Clock, ms: number, stopped: Promise<void>): Promise<number> {
  const { promise: timedOut, resolve: giveUp } = Promise.withResolvers<number>();
  const timer = clock.after(ms, () => {
    log("server").error("shutdown took longer than shutdown_timeout; closing the remaining connections", {
      timeout_ms: ms,
    });
    giveUp(EXIT.failed);
  });
  try {
    return await Promise.race([stopped.then(() => EXIT.ok), timedOut]);
  } finally {
    timer.cancel();
  }
}
