// The actor of one workspace: the only writer of its row, its builds and their jobs. Decides with state.ts, commits, announces,
// and starts the work of builds outside of its mailbox; what returns carries the job it belongs to (rules WK-1 to WK-8).
import { AppError, conflict } from "#base/errors.ts";
import { listAgentsOfBuild } from "#db/agents/agents.ts";
import type { Statement } from "#db/engine/sql.ts";
import { CommitError } from "#db/engine/store.ts";
import { clearTimer, setTimer } from "#db/engine/timers.ts";
import type { AuditEntry } from "#db/reports/audit/audit.ts";
import { findTemplateEvenDeleted, guardTemplate } from "#db/templates/templates.ts";
import { guardUser } from "#db/users/users.ts";
import { findBuild, updateBuild } from "#db/workspaces/builds.ts";
import { listForksUnderWay } from "#db/workspaces/forks.ts";
import { findJob, updateJob } from "#db/workspaces/jobs.ts";
import { listStoredPortShares } from "#db/workspaces/port-shares.ts";
import { findSnapshot, listRestoring, listSnapshots, type SnapshotRow } from "#db/workspaces/snapshots.ts";
import { listTrashByOwner } from "#db/workspaces/trash.ts";
import { findWorkspace, updateWorkspace, type WorkspaceRow } from "#db/workspaces/workspaces.ts";
import { isActive, jobStatus } from "#schema/workspaces/job.ts";
import type { ShareLevel, UpsertPortShare } from "#schema/workspaces/port-share.ts";
import { tagsHeard } from "#src/provisioners/external/tags.ts";
import type { Captured } from "#src/provisioners/homes.ts";
import type { Made, ProvisionRequest } from "#src/provisioners/provisioner.ts";
import type { Said } from "../job/report.ts";
import { SaidOnce } from "../job/said-once.ts";
import { isForJob, type OfRun, type RunOf, reapDue } from "../job/state.ts";
import { Actor, type Outcome } from "../runtime/actor.ts";
import type { Worker } from "../runtime/job-queue.ts";
import type { ActivityReport } from "./activity.ts";
import type { By } from "./activity-note.ts";
import { auditExtension, auditState, workspaceEntries } from "./audit.ts";
import { type Claim, claimed, isClaim } from "./claim.ts";
import type { Decision, NewBuild, WorkspaceState } from "./decision.ts";
import type { WorkspaceDeps } from "./deps.ts";
import { editWorkspace, type WorkspaceEdit } from "./edits.ts";
import { workspaceNotices } from "./notices.ts";
import { announceAgain, type Late, nameTaken, settled, toOutcome, withBeside } from "./outcome.ts";
import { planBuild, rowsOfMade } from "./plan.ts";
import { type KnownPorts, lowerPorts, sharePort, unsharePort } from "./port-shares.ts";
import { quotaGuards } from "./quota.ts";
import { extended, withAutostart, withTtl } from "./schedule-edits.ts";
import { loadRules } from "./schedule-rules.ts";
import { listMadeSnapshots, withSnapshotValue } from "./snapshot-module.ts";
import { snapshotOnStop } from "./snapshot-policy.ts";
import { findCapturing, type NewSnapshot } from "./snapshot-rows.ts";
import { beginSnapshot, captured, dropped, dropSnapshot, notCaptured } from "./snapshots.ts";
import { create, transition } from "./state.ts";
import { runningAgents, type SetDormant, TimedDecisions } from "./timed.ts";
import { EMPTY_TRASH, MAX_TRASHED, withoutTrash } from "./trash.ts";

/** What could not be removed from the trash is tried again after this. */
const TRASH_RETRY_MS = 3_600_000;

type Decide<Reply> = (
  state: WorkspaceState,
) => Outcome<WorkspaceState, Reply> | Promise<Outcome<WorkspaceState, Reply>>;

/** `beside`: rows of what is made or ends together with it, such as a task. */
type Beside = { readonly beside?: readonly Statement[] };
export type CreateWorkspace = { readonly workspace: WorkspaceRow; readonly build: NewBuild } & Beside;

/** `by_keeper`: what it was made for needs it no more. */
type DeleteSnapshot = { readonly snapshot_id: string; readonly by_keeper?: boolean };

/** What a worker gets to do; "stale" when the job no longer waits for one. */
export type StartedJob =
  | ({ readonly request: ProvisionRequest; readonly orphan: boolean; readonly verbose: boolean } & OfRun)
  | "stale";

