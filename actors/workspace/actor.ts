// The actor of one workspace: the only writer of its row, its builds and their jobs. Decides with state.ts, commits, publishes events, and
// starts builds, which run outside of its mailbox. The reports of a build name its job (rules WK-1 to WK-8).
import { AppError, conflict } from "#base/errors.ts";
import { failpoint } from "#base/failpoint.ts";
import { listAgentsOfBuild } from "#db/agents/agents.ts";
import type { Statement } from "#db/engine/sql.ts";
import { CommitError } from "#db/engine/store.ts";
import { clearTimer, findActorTimer, moveTimer, setTimer } from "#db/engine/timers.ts";
import type { AuditEntry } from "#db/reports/audit/audit.ts";
import { guardTemplate } from "#db/templates/templates.ts";
import { guardUser } from "#db/users/users.ts";
import { updateBuild } from "#db/workspaces/builds.ts";
import { listForksInProgress } from "#db/workspaces/forks.ts";
import { updateJob } from "#db/workspaces/jobs.ts";
import { LOST_ACCESS } from "#db/workspaces/sharing.ts";
import { findSnapshot, listRestoring, listSnapshots, type SnapshotRow } from "#db/workspaces/snapshots.ts";
import { updateWorkspace, type WorkspaceRow } from "#db/workspaces/workspaces.ts";
import { isActive, toJobStatus } from "#schema/workspaces/job.ts";
import type { UpsertPortShare } from "#schema/workspaces/port-share.ts";
import { unbindTagsFromWorker } from "#src/provisioners/external/tags.ts";
import type { CaptureResult } from "#src/provisioners/homes.ts";
import type { ProvisionedResources, ProvisionRequest } from "#src/provisioners/provisioner.ts";
import { OutputDeduplicator } from "../job/dedupe-lines.ts";
import type { JobOutput } from "../job/report.ts";
import { type AttemptRef, getReapTime, isCurrentRun, type JobRunRef } from "../job/state.ts";
import { Actor, type Outcome } from "../runtime/actor.ts";
import type { Worker } from "../runtime/job-queue.ts";
import { decideEdit, loadPortContext, maySharePort, type StoredPorts } from "./access.ts";
import type { ActivityReport } from "./activity.ts";
import type { Originator } from "./activity-note.ts";
import { auditExtension, auditState, buildWorkspaceEntries } from "./audit.ts";
import { type Claim, isClaim, toClaimChange } from "./claim.ts";
import type { Decision, NewBuild, WorkspaceState } from "./decision.ts";
import type { WorkspaceDeps } from "./deps.ts";
import type { WorkspaceEdit } from "./edits.ts";
import { loadState } from "./load-state.ts";
import { buildWorkspaceNotices } from "./notices.ts";
import {
  announceReload,
  type LateResult,
  throwNameTaken,
  toOutcome,
  toSettledOutcome,
  withExtraWrites,
} from "./outcome.ts";
import { buildCreatedRows, planBuild } from "./plan.ts";
import { lowerPorts, type PortSharer, sharePort, unsharePort } from "./port-shares.ts";
import { buildQuotaGuards } from "./quota.ts";
import { extendDeadline, withAutostart, withTtl } from "./schedule-edits.ts";
import { loadRules } from "./schedule-rules.ts";
import { listMadeSnapshots, withSnapshotValue } from "./snapshot-module.ts";
import { planStopSnapshot } from "./snapshot-policy.ts";
import type { NewSnapshot } from "./snapshot-rows.ts";
import { beginSnapshot, completeCapture, deleteRow, dropSnapshot, failCapture } from "./snapshots.ts";
import { create, transition } from "./state.ts";
import { listRunningAgentIds, type SetDormant, TimedDecisions } from "./timed.ts";
import { EMPTY_TRASH, restoreFromTrash, trimTrash } from "./trash.ts";

/** Delay before a failed removal from the trash is retried. */
const TRASH_RETRY_MS = 3_600_000;

type Decide<Reply> = (
  state: WorkspaceState,
) => Outcome<WorkspaceState, Reply> | Promise<Outcome<WorkspaceState, Reply>>;

