// The actor of one template version: the only writer of its row and of its import job. It also creates a template from the version and
// activates the version, so that the version cannot be archived at the same time (rules TP-13 to TP-18).
import type { Clock } from "#base/clock.ts";
import { AppError, conflict, invalidField } from "#base/errors.ts";
import { toShard } from "#base/shards.ts";
import type { Topics } from "#base/topics.ts";
import type { Statement } from "#db/engine/sql.ts";
import { CommitError, type Store } from "#db/engine/store.ts";
import { setTimer } from "#db/engine/timers.ts";
import type { AuditEntry } from "#db/reports/audit/audit.ts";
import { findTemplate, insertTemplate, type TemplateRow, updateTemplate } from "#db/templates/templates.ts";
import {
  adoptVersion,
  findTemplateVersion,
  insertTemplateVersion,
  updateTemplateVersion,
} from "#db/templates/versions.ts";
import type { JobRow } from "#db/workspaces/jobs.ts";
import { findJob, insertJob } from "#db/workspaces/jobs.ts";
import { schedulePrebuildCheck } from "#db/workspaces/prebuilds.ts";
import { toJobStatus } from "#schema/workspaces/job.ts";
import { OutputDeduplicator } from "../job/dedupe-lines.ts";
import type { JobOutput } from "../job/report.ts";
import { type AttemptRef, getReapTime, isCurrentAttempt, PENDING } from "../job/state.ts";
import { Actor, type Outcome } from "../runtime/actor.ts";
import type { Events } from "../runtime/events.ts";
import { auditTemplateActivated, auditTemplateCreated, buildVersionEntries } from "./audit.ts";
import type { ImportFailure } from "./import.ts";
import {
  ACTOR,
  type ImportResult,
  REAP,
  transition,
  type VersionChange,
  type VersionCommand,
  type VersionState,
} from "./state.ts";

/** An import for the runner (actors/template-version/import-runner.ts). */
export type SubmittedImport = {
  readonly version_id: string;
  readonly job_id: string;
  readonly created_at: number;
  readonly tags: Readonly<Record<string, string>>;
  /** The version's `part`. */
  readonly part: number;
};

export interface Imports {
  submit(job: SubmittedImport): void;
  cancel(job_id: string): void;
}

export type TemplateVersionDeps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly topics: Topics<Events>;
  readonly imports: Imports;
};

/** The template's row without the columns that the version determines. */
export type NewTemplate = Omit<
  TemplateRow,
  "active_version_id" | "provisioner" | "created_at" | "updated_at" | "deleted"
>;

/** The input for a worker; "stale" if the job does not wait for a worker. */
export type StartedImport =
  | ({ readonly file_id: string; readonly sealed_variable_values: string; readonly created_by: string } & AttemptRef)
  | "stale";

/** The reply to a message that may be late. A late message is not an error. */
export type LateResult = "done" | "stale";

export class TemplateVersionActor extends Actor<VersionState> {
  readonly #deps: TemplateVersionDeps;
  readonly #deduplicator: OutputDeduplicator;

  constructor(id: string, deps: TemplateVersionDeps) {
    super(id, deps.store);
    this.#deps = deps;
    this.#deduplicator = new OutputDeduplicator(deps.store);
  }

  protected toPart({ version }: VersionState): number {
    return version.part;
  }

  protected async load(): Promise<VersionState | undefined> {
    const { store } = this.#deps;
    const row = await store.get(findTemplateVersion({ id: this.id }));
    const job = row && (await store.get(findJob({ id: row.job_id })));
    if (!row || !job) return undefined;
    const { manifest: _manifest, readme: _readme, has_ai_task: _task, has_external_agent: _agent, ...version } = row;
    return { version, job };
  }

  protected override onUnconfirmedCommit(_: VersionState | undefined, found: VersionState | undefined): void {
    if (!found) return;
    const { job, version } = found;
    const { topics, imports } = this.#deps;
    const status = toJobStatus(job);
    topics.publish("job", job.id, { logs: [], done: job.completed_at !== null });
    for (const id of [this.id, version.template_id]) if (id !== null) topics.publish("shown_changed", id, {});
    if (status === "pending") this.#submit(found);
    if (status === "canceling") imports.cancel(job.id);
  }

