// The types of a workspace's state, commands and decisions, used by state.ts and the actor.
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
  /** Timings of the job's steps so far. */
  readonly timings: JobRow["timings"];
  /** Signed-in agents: the agents of the latest build, or the agents that an open stop or delete build will end. */
  readonly agent_ids: readonly string[];
  /** The snapshot that is being created. No build begins until it is complete. */
  readonly capturing: SnapshotWork | null;
};

/** A new build. The sender of the message chooses its IDs and keys. */
export type NewBuild = PlannedBuild & {
  /** The build that begins after this one has succeeded. */
  readonly followed_by?: PlannedBuild;
};

/** A snapshot of which the files must be created or deleted. */
export type SnapshotWork = {
  readonly snapshot_id: string;
  readonly provisioner: string;
  /** The home backup from which the files are copied; null for the workspace. */
  readonly home_backup_id: string | null;
};

/** The snapshot to create at the end of a stop, and the older snapshots that it replaces. */
export type StopSnapshot = Omit<SnapshotWork, "home_backup_id"> & { readonly outdated: readonly SnapshotRow[] };

export type WorkspaceCommand =
  | { readonly type: "build"; readonly now: number; readonly build: NewBuild }
  /**
   * A worker takes the build. `rows` describe the resources that it will create. They are stored before, so that the server recognizes a
   * daemon that connects early.
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
  /** `first_id`: the first of the IDs that are reserved for the log lines. */
  | ({ readonly type: "say"; readonly now: number; readonly job_id: string; readonly first_id: number } & JobOutput &
      AttemptRef)
  | ({ readonly type: "touch"; readonly now: number; readonly job_id: string } & AttemptRef)
  /** Sets the build's daily cost. `guards` reject the batch if the cost exceeds the quota. */
  | ({
      readonly type: "charge";
      readonly now: number;
      readonly job_id: string;
      readonly daily_cost: number;
      readonly guards: readonly Statement[];
    } & AttemptRef)
  | { readonly type: "cancel"; readonly now: number; readonly job_id: string }
  /** `rules`: the template's rules for deadlines. */
  | ({
      readonly type: "complete";
      readonly now: number;
      readonly job_id: string;
      readonly state: string | null;
      /** True if the build was canceled and its worker has not reported the state. */
      readonly unheard?: boolean;
      /** Rows of the resources and agents, if only the build determines them. */
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
      /** The state after the failure; absent if it is unchanged. */
      readonly left?: { readonly state: string | null };
    } & AttemptRef)
  /** Sets or clears the owner's favorite mark. */
  | { readonly type: "favor"; readonly favorite: boolean }
  | ({
      readonly type: "requeue";
      readonly now: number;
      readonly job_id: string;
      readonly lost?: string;
      readonly moved?: boolean;
    } & AttemptRef)
  /** Ends a silent job. `first_id`: the first of five IDs that are reserved for the log lines with the reason. */
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
