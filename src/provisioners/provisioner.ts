// How a workspace comes to life. One implementation for each way (local process, Docker, another machine); the workspace actor starts
// a build, the provisioner does it outside of any mailbox, and what returns is a message with the job it belongs to.
import type { Manifest, ManifestResource, ManifestVariable } from "#schema/templates/manifest.ts";
import type { RepositoryPlan } from "#schema/templates/repository.ts";
import type { JobTiming } from "#schema/workspaces/job.ts";
import type { Homes, SnapshotPlace } from "./homes.ts";
import type { TemplateArchive, TerraformWork } from "./terraform/work.ts";

export type Transition = "start" | "stop" | "delete";

/** Everything a provisioner is told. Holds secrets (agent tokens, variables): never logged. */
export type ProvisionRequest = {
  readonly job_id: string;
  readonly build_id: string;
  readonly build_number: number;
  readonly transition: Transition;
  readonly workspace: { readonly id: string; readonly name: string };
  readonly owner: { readonly id: string; readonly username: string; readonly email: string };
  /** The template with all texts filled in. */
  readonly manifest: Manifest;
  readonly parameters: Readonly<Record<string, string>>;
  /** The agents of this build, by name: their ids and fresh tokens. Empty unless the transition is start. */
  readonly agents: readonly { readonly name: string; readonly id: string; readonly token: string }[];
  /** Where the workspace reaches the server. */
  readonly access_url: string;
  /** What the build before left behind; null for none. */
  readonly state: string | null;
  /**
   * A workspace that was kept ready has got its owner: what runs goes on running with the tokens it has, which nobody knows any more
   * (those of `agents` are empty). What has died in the meantime is started again as it was, or the build fails.
   */
  readonly claimed?: boolean;
  /** Anyone who asked for it wants to read more of how it goes. */
  readonly verbose?: boolean;
  /** The files that the workspace has after this build: those of the copy, in place of its own. */
  readonly restore?: SnapshotPlace;
  /** What the workspace was restored from last, in the words of the template's own module: JSON. */
  readonly snapshot_value?: string;
  /** Of a delete: the files stay, with their snapshots, until another delete removes them. */
  readonly keeps_files?: boolean;
  /** Someone who may not enter the workspace asked for it: nothing of the owner's is used for it or given to it. */
  readonly no_user_data?: boolean;
  /** Only for templates of Terraform: their files, and what they may know of the owner. */
  readonly terraform?: TerraformWork;
};

/** What a build has left, and for provisioners that know it only then, what it has made: with the tokens of its agents. */
export type Provisioned = {
  readonly state: string | null;
  readonly made?: Made;
  /** Size of the files that a delete was to keep. */
  readonly kept_bytes?: number;
};

export type Made = {
  readonly resources: readonly ManifestResource[];
  readonly daily_cost: number;
  /** Texts of agents that hold one of these are stored sealed. */
  readonly secrets: readonly string[];
};

/** A state that lies where it was made, by what tells whether another one is as new: a number that grows in the line of its states. */
export type KeptBuild = { readonly workspace_id: string; readonly lineage: string; readonly serial: number };

export type LogLevel = "trace" | "debug" | "info" | "warn" | "error";

/** What a provisioner says while it works. Calls return immediately. */
export interface Report {
  log(level: LogLevel, stage: string, output: string): void;
  /** A finished piece of work, for the build timings; times in milliseconds since 1970. */
  timing(timing: JobTiming): void;
}

/** The same for a build, whose cost may be limited. */
export interface BuildReport extends Report {
  /** What the build will cost a day, once a plan has shown it and before anything is made. Rejects when that is not allowed. */
  charge(daily_cost: number): Promise<void>;
}

/** Ends a build as failed: the message is shown to people, the code is one of facts/platform 1.2 or empty. */
export class ProvisionError extends Error {
  override readonly name = "ProvisionError";
  readonly code: string;
  /** What is there all the same, for the next build; absent: as before. */
  readonly left: { readonly state: string | null } | undefined;
  constructor(message: string, code = "", left?: { readonly state: string | null }, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.left = left;
  }
}

/** A plan of a template's questions that ended for no fault of the template or its values: it can be tried again. */
export class PlanBroken extends ProvisionError {}

/** The worker that did a build no longer exists in the middle of it: the build goes back into the queue. */
export class WorkerLost extends Error {
  override readonly name = "WorkerLost";
  constructor(reason: string, worker = "that had taken it") {
    super(`The worker ${worker} was lost: ${reason}.`);
  }
}