/** `beside`: writes for an object that is created or ends in the same batch, such as a task. The name is part of the cluster's protocol. */
type ExtraWrites = { readonly beside?: readonly Statement[] };
export type CreateWorkspace = { readonly workspace: WorkspaceRow; readonly build: NewBuild } & ExtraWrites;

/** `by_keeper`: the service for which the snapshot was created deletes it, because it no longer needs the snapshot. */
type DeleteSnapshot = { readonly snapshot_id: string; readonly by_keeper?: boolean };

/** The input for a worker; "stale" if the job does not wait for a worker. */
export type StartedJob =
  | ({ readonly request: ProvisionRequest; readonly orphan: boolean; readonly verbose: boolean } & AttemptRef)
  | "stale";

export class WorkspaceActor extends Actor<WorkspaceState> {
  readonly #deps: WorkspaceDeps;
  readonly #times: TimedDecisions;
  readonly #deduplicator: OutputDeduplicator;
  /** The job of which the start was committed without confirmation, and the reply for its worker. */
  #unconfirmedStart: { readonly job_id: string; readonly reply: StartedJob } | undefined;

  constructor(id: string, deps: WorkspaceDeps) {
    super(id, deps.store);
    this.#deps = deps;
    this.#times = new TimedDecisions(deps);
    this.#deduplicator = new OutputDeduplicator(deps.store);
  }

