// Creates a support bundle of the running server: version, machine, settings without secrets, health, metrics, and the last lines of the
// log, each as a file in a tar. Secrets and personal data are removed.
import { availableParallelism, freemem, release, totalmem } from "node:os";
import { type Clock, toRfc3339 } from "#base/clock.ts";
import { describeSettings } from "#base/config/describe.ts";
import { SERVER_SETTINGS } from "#base/config/settings.ts";
import { requireActiveNode } from "#base/network/local-reads.ts";
import { recentLog } from "#base/recent-log.ts";
import { redact } from "#base/redact.ts";
import { COMMIT, VERSION } from "#base/version.ts";
import { inspectDatabase } from "#db/engine/inspect.ts";
import type { BaseNode } from "#db/pg/base-node.ts";
import type { DomainContext } from "../context.ts";
import { loadDeploymentStats } from "../deployment/stats.ts";
import type { Health } from "../health/health.ts";

type Deps = Pick<DomainContext, "clock" | "config" | "sources" | "store"> & {
  readonly health: Pick<Health, "report">;
  /** Undefined outside a cluster. */
  readonly cluster: Pick<BaseNode, "id" | "role" | "epoch" | "serves_ms" | "state" | "view"> | undefined;
};

const LOG_LINES = 2_000;

/** Returns the tar. Table sizes are left out, because determining them reads the whole database. */
export const createSupportBundle = async (deps: Deps): Promise<Uint8Array<ArrayBuffer>> => {
  const { clock, config, sources } = deps;
  const known = { config, sources: sources ?? ({} as NonNullable<typeof sources>) };
  requireActiveNode();
  const lines = recentLog.listAfter(0, LOG_LINES);
  return new Bun.Archive({
    "about.json": formatJson(describeProcess(clock)),
    "settings.json": redact(formatJson(describeSettings(SERVER_SETTINGS, known))),
    "health.json": redact(formatJson(await deps.health.report(false))),
    "figures.json": formatJson(await loadDeploymentStats(deps)),
    ...(deps.cluster
      ? { "cluster.json": formatJson(describeCluster(deps.cluster)) }
      : { "database.json": formatJson(inspectDatabase(config.data_dir)) }),
    "log.txt": lines.map(({ at, level, area, text }) => `${toRfc3339(at)} ${level} ${area} ${text}\n`).join(""),
  }).bytes();
};

const describeCluster = ({ id, role, epoch, serves_ms, state, view }: NonNullable<Deps["cluster"]>) => ({
  id,
  role,
  epoch,
  serves_ms,
  ...(state.parts !== undefined && { parts: state.parts }),
  view,
});

/** Describes this program and its machine. */
export const describeProcess = (clock: Clock) => ({
  version: VERSION,
  commit: COMMIT,
  bun: Bun.version,
  at: toRfc3339(clock.now()),
  machine: { platform: process.platform, arch: process.arch, kernel: release(), processors: availableParallelism() },
  memory: { total: totalmem(), free: freemem() },
});

/** Formats a value for a file of the bundle. */
export const formatJson = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;
