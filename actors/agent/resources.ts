// An agent's disk and memory reports: the newest figures, the most recently killed processes, and the notifications for the owner. Pure.
import { toRfc3339 } from "#base/clock.ts";
import { formatSize } from "#base/format-size.ts";
import type { Statement } from "#db/engine/sql.ts";
import { insertNotification, type Notice } from "#db/notifications/notifications.ts";
import { type AgentResources, findSpaceLevel, MAX_MEMORY_KILLS, SPACE_LEVELS } from "#schema/agents/resources.ts";

type Amounts = { readonly used_bytes: number; readonly total_bytes: number };

export type ResourcesReport = {
  readonly home?: (Amounts & { readonly path: string }) | undefined;
  readonly memory?: Amounts | undefined;
  /** Oldest first. */
  readonly memory_kills: readonly { readonly process: string; readonly killed_at: number }[];
};

export type ReportedWorkspace = { readonly id: string; readonly owner_id: string; readonly name: string };

/** At most one notification about the same problem is sent per clock hour. */
const NOTICE_INTERVAL_MS = 3_600_000;

/** Merges a report into the current figures. Missing figures become unknown; killed processes are kept. */
export const mergeResources = (
  before: AgentResources | null,
  { home, memory, memory_kills }: ResourcesReport,
  now: number,
): AgentResources => {
  const level = home && findSpaceLevel({ used: home.used_bytes, total: home.total_bytes }, before?.home?.level);
  const kills = memory_kills.map(({ process, killed_at }) => ({ process, killed_at: toRfc3339(killed_at) })).reverse();
  return {
    ...(home && level ? { home: Object.assign({ level }, home) } : {}),
    ...(memory ? { memory } : {}),
    memory_kills: [...kills, ...(before?.memory_kills ?? [])].slice(0, MAX_MEMORY_KILLS),
    reported_at: toRfc3339(now),
  };
};

/** Returns the notifications for the workspace's owner: a disk that is nearly or completely full, and processes that were killed. */
export const buildResourceNotices = (
  workspace: ReportedWorkspace,
  before: AgentResources | null,
  { home }: AgentResources,
  { memory_kills }: ResourcesReport,
  now: number,
): Statement[] => {
  const { id, owner_id: user_id, name } = workspace;
  const hour = Math.floor(now / NOTICE_INTERVAL_MS);
  const buildNotice = (kind: Notice["kind"], dedupe: string, values: Notice["values"]): Statement =>
    insertNotification({
      now,
      user_id,
      kind,
      targets: [id],
      path: `/workspaces/${id}`,
      values: Object.assign({ workspace: name }, values),
      dedupe: `${dedupe}:${id}:${hour}`,
    });
  const rank = (level: (typeof SPACE_LEVELS)[number] = "ok") => SPACE_LEVELS.indexOf(level);
  const notices: Statement[] = [];
  if (home && rank(home.level) > rank(before?.home?.level)) {
    const values = {
      level: home.level === "full" ? "full" : "almost full",
      used: formatSize(home.used_bytes),
      total: formatSize(home.total_bytes),
      path: home.path,
    };
    notices.push(buildNotice("workspace_disk_full", `disk_${home.level}`, values));
  }
  if (memory_kills.length > 0) {
    const processNames = [...new Set(memory_kills.map(({ process }) => process || "a process"))].join(", ");
    notices.push(buildNotice("workspace_out_of_memory", "memory", { process: processNames }));
  }
  return notices;
};