export class WorkspaceActor extends Actor<WorkspaceState> {
  readonly #deps: WorkspaceDeps;
  readonly #times: TimedDecisions;
  readonly #saidOnce: SaidOnce;
  /** A job whose beginning could not be confirmed, and what its worker was to be told. */
  #unheard: { readonly job_id: string; readonly begun: StartedJob } | undefined;

  constructor(id: string, deps: WorkspaceDeps) {
    super(id, deps.store);
    this.#deps = deps;
    this.#times = new TimedDecisions(deps);
    this.#saidOnce = new SaidOnce(deps.store);
  }

  /** The timer and the derived columns go along with whatever changes what they follow from. */
  protected override handle<Reply>(decide: Decide<Reply>): Promise<Reply> {
    return super.handle<Reply>(async (state) => this.#times.timed(state, await decide(state)));
  }

  protected part({ workspace }: WorkspaceState): number {
    return workspace.part;
  }

  protected async load(): Promise<WorkspaceState | undefined> {
    const { store } = this.#deps;
    const workspace = await store.get(findWorkspace({ id: this.id }));
    const build = workspace && (await store.get(findBuild({ id: workspace.latest_build_id })));
    const job = build && (await store.get(findJob({ id: build.job_id })));
    if (!workspace || !build || !job) return undefined;
    const { id, key, created_at, updated_at, started_at, canceled_at, completed_at, error, error_code } = job;
    const { worker_id, worker_name, attempts, logs_length, logs_overflowed, timings } = job;
    const snapshots = await store.all(listSnapshots({ workspace_id: this.id }));
    const times = { created_at, updated_at, started_at, canceled_at, completed_at };
    const counts = { attempts, logs_length, logs_overflowed };
    return {
      workspace,
      build,
      job: { id, key, ...times, error, error_code, worker_id, worker_name, ...counts },
      tags: job.tags,
      timings,
      agent_ids: build.transition === "start" || isActive(job) ? await runningAgents(store, this.id) : [],
      capturing: findCapturing(snapshots),
    };
  }

  protected override unconfirmed(before: WorkspaceState | undefined, found: WorkspaceState | undefined): void {
    if (found) announceAgain(this.#deps, before, found);
  }

  protected override entries(
    before: WorkspaceState | undefined,
    { state }: Outcome<WorkspaceState, unknown>,
  ): readonly AuditEntry[] {
    return workspaceEntries(before, state, this.#deps.clock.now());
  }

  protected override notices(
    before: WorkspaceState | undefined,
    { state }: Outcome<WorkspaceState, unknown>,
  ): readonly Statement[] {
    return workspaceNotices(before, state, this.#deps.clock.now());
  }

  protected override noticed({ workspace }: WorkspaceState): void {
    this.#deps.topics.publish("notified", workspace.owner_id, {});
  }

  /** Makes the workspace with its first build. 409 when the owner has one of that name. */
  create({ workspace, build, beside = [] }: CreateWorkspace): Promise<void> {
    return this.handleCreate(async () => {
      const first = await withSnapshotValue(this.#deps, this.id, build);
      const change = withBeside(create(workspace, first, this.#deps.clock.now()), beside);
      return this.#times.timed(undefined, toOutcome(this.#deps, change, undefined));
    }).catch(nameTaken);
  }

  /** Queues a build. 409 while another is active, or when `after` is no longer the latest build. */
  createBuild({
    build,
    after,
    beside = [],
  }: { readonly build: NewBuild; readonly after: string } & Beside): Promise<void> {
    return this.handle(async (state) => {
      if (isActive(state.job)) throw conflict("Another build of the workspace is active.");
      if (state.build.id !== after) throw conflict("The workspace has another build by now. Please retry.");
      const known = { ...state, agent_ids: await runningAgents(this.#deps.store, this.id) };
      if (build.transition === "delete" && build.kept_ms === undefined) await this.#mustNotBeForked();
      const whole_build = await withSnapshotValue(this.#deps, this.id, build);
      const decision = transition(known, { type: "build", now: this.#deps.clock.now(), build: whole_build });
      const whole = decision.kind === "change" ? withBeside(decision, beside) : decision;
      return settled(this.#deps, known, whole, undefined, undefined);
    });
  }

  /** Gives a workspace that was kept ready to an owner; "stale" when it is not available. 409 when the owner has one of that name. */
  claim({ beside = [], ...claim }: Claim & Beside): Promise<Late> {
    return this.handle<Late>(async (state) => {
      const { store, clock, accessUrl } = this.#deps;
      const now = clock.now();
      const agents = await store.all(listAgentsOfBuild({ build_id: state.build.id }));
      const change = claimed({ ...state, agent_ids: agents.map(({ id }) => id) }, claim, now);
      if (!change) return { state, reply: "stale" };
      const kept = new Map(agents.flatMap(({ name, token_hash }) => (token_hash ? [[name, token_hash]] : [])));
      const known = { kept, parameters: claim.build.parameters };
      const { rows, agent_ids } = await planBuild(this.#deps, change.state, now, accessUrl().href, known);
      const next = { ...change, state: { ...change.state, agent_ids }, writes: [...change.writes, ...rows, ...beside] };
      return settled<Late>(this.#deps, state, next, "done", "stale");
    }).catch(nameTaken);
  }

  /** A worker takes the job: gives it everything it needs, and makes the rows of what it will bring to life. */
  startJob(args: { readonly job_id: string; readonly worker: Worker }): Promise<StartedJob> {
    let begun: StartedJob = "stale";
    const started = this.handle<StartedJob>(async (state) => {
      const { id, worker_id } = state.job;
      // Its commit could not be confirmed, and is on disk: only this worker has it.
      const isUnheard = id === this.#unheard?.job_id && isActive(state.job) && worker_id === args.worker.id;
      if (isUnheard && this.#unheard) return { state, reply: this.#unheard.begun };
      if (id !== args.job_id || jobStatus(state.job) !== "pending") return { state, reply: "stale" };
      const { store, clock, accessUrl } = this.#deps;
      const now = clock.now();
      const { workspace, build } = state;
      // The agents of a claim were made with it; what runs has their tokens.
      const made = (await isClaim(store, workspace, build))
        ? { made: await store.all(listAgentsOfBuild({ build_id: build.id })) }
        : {};
      const plan = await planBuild(this.#deps, state, now, accessUrl().href, made);
      const { request, agent_ids, daily_cost } = plan;
      const rows = [...plan.rows, ...(await quotaGuards(store, state, daily_cost))];
      const decision = transition(state, { type: "start", now, ...args, rows, agent_ids, daily_cost });
      const attempt = state.job.attempts + 1;
      begun = { request, orphan: state.build.orphan, verbose: state.build.log_level === "debug", attempt };
      return settled<StartedJob>(this.#deps, state, decision, begun, "stale");
    });
    return started.then(
      (reply) => {
        this.#unheard = undefined;
        return reply;
      },
      (error) => {
        if (error instanceof CommitError && error.reason === "unknown") this.#unheard = { job_id: args.job_id, begun };
        throw error;
      },
    );
  }

  /** Lines and timings of a running job. */
  say({ job_id, attempt, id, logs, timings }: Said & RunOf): Promise<Late> {
    return this.handle<Late>(async (state) => {
      if (!isForJob(state.job, { job_id, attempt })) return { state, reply: "stale" };
      const first_id = await this.#saidOnce.numbersFor(state.job, { id, logs });
      if (first_id === "stored") return { state, reply: "done" };
      return this.#late(state, { type: "say", now: this.#deps.clock.now(), job_id, attempt, first_id, logs, timings });
    });
  }

  /** What a provisioner that plans on its own has found the build to cost a day. Throws ProvisionError when that is not allowed. */
  chargeJob({ daily_cost, ...run }: RunOf & { readonly daily_cost: number }): Promise<Late> {
    return this.handle(async (state) => {
      if (!isForJob(state.job, run)) return { state, reply: "stale" };
      const guards = await quotaGuards(this.#deps.store, state, daily_cost);
      return this.#late(state, { type: "charge", now: this.#deps.clock.now(), ...run, daily_cost, guards });
    });
  }

  /** The job is still being worked on. */
  touchJob(run: RunOf): Promise<Late> {
    return this.handle((state) => this.#late(state, { type: "touch", now: this.#deps.clock.now(), ...run }));
  }

  /** The work has ended; `state` is what the next build must be told, `made` what only its end has shown. */
  completeJob(
    args: RunOf & {
      readonly state: string | null;
      /** It was cancelled, and nobody has said what it has left. */
      readonly unheard?: boolean;
      readonly made?: Made;
      readonly kept_bytes?: number;
    },
  ): Promise<Late> {
    return this.handle(async (state) => {
      const isOurs = isForJob(state.job, args);
      const now = this.#deps.clock.now();
      const rows = args.made && isOurs ? await rowsOfMade(this.#deps, state, args.made, now) : undefined;
      const rules = await loadRules(this.#deps.store, state.workspace);
      const claimed = await isClaim(this.#deps.store, state.workspace, state.build);
      const { job_id, attempt, state: left, unheard = false } = args;
      const made = rows ? { made: rows } : {};
      const snapshot = isOurs ? await snapshotOnStop(this.#deps.store, state) : {};
      const run = { job_id, attempt };
      const crowded = isOurs && state.build.kept_ms !== null ? await this.#crowdedOut(state, now) : [];
      const isDeleted = isOurs && state.build.transition === "delete" && state.build.kept_ms === null;
      const made_snapshots = isDeleted ? await listMadeSnapshots(this.#deps.store, this.id) : [];
      const kept = args.kept_bytes === undefined ? {} : { kept_bytes: args.kept_bytes };
      const end = { ...run, state: left, unheard, ...made, ...snapshot, ...kept, made_snapshots };
      const decision = transition(state, { type: "complete", now, ...end, rules, claimed });
      return this.#decided(state, decision.kind === "change" ? withBeside(decision, crowded) : decision);
    });
  }

  /** The timers of those that have to leave the owner's trash for this one. */
  async #crowdedOut({ workspace }: WorkspaceState, now: number): Promise<Statement[]> {
    const trashed = await this.#deps.store.all(listTrashByOwner({ owner_id: workspace.owner_id }));
    const over = trashed.slice(0, Math.max(0, trashed.length + 1 - MAX_TRASHED));
    return over.map(({ id }) => setTimer("workspace", id, EMPTY_TRASH, now));
  }

  /** `left`: what is there all the same, for the next build. */
  failJob(
    args: RunOf & {
      readonly error: string;
      readonly error_code: string;
      readonly left?: { readonly state: string | null };
    },
  ): Promise<Late> {
    return this.handle((state) => this.#late(state, { type: "fail", now: this.#deps.clock.now(), ...args }));
  }

  /**
   * Replaces what a build has left behind, which was `before`. 409 while the workspace has an active build, which may be told it just now, and when
   * it is not that any more.
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
      if (isLatest && state.build.state !== args.before) throw conflict("The state has been replaced meanwhile.");
      const patch = { state: args.state, updated_at: this.#deps.clock.now() };
      const pushed = [updateBuild(build_id, patch, { expect: 1 }), auditState(state, build_id, patch.updated_at)];
      if (!isLatest) return { state, writes: pushed, reply: undefined };
      // Anyone who pushes it knows what is there: no worker has to be waited for.
      const tags = tagsHeard(state.tags);
      return {
        state: { ...state, tags, build: { ...state.build, ...patch } },
        writes: [...pushed, updateJob(state.job.id, { tags }, { expect: 1 })],
        reply: undefined,
      };
    });
  }

  /** Takes it out of the trash with a build that stops it. 409 when it is not there any more, or when the name is taken. */
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
      if (isActive(state.job)) throw conflict("The workspace is just being removed from the trash.");
      if (state.build.id !== after) throw conflict("The workspace has another build by now. Please retry.");
      const now = this.#deps.clock.now();
      const out = withoutTrash(state, name, now);
      const decision = transition(out.state, { type: "build", now, build });
      if (decision.kind !== "change") return settled(this.#deps, state, decision, undefined, undefined);
      const guards = [guardTemplate({ id: workspace.template_id }), guardUser({ id: workspace.owner_id })];
      const alive = updateWorkspace(workspace.id, out.patch, { expect: 1 });
      const writes = [...guards, alive, ...out.writes, ...decision.writes];
      return settled(this.#deps, state, { ...decision, writes }, undefined, undefined);
    }).catch(nameTaken);
  }

  /** The timer of the trash: removes what is left, and tries again later if that fails. */
  emptyTrash(_: Record<string, never>): Promise<Late> {
    return this.handle(async (state) => {
      const { workspace, build } = state;
      if (!workspace.deleted || workspace.trashed_until === null) {
        return { state, writes: [clearTimer("workspace", this.id, EMPTY_TRASH)], reply: "stale" };
      }
      const now = this.#deps.clock.now();
      const again = setTimer("workspace", this.id, EMPTY_TRASH, now + TRASH_RETRY_MS);
      if (isActive(state.job) || (await this.#isForked())) return { state, writes: [again], reply: "stale" };
      const input = { transition: "delete", reason: "autodelete", initiator_id: workspace.owner_id } as const;
      const planned = await this.#deps.automatic.plan(workspace, build, { ...input, permanent: true });
      const decision = transition(state, { type: "build", now, build: planned });
      return this.#decided(state, decision.kind === "change" ? withBeside(decision, [again]) : decision);
    });
  }

  /** What other workspaces are to begin with is not removed. */
  async #mustNotBeForked(): Promise<void> {
    if (await this.#isForked())
      throw conflict("The workspace is being forked. Try again when the forks have their files.");
  }

  async #isForked(): Promise<boolean> {
    return (await this.#deps.store.all(listForksUnderWay({ workspace_id: this.id }))).length > 0;
  }

  /** Begins a snapshot. 409 during a build or another snapshot, and beyond the limit. */
  createSnapshot({ rows = [], ...snapshot }: NewSnapshot & { readonly rows?: readonly Statement[] }): Promise<void> {
    return this.handle(async (state) => {
      const known = await this.#deps.store.all(listSnapshots({ workspace_id: this.id }));
      const decision = beginSnapshot(state, snapshot, known, this.#deps.clock.now());
      const whole = decision.kind === "change" ? withBeside(decision, rows) : decision;
      return settled(this.#deps, state, whole, undefined, undefined);
    });
  }

  /** The files of a snapshot have been copied. */
  snapshotCaptured({
    snapshot_id,
    method,
    bytes,
    sealed_state = "",
  }: Captured & { readonly snapshot_id: string; readonly sealed_state?: string }): Promise<Late> {
    const made = { method, bytes, sealed_state };
    return this.#withSnapshot(snapshot_id, (state, row, now) => captured(state, row, made, now));
  }

  /** They could not be; `sealed_state` names what could not be removed. */
  snapshotFailed({
    snapshot_id,
    error,
    sealed_state = "",
  }: {
    readonly snapshot_id: string;
    readonly error: string;
    readonly sealed_state?: string;
  }): Promise<Late> {
    return this.#withSnapshot(snapshot_id, (state, row, now) => notCaptured(state, row, { error, sealed_state }, now));
  }

  /** Begins to delete a snapshot; "stale" when that is under way. 404, and 409 while it is being created or restored, or a fork or home backup needs it. */
  deleteSnapshot({ snapshot_id, by_keeper = false }: DeleteSnapshot): Promise<Late> {
    return this.#withSnapshot(snapshot_id, async (state, row, now) => {
      const restoring = (await this.#deps.store.all(listRestoring({ workspace_id: this.id }))).map(({ id }) => id);
      return dropSnapshot(state, row, { restoring, by_keeper, now });
    });
  }

  /** The files of a snapshot are gone. */
  snapshotDropped({ snapshot_id }: { readonly snapshot_id: string }): Promise<Late> {
    return this.#withSnapshot(snapshot_id, (state, row, now) => dropped(state, row, now));
  }

  #withSnapshot(
    id: string,
    decide: (state: WorkspaceState, row: SnapshotRow | undefined, now: number) => Decision | Promise<Decision>,
  ): Promise<Late> {
    return this.handle(async (state) => {
      const row = await this.#deps.store.get(findSnapshot({ id }));
      return this.#decided(state, await decide(state, row, this.#deps.clock.now()));
    });
  }

  /** Cancels a build. 400 when it has ended or was asked to before, 412 when it is not in the status the caller expects. */
  cancelBuild(args: { readonly build_id: string; readonly expect_status?: "running" | "pending" }): Promise<void> {
    return this.handle((state) => {
      const { build_id, expect_status } = args;
      const status = state.build.id === build_id ? jobStatus(state.job) : "succeeded";
      if (expect_status !== undefined && status !== expect_status) {
        throw new AppError("precondition_failed", `The job is not ${expect_status}.`, { detail: `It is ${status}.` });
      }
      if (state.build.id !== build_id) throw new AppError("invalid", "The job has already ended.");
      const decision = transition(state, { type: "cancel", now: this.#deps.clock.now(), job_id: state.job.id });
      return settled(this.#deps, state, decision, undefined, undefined);
    });
  }

  /** Sets or clears the owner's mark; "stale" when it is so already. */
  favor({ favorite }: { readonly favorite: boolean }): Promise<Late> {
    return this.handle((state) => this.#late(state, { type: "favor", favorite }));
  }

  /** A change that is no build; "stale" when it changes nothing. 409 for a name that is taken, 410 when it is deleted. */
  edit(edit: WorkspaceEdit): Promise<Late> {
    return this.handle((state) => this.#decided(state, editWorkspace(state, edit, this.#deps.clock.now()))).catch(
      nameTaken,
    );
  }

  /** Shares a port, or shares it in another way. 400 as in facts/platform 3.5, 409 when the template changes in the meantime. */
  sharePort(share: UpsertPortShare): Promise<Late> {
    return this.handle(async (state) => this.#decided(state, sharePort(state, share, await this.#ports(state))));
  }

  /** 404 when it is not shared. */
  unsharePort(port: { readonly agent_name: string; readonly port: number }): Promise<Late> {
    return this.handle(async (state) => this.#decided(state, unsharePort(state, port, await this.#ports(state))));
  }

  /** The template may allow less by now. */
  lowerPorts(_: Record<string, never>): Promise<Late> {
    return this.handle(async (state) => this.#decided(state, lowerPorts(state, await this.#ports(state))));
  }

  async #ports({ workspace, build }: WorkspaceState): Promise<KnownPorts> {
    const { store, clock } = this.#deps;
    const template = await store.get(findTemplateEvenDeleted({ id: workspace.template_id }));
    const agents = await store.all(listAgentsOfBuild({ build_id: build.id }));
    return {
      most: (template?.max_port_share_level ?? "owner") as ShareLevel,
      agents: agents.map(({ name }) => name),
      shares: await store.all(listStoredPortShares({ workspace_id: workspace.id })),
      now: clock.now(),
    };
  }

  #decided(state: WorkspaceState, decision: Decision): Outcome<WorkspaceState, Late> {
    return settled<Late>(this.#deps, state, decision, "done", "stale");
  }

  /** Nobody works on this job any more: the server has started again, another node has had it (`moved`), or its worker was lost. */
  requeueJob(args: RunOf & { readonly lost?: string; readonly moved?: boolean }): Promise<Late> {
    return this.handle((state) => this.#late(state, { type: "requeue", now: this.#deps.clock.now(), ...args }));
  }

  /** The timer of rule JB-6: ends a job nothing has been heard of. */
  reap(_: Record<string, never>): Promise<Late> {
    return this.handle(async (state) => {
      const now = this.#deps.clock.now();
      const due = isActive(state.job) && now >= reapDue(state.job);
      const first_id = due ? await this.#deps.store.reserve("job_logs", 5) : 0;
      return this.#late(state, { type: "reap", now, first_id });
    });
  }

  #late(state: WorkspaceState, command: Parameters<typeof transition>[1]): Outcome<WorkspaceState, Late> {
    return this.#decided(state, transition(state, command));
  }

  /** Milliseconds in whole minutes; null: it is not stopped. 400 when the template forbids it. "stale" when nothing changes. */
  setTtl(args: { readonly ttl_ms: number | null; readonly by: By }): Promise<Late> {
    return this.handle((state) => this.#times.edit(state, (now, rules, at) => withTtl(now, rules, args, at)));
  }

  /** Null: it does not start on its own. 400 when the template forbids it. */
  setAutostart({ schedule }: { readonly schedule: string | null }): Promise<Late> {
    return this.handle((state) => this.#times.edit(state, (now, rules, at) => withAutostart(now, rules, schedule, at)));
  }

  /** Moves the deadline; milliseconds since 1970. 400 and 409 as in facts/platform 2.7. */
  extend(args: { readonly deadline: number; readonly by: By }): Promise<Late> {
    return this.handle((state) =>
      this.#times.edit(state, (now, _, at) => auditExtension(now, extended(now, args, at), at)),
    );
  }

  /** Makes it dormant, with a stop when something may run, or wakes it. "stale" when it is so already. 409 for a prebuild. */
  setDormant(args: SetDormant): Promise<Late> {
    return this.handle((state) => this.#times.setDormant(state, args));
  }

  /** Someone or something works with it. Cheap: most reports write nothing. */
  recordActivity(report: ActivityReport): Promise<Late> {
    return this.handle((state) => this.#times.recordActivity(state, report));
  }

  /** Writes that it has been used (actors/workspace/activity-uses.ts). */
  noteUse(_: Record<string, never>): Promise<Late> {
    return this.handle((state) => this.#times.noteUse(state));
  }

  /** A timer that a change of the template sets has come. */
  resetTimes({ name }: { readonly name: "reset_used" | "reset_dormant" }): Promise<Late> {
    return super.handle((state) => this.#times.timed(state, this.#times.resetTimes(state, name), true));
  }

  /** The workspace's timer: does what is due, and sets the timer again in any case. */
  runSchedule(_: Record<string, never>): Promise<Late> {
    return super.handle(async (state) => this.#times.timed(state, await this.#times.due(state), true));
  }
}
