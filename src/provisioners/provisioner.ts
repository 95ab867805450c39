// The interface of provisioners. There is one provisioner for each way to run workspaces (local process, Docker, another machine). The
// workspace actor starts a build, the provisioner runs it outside of any mailbox, and the result arrives as a message with its job.
import type { Manifest, ManifestResource, ManifestVariable } from "#schema/templates/manifest.ts";
import type { RepositoryPlan } from "#schema/templates/repository.ts";
import type { JobTiming } from "#schema/workspaces/job.ts";
import type { Homes, SnapshotRef } from "./homes.ts";
import type { TemplateArchive, TerraformWork } from "./terraform/work.ts";

export type Transition = "start" | "stop" | "delete";

/** The input of a provisioner. Contains secrets (agent tokens, variables): never logged. */
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
  /** The state left by the previous build; null for none. */
  readonly state: string | null;
  /**
   * The workspace was prebuilt and has been claimed: its processes keep running with their existing tokens, which the server no longer
   * knows. The tokens in `agents` are empty. Processes that have died in the meantime are restarted unchanged, or the build fails.
   */
  readonly claimed?: boolean;
  /** The caller has requested more detailed output. */
  readonly verbose?: boolean;
  /** The copy whose files replace the workspace's files in this build. */
  readonly restore?: SnapshotRef;
  /** The copy from which the workspace was last restored, as JSON of the template's snapshot module. */
  readonly snapshot_value?: string;
  /** For a delete: keeps the files and their snapshots until another delete removes them. */
  readonly keeps_files?: boolean;
  /** The build was requested by someone who may not access the workspace, so none of the owner's data is used for it or passed to it. */
  readonly no_user_data?: boolean;
  /** Only for Terraform templates: their files, and the owner's data that they may use. */
  readonly terraform?: TerraformWork;
};

/**
 * The state after a build. Provisioners that know the created resources only afterwards also return these, with the tokens of their agents.
 */
export type ProvisionResult = {
  readonly state: string | null;
  readonly made?: ProvisionedResources;
  /** Size of the files that a delete has kept. */
  readonly kept_bytes?: number;
};

export type ProvisionedResources = {
  readonly resources: readonly ManifestResource[];
  readonly daily_cost: number;
  /** Texts of agents that contain one of these secrets are stored encrypted. */
  readonly secrets: readonly string[];
};

/**
 * Identifies a state that is still stored on the machine that created it. `serial` grows within a `lineage`, so two states of a lineage can
 * be compared.
 */
export type RetainedBuild = { readonly workspace_id: string; readonly lineage: string; readonly serial: number };

export type LogLevel = "trace" | "debug" | "info" | "warn" | "error";

/** Receives a provisioner's progress. Calls return immediately. */
export interface Report {
  log(level: LogLevel, stage: string, output: string): void;
  /** Records a finished step for the build timings; times in milliseconds since 1970. */
  timing(timing: JobTiming): void;
  /** Releases this build's slot before a long step that has its own limit. */
  yieldSlot?(): void;
}

/** Progress of a build, whose cost may be limited. */
export interface BuildReport extends Report {
  /** Reports the build's daily cost after planning and before anything is created. Rejects if the cost is not allowed. */
  charge(daily_cost: number): Promise<void>;
}

/** Fails a build. The message is shown to people; the code is one of facts/platform 1.2 or empty. */
export class ProvisionError extends Error {
  override readonly name = "ProvisionError";
  readonly code: string;
  /** The state for the next build, which exists although this build failed; undefined if the state is unchanged. */
  readonly left: { readonly state: string | null } | undefined;
  constructor(message: string, code = "", left?: { readonly state: string | null }, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.left = left;
  }
}

/** Planning a template's parameters failed for a reason outside of the template and its values, so it can be retried. */
export class PlanBrokenError extends ProvisionError {}

/** The worker that was running a build was lost. The build returns to the queue. */
export class WorkerLostError extends Error {
  override readonly name = "WorkerLostError";
  constructor(reason: string, worker = "that had taken it") {
    super(`The worker ${worker} was lost: ${reason}.`);
  }
}

/** A workspace container that ended at its memory limit. */
export type ContainerKill = {
  readonly workspace_id: string;
  /** The template resource of the container. */
  readonly resource: string;
  /** Milliseconds since 1970. */
  readonly killed_at: number;
};