  protected override buildEntries(
    before: VersionState | undefined,
    { state }: Outcome<VersionState, unknown>,
  ): readonly AuditEntry[] {
    return buildVersionEntries(before, state, this.#now());
  }

  /**
   * Creates the version with its import job, which begins when a worker is free. Rejects with 409 when the template has a version of that
   * name.
   */
  create(input: NewTemplateVersion): Promise<void> {
    return this.handleCreate(async () => {
      const now = this.#now();
      const job = createImportJob(input, { version_id: this.id, key: await this.#deps.store.reserve("jobs", 1), now });
      const { job_id, tags: _, ...fields } = input;
      const version = {
        ...fields,
        variable_values: {},
        id: this.id,
        part: toShard(input.template_id ?? this.id),
        job_id,
        archived: false,
        created_at: now,
        updated_at: now,
      };
      return {
        state: { version, job },
        writes: [
          insertJob(job),
          insertTemplateVersion({ ...version, manifest: null }),
          setTimer(ACTOR, this.id, REAP, getReapTime(job)),
        ],
        after: () => this.#submit({ version, job }),
        reply: undefined,
      };
    }).catch(throwNameConflict);
  }

  /** Assigns the import to a worker. Returns "stale" if it does not wait for a worker. */
  startJob({ worker }: { readonly worker: { id: string; name: string } }): Promise<StartedImport> {
    return this.handle((state) => {
      const { file_id, sealed_variable_values, created_by } = state.version;
      const { attempts } = state.job;
      const reply = { file_id, sealed_variable_values, created_by, attempt: attempts + 1 };
      // The commit of the first call is on disk but could not be confirmed, so the worker repeats the call.
      const isRepeated = toJobStatus(state.job) === "running" && state.job.worker_id === worker.id;
      if (isRepeated) return { state, reply: { ...reply, attempt: attempts } };
      return this.#applyCommand<StartedImport>(state, { type: "start", now: this.#now(), worker }, reply, "stale");
    });
  }

  /** Stores log lines of the running import. */
  say(output: Pick<JobOutput, "id" | "logs"> & AttemptRef): Promise<LateResult> {
    return this.handle<LateResult>(async (state) => {
      const { logs, attempt } = output;
      if (!isCurrentAttempt(state.job, output)) return { state, reply: "stale" };
      const first_id = await this.#deduplicator.reserveIds(state.job, output);
      if (first_id === "stored") return { state, reply: "done" };
      return this.#settleReport(state, { type: "say", now: this.#now(), attempt, first_id, logs });
    });
  }

  /** Stores the result of a successful import. An import that was canceled stays canceled. */
  imported(result: ImportResult & AttemptRef): Promise<LateResult> {
    return this.handle((state) => this.#settleReport(state, { type: "imported", now: this.#now(), ...result }));
  }

  failJob(failure: ImportFailure & AttemptRef): Promise<LateResult> {
    return this.handle((state) => this.#settleReport(state, { type: "failed", now: this.#now(), ...failure }));
  }

  /** Stores that the import has ended because it was canceled. */
  completeJob(run: AttemptRef): Promise<LateResult> {
    return this.handle((state) => this.#settleReport(state, { type: "complete", now: this.#now(), ...run }));
  }

  /** Records a heartbeat of the worker. */
  touchJob(run: AttemptRef): Promise<LateResult> {
    return this.handle((state) => this.#settleReport(state, { type: "touch", now: this.#now(), ...run }));
  }

  /**
   * Queues the job again after a server restart, a move from another node (`moved`), or the loss of the worker (`lost` is the reason). A
   * job that was running begins again.
   */
  resume({
    lost,
    moved,
    attempt,
  }: AttemptRef & { readonly lost?: string; readonly moved?: boolean }): Promise<LateResult> {
    return this.handle((state) => {
      if (toJobStatus(state.job) === "pending" && isCurrentAttempt(state.job, { attempt })) {
        return { state, after: () => this.#submit(state), reply: "done" as const };
      }
      return this.#settleReport(state, { type: "requeue", now: this.#now(), lost, moved, attempt });
    });
  }

  /** Handles the timer of the job: ends a silent job. */
  reap(_: Record<string, never>): Promise<LateResult> {
    return this.handle((state) => this.#settleReport(state, { type: "reap", now: this.#now() }));
  }

  /** Rejects with 412 when the import has ended or was already canceled. */
  cancel(_: Record<string, never>): Promise<void> {
    return this.handle((state) => {
      const status = toJobStatus(state.job);
      if (status === "canceling") throw new AppError("precondition_failed", "The job is being cancelled already.");
      if (status !== "pending" && status !== "running") {
        throw new AppError("precondition_failed", "The job has already ended.");
      }
      return this.#applyCommand(state, { type: "cancel", now: this.#now() }, undefined, undefined);
    });
  }

  /** Changes name and message. Rejects with 409 when the template has another version of that name. */
  edit(patch: { readonly name?: string; readonly message?: string }): Promise<void> {
    return this.handle<void>((state) => {
      const { name = state.version.name, message = state.version.message } = patch;
      if (name === state.version.name && message === state.version.message) return { state, reply: undefined };
      return this.#patchVersion(state, { name, message });
    }).catch(throwNameConflict);
  }

  /** Hides the version from new builds, or shows it again. Rejects with 400 for a template's active version. */
  archive({ archived }: { readonly archived: boolean }): Promise<void> {
    return this.handle<void>(async (state) => {
      const { version } = state;
      if (version.archived === archived) return { state, reply: undefined };
      const template = version.template_id && (await this.#deps.store.get(findTemplate({ id: version.template_id })));
      if (archived && template && template.active_version_id === this.id) {
        throw new AppError("invalid", "The active version of a template cannot be archived.");
      }
      return this.#patchVersion(state, { archived });
    });
  }

  #patchVersion(
    state: VersionState,
    changes: Partial<Pick<VersionState["version"], "name" | "message" | "archived">>,
  ): Outcome<VersionState, void> {
    const patch = { ...changes, updated_at: this.#now() };
    const version = { ...state.version, ...patch };
    return {
      ...this.#toOutcome({ ...state, version }, [updateTemplateVersion(this.id, patch, { expect: 1 })]),
      after: () => this.#deps.topics.publish("shown_changed", this.id, {}),
    };
  }

  /** Creates a template from this version. Rejects with 400 or 412 when the version is unsuitable, 409 when the name is taken. */
  makeTemplate(template: NewTemplate): Promise<void> {
    return this.handle<void>(async (state) => {
      const { version } = state;
      if (version.template_id !== null) {
        throw invalidField("template_version_id", "already belongs to a template");
      }
      this.#requireUsable(state, "template_version_id");
      const now = this.#now();
      const provisioner = await this.#loadProvisioner();
      const created = { ...template, provisioner, active_version_id: this.id, created_at: now, updated_at: now };
      return this.#toOutcome({ ...state, version: { ...version, template_id: template.id, updated_at: now } }, [
        insertTemplate(created),
        auditTemplateCreated(created, now),
        adoptVersion({ id: this.id, template_id: template.id, updated_at: now }),
        schedulePrebuildCheck(template.id, now),
      ]);
    }).catch(throwTemplateNameConflict);
  }

  /** Makes this the version of the template's new workspaces. Rejects with 400 when it is not usable or belongs to another template. */
  activate({ template_id }: { readonly template_id: string }): Promise<void> {
    return this.handle<void>(async (state) => {
      if (state.version.template_id !== template_id) throw invalidField("id", "is not a version of this template");
      this.#requireUsable(state, "id");
      const provisioner = await this.#loadProvisioner();
      const template = await this.#deps.store.get(findTemplate({ id: template_id }));
      const patch = { active_version_id: this.id, provisioner, updated_at: this.#now() };
      const prebuildCheck = schedulePrebuildCheck(template_id, patch.updated_at);
      const entries = template ? [auditTemplateActivated(template, patch)] : [];
      return {
        ...this.#toOutcome(state, [updateTemplate(template_id, patch, { expect: 1 }), prebuildCheck, ...entries]),
        after: () => this.#deps.topics.publish("shown_changed", template_id, {}),
      };
    });
  }

  async #loadProvisioner(): Promise<string> {
    const row = await this.#deps.store.get(findTemplateVersion({ id: this.id }));
    const { provisioner = "" } = JSON.parse(row?.manifest ?? "{}") as { provisioner?: string };
    return provisioner;
  }

  /** Throws if no workspace can be created from the version. */
  #requireUsable({ version, job }: VersionState, field: string): void {
    const status = toJobStatus(job);
    if (status === "failed" || status === "canceled") {
      const detail = status === "failed" ? `its import failed: ${job.error}` : "its import was cancelled";
      throw invalidField(field, detail.slice(0, 500));
    }
    if (status !== "succeeded") {
      throw new AppError("precondition_failed", "The template version is still being imported.");
    }
    if (version.archived) throw invalidField(field, "is archived");
  }

  #toOutcome(state: VersionState, writes: readonly Statement[]): Outcome<VersionState, void> {
    return { state, writes, reply: undefined };
  }

  #now(): number {
    return this.#deps.clock.now();
  }

  #settleReport(state: VersionState, command: VersionCommand): Outcome<VersionState, LateResult> {
    return this.#applyCommand<LateResult>(state, command, "done", "stale");
  }

  #applyCommand<Reply>(
    state: VersionState,
    command: VersionCommand,
    reply: Reply,
    stale: Reply,
  ): Outcome<VersionState, Reply> {
    const change = transition(state, command);
    if (change === "stale") return { state, reply: stale };
    return { state: change.state, writes: change.writes, after: () => this.#announce(change), reply };
  }

  #announce({ state, announce, effect }: VersionChange): void {
    if (announce) this.#deps.topics.publish("job", state.job.id, announce);
    if (effect === "cancel") this.#deps.imports.cancel(state.job.id);
    if (effect === "submit") this.#submit(state);
  }

  #submit({ job, version }: VersionState): void {
    const { id, created_at, tags } = job;
    this.#deps.imports.submit({ version_id: version.id, job_id: id, created_at, tags, part: version.part });
  }
}

const isConstraint = (error: unknown): error is CommitError =>
  error instanceof CommitError && error.reason === "constraint";

const throwNameConflict = (error: unknown): never => {
  if (!isConstraint(error)) throw error;
  throw conflict("The template already has a version with this name.", [{ field: "name", detail: "must be unique" }]);
};

const throwTemplateNameConflict = (error: unknown): never => {
  if (!isConstraint(error)) throw error;
  throw conflict("A template with this name already exists.", [{ field: "name", detail: "must be unique" }]);
};

type NewTemplateVersion = {
  readonly job_id: string;
  readonly organization_id: string;
  readonly template_id: string | null;
  readonly name: string;
  readonly message: string;
  readonly file_id: string;
  readonly tags: Readonly<Record<string, string>>;
  /** As returned by `sealVariables`. */
  readonly sealed_variable_values: string;
  readonly created_by: string;
};

/** Returns the job in the state `pending`. */
const createImportJob = (
  input: NewTemplateVersion,
  { version_id, key, now }: { version_id: string; key: number; now: number },
): JobRow => ({
  id: input.job_id,
  key,
  created_at: now,
  updated_at: now,
  organization_id: input.organization_id,
  initiator_id: input.created_by,
  type: "template_version_import",
  provisioner: "",
  file_id: input.file_id,
  input: { template_version_id: version_id },
  tags: { ...input.tags },
  ...PENDING,
  timings: [],
});
