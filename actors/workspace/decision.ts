// The types of a workspace's messages and decisions, used by state.ts and the actor.
import type { AppError } from "#base/errors.ts";
import type { Statement } from "#db/engine/sql.ts";
import type { PlannedBuild } from "#db/schema/workspaces.ts";
import type { BuildRow } from "#db/workspaces/builds.ts";
import type { JobRow } from "#db/workspaces/jobs.ts";
import type { ScheduleRules } from "#db/workspaces/schedule-rules.ts";
import type { SnapshotRow } from "#db/workspaces/snapshots.ts";
import type { WorkspaceRow } from "#db/workspaces/workspaces.ts";
import type { JobOutput } from "../job/report.ts";
import type { AttemptRef, JobState } from "../job/state.ts";
import type { JobLogLine } from "../runtime/events.ts";

export type WorkspaceState = {
  readonly workspace: WorkspaceRow;
  /** The build with the highest number. */
  readonly build: BuildRow;
  readonly job: JobState;
  /** Tags that a worker must have to take the job. */
  readonly tags: Readonly<Record<string, string>>;
  /** Stage timings of the job so far. */
  readonly timings: JobRow["timings"];
  /** Signed-in agents: those of the latest build, or the ones that an open stop or delete build will end. */
  readonly agent_ids: readonly string[];
  /** The snapshot being created; no build begins or ends until it is done. */
  readonly capturing: SnapshotWork | null;
};

/** Everything that a new build consists of. The sender chooses IDs and keys. */
export type NewBuild = PlannedBuild & {
  /** Begins after this build has succeeded. */
  readonly followed_by?: PlannedBuild;
};

/** A snapshot whose files must be created or deleted, and the provisioner that does it. */
export type SnapshotWork = {
  readonly snapshot_id: string;
  readonly provisioner: string;
  /** The home backup that contains its files; null: the workspace. */
  readonly home_backup_id: string | null;
};

/** The snapshot to create at the end of a stop, and older ones to delete for it. */
export type StopSnapshot = Omit<SnapshotWork, "home_backup_id"> & { readonly former: readonly SnapshotRow[] };

export type WorkspaceCommand =
  | { readonly type: "build"; readonly now: number; readonly build: NewBuild }
  /**
   * A worker takes the build. `rows` describe the resources it will create, written now so that a fast daemon is recognized immediately.
   */
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
  /** `first_id` is the first of the reserved numbers, one per line. */
  | ({ readonly type: "say"; readonly now: number; readonly job_id: string; readonly first_id: number } & JobOutput &
      AttemptRef)
  | ({ readonly type: "touch"; readonly now: number; readonly job_id: string } & AttemptRef)
  /** Sets the build's daily cost; `guards` reject the batch if the cost exceeds the quota. */
  | ({
      readonly type: "charge";
      readonly now: number;
      readonly job_id: string;
      readonly daily_cost: number;
      readonly guards: readonly Statement[];
    } & AttemptRef)
  | { readonly type: "cancel"; readonly now: number; readonly job_id: string }
  /** `rules`: the template's rules for deadlines; absent if it has none. */
  | ({
      readonly type: "complete";
      readonly now: number;
      readonly job_id: string;
      readonly state: string | null;
      /** The build was canceled, and its remaining state is unknown. */
      readonly unheard?: boolean;
      /** Rows of the resources and agents that are known only after the build. */
      readonly made?: {
        readonly rows: readonly Statement[];
        readonly agent_ids: readonly string[];
        readonly daily_cost: number;
      };
      readonly rules?: ScheduleRules;
      /** Size of the files that stay in the trash. */
      readonly kept_bytes?: number;
      /** For a delete: snapshots created by a module of the template, which must delete them. */
      readonly made_snapshots?: readonly SnapshotRow[];
      /** The snapshot required by the template's policy. */
      readonly snapshot?: StopSnapshot;
      /** Whether this build claimed a prebuild (rule PB-9). */
      readonly claimed?: boolean;
    } & AttemptRef)
  | ({
      readonly type: "fail";
      readonly now: number;
      readonly job_id: string;
      readonly error: string;
      readonly error_code: string;
      /** State that remains despite the failure; absent: unchanged. */
      readonly left?: { readonly state: string | null };
    } & AttemptRef)
  /** The owner's favorite mark; `stale` when unchanged. */
  | { readonly type: "favor"; readonly favorite: boolean }
  | ({
      readonly type: "requeue";
      readonly now: number;
      readonly job_id: string;
      readonly lost?: string;
      readonly moved?: boolean;
    } & AttemptRef)
  /** `first_id`: five reserved numbers for the log lines that give the reason. */
  | { readonly type: "reap"; readonly now: number; readonly first_id: number };

export type WorkspaceEvent =
  | { readonly topic: "workspace"; readonly version: number; readonly latest_build_id: string }
  | { readonly topic: "job"; readonly job_id: string; readonly logs: readonly JobLogLine[]; readonly done: boolean }
  | { readonly topic: "agent_gone"; readonly agent_id: string }
  /** Access to the workspace has changed. */
  | { readonly topic: "access_changed" }
  /** The prebuild was claimed by this owner, so its agents restart. */
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