/** A container of a workspace that ended because it reached its memory limit. */
export type ContainerKill = {
  readonly workspace_id: string;
  /** The resource of the template that the container is of. */
  readonly resource: string;
  /** Milliseconds since 1970. */
  readonly killed_at: number;
};

/** Images of repositories, built before a workspace needs them. */
export interface RepositoryImages {
  /**
   * Builds the images for a plan, or finds them, and resolves with their names; none where the plan names an image. `owner_id`: whose accounts
   * read the repository. Rejects with ProvisionError, or the signal's reason.
   */
  build(plan: RepositoryPlan, owner_id: string, report: Report, signal: AbortSignal): Promise<readonly string[]>;
  /** Removes images by their names, except images that a container has. */
  remove(names: readonly string[], signal: AbortSignal): Promise<void>;
}

/** What a module of the template needs to make and remove a snapshot. Holds secrets: never logged. */
export type ModuleWork = {
  readonly archive: TemplateArchive;
  /** The template's variables and the values given to them. */
  readonly declared: readonly ManifestVariable[];
  readonly variables: Readonly<Record<string, string>>;
  /** What the workspace has said there is to copy, as JSON. */
  readonly source: string;
  /** What it has made before; null for nothing. */
  readonly state: string | null;
};

/** Snapshots of what only the template itself can copy, such as disks of a cloud, made by a module that it brings. */
export interface SnapshotModule {
  /**
   * Makes the copy, or ends what was begun of it, and resolves with the state of the module. Rejects with ProvisionError, whose `left` is the state
   * then.
   */
  make(place: SnapshotPlace, work: ModuleWork, signal: AbortSignal): Promise<string>;
  /** Removes what was made. Rejects with ProvisionError, whose `left` is the state then. */
  remove(place: SnapshotPlace, work: ModuleWork, signal: AbortSignal): Promise<void>;
  /** Removes what it kept on this machine, once that is stored or empty. */
  forget(place: SnapshotPlace): Promise<void>;
  /** Names the snapshots of which something is kept on this machine, with the state; undefined for one that cannot be read. */
  kept(): Promise<readonly { readonly snapshot_id: string; readonly state: string | undefined }[]>;
}

export interface Provisioner {
  readonly name: Manifest["provisioner"];
  /** Copies of the files of its workspaces; absent where it cannot make any. */
  readonly homes?: Homes;
  /** Snapshots by code of the template, for templates that bring some. */
  readonly module?: SnapshotModule;
  /** Absent where workspaces have no images. */
  readonly images?: RepositoryImages;
  /**
   * Does one build and resolves with the state to remember. Must be repeatable: after a crash of the server the same build is run
   * again with fresh tokens. Rejects with ProvisionError, which may say the rest, or with the signal's reason when it was cancelled.
   */
  run(request: ProvisionRequest, report: BuildReport, signal: AbortSignal): Promise<Provisioned>;
  /** What `run` has left is stored now: whatever it kept of its own may go. Not called when nobody could store it. */
  forget?(request: ProvisionRequest): void;
  /**
   * What it has kept of builds that nobody has told it the end of, because it, or anyone who stores what builds leave, died in the meantime; not of those
   * that it is at. What has left nothing it removes on its own.
   */
  kept?(): Promise<readonly KeptBuild[]>;
  /** Those that were listed and are stored by now may go, unless they have changed since. */
  drop?(stored: readonly KeptBuild[]): Promise<void>;
  /** Names of the things that a state holds, for people who are about to forget it. */
  leaves?(state: string | null): string[];
  /**
   * Looks whether such a start could be done, and makes nothing: for dry runs. The request names no workspace that exists and has no
   * agents. Answers what the start would make, or undefined where the manifest says that already. Rejects like `run`. Absent: a template
   * that was imported well is all there is to look at.
   */
  plan?(request: ProvisionRequest, report: Report, signal: AbortSignal): Promise<Made | undefined>;
  /** What it needs of the machine and does not have now, in words; undefined when all is there. Absent: it needs nothing. Never rejects. */
  lacks?(): Promise<string | undefined>;
  /** Called once before the server takes requests: what a server before this one has left is put in order. */
  prepare?(): Promise<void>;
  /** Told once at start which workspaces should be running, so that what died in the meantime can be started again or given up. */
  recover?(workspaces: readonly { id: string; state: string | null }[]): Promise<void>;
  /** The try that comes next, from 1, when the agent's process is dead and is being started again; undefined otherwise. */
  restarting?(workspace_id: string): number | undefined;
  /** Calls back for each container that ended for memory, until `stop`; the same one may come twice. Absent: its workspaces have none. */
  followKills?(killed: (kill: ContainerKill) => void): void;
  /** Nothing is started again any more: the server stops. */
  stop?(): void;
}
