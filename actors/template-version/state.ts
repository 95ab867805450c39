// Decides the state transitions of a template version. Its import job changes like any job (actors/job/state.ts), and a successful import
// adds the manifest. Late commands are `stale` (rules TP-13 to TP-16). Pure.

import type { Statement } from "#db/engine/sql.ts";
import { clearTimer, setTimer } from "#db/engine/timers.ts";
import { manifestColumns, type TemplateVersionRow, updateTemplateVersion } from "#db/templates/versions.ts";
import { insertJobLogs, type JobRow, updateJob } from "#db/workspaces/jobs.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import { isActive, toJobStatus } from "#schema/workspaces/job.ts";
import { appendLogs, type NewLogLine, presentJobLog } from "../job/logs.ts";
import {
  type AttemptRef,
  getReapTime,
  isCurrentAttempt,
  type JobCommand,
  type JobPatch,
  type JobState,
  transitionJob,
} from "../job/state.ts";
import type { JobLogLine } from "../runtime/events.ts";

/** The state in memory: the job, and the row without its large texts and the columns that are derived from them. */
export type VersionState = {
  readonly version: Omit<TemplateVersionRow, "readme" | keyof ReturnType<typeof manifestColumns>>;
  readonly job: JobState & Pick<JobRow, "tags">;
};

/** The result of an import. `manifest` is JSON text. */
export type ImportResult = { readonly manifest: string; readonly readme: string };

export type VersionCommand =
  | JobCommand
  | ({
      readonly type: "say";
      readonly now: number;
      readonly first_id: number;
      readonly logs: readonly NewLogLine[];
    } & AttemptRef)
  | ({ readonly type: "imported"; readonly now: number } & ImportResult & AttemptRef)
  /** `manifest`: set if only values of its variables are missing. */
  | ({
      readonly type: "failed";
      readonly now: number;
      readonly error: string;
      readonly error_code: string;
      readonly manifest?: string;
    } & AttemptRef);

export type VersionChange = {
  readonly state: VersionState;
  readonly writes: readonly Statement[];
  readonly announce?: { readonly logs: readonly JobLogLine[]; readonly done: boolean };
  readonly effect?: "submit" | "cancel";
};

/** The name of the timer that ends a silent job. */
export const REAP = "reap";
export const ACTOR = "template_version";

export const transition = (state: VersionState, command: VersionCommand): VersionChange | "stale" => {
  if (command.type === "say") return appendOutput(state, command);
  if (command.type === "failed") return fail(state, command);
  if (command.type !== "imported") return applyPatch(state, transitionJob(state.job, command), command.type);
  const { now, attempt } = command;
  const patch = transitionJob(state.job, { type: "complete", now, attempt });
  const change = applyPatch(state, patch, "complete");
  if (change === "stale" || toJobStatus(change.state.job) !== "succeeded") return change;
  const { readme } = command;
  const columns = manifestColumns(JSON.parse(command.manifest) as Manifest);
  return {
    ...change,
    state: { ...change.state, version: { ...state.version, updated_at: now } },
    writes: [...change.writes, updateTemplateVersion(state.version.id, { ...columns, readme, updated_at: now })],
  };
};

const fail = (state: VersionState, command: VersionCommand & { type: "failed" }): VersionChange | "stale" => {
  const change = applyPatch(state, transitionJob(state.job, { ...command, type: "fail" }), "fail");
  const { manifest, now } = command;
  if (change === "stale" || manifest === undefined) return change;
  return {
    ...change,
    writes: [...change.writes, updateTemplateVersion(state.version.id, { manifest, updated_at: now })],
  };
};

/** Changes the job, and updates its timer. */
const applyPatch = (
  state: VersionState,
  patch: JobPatch | undefined,
  type: JobCommand["type"],
): VersionChange | "stale" => {
  if (!patch) return "stale";
  const job = { ...state.job, ...patch };
  const hasEnded = !isActive(job);
  const { id } = state.version;
  return {
    state: { ...state, job },
    writes: [
      updateJob(job.id, patch, { expect: 1 }),
      hasEnded ? clearTimer(ACTOR, id, REAP) : setTimer(ACTOR, id, REAP, getReapTime(job)),
    ],
    announce: hasEnded ? { logs: [], done: true } : undefined,
    effect: toEffect(type, hasEnded),
  };
};

const toEffect = (type: JobCommand["type"], hasEnded: boolean): VersionChange["effect"] => {
  // A job that was given up may still be in the queue.
  if (type === "cancel" || (type === "reap" && hasEnded)) return "cancel";
  return type === "requeue" && !hasEnded ? "submit" : undefined;
};

const appendOutput = (state: VersionState, command: VersionCommand & { type: "say" }): VersionChange | "stale" => {
  if (!isActive(state.job) || !isCurrentAttempt(state.job, command)) return "stale";
  const added = appendLogs(state.job, command.logs, command.first_id, command.now);
  if (!added) return { state, writes: [] };
  const { rows, patch } = added;
  return {
    state: { ...state, job: { ...state.job, ...patch } },
    writes: [updateJob(state.job.id, patch), ...(rows.length > 0 ? [insertJobLogs(rows)] : [])],
    announce: { logs: rows.map(presentJobLog), done: false },
  };
};
