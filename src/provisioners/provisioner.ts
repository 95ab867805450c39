// The interface of provisioners. There is one provisioner for each way to run workspaces, such as local processes, Docker or external
// workers. The workspace actor starts a build, the provisioner runs it, and the actor receives the result as a message.
import type { Manifest, ManifestResource, ManifestVariable } from "#schema/templates/manifest.ts";
import type { RepositoryPlan } from "#schema/templates/repository.ts";
import type { JobTiming } from "#schema/workspaces/job.ts";
import type { Homes, SnapshotRef } from "./homes.ts";
import type { TemplateArchive, TerraformWork } from "./terraform/work.ts";

export type Transition = "start" | "stop" | "delete";

/** The input of a provisioner. It contains secrets (agent tokens, variables), so it must never be logged. */
export type ProvisionRequest = {
  readonly job_id: string;
  readonly build_id: string;
  readonly build_number: number;
  readonly transition: Transition;
  readonly workspace: { readonly id: string; readonly name: string };
  readonly owner: { readonly id: string; readonly username: string; readonly email: string };
  /** The template with all placeholders filled in. */
  readonly manifest: Manifest;
  readonly parameters: Readonly<Record<string, string>>;
  /** The agents of this build by name, with IDs and new tokens. Empty unless the transition is start. */
  readonly agents: readonly { readonly name: string; readonly id: string; readonly token: string }[];
  /** The server's URL for the workspace. */
  readonly access_url: string;
  /** The state after the previous build; null for none. */
  readonly state: string | null;
  /**
   * Set if the workspace was prebuilt and has been claimed. Its processes keep running with their existing tokens, which the server no
   * longer knows, so the tokens in `agents` are empty. Processes that have died are restarted with the same token, or the build fails.
   */
  readonly claimed?: boolean;
  /** Set if the caller has requested more detailed output. */
  readonly verbose?: boolean;
  /** The snapshot with which this build replaces the workspace's files. */
  readonly restore?: SnapshotRef;
  /** The snapshot from which the workspace was last restored: the output of the template's snapshot module, as JSON. */
  readonly snapshot_value?: string;
  /** For a delete: keeps the files and their snapshots until another delete removes them. */
  readonly keeps_files?: boolean;
  /** Set if the caller may not access the workspace. The build then must not use the owner's data. */
  readonly no_user_data?: boolean;
  /** Only for Terraform templates: their files, and the owner's data that they may use. */
  readonly terraform?: TerraformWork;
};

export type ProvisionResult = {
  /** The state to store for the next build. */
  readonly state: string | null;
  /** The created resources with the tokens of their agents, if only the build determines them. */
  readonly made?: ProvisionedResources;
  /** Size of the files that a delete has kept. */
  readonly kept_bytes?: number;
};

export type ProvisionedResources = {
  readonly resources: readonly ManifestResource[];
  readonly daily_cost: number;
  /** Agents' texts that contain one of these secrets must be stored encrypted. */
  readonly secrets: readonly string[];
};

/** Identifies a state that is still stored on the machine that created it. Within a `lineage`, a later state has a higher `serial`. */
export type RetainedBuild = { readonly workspace_id: string; readonly lineage: string; readonly serial: number };

export type LogLevel = "trace" | "debug" | "info" | "warn" | "error";

/** Receives a provisioner's progress. Calls return immediately. */
export interface Report {
  log(level: LogLevel, stage: string, output: string): void;
  /** Records a finished step for the build timings. Times are in milliseconds since 1970. */
  timing(timing: JobTiming): void;
  /** Releases this build's slot before a long step that has its own limit. */
  yieldSlot?(): void;
}

export interface BuildReport extends Report {
  /** Reports the build's daily cost after planning and before anything is created. Rejects if the cost is not allowed. */
  charge(daily_cost: number): Promise<void>;
}

/** Thrown if a build fails. The message is for people. The code is one of facts/platform 1.2, or empty. */
export class ProvisionError extends Error {
  override readonly name = "ProvisionError";
  readonly code: string;
  /** The state after the failed build; undefined if the state is unchanged. */
  readonly left: { readonly state: string | null } | undefined;
  constructor(message: string, code = "", left?: { readonly state: string | null }, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.left = left;
  }
}

/** Thrown if planning a template's parameters fails for a reason outside of the template and its values, so that it can be retried. */
export class PlanBrokenError extends ProvisionError {}

/** Thrown if the worker that runs a build is lost. The build returns to the queue. */
export class WorkerLostError extends Error {
  override readonly name = "WorkerLostError";
  constructor(reason: string, worker = "that had taken it") {
    super(`The worker ${worker} was lost: ${reason}.`);
  }
}

/** A workspace's container that was killed at its memory limit. */
export type ContainerKill = {
  readonly workspace_id: string;
  /** The name of the container's resource in the template. */
  readonly resource: string;
  /** Milliseconds since 1970. */
  readonly killed_at: number;
};

