// Runs workspaces with the pure functions of state.ts only, without store, server or worker: what timed.ts and workspace-actor.ts do around
// each decision takes a few lines here. This is one of the two implementations that life-commands.ts compares with the model.
import { toClaimChange } from "#actors/workspace/claim.ts";
import type { Decision, NewBuild, WorkspaceState } from "#actors/workspace/decision.ts";
import { isDormant, mayBeRunning, toDormancyPatch } from "#actors/workspace/dormancy.ts";
import { deriveTimes, findDueAction, toTransition, touchesTimes } from "#actors/workspace/schedule.ts";
import { extendDeadline, withAutostart, withBuild, withDormancy, withTtl } from "#actors/workspace/schedule-edits.ts";
import type { ScheduleRules } from "#actors/workspace/schedule-rules.ts";
import { create, transition } from "#actors/workspace/state.ts";
import { NIL_UUID } from "#base/ids.ts";
import { toJobStatus } from "#schema/workspaces/job.ts";
import { PREBUILDS_USER_ID } from "#schema/workspaces/prebuilds.ts";
import type { Real } from "./life-commands.ts";
import type { Rules, Step, Transition, Version, View } from "./life-model.ts";
import { buildWith, createRules, stateWith } from "./schedule-state.ts";

const ACTOR = { kind: "user", id: NIL_UUID, name: "ada" } as const;
const STATUS: Readonly<Record<string, number>> = { conflict: 409, gone: 410, invalid: 400 };
export const toCron = (hour: number | null): string | null => (hour === null ? null : `CRON_TZ=UTC 0 ${hour} * * *`);

type BuildRequest = { transition: Transition; reason?: string; version?: string; initiator?: string };
const createNewBuild = (
  n: number,
  { transition: kind, reason = "initiator", version = "good", initiator = "owner" }: BuildRequest,
) => buildWith(n, { transition: kind, reason, initiator_id: initiator, template_version_id: version });

class SimulatedWorkspace {
  readonly #rules: ScheduleRules;
  readonly #clock: { now: number };
  #state: WorkspaceState;
  /** Earlier builds: transition, reason, and job result. */
  readonly #past: string[] = [];

  constructor(clock: { now: number }, rules: ScheduleRules, initial: WorkspaceState, firstBuild: NewBuild) {
    this.#clock = clock;
    this.#rules = rules;
    const { state } = create(initial.workspace, firstBuild, clock.now);
    this.#state = state;
    this.#settle(undefined, state);
    this.work();
  }

  get state(): WorkspaceState {
    return this.#state;
  }

