// Creates a support bundle of the running server: version, machine, settings without secrets, health, metrics, and the last lines of the
// log, each as a file in a tar. Secrets and personal data are removed.
import { availableParallelism, freemem, release, totalmem } from "node:os";
import { type Clock, rfc3339 } from "#base/clock.ts";
import { shownSettings } from "#base/config/describe.ts";
import { SERVER_SETTINGS } from "#base/config/settings.ts";
import { onActiveNode } from "#base/network/read-here.ts";
import { recentLog } from "#base/recent-log.ts";
import { redacted } from "#base/redact.ts";
import { COMMIT, VERSION } from "#base/version.ts";
import { inspectDatabase } from "#db/engine/inspect.ts";
import type { LivingNode } from "#db/pg/living-node.ts";
import type { DomainContext } from "../context.ts";
import { deploymentStats } from "../deployment/stats.ts";
import type { Health } from "../health/health.ts";

type Deps = Pick<DomainContext, "clock" | "config" | "sources" | "store"> & {
  readonly health: Pick<Health, "report">;
  /** Only in a cluster. */
  readonly cluster: Pick<LivingNode, "id" | "role" | "epoch" | "serves_ms" | "state" | "view"> | undefined;
};

const LOG_LINES = 2_000;

/** Returns the tar. Table sizes are left out, because determining them reads the whole database. */
export const supportBundle = async (deps: Deps): Promise<Uint8Array<ArrayBuffer>> => {
  const { clock, config, sources } = deps;
  const known = { config, sources: sources ?? ({} as NonNullable<typeof sources>) };
  onActiveNode();
  const lines = recentLog.after(0, LOG_LINES);
  return new Bun.Archive({
    "about.json": shown(describeProcess(clock)),
    "settings.json": redacted(shown(shownSettings(SERVER_SETTINGS, known))),
    "health.json": redacted(shown(await deps.health.report(false))),
    "figures.json": shown(await deploymentStats(deps)),
    ...(deps.cluster
      ? { "cluster.json": shown(clusterFacts(deps.cluster)) }
      : { "database.json": shown(inspectDatabase(config.data_dir)) }),
    "log.txt": lines.map(({ at, level, area, text }) => `${rfc3339(at)} ${level} ${area} ${text}\n`).join(""),
  }).bytes();
};

const clusterFacts = ({ id, role, epoch, serves_ms, state, view }: NonNullable<Deps["cluster"]>) => ({
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
  at: rfc3339(clock.now()),
  machine: { platform: process.platform, arch: process.arch, kernel: release(), processors: availableParallelism() },
  memory: { total: totalmem(), free: freemem() },
});

/** Formats a value for a file of the bundle. */
export const shown = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;