  /** Adds the timer and the derived columns to every change that affects them. */
  protected override handle<Reply>(decide: Decide<Reply>): Promise<Reply> {
    return super.handle<Reply>(async (state) => this.#times.withTimers(state, await decide(state)));
  }

  protected toPart({ workspace }: WorkspaceState): number {
    return workspace.part;
  }

  protected load(): Promise<WorkspaceState | undefined> {
    return loadState(this.#deps.store, this.id);
  }

  protected override onUnconfirmedCommit(before: WorkspaceState | undefined, found: WorkspaceState | undefined): void {
    if (found) announceReload(this.#deps, before, found);
  }

  protected override buildEntries(
    before: WorkspaceState | undefined,
    { state }: Outcome<WorkspaceState, unknown>,
  ): readonly AuditEntry[] {
    return buildWorkspaceEntries(before, state, this.#deps.clock.now());
  }

  protected override buildNotices(
    before: WorkspaceState | undefined,
    { state }: Outcome<WorkspaceState, unknown>,
  ): readonly Statement[] {
    return buildWorkspaceNotices(before, state, this.#deps.clock.now());
  }

  protected override onNoticesStored({ workspace }: WorkspaceState): void {
    this.#deps.topics.publish("notified", workspace.owner_id, {});
  }

  /** Creates the workspace with its first build. Rejects with 409 when the owner has one of that name. */
  create({ workspace, build, beside: extraWrites = [] }: CreateWorkspace): Promise<void> {
    return this.handleCreate(async () => {
      const first = await withSnapshotValue(this.#deps, this.id, build);
      const change = withExtraWrites(create(workspace, first, this.#deps.clock.now()), extraWrites);
      return this.#times.withTimers(undefined, toOutcome(this.#deps, change, undefined));
    }).catch(throwNameTaken);
  }

  /** Queues a build. Rejects with 409 while another is active, or when `after` is no longer the latest build. */
  createBuild({
    build,
    after,
    beside: extraWrites = [],
  }: { readonly build: NewBuild; readonly after: string } & ExtraWrites): Promise<void> {
    return this.handle(async (state) => {
      if (isActive(state.job)) throw conflict("Another build of the workspace is active.");
      if (state.build.id !== after) throw conflict("A newer build of the workspace exists. Reload it and try again.");
      const current = { ...state, agent_ids: await listRunningAgentIds(this.#deps.store, this.id) };
      if (build.transition === "delete" && build.kept_ms === undefined) await this.#requireNotForked();
      const fullBuild = await withSnapshotValue(this.#deps, this.id, build);
      const decision = transition(current, { type: "build", now: this.#deps.clock.now(), build: fullBuild });
      return toSettledOutcome(this.#deps, current, withExtraWrites(decision, extraWrites), undefined, undefined);
    });
  }

  /** Gives a prebuild to an owner. Returns "stale" if it is not available. Rejects with 409 when the owner has a workspace of that name. */
  claim({ beside: extraWrites = [], ...claim }: Claim & ExtraWrites): Promise<LateResult> {
    return this.handle<LateResult>(async (state) => {
      const { store, clock, accessUrl } = this.#deps;
      const now = clock.now();
      const agents = await store.all(listAgentsOfBuild({ build_id: state.build.id }));
      const change = toClaimChange({ ...state, agent_ids: agents.map(({ id }) => id) }, claim, now);
      if (!change) return { state, reply: "stale" };
      const tokenHashes = new Map(agents.flatMap(({ name, token_hash }) => (token_hash ? [[name, token_hash]] : [])));
      const planInput = { kept: tokenHashes, parameters: claim.build.parameters };
      const { rows, agent_ids } = await planBuild(this.#deps, change.state, now, accessUrl().href, planInput);
      const withAgents = { ...change, state: { ...change.state, agent_ids } };
      return this.#settleDecision(state, withExtraWrites(withAgents, [...rows, ...extraWrites]));
    }).catch(throwNameTaken);
  }

  /** Assigns the job to a worker. Returns the request for it, and stores the rows of the resources that the worker will create. */
  startJob(args: { readonly job_id: string; readonly worker: Worker }): Promise<StartedJob> {
    let reply: StartedJob = "stale";
    const started = this.handle<StartedJob>(async (state) => {
      const { id, worker_id } = state.job;
      // The commit of the first call is on disk but could not be confirmed, so the worker repeats the call.
      const isRepeated = id === this.#unconfirmedStart?.job_id && isActive(state.job) && worker_id === args.worker.id;
      if (isRepeated && this.#unconfirmedStart) return { state, reply: this.#unconfirmedStart.reply };
      if (id !== args.job_id || toJobStatus(state.job) !== "pending") return { state, reply: "stale" };
      const { store, clock, accessUrl } = this.#deps;
      const now = clock.now();
      const { workspace, build } = state;
      // A claim has already created its agents, and the running daemons have their tokens.
      const existing = (await isClaim(store, workspace, build))
        ? { made: await store.all(listAgentsOfBuild({ build_id: build.id })) }
        : {};
      const plan = await planBuild(this.#deps, state, now, accessUrl().href, existing);
      const { request, agent_ids, daily_cost = state.build.daily_cost } = plan;
      const rows = [...plan.rows, ...(await buildQuotaGuards(store, state, plan.daily_cost ?? 0))];
      const decision = transition(state, { type: "start", now, ...args, rows, agent_ids, daily_cost });
      const attempt = state.job.attempts + 1;
      reply = { request, orphan: state.build.orphan, verbose: state.build.log_level === "debug", attempt };
      return toSettledOutcome<StartedJob>(this.#deps, state, decision, reply, "stale");
    });
    return started.then(
      (reply) => {
        this.#unconfirmedStart = undefined;
        return reply;
      },
      (error) => {
        if (error instanceof CommitError && error.reason === "unknown")
          this.#unconfirmedStart = { job_id: args.job_id, reply };
        throw error;
      },
    );
  }

  /** Stores log lines and timings of a running job. */
  say({ job_id, attempt, id, logs, timings }: JobOutput & JobRunRef): Promise<LateResult> {
    return this.handle<LateResult>(async (state) => {
      if (!isCurrentRun(state.job, { job_id, attempt })) return { state, reply: "stale" };
      const first_id = await this.#deduplicator.reserveIds(state.job, { id, logs });
      if (first_id === "stored") return { state, reply: "done" };
      const now = this.#deps.clock.now();
      return this.#settleReport(state, { type: "say", now, job_id, attempt, first_id, logs, timings });
    });
  }

  /** Sets the build's daily cost, which its provisioner has planned. Throws ProvisionError when it exceeds the quota. */
  chargeJob({ daily_cost, ...run }: JobRunRef & { readonly daily_cost: number }): Promise<LateResult> {
    return this.handle(async (state) => {
      if (!isCurrentRun(state.job, run)) return { state, reply: "stale" };
      const guards = await buildQuotaGuards(this.#deps.store, state, daily_cost);
      return this.#settleReport(state, { type: "charge", now: this.#deps.clock.now(), ...run, daily_cost, guards });
    });
  }

  /** Records a heartbeat of the worker. */
  touchJob(run: JobRunRef): Promise<LateResult> {
    return this.handle((state) => this.#settleReport(state, { type: "touch", now: this.#deps.clock.now(), ...run }));
  }

  /** Completes the job. */
  completeJob(
    args: JobRunRef & {
      /** The state for the next build. */
      readonly state: string | null;
      /** True if the build was canceled and its worker has not reported the state. */
      readonly unheard?: boolean;
      /** The created resources, if only the build determines them. */
      readonly made?: ProvisionedResources;
      readonly kept_bytes?: number;
    },
  ): Promise<LateResult> {
    return this.handle(async (state) => {
      const { store, clock } = this.#deps;
      const { made, ...result } = args;
      const { workspace, build } = state;
      const isCurrent = isCurrentRun(state.job, args);
      const now = clock.now();
      const rows = made && isCurrent ? await buildCreatedRows(this.#deps, state, made, now) : undefined;
      const rules = await loadRules(store, workspace);
      const claimed = await isClaim(store, workspace, build);
      const snapshot = isCurrent ? await planStopSnapshot(store, state) : {};
      const removals = isCurrent && build.kept_ms !== null ? await trimTrash(store, workspace, now) : [];
      const isDeleted = isCurrent && build.transition === "delete" && build.kept_ms === null;
      const made_snapshots = isDeleted ? await listMadeSnapshots(store, this.id) : [];
      const decision = transition(state, {
        type: "complete",
        now,
        ...result,
        ...(rows ? { made: rows } : {}),
        ...snapshot,
        made_snapshots,
        rules,
        claimed,
      });
      return this.#settleDecision(state, withExtraWrites(decision, removals));
    });
  }

  /** Fails the job. `left`: the state after the failure, for the next build. */
  failJob(
    args: JobRunRef & {
      readonly error: string;
      readonly error_code: string;
      readonly left?: { readonly state: string | null };
    },
  ): Promise<LateResult> {
    return this.handle((state) => this.#settleReport(state, { type: "fail", now: this.#deps.clock.now(), ...args }));
  }

  /**
   * Replaces the state after a build. Rejects with 409 if the current state is not `before`, or while the workspace has an active build,
   * which may be using the state.
   */
  putBuildState(args: {
    readonly build_id: string;
    readonly before: string | null;
    readonly state: string | null;
  }): Promise<void> {
    return this.handle((state) => {
      const { build_id } = args;
      if (isActive(state.job)) throw conflict("A build of the workspace is active.");
      const isLatest = build_id === state.build.id;
      if (isLatest && state.build.state !== args.before)
        throw conflict("The state has changed. Reload it and try again.");
      const patch = { state: args.state, updated_at: this.#deps.clock.now() };
      const writes = [updateBuild(build_id, patch, { expect: 1 }), auditState(state, build_id, patch.updated_at)];
      if (!isLatest) return { state, writes, reply: undefined };
      // The new state is complete, so the next build does not have to wait for the worker with the old state.
      const tags = unbindTagsFromWorker(state.tags);
      return {
        state: { ...state, tags, build: { ...state.build, ...patch } },
        writes: [...writes, updateJob(state.job.id, { tags }, { expect: 1 })],
        reply: undefined,
      };
    });
  }

  /**
   * Restores the workspace from the trash with a build that stops it. Rejects with 409 when it is not in the trash anymore, or when the
   * name is taken.
   */
  restoreDeleted({
    name,
    build,
    after,
  }: {
    readonly name: string;
    readonly build: NewBuild;
    readonly after: string;
  }): Promise<void> {
    return this.handle((state) => {
      const { workspace } = state;
      if (!workspace.deleted || workspace.trashed_until === null) throw conflict("The workspace is not in the trash.");
      if (isActive(state.job)) throw conflict("The workspace is being removed from the trash.");
      if (state.build.id !== after) throw conflict("A newer build of the workspace exists. Reload it and try again.");
      const now = this.#deps.clock.now();
      const restored = restoreFromTrash(state, name, now);
      const decision = transition(restored.state, { type: "build", now, build });
      if (decision.kind !== "change") return toSettledOutcome(this.#deps, state, decision, undefined, undefined);
      const guards = [guardTemplate({ id: workspace.template_id }), guardUser({ id: workspace.owner_id })];
      const update = updateWorkspace(workspace.id, restored.patch, { expect: 1 });
      const writes = [...guards, update, ...restored.writes, ...decision.writes];
      return toSettledOutcome(this.#deps, state, { ...decision, writes }, undefined, undefined);
    }).catch(throwNameTaken);
  }

  /** Handles the timer of the trash: deletes the remaining files, and retries later if that fails. */
  emptyTrash(_: Record<string, never>): Promise<LateResult> {
    return this.handle(async (state) => {
      const { workspace, build } = state;
      if (!workspace.deleted || workspace.trashed_until === null) {
        return { state, writes: [clearTimer("workspace", this.id, EMPTY_TRASH)], reply: "stale" };
      }
      const now = this.#deps.clock.now();
      const retryTimer = setTimer("workspace", this.id, EMPTY_TRASH, now + TRASH_RETRY_MS);
      if (isActive(state.job) || (await this.#isForked())) return { state, writes: [retryTimer], reply: "stale" };
      const input = { transition: "delete", reason: "autodelete", initiator_id: workspace.owner_id } as const;
      const planned = await this.#deps.automatic.plan(workspace, build, { ...input, permanent: true });
      const decision = transition(state, { type: "build", now, build: planned });
      return this.#settleDecision(state, withExtraWrites(decision, [retryTimer]));
    });
  }

  /** Rejects deletion while forks still need the workspace's files. */
  async #requireNotForked(): Promise<void> {
    if (await this.#isForked())
      throw conflict("The workspace is being forked. Try again when the forks have their files.");
  }

  async #isForked(): Promise<boolean> {
    return (await this.#deps.store.all(listForksInProgress({ workspace_id: this.id }))).length > 0;
  }

  /** Begins a snapshot. Rejects with 409 during a build or another snapshot, or at the limit. */
  createSnapshot({ rows = [], ...snapshot }: NewSnapshot & { readonly rows?: readonly Statement[] }): Promise<void> {
    return this.handle(async (state) => {
      const existing = await this.#deps.store.all(listSnapshots({ workspace_id: this.id }));
      const decision = beginSnapshot(state, snapshot, existing, this.#deps.clock.now());
      return toSettledOutcome(this.#deps, state, withExtraWrites(decision, rows), undefined, undefined);
    });
  }

  /** Completes a snapshot after its files were copied. */
  snapshotCaptured({
    snapshot_id,
    method,
    bytes,
    sealed_state = "",
  }: CaptureResult & { readonly snapshot_id: string; readonly sealed_state?: string }): Promise<LateResult> {
    const captured = { method, bytes, sealed_state };
    return this.#withSnapshot(snapshot_id, (state, row, now) => completeCapture(state, row, captured, now));
  }

  /** Fails a snapshot of which the files could not be copied. `sealed_state` identifies the files that could not be deleted. */
  snapshotFailed({
    snapshot_id,
    error,
    sealed_state = "",
  }: {
    readonly snapshot_id: string;
    readonly error: string;
    readonly sealed_state?: string;
  }): Promise<LateResult> {
    return this.#withSnapshot(snapshot_id, (state, row, now) => failCapture(state, row, { error, sealed_state }, now));
  }

  /**
   * Begins to delete a snapshot. Returns "stale" if the deletion is in progress. Rejects with 404, and with 409 while the snapshot is being
   * created or restored, or a fork or home backup needs it.
   */
  deleteSnapshot({ snapshot_id, by_keeper = false }: DeleteSnapshot): Promise<LateResult> {
    return this.#withSnapshot(snapshot_id, async (state, row, now) => {
      const restoring = (await this.#deps.store.all(listRestoring({ workspace_id: this.id }))).map(({ id }) => id);
      return dropSnapshot(state, row, { restoring, by_keeper, now });
    });
  }

  /** Deletes the row of a snapshot after its files were deleted. */
  snapshotDropped({ snapshot_id }: { readonly snapshot_id: string }): Promise<LateResult> {
    return this.#withSnapshot(snapshot_id, (state, row, now) => deleteRow(state, row, now));
  }

  #withSnapshot(
    id: string,
    decide: (state: WorkspaceState, row: SnapshotRow | undefined, now: number) => Decision | Promise<Decision>,
  ): Promise<LateResult> {
    return this.handle(async (state) => {
      const row = await this.#deps.store.get(findSnapshot({ id }));
      return this.#settleDecision(state, await decide(state, row, this.#deps.clock.now()));
    });
  }

  /** Cancels a build. Rejects with 400 when it has ended or was already canceled, 412 when it is not in the status the caller expects. */
  cancelBuild(args: { readonly build_id: string; readonly expect_status?: "running" | "pending" }): Promise<void> {
    return this.handle((state) => {
      const { build_id, expect_status } = args;
      const status = state.build.id === build_id ? toJobStatus(state.job) : "succeeded";
      if (expect_status !== undefined && status !== expect_status) {
        throw new AppError("precondition_failed", `The job is not ${expect_status}.`, { detail: `It is ${status}.` });
      }
      if (state.build.id !== build_id) throw new AppError("invalid", "The job has already ended.");
      const decision = transition(state, { type: "cancel", now: this.#deps.clock.now(), job_id: state.job.id });
      return toSettledOutcome(this.#deps, state, decision, undefined, undefined);
    });
  }

  /** Sets or clears the owner's favorite mark; "stale" when unchanged. */
  favor({ favorite }: { readonly favorite: boolean }): Promise<LateResult> {
    return this.handle((state) => this.#settleReport(state, { type: "favor", favorite }));
  }

  /** Changes properties without a build; "stale" when unchanged. Rejects with 409 for a taken name, 410 for a deleted workspace. */
  edit(edit: WorkspaceEdit): Promise<LateResult> {
    return this.handle(async (state) =>
      this.#settleDecision(state, await decideEdit(this.#deps.store, state, edit, this.#deps.clock.now())),
    ).catch(throwNameTaken);
  }

  /** Handles the timer `lost_access`: someone has lost access without a change of the shares (rule AG-28). */
  handleLostAccess(_: Record<string, never>): Promise<LateResult> {
    return this.handle(async (state) => {
      failpoint("access_lost");
      const { store, clock } = this.#deps;
      // The timer is read before the shared ports, so that it stays due if someone else loses access at the same time.
      const dueAt = (await store.get(findActorTimer("workspace", this.id, LOST_ACCESS)))?.due;
      if (dueAt === undefined) return { state, reply: "stale" };
      const clearing = moveTimer("workspace", this.id, LOST_ACCESS, { due: undefined, seen: dueAt });
      if (state.workspace.deleted) return { state, writes: [clearing], reply: "stale" };
      const decision = await decideEdit(store, state, { type: "lose_access" }, clock.now());
      return this.#settleDecision(state, withExtraWrites(decision, [clearing]));
    });
  }

  /** Shares a port or changes its share. Rejects with 400 as in facts/platform 3.5, 409 when the template changes at the same time. */
  sharePort(share: UpsertPortShare & PortSharer): Promise<LateResult> {
    return this.#decideWithPorts(async (state, ports) => {
      const is_allowed = await maySharePort(this.#deps.store, state, share);
      return sharePort(state, share, { ...ports, is_allowed });
    });
  }

  /** Rejects with 404 when the port is not shared. */
  unsharePort(port: { readonly agent_name: string; readonly port: number }): Promise<LateResult> {
    return this.#decideWithPorts((state, ports) => unsharePort(state, port, ports));
  }

  /** Applies the template's lowered share level to the shared ports. */
  lowerPorts(_: Record<string, never>): Promise<LateResult> {
    return this.#decideWithPorts(lowerPorts);
  }

  #decideWithPorts(
    decide: (state: WorkspaceState, ports: StoredPorts) => Decision | Promise<Decision>,
  ): Promise<LateResult> {
    return this.handle(async (state) => {
      const { store, clock } = this.#deps;
      return this.#settleDecision(state, await decide(state, await loadPortContext(store, state, clock.now())));
    });
  }

  #settleDecision(state: WorkspaceState, decision: Decision): Outcome<WorkspaceState, LateResult> {
    return toSettledOutcome<LateResult>(this.#deps, state, decision, "done", "stale");
  }

  /** Requeues or ends a job without a worker. The server has restarted, another node ran the job (`moved`), or its worker was lost. */
  requeueJob(args: JobRunRef & { readonly lost?: string; readonly moved?: boolean }): Promise<LateResult> {
    return this.handle((state) => this.#settleReport(state, { type: "requeue", now: this.#deps.clock.now(), ...args }));
  }

  /** Handles the timer of rule JB-6: ends a silent job. */
  reap(_: Record<string, never>): Promise<LateResult> {
    return this.handle(async (state) => {
      const now = this.#deps.clock.now();
      const due = isActive(state.job) && now >= getReapTime(state.job);
      const first_id = due ? await this.#deps.store.reserve("job_logs", 5) : 0;
      return this.#settleReport(state, { type: "reap", now, first_id });
    });
  }

  #settleReport(state: WorkspaceState, command: Parameters<typeof transition>[1]): Outcome<WorkspaceState, LateResult> {
    return this.#settleDecision(state, transition(state, command));
  }

  /**
   * Sets the time to live in whole minutes; null disables autostop. Rejects with 400 when the template forbids it. "stale" when
   * unchanged.
   */
  setTtl(args: { readonly ttl_ms: number | null; readonly by: Originator }): Promise<LateResult> {
    return this.handle((state) => this.#times.edit(state, (now, rules, at) => withTtl(now, rules, args, at)));
  }

  /**
   * Sets the autostart schedule; null disables autostart. `no_user_data`: see `withAutostart`. Rejects with 400 when the template forbids
   * it.
   */
  setAutostart({
    schedule,
    no_user_data,
  }: {
    readonly schedule: string | null;
    readonly no_user_data?: boolean;
  }): Promise<LateResult> {
    return this.handle((state) =>
      this.#times.edit(state, (now, rules, at) => withAutostart(now, rules, schedule, at, no_user_data)),
    );
  }

  /** Moves the deadline; milliseconds since 1970. Rejects with 400 or 409 as in facts/platform 2.7. */
  extend(args: { readonly deadline: number; readonly by: Originator }): Promise<LateResult> {
    return this.handle((state) =>
      this.#times.edit(state, (now, _, at) => auditExtension(now, extendDeadline(now, args, at), at)),
    );
  }

  /** Makes the workspace dormant, stopping it if needed, or wakes it. "stale" when unchanged. Rejects with 409 for a prebuild. */
  setDormant(args: SetDormant): Promise<LateResult> {
    return this.handle((state) => this.#times.setDormant(state, args));
  }

  /** Records activity. Most reports cause no write. */
  recordActivity(report: ActivityReport): Promise<LateResult> {
    return this.handle((state) => this.#times.recordActivity(state, report));
  }

  /** Writes the time of last use (actors/workspace/activity-uses.ts). */
  noteUse(_: Record<string, never>): Promise<LateResult> {
    return this.handle((state) => this.#times.noteUse(state));
  }

  /** Handles a timer that was set by a change of the template. */
  resetTimes({ name }: { readonly name: "reset_used" | "reset_dormant" }): Promise<LateResult> {
    return super.handle((state) => this.#times.withTimers(state, this.#times.resetTimes(state, name), true));
  }

  /** Handles the workspace's timer: performs the due action, and sets the timer again in any case. */
  runSchedule(_: Record<string, never>): Promise<LateResult> {
    return super.handle(async (state) => this.#times.withTimers(state, await this.#times.runDue(state), true));
  }
}
