// Decides how activity in a workspace affects its deadline (facts/platform 2.7; rules TI-10 to TI-13). An open page or another passive
// stream is not activity and is not reported here. Pure.
import type { Use } from "#schema/workspaces/schedule.ts";
import { insertNote, type Originator, SERVER } from "./activity-note.ts";
import { bumpDeadline } from "./deadline.ts";
import type { Decision, WorkspaceState } from "./decision.ts";
import type { ScheduleRules } from "./schedule-rules.ts";
import { toVisibleChange } from "./state.ts";

export type ActivityReport = {
  readonly reason: Use;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Names of the running jobs, for the reason `job`. */
  readonly detail?: string | undefined;
  /** The agent that reported the activity, or in which it took place. */
  readonly agent_id?: string | undefined;
  /** vscode, jetbrains, reconnecting-pty or ssh. */
  readonly app_name?: string | undefined;
  /** The person who caused the activity, if known. */
  readonly by?: Originator | undefined;
};

/** Returns false for traffic of apps and for usage without an app name, which count as use but do not move the deadline. */
export const movesDeadline = ({ reason, app_name }: ActivityReport): boolean =>
  reason === "usage" ? app_name !== undefined : reason !== "app_traffic";

/** The prefix of notes about jobs. */
const JOBS_PREFIX = "Kept running by: ";

/** Returns the jobs that a note names. */
export const parseJobs = (detail: string): string[] =>
  detail.startsWith(JOBS_PREFIX) ? detail.slice(JOBS_PREFIX.length).split(", ") : [];

/** Moves the deadline as the rules require. Returns `stale` if it stays. */
export const recordActivity = (
  state: WorkspaceState,
  rules: ScheduleRules,
  report: ActivityReport,
  now: number,
): Decision => {
  const deadline = movesDeadline(report) ? bumpDeadline(state, rules, Math.min(report.at, now)) : undefined;
  if (deadline === undefined) return { kind: "stale" };
  const by = report.by ?? (report.agent_id ? { kind: "agent" as const, id: report.agent_id, name: "agent" } : SERVER);
  const entry = insertNote(state, now, {
    reason: "activity",
    detail: describeActivity(report),
    by,
    new_deadline: deadline,
  });
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