/** Builds repository images before a workspace needs them. */
export interface RepositoryImages {
  /**
   * Builds or finds the images for a plan. Resolves with their names, which are none if the plan names an image. `owner_id`: the user with
   * accounts that can read the repository. Rejects with ProvisionError, or with the signal's reason.
   */
  build(plan: RepositoryPlan, owner_id: string, report: Report, signal: AbortSignal): Promise<readonly string[]>;
  /** Removes images by name, except images that a container uses. */
  remove(names: readonly string[], signal: AbortSignal): Promise<void>;
}

/** The input for a template's snapshot module. It contains secrets, so it must never be logged. */
export type ModuleWork = {
  readonly archive: TemplateArchive;
  /** The template's variables and their values. */
  readonly declared: readonly ManifestVariable[];
  readonly variables: Readonly<Record<string, string>>;
  /** The template's output that describes the resources to copy, as JSON. */
  readonly source: string;
  /** The module's state; null for none. */
  readonly state: string | null;
};

/** Takes snapshots of resources that only a module in the template can copy, such as cloud disks. */
export interface SnapshotModule {
  /**
   * Creates the snapshot, or completes an unfinished one. Resolves with the module's state. Rejects with a ProvisionError that has the
   * remaining state in `left`.
   */
  make(ref: SnapshotRef, work: ModuleWork, signal: AbortSignal): Promise<string>;
  /** Removes the snapshot. Rejects with a ProvisionError that has the remaining state in `left`. */
  remove(ref: SnapshotRef, work: ModuleWork, signal: AbortSignal): Promise<void>;
  /** Removes the state on this machine, because the database has it or it is empty. */
  releaseState(ref: SnapshotRef): Promise<void>;
  /** Returns the snapshots with a state on this machine. `state` is undefined if it cannot be read. */
  listRetained(): Promise<readonly { readonly snapshot_id: string; readonly state: string | undefined }[]>;
}

export interface Provisioner {
  readonly name: Manifest["provisioner"];
  /** Takes snapshots of workspaces; absent if that is not supported. */
  readonly homes?: Homes;
  /** Takes snapshots with a template's own module; absent if that is not supported. */
  readonly module?: SnapshotModule;
  /** Builds images of repositories; absent if workspaces have no images. */
  readonly images?: RepositoryImages;
  /**
   * Runs one build. Must be idempotent, because after a crash of the server the same build runs again with new tokens. Rejects with
   * ProvisionError, which may contain the remaining state, or with the signal's reason.
   */
  run(request: ProvisionRequest, report: BuildReport, signal: AbortSignal): Promise<ProvisionResult>;
  /** Tells the provisioner that the server has stored the result of `run`, so that it can delete its own copy. */
  releaseState?(request: ProvisionRequest): void;
  /**
   * Returns ended builds with a result that the provisioner still stores, because a process died before the server confirmed the result.
   * Deletes empty results.
   */
  listRetained?(): Promise<readonly RetainedBuild[]>;
  /** Deletes results that the server has stored, unless they have changed since. */
  dropRetained?(stored: readonly RetainedBuild[]): Promise<void>;
  /** Returns the names of the resources in a state, for people who are about to discard it. */
  listRemaining?(state: string | null): string[];
  /**
   * Performs a dry run: checks whether a start would succeed, without creating anything. The request has no agents and no existing
   * workspace. Returns the resources that the start would create, or undefined if the manifest already specifies them. Rejects like `run`.
   * Absent if the import already makes all checks.
   */
  plan?(request: ProvisionRequest, report: Report, signal: AbortSignal): Promise<ProvisionedResources | undefined>;
  /**
   * Returns why builds cannot run on this machine; undefined if they can. Absent if the provisioner has no requirements. Never rejects.
   */
  findProblem?(): Promise<string | undefined>;
  /** Cleans up after an earlier server process. Called once before the server accepts requests. */
  prepare?(): Promise<void>;
  /** Restarts workspaces that have died. Called once at startup with the workspaces that should be running. */
  recover?(workspaces: readonly { id: string; state: string | null }[]): Promise<void>;
  /** Returns the number of the current or next restart of a dead agent, beginning with 1; undefined if it is not restarted. */
  getRestartAttempt?(workspace_id: string): number | undefined;
  /**
   * Calls `onKill` for each container that was killed at its memory limit, until `stop`. May report a container twice. Absent if workspaces
   * have no containers.
   */
  followKills?(onKill: (kill: ContainerKill) => void): void;
  /** Kills a workspace's processes immediately and without a build, because its owner may no longer use it. Keeps files and state. */
  halt?(workspace_id: string): Promise<void>;
  /** Stops all restarts, because the server is stopping. */
  stop?(): void;
}
