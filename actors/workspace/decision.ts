// The words of a workspace's mailbox: what it is told, and what a decision about it is made of (used by state.ts and the actor).
import type { AppError } from "#base/errors.ts";
import type { Statement } from "#db/engine/sql.ts";
import type { PlannedBuild } from "#db/schema/workspaces.ts";
import type { BuildRow } from "#db/workspaces/builds.ts";
import type { JobRow } from "#db/workspaces/jobs.ts";
import type { ScheduleRules } from "#db/workspaces/schedule-rules.ts";
import type { SnapshotRow } from "#db/workspaces/snapshots.ts";
import type { WorkspaceRow } from "#db/workspaces/workspaces.ts";
import type { Said } from "../job/report.ts";
import type { JobState, OfRun } from "../job/state.ts";
import type { JobLogLine } from "../runtime/events.ts";

export type WorkspaceState = {
  readonly workspace: WorkspaceRow;
  /** The build with the highest number. */
  readonly build: BuildRow;
  readonly job: JobState;
  /** What a worker must have to take the job. */
  readonly tags: Readonly<Record<string, string>>;
  /** Stage timings of the job so far. */
  readonly timings: JobRow["timings"];
  /** Agents that are signed in: those of the latest build, or while a stop or delete build is open those that it ends. */
  readonly agent_ids: readonly string[];
  /** The snapshot that is being made of it: nothing begins or ends meanwhile. */
  readonly capturing: SnapshotWork | null;
};

/** Everything a new build is made of; ids and keys are chosen by anyone who sends it. */
export type NewBuild = PlannedBuild & {
  /** Begins when this one succeeded. */
  readonly followed_by?: PlannedBuild;
};

/** A snapshot whose files are to be made or removed, and the provisioner that does it. */
export type SnapshotWork = {
  readonly snapshot_id: string;
  readonly provisioner: string;
  /** The home backup that its files come from; null: the workspace. */
  readonly home_backup_id: string | null;
};

/** The snapshot that a stop ends with, and those that have to go for it. */
export type OnStop = Omit<SnapshotWork, "home_backup_id"> & { readonly former: readonly SnapshotRow[] };

export type WorkspaceCommand =
  | { readonly type: "build"; readonly now: number; readonly build: NewBuild }
  /** A worker takes the build. `rows` are what it will bring to life, written now so that a fast daemon is known immediately. */
  | {
      readonly type: "start";
      readonly now: number;
      readonly job_id: string;
      readonly worker: {
        readonly id: string;
        readonly name: string;
        readonly places?: Readonly<Record<string, string>>;
      };
      readonly rows: readonly Statement[];
      readonly agent_ids: readonly string[];
      readonly daily_cost: number;
    }
  /** `first_id` is the first of as many reserved numbers as there are lines. */
  | ({ readonly type: "say"; readonly now: number; readonly job_id: string; readonly first_id: number } & Said & OfRun)
  | ({ readonly type: "touch"; readonly now: number; readonly job_id: string } & OfRun)
  /** What the build will cost a day; `guards` refuse the batch when that is more than is allowed by then. */
  | ({
      readonly type: "charge";
      readonly now: number;
      readonly job_id: string;
      readonly daily_cost: number;
      readonly guards: readonly Statement[];
    } & OfRun)
  | { readonly type: "cancel"; readonly now: number; readonly job_id: string }
  /** `rules`: what the template says about deadlines; absent for one that says nothing. */
  | ({
      readonly type: "complete";
      readonly now: number;
      readonly job_id: string;
      readonly state: string | null;
      /** It was cancelled, and nobody has said what it has left. */
      readonly unheard?: boolean;
      /** What only the end of the work has shown: the rows of its resources and agents. */
      readonly made?: {
        readonly rows: readonly Statement[];
        readonly agent_ids: readonly string[];
        readonly daily_cost: number;
      };
      readonly rules?: ScheduleRules;
      /** Size of the files that stay in the trash. */
      readonly kept_bytes?: number;
      /** Of a delete: snapshots that a module of the template has made, and has to remove. */
      readonly made_snapshots?: readonly SnapshotRow[];
      /** What the template's policy makes of a stop. */
      readonly snapshot?: OnStop;
      /** The build by which a workspace that was kept ready got its owner (rule PB-9). */
      readonly claimed?: boolean;
    } & OfRun)
  | ({
      readonly type: "fail";
      readonly now: number;
      readonly job_id: string;
      readonly error: string;
      readonly error_code: string;
      /** What is there all the same; absent: as before. */
      readonly left?: { readonly state: string | null };
    } & OfRun)
  /** The owner's mark; no change is `stale`. */
  | { readonly type: "favor"; readonly favorite: boolean }
  | ({
      readonly type: "requeue";
      readonly now: number;
      readonly job_id: string;
      readonly lost?: string;
      readonly moved?: boolean;
    } & OfRun)
  /** `first_id`: five reserved numbers for the lines that say why. */
  | { readonly type: "reap"; readonly now: number; readonly first_id: number };

export type WorkspaceEvent =
  | { readonly topic: "workspace"; readonly version: number; readonly latest_build_id: string }
  | { readonly topic: "job"; readonly job_id: string; readonly logs: readonly JobLogLine[]; readonly done: boolean }
  | { readonly topic: "agent_gone"; readonly agent_id: string }
  /** Who may do what with it has changed. */
  | { readonly topic: "access_changed" }
  /** It was kept ready and is this owner's now: its agents start over. */
  | { readonly topic: "reinit"; readonly owner_id: string };

export type WorkspaceEffect =
  | ({ readonly do: "capture" | "discard" } & SnapshotWork)
  | { readonly do: "submit"; readonly job_id: string }
  | { readonly do: "cancel"; readonly job_id: string };

export type Change = {
  readonly kind: "change";
  readonly state: WorkspaceState;
  readonly writes: readonly Statement[];
  readonly events: readonly WorkspaceEvent[];
  readonly effects: readonly WorkspaceEffect[];
};

export type Decision = Change | { readonly kind: "refused"; readonly error: AppError } | { readonly kind: "stale" };
