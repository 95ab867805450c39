// What counts as use of a workspace and what that does to its deadline (facts/platform 2.7; rules TI-10 to TI-13). Pure. Passive
// streams (an open page, a watcher) never come here.
import type { Use } from "#schema/workspaces/schedule.ts";
import { type By, note, SERVER } from "./activity-note.ts";
import { bumpedDeadline } from "./deadline.ts";
import type { Decision, WorkspaceState } from "./decision.ts";
import type { ScheduleRules } from "./schedule-rules.ts";
import { changed } from "./state.ts";

/** One report of use; `at` in milliseconds since 1970. */
export type ActivityReport = {
  readonly reason: Use;
  readonly at: number;
  /** What works, in words, for the reason `job`. */
  readonly detail?: string | undefined;
  /** The agent it was reported by, or is about. */
  readonly agent_id?: string | undefined;
  /** vscode, jetbrains, reconnecting-pty or ssh. */
  readonly app_name?: string | undefined;
  /** The person at the other end, when known. */
  readonly by?: By | undefined;
};

/** Traffic of apps, and a report of use that does not say of what, only say that the workspace was used. */
export const movesDeadline = ({ reason, app_name }: ActivityReport): boolean =>
  reason === "usage" ? app_name !== undefined : reason !== "app_traffic";

/** What the entry of jobs begins with. */
const KEPT_BY = "Kept running by: ";

/** The jobs that an entry names. */
export const keptBy = (detail: string): string[] =>
  detail.startsWith(KEPT_BY) ? detail.slice(KEPT_BY.length).split(", ") : [];

/** Moves the deadline when the rules say so; else `stale`. */
export const recordActivity = (
  state: WorkspaceState,
  rules: ScheduleRules,
  report: ActivityReport,
  now: number,
): Decision => {
  const deadline = movesDeadline(report) ? bumpedDeadline(state, rules, Math.min(report.at, now)) : undefined;
  if (deadline === undefined) return { kind: "stale" };
  const by = report.by ?? (report.agent_id ? { kind: "agent" as const, id: report.agent_id, name: "agent" } : SERVER);
  const kept = note(state, now, { reason: "activity", detail: wordsFor(report), by, new_deadline: deadline });
  return changed(state, { build: { deadline, updated_at: now } }, kept);
};

const wordsFor = ({ reason, app_name, detail }: ActivityReport): string => {
  if (reason === "job") return `${KEPT_BY}${detail}`;
  if (reason === "usage") return `${app_name} is in use.`;
  return WORDS[reason];
};

const WORDS: Record<Exclude<Use, "usage" | "job">, string> = {
  agent_stats: "Connections to the workspace are open.",
  terminal: "A terminal is open.",
  port_forward: "A port of the workspace is in use.",
  app_status: "An app reported that it begins or ends to work.",
  app_traffic: "An app was used.",
};
