// The program inside a workspace (`slipway agent`): connects, runs what the manifest names, reports to the server, and shuts down in order.
// The work itself is in the other files of this folder.
import { mkdirSync } from "node:fs";
import { type Clock, keepProcessAlive } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { type Random, systemRandom } from "#base/random.ts";
import { coalesce, finishesWithin, pause, waitForAbort } from "#base/retry.ts";
import { VERSION } from "#base/version.ts";
import { PREBUILDS_USERNAME } from "#schema/workspaces/prebuilds.ts";
import type { Manifest } from "#src/wire/gen/agent_pb.ts";
import { AgentToken } from "./agent-token.ts";
import { AgentSession } from "./connection/agent-session.ts";
import { type AgentApi, Connection, DaemonStopped } from "./connection/connection.ts";
import { awaitClaim } from "./connection/reinit.ts";
import { Reports } from "./connection/reports.ts";
import { resolveFolder } from "./environment.ts";
import { type OrphanOptions, waitUntilOrphaned } from "./orphan.ts";
import { Lifecycle } from "./scripts/lifecycle.ts";
import { Logs } from "./scripts/logs.ts";
import { omitToken } from "./token-file.ts";

export type DaemonOptions = {
  /** The server's access URL. */
  url: URL;
  /** The agent's token. */
  token: string;
  /** Shuts the daemon down: it runs its stop scripts, reports and returns. */
  signal: AbortSignal;
  clock: Clock;
  env: Readonly<Record<string, string | undefined>>;
  random?: Random;
  /** Conditions under which the daemon ends on its own. */
  orphan?: OrphanOptions;
};

/** How long a daemon that was shut down by the server waits until its process is killed from outside. */
const EXIT_DELAY_MS = 5 * 60_000;
/** How long to wait at shutdown for pending reports to be delivered. */
const FLUSH_TIMEOUT_MS = 3_000;

/**
 * Runs until the signal fires, or until five minutes after the server has asked the daemon to end. Resolves when all processes that it
 * started have ended.
 */
export const runDaemon = async (options: DaemonOptions): Promise<void> => {
  const { url, clock, random = systemRandom, orphan } = options;
  const env = omitToken(options.env);
  const token = new AgentToken(options.token, env);
  const endRequested = new AbortController();
  const orphanEnd = new AbortController();
  const filesGone = new AbortController();
  const finished = new AbortController();
  const stopped = AbortSignal.any([options.signal, orphanEnd.signal]);
  const signal = AbortSignal.any([stopped, endRequested.signal]);
  const processHold = keepProcessAlive();
  let session: AgentSession | undefined;
  const connection = new Connection({
    url,
    token,
    clock,
    random,
    ending: signal,
    greet: async (api, abort) => {
      const manifest = await api.getManifest({}, abort);
      await reportStartup(api, manifest, env, abort);
      // The daemon runs its first manifest; a new build starts a new daemon. A claim is the exception: it creates a new agent. Nothing is
      // reported for that agent until the daemon restarts its session.
      if (session) {
        if (session.isForAgent(manifest)) {
          session.renewSecrets(manifest);
          session.updateToken(token.value);
          lifecycle.resend();
        }
      } else if (!signal.aborted) {
        session = startSession(manifest);
        if (manifest.ownerUsername === PREBUILDS_USERNAME) claim = restartWhenClaimed(session);
      }
    },
  });
  const startSession = (manifest: Manifest): AgentSession =>
    AgentSession.begin({
      manifest,
      url,
      token,
      env,
      clock,
      random,
      connection,
      logs,
      reports,
      lifecycle,
      shutDown: () => endRequested.abort(),
      renewSecrets,
      renewToken: (next) => token.renew(next),
    });
  const renewSecrets = coalesce(async () => {
    try {
      const manifest = await connection.ask((api, abort) => api.getManifest({}, abort));
      if (session?.isForAgent(manifest)) session.renewSecrets(manifest);
    } catch (error) {
      if (!(error instanceof DaemonStopped)) log("daemon").error("the secrets cannot be requested: {error}", { error });
    }
  });
  /** Restarts as the new agent once the workspace is claimed. The current session ends without its stop scripts. */
  const restartWhenClaimed = async (first: AgentSession): Promise<void> => {
    if (!(await awaitClaim({ url, token: token.value, clock, random, signal }))) return;
    log("daemon").info("the workspace has an owner now, restarting as its agent");
    try {
      const manifest = await connection.ask((api, abort) => api.getManifest({}, abort));
      if (first.isForAgent(manifest)) return;
      await first.abandon();
      await connection.ask((api, abort) => reportStartup(api, manifest, env, abort));
      if (!signal.aborted) session = startSession(manifest);
    } catch (error) {
      if (!(error instanceof DaemonStopped)) log("daemon").error("the agent cannot restart: {error}", { error });
    }
  };
  let claim: Promise<void> = Promise.resolve();
  const logs = new Logs({ connection, clock, random });
  const reports = new Reports({ connection, clock, random });
  const lifecycle = new Lifecycle({ reports, clock });
  if (orphan) {
    const isConnected = (): boolean => connection.isOpen;
    void waitUntilOrphaned(orphan, { clock, signal: finished.signal, isConnected }).then((orphaned) => {
      if (!orphaned) return;
      log("daemon").warn("ending, because {reason}", { reason: orphaned.reason });
      if (orphaned.isGone) filesGone.abort();
      orphanEnd.abort();
    });
  }
  const running = connection.run();
  try {
    await waitForAbort(signal);
    log("daemon").info("stopping");
    // Finish a claim in progress first, unless the server delays it.
    await finishesWithin(clock, FLUSH_TIMEOUT_MS, claim);
    if (!session) return;
    await session.end(filesGone.signal);
    let delivered = false;
    const flushed = Promise.all([logs.flush(), reports.flush()]).then(() => {
      delivered = true;
    });
    await finishesWithin(clock, FLUSH_TIMEOUT_MS, Promise.race([flushed, connection.refused]));
    if (!delivered) log("daemon").warn("stopped before everything was delivered to the server");
  } finally {
    connection.stop();
    await running;
    // A container engine would restart a process that exits before its container is stopped.
    if (endRequested.signal.aborted) await pause(clock, EXIT_DELAY_MS, stopped);
    finished.abort();
    processHold.cancel();
  }
};

/** Reports this daemon's version and folder. Creates the folder so that the reported path exists. */
const reportStartup = async (
  api: AgentApi,
  manifest: Manifest,
  env: DaemonOptions["env"],
  abort: AbortSignal,
): Promise<void> => {
  const directory = resolveFolder(manifest.directory, env);
  try {
    mkdirSync(directory, { recursive: true });
  } catch (error) {
    log("daemon").error("the agent's folder {directory} cannot be created: {error}", { directory, error });
  }
  await api.updateStartup({ startup: { version: `v${VERSION}`, expandedDirectory: directory, subsystems: [] } }, abort);
};