/** Builds repository images before a workspace needs them. */
export interface RepositoryImages {
  /**
   * Builds or finds the images for a plan and resolves with their names; none if the plan names an image. `owner_id`: the user whose
   * accounts can read the repository. Rejects with ProvisionError, or with the signal's reason.
   */
  build(plan: RepositoryPlan, owner_id: string, report: Report, signal: AbortSignal): Promise<readonly string[]>;
  /** Removes images by name, except images that a container uses. */
  remove(names: readonly string[], signal: AbortSignal): Promise<void>;
}

/** The input for a template's snapshot module. Contains secrets: never logged. */
export type ModuleWork = {
  readonly archive: TemplateArchive;
  /** The template's variables and their values. */
  readonly declared: readonly ManifestVariable[];
  readonly variables: Readonly<Record<string, string>>;
  /** The resources to copy as declared by the workspace, as JSON. */
  readonly source: string;
  /** The module's state; null for none. */
  readonly state: string | null;
};

/** Snapshots of resources that only the template can copy, such as cloud disks, made by a module in the template. */
export interface SnapshotModule {
  /**
   * Creates the copy or completes an unfinished one, and resolves with the module's state. Rejects with a ProvisionError that has the
   * remaining state in `left`.
   */
  make(ref: SnapshotRef, work: ModuleWork, signal: AbortSignal): Promise<string>;
  /** Removes the copy. Rejects with a ProvisionError that has the remaining state in `left`. */
  remove(ref: SnapshotRef, work: ModuleWork, signal: AbortSignal): Promise<void>;
  /** Removes the state stored on this machine, once it is stored in the database or empty. */
  releaseState(ref: SnapshotRef): Promise<void>;
  /** Returns the snapshots with state on this machine, and the state; undefined if it cannot be read. */
  listRetained(): Promise<readonly { readonly snapshot_id: string; readonly state: string | undefined }[]>;
}

export interface Provisioner {
  readonly name: Manifest["provisioner"];
  /** Copies the files of workspaces; absent if that is not supported. */
  readonly homes?: Homes;
  /** Snapshots by code of the template, for templates that contain some. */
  readonly module?: SnapshotModule;
  /** Builds images of repositories; absent if workspaces have no images. */
  readonly images?: RepositoryImages;
  /**
   * Runs one build and resolves with the state to store. Must be idempotent: after a crash of the server, the same build runs again with
   * new tokens. Rejects with ProvisionError, which may contain the remaining state, or with the signal's reason if canceled.
   */
  run(request: ProvisionRequest, report: BuildReport, signal: AbortSignal): Promise<ProvisionResult>;
  /** Tells the provisioner that the result of `run` is stored, so that it can delete its own copy. Not called if storing failed. */
  releaseState?(request: ProvisionRequest): void;
  /**
   * Returns the ended builds whose result the provisioner still stores, because a process died before the result was confirmed. Empty
   * results are deleted automatically.
   */
  listRetained?(): Promise<readonly RetainedBuild[]>;
  /** Deletes results that the server has stored, unless they have changed since. */
  dropRetained?(stored: readonly RetainedBuild[]): Promise<void>;
  /** Returns the names of the resources in a state, for people who are about to discard it. */
  listRemaining?(state: string | null): string[];
  /**
   * Checks whether a start would succeed, without creating anything: for dry runs. The request has no agents and no existing workspace.
   * Returns the resources that the start would create, or undefined if the manifest already specifies them. Rejects like `run`. Absent if
   * the import already makes all checks.
   */
  plan?(request: ProvisionRequest, report: Report, signal: AbortSignal): Promise<ProvisionedResources | undefined>;
  /**
   * Returns a message about what is missing on the machine; undefined if nothing is missing. Absent if the provisioner has no requirements.
   * Never rejects.
   */
  findProblem?(): Promise<string | undefined>;
  /** Cleans up after an earlier server process. Called once before the server accepts requests. */
  prepare?(): Promise<void>;
  /** Called once at startup with the workspaces that should be running, so that dead ones can be restarted or given up. */
  recover?(workspaces: readonly { id: string; state: string | null }[]): Promise<void>;
  /** Returns the number of the next attempt, from 1, while the agent's process is dead and being restarted; undefined otherwise. */
  getRestartAttempt?(workspace_id: string): number | undefined;
  /**
   * Calls `onKill` for each container that ended at its memory limit, until `stop`. May report a container twice. Absent if workspaces have
   * no containers.
   */
  followKills?(onKill: (kill: ContainerKill) => void): void;
  /** Kills a workspace's processes immediately and without a build, because its owner may no longer use it. Files and state are kept. */
  halt?(workspace_id: string): Promise<void>;
  /** Stops all restarts, because the server is stopping. */
  stop?(): void;
}
