// Which activity counts as use of a workspace, and how it affects the deadline (facts/platform 2.7; rules TI-10 to TI-13). Pure. Passive
// streams (an open page, a watcher) are never reported here.
import type { Use } from "#schema/workspaces/schedule.ts";
import { note, type Originator, SERVER } from "./activity-note.ts";
import { bumpDeadline } from "./deadline.ts";
import type { Decision, WorkspaceState } from "./decision.ts";
import type { ScheduleRules } from "./schedule-rules.ts";
import { toVisibleChange } from "./state.ts";

/** A report of activity; `at` in milliseconds since 1970. */
export type ActivityReport = {
  readonly reason: Use;
  readonly at: number;
  /** Names of the running jobs, for the reason `job`. */
  readonly detail?: string | undefined;
  /** The agent that reported it or that it is about. */
  readonly agent_id?: string | undefined;
  /** vscode, jetbrains, reconnecting-pty or ssh. */
  readonly app_name?: string | undefined;
  /** The person who caused it, if known. */
  readonly by?: Originator | undefined;
};

/** Traffic of apps, and usage without an app name, count as use but do not move the deadline. */
export const movesDeadline = ({ reason, app_name }: ActivityReport): boolean =>
  reason === "usage" ? app_name !== undefined : reason !== "app_traffic";

/** Prefix of entries about jobs. */
const JOBS_PREFIX = "Kept running by: ";

/** Returns the jobs that an entry names. */
export const parseJobs = (detail: string): string[] =>
  detail.startsWith(JOBS_PREFIX) ? detail.slice(JOBS_PREFIX.length).split(", ") : [];

/** Moves the deadline if the rules say so; otherwise `stale`. */
export const recordActivity = (
  state: WorkspaceState,
  rules: ScheduleRules,
  report: ActivityReport,
  now: number,
): Decision => {
  const deadline = movesDeadline(report) ? bumpDeadline(state, rules, Math.min(report.at, now)) : undefined;
  if (deadline === undefined) return { kind: "stale" };
  const by = report.by ?? (report.agent_id ? { kind: "agent" as const, id: report.agent_id, name: "agent" } : SERVER);
  const entry = note(state, now, { reason: "activity", detail: describeActivity(report), by, new_deadline: deadline });
  return toVisibleChange(state, { build: { deadline, updated_at: now } }, entry);
};

const describeActivity = ({ reason, app_name, detail }: ActivityReport): string => {
  if (reason === "job") return `${JOBS_PREFIX}${detail}`;
  if (reason === "usage") return `${app_name} is in use.`;
  return DESCRIPTIONS[reason];
};

const DESCRIPTIONS: Record<Exclude<Use, "usage" | "job">, string> = {
  agent_stats: "Connections to the workspace are open.",
  terminal: "A terminal is open.",
  port_forward: "A port of the workspace is in use.",
  app_status: "An app reported that it started or finished work.",
  app_traffic: "An app was used.",
};
