// What someone who helps wants to know of this server while it runs: version and machine, settings without secrets, its health, figures,
// and the last lines of its log, each a file of one tar. Whatever looks like a secret or names a person is taken out.
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
  /** In a cluster only. */
  readonly cluster: Pick<LivingNode, "id" | "role" | "epoch" | "serves_ms" | "state" | "view"> | undefined;
};

const LOG_LINES = 2_000;

/** The bytes of the tar. Sizes of tables are left out: finding them reads all of the database. */
export const supportBundle = async (deps: Deps): Promise<Uint8Array<ArrayBuffer>> => {
  const { clock, config, sources } = deps;
  const known = { config, sources: sources ?? ({} as NonNullable<typeof sources>) };
  onActiveNode();
  const lines = recentLog.after(0, LOG_LINES);
  return new Bun.Archive({
    "about.json": shown(aboutHere(clock)),
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

/** This program and the machine it runs on. */
export const aboutHere = (clock: Clock) => ({
  version: VERSION,
  commit: COMMIT,
  bun: Bun.version,
  at: rfc3339(clock.now()),
  machine: { platform: process.platform, arch: process.arch, kernel: release(), processors: availableParallelism() },
  memory: { total: totalmem(), free: freemem() },
});

/** As the files of a bundle show it. */
export const shown = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;