  get #number(): number {
    return this.#state.build.build_number + 1;
  }

  /** Like the actor, recomputes the derived times with each change. */
  #settle(before: WorkspaceState | undefined, next: WorkspaceState, always = false): void {
    if (before && next.build.id !== before.build.id) this.#past.push(describeBuild(before));
    this.#state = next;
    if (!always && !touchesTimes(before, next)) return;
    const times = deriveTimes(before, next, this.#rules, this.#clock.now);
    this.#state = { ...next, workspace: { ...next.workspace, ...times } };
  }

  apply(decision: Decision | undefined): number {
    if (decision?.kind === "refused") return STATUS[decision.error.kind] ?? 500;
    if (decision?.kind === "change") this.#settle(this.#state, decision.state);
    return 200;
  }

  build(requested: BuildRequest): number {
    const build = createNewBuild(this.#number, { version: this.#state.build.template_version_id, ...requested });
    return this.apply(transition(this.#state, { type: "build", now: this.#clock.now, build }));
  }

  claim(ttl_ms: number | null, autostart_schedule: string | null): void {
    const build = createNewBuild(this.#number, { transition: "start" });
    const fields = {
      owner_id: "owner",
      name: "mine",
      ttl_ms,
      autostart_schedule,
      automatic_updates: "never" as const,
      task_id: null,
    } as const;
    const change = toClaimChange(this.#state, { ...fields, build }, this.#clock.now);
    if (!change) throw new Error("the prebuild cannot be claimed");
    this.apply(change);
    this.work();
  }

  cancel(): number {
    const { now } = this.#clock;
    const answer = this.apply(transition(this.#state, { type: "cancel", now, job_id: this.#state.job.id }));
    this.#end({ type: "complete", now, job_id: this.#state.job.id, state: null });
    return answer;
  }

  setDormant(dormant: boolean): number {
    const { workspace } = this.#state;
    const needsStop = dormant && !isDormant(workspace) && !workspace.deleted && mayBeRunning(this.#state);
    const { template_version_id: version } = this.#state.build;
    const stop = needsStop
      ? createNewBuild(this.#number, { transition: "stop", reason: "dormancy", version })
      : undefined;
    return this.apply(withDormancy(this.#state, { dormant, by: ACTOR, stop }, this.#clock.now));
  }

  ttl(ttl_ms: number | null): number {
    return this.apply(withTtl(this.#state, this.#rules, { ttl_ms, by: ACTOR }, this.#clock.now));
  }

  autostart(schedule: string | null): number {
    return this.apply(withAutostart(this.#state, this.#rules, schedule, this.#clock.now));
  }

  extend(by: number): number {
    const { now } = this.#clock;
    return this.apply(extendDeadline(this.#state, { deadline: now + by, by: ACTOR }, now));
  }

  favor(favorite: boolean): number {
    if (this.#state.workspace.deleted) return 410;
    return this.apply(transition(this.#state, { type: "favor", favorite }));
  }

  use(): number {
    const { workspace } = this.#state;
    if (workspace.deleted) return 410;
    this.#settle(this.#state, { ...this.#state, workspace: { ...workspace, last_used_at: this.#clock.now } });
    return 200;
  }

  /** The worker processes waiting jobs. */
  work(): void {
    const { state } = this;
    if (toJobStatus(state.job) !== "pending") return;
    const { now } = this.#clock;
    const { id: job_id } = state.job;
    const worker = { id: NIL_UUID, name: "w" };
    this.apply(transition(state, { type: "start", now, job_id, worker, rows: [], agent_ids: [], daily_cost: 0 }));
    const isStart = state.build.transition === "start";
    const version = state.build.template_version_id as Version;
    if (isStart && version === "hang") return;
    if (isStart && version === "bad")
      this.#end({ type: "fail", now, job_id, error: "failed on purpose", error_code: "" });
    else this.#end({ type: "complete", now, job_id, state: null, rules: this.#rules });
  }

  #end(command: Parameters<typeof transition>[1]): void {
    this.apply(transition(this.#state, command));
  }

  /** Runs the timer and the worker until nothing is due. */
  run(): void {
    for (let fired = 0; ; fired++) {
      this.work();
      const { now } = this.#clock;
      const before = this.#state;
      const action = findDueAction(before, this.#rules, now);
      if (!action) {
        this.#settle(before, before, true);
        return;
      }
      if (fired > 9) throw new Error(`an action is always due: ${JSON.stringify(action)}`);
      const kind = toTransition(action, before);
      const { template_version_id: version } = before.build;
      const build = kind && createNewBuild(this.#number, { transition: kind, reason: action.reason, version });
      const patch = action.operation === "make_dormant" ? toDormancyPatch(true, now) : {};
      const decision = withBuild(before, patch, build, [], now);
      if (decision.kind !== "change") throw new Error(`${action.kind} led to ${decision.kind}`);
      this.#settle(before, decision.state, true);
    }
  }

  view(): View {
    const { workspace, build } = this.#state;
    if (build.build_number !== this.#past.length + 1) throw new Error("build numbers have a gap");
    return {
      status: workspace.status,
      builds: [...this.#past, describeBuild(this.#state)].map((text, i) => `${i + 1} ${text}`),
      deadline: build.deadline,
      dormant_at: workspace.dormant_at,
      deleting_at: workspace.deleting_at,
      next_start_at: workspace.next_start_at,
      ttl: workspace.ttl_ms,
      favorite: workspace.favorite,
    };
  }
}

const describeBuild = ({ build, job }: WorkspaceState): string =>
  `${build.transition} ${build.reason} ${toJobStatus(job)}`;

/** All workspaces of one run. */
export class SimulatedWorkspaces implements Real {
  readonly #clock: { now: number };
  readonly #rules: ScheduleRules;
  readonly #workspaces: SimulatedWorkspace[] = [];

  constructor({ failure_ttl, til_dormant, autodelete }: Rules, now: number) {
    this.#clock = { now };
    const times = { time_til_dormant_ms: til_dormant, time_til_dormant_autodelete_ms: autodelete };
    this.#rules = createRules({ failure_ttl_ms: failure_ttl, ...times });
  }

  async applyStep(step: Step): Promise<number> {
    const answer = this.#answer(step);
    for (const workspace of this.#workspaces) workspace.run();
    return answer;
  }

  async listViews(): Promise<View[]> {
    return this.#workspaces.map((workspace) => workspace.view());
  }

  #createWorkspace(requested: BuildRequest, overrides: Partial<WorkspaceState["workspace"]>): SimulatedWorkspace {
    const { now } = this.#clock;
    const times = { created_at: now, updated_at: now, last_used_at: now };
    const initial = stateWith({ workspace: { ...times, status: "pending", version: 0, ...overrides } });
    const workspace = new SimulatedWorkspace(this.#clock, this.#rules, initial, createNewBuild(1, requested));
    this.#workspaces.push(workspace);
    return workspace;
  }

  #answer(step: Step): number {
    if (step.do === "wait") this.#clock.now += step.ms;
    if (step.do === "create") {
      const fields = { ttl_ms: step.ttl, autostart_schedule: toCron(step.hour) };
      this.#createWorkspace({ transition: "start", version: step.version }, fields);
    }
    if (step.do === "claim") {
      const workspace = this.#createWorkspace(
        { transition: "start", initiator: PREBUILDS_USER_ID },
        { owner_id: PREBUILDS_USER_ID },
      );
      workspace.claim(step.ttl, toCron(step.hour));
    }
    const workspace = this.#workspaces[step.workspaceIndex % this.#workspaces.length];
    if (!workspace) return 200;
    switch (step.do) {
      case "build":
        return workspace.build(step.transition === "start" ? step : { transition: step.transition });
      case "cancel":
        return workspace.cancel();
      case "use":
        return workspace.use();
      case "extend":
        return workspace.extend(step.by);
      case "ttl":
        return workspace.ttl(step.ms);
      case "autostart":
        return workspace.autostart(toCron(step.hour));
      case "dormant":
        return workspace.setDormant(step.on);
      case "favorite":
        return workspace.favor(step.on);
      default:
        return 200;
    }
  }
}
