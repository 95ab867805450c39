// A workspace with random actions and a random clock, run as its actor would, against the rules at every moment. A failure prints the seed
// to reproduce it.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { recordActivity } from "#actors/workspace/activity.ts";
import { isRunning } from "#actors/workspace/deadline.ts";
import type { Decision, NewBuild, WorkspaceState } from "#actors/workspace/decision.ts";
import { isDormant, toDormancyPatch } from "#actors/workspace/dormancy.ts";
import {
  deriveTimes,
  findDueAction,
  nextCheckTime,
  planActions,
  toTransition,
  touchesTimes,
} from "#actors/workspace/schedule.ts";
import { extendDeadline, withAutostart, withBuild, withDormancy, withTtl } from "#actors/workspace/schedule-edits.ts";
import type { ScheduleRules } from "#actors/workspace/schedule-rules.ts";
import { transition } from "#actors/workspace/state.ts";
import { NIL_UUID } from "#base/ids.ts";
import { findNextTime } from "#base/schedule/cron.ts";
import { isActive, toJobStatus } from "#schema/workspaces/job.ts";
import { buildWith, createRules, DAY, HOUR, MINUTE, START, stateWith } from "./schedule-state.ts";

const ACTOR = { kind: "user", id: NIL_UUID, name: "ada" } as const;

const createNewBuild = (n: number, kind: NewBuild["transition"], reason: string): NewBuild =>
  buildWith(n, { transition: kind, reason });

/** Does the same as timed.ts around each decision, without a store. */
class Model {
  state: WorkspaceState;
  rules: ScheduleRules;
  now = START;
  timer: number | undefined;
  /** Reason and time of each build that the server started. */
  readonly builds: { reason: string; at: number; dormant: boolean }[] = [];

  constructor(rules: ScheduleRules) {
    this.rules = rules;
    this.state = stateWith();
    this.settle(undefined, this.state, true);
  }

  apply(decision: Decision): void {
    if (decision.kind === "change") this.settle(this.state, decision.state);
  }

  settle(before: WorkspaceState | undefined, next: WorkspaceState, always = false): void {
    this.state = next;
    if (!always && !touchesTimes(before, next)) return;
    this.state = {
      ...next,
      workspace: { ...next.workspace, ...deriveTimes(before, next, this.rules, this.now) },
    };
    this.timer = nextCheckTime(this.state, this.rules);
  }

  /** Fires the timer until it is no longer due. Fails if that takes too many rounds. */
  run(): void {
    for (let fired = 0; this.timer !== undefined && this.timer <= this.now; fired++) {
      if (fired > 3) throw new Error(`an action is always due: ${JSON.stringify(planActions(this.state, this.rules))}`);
      const action = findDueAction(this.state, this.rules, this.now);
      const before = this.state;
      let next = before;
      if (action) {
        const kind = toTransition(action, before);
        const build = kind && createNewBuild(before.build.build_number + 1, kind, action.reason);
        const patch = action.operation === "make_dormant" ? toDormancyPatch(true, this.now) : {};
        const decision = withBuild(before, patch, build, [], this.now);
        if (decision.kind !== "change") throw new Error(`${action.kind} led to ${decision.kind}`);
        if (build) this.builds.push({ reason: build.reason, at: this.now, dormant: isDormant(before.workspace) });
        next = decision.state;
      }
      this.settle(before, next, true);
    }
  }

  person(kind: NewBuild["transition"]): void {
    const build = createNewBuild(this.state.build.build_number + 1, kind, "initiator");
    this.apply(transition(this.state, { type: "build", now: this.now, build }));
  }

  /** Ends the active build. */
  end(how: "well" | "badly"): void {
    const { id: job_id } = this.state.job;
    const worker = { id: NIL_UUID, name: "w" };
    const { now, rules } = this;
    this.apply(transition(this.state, { type: "start", now, job_id, worker, rows: [], agent_ids: [], daily_cost: 0 }));
    this.apply(
      how === "well"
        ? transition(this.state, { type: "complete", now, job_id, state: null, rules })
        : transition(this.state, { type: "fail", now, job_id, error: "broken", error_code: "" }),
    );
  }

  check(): void {
    const { workspace, build, job } = this.state;
    const due = planActions(this.state, this.rules).map(({ at }) => at);
    // The timer is set no later than the next action.
    if (due.length > 0) expect(this.timer ?? Number.POSITIVE_INFINITY).toBeLessThanOrEqual(Math.min(...due));
    if (isActive(job) || workspace.deleted) expect(this.timer).toBeUndefined();
    // All due actions are done.
    expect(due.filter((at) => at <= this.now)).toEqual([]);
    if (isRunning(this.state) && build.deadline !== null && !isDormant(workspace)) {
      expect(build.deadline).toBeGreaterThan(this.now);
    }
    if (build.deadline !== null && build.max_deadline !== null) {
      expect(build.deadline).toBeLessThanOrEqual(build.max_deadline);
    }
    if (!isRunning(this.state) && build.transition !== "start") expect(build.deadline).toBeNull();
    const autodelete = this.rules.time_til_dormant_autodelete_ms;
    const deleting = workspace.dormant_at !== null && autodelete > 0 ? workspace.dormant_at + autodelete : null;
    if (!workspace.deleted) expect(workspace.deleting_at).toBe(deleting);
    this.#checkNextStart();
  }

  #checkNextStart(): void {
    const { workspace, job } = this.state;
    const { autostart_schedule: schedule, next_start_at: next } = workspace;
    const isDisabled =
      schedule === null || !this.rules.allow_user_autostart || isDormant(workspace) || workspace.deleted;
    if (isDisabled) {
      expect(next).toBeNull();
      return;
    }
    // A time in the past is allowed only while an active build delays it.
    if (next !== null && next <= this.now) expect(isActive(job)).toBe(true);
    const days = this.rules.autostart_requirement_days;
    if (!isActive(job)) expect(next).toBe(findNextTime(schedule, this.now, days) ?? null);
  }
}

/** Deletes end a run, so they are rare. */
const KINDS = [...Array<"start">(8).fill("start"), ...Array<"stop">(12).fill("stop"), "delete"] as const;

const stepArbitrary = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("wait"), ms: fc.integer({ min: 0, max: 2 * DAY }) }) },
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant("end"), how: fc.constantFrom("well", "well", "well", "badly") }),
  },
  fc.record({ kind: fc.constant("build"), how: fc.constantFrom(...KINDS) }),
  fc.record({
    kind: fc.constant("ttl"),
    ms: fc.option(fc.integer({ min: 1, max: 2880 }).map((minutes) => minutes * MINUTE)),
  }),
  fc.record({
    kind: fc.constant("autostart"),
    text: fc.option(
      fc.constantFrom("CRON_TZ=Europe/Berlin 0 9 * * 1-5", "30 2 * * *", "CRON_TZ=America/New_York 30 1 * * 0"),
    ),
  }),
  fc.record({ kind: fc.constant("extend"), ms: fc.integer({ min: 0, max: DAY }) }),
  fc.record({ kind: fc.constant("use") }),
  fc.record({ kind: fc.constant("dormant"), on: fc.boolean() }),
  fc.record({
    kind: fc.constant("template"),
    rules: fc.record(
      {
        autostop_requirement_days: fc.subarray(["monday", "wednesday", "sunday"]),
        autostart_requirement_days: fc.subarray(["monday", "tuesday", "friday", "sunday"]),
        allow_user_autostart: fc.boolean(),
        allow_user_autostop: fc.boolean(),
        default_ttl_ms: fc.constantFrom(0, HOUR, DAY),
        failure_ttl_ms: fc.constantFrom(0, HOUR),
        time_til_dormant_ms: fc.constantFrom(0, DAY, 5 * DAY),
        time_til_dormant_autodelete_ms: fc.constantFrom(0, DAY),
        owner_status: fc.constantFrom("active", "active", "dormant", "suspended"),
      },
      { requiredKeys: [] },
    ),
  }),
);
type Step = (typeof stepArbitrary extends fc.Arbitrary<infer S> ? S : never) & { ms?: number | null };

const applyStep = (model: Model, step: Step): void => {
  const { state, rules, now } = model;
  if (step.kind === "wait" && "ms" in step) model.now += step.ms ?? 0;
  if (step.kind === "end" && isActive(state.job) && "how" in step) model.end(step.how === "badly" ? "badly" : "well");
  if (step.kind === "build" && "how" in step) model.person(step.how as NewBuild["transition"]);
  if (step.kind === "ttl" && "ms" in step) {
    model.apply(withTtl(state, rules, { ttl_ms: step.ms ?? null, by: ACTOR }, now));
  }
  if (step.kind === "autostart" && "text" in step) model.apply(withAutostart(state, rules, step.text, now));
  if (step.kind === "extend" && "ms" in step)
    model.apply(extendDeadline(state, { deadline: now + (step.ms ?? 0), by: ACTOR }, now));
  if (step.kind === "use") model.apply(recordActivity(state, rules, { reason: "terminal", at: now }, now));
  if (step.kind === "dormant" && "on" in step) model.apply(withDormancy(state, { dormant: step.on, by: ACTOR }, now));
  if (step.kind === "template" && "rules" in step) {
    model.rules = createRules({ ...rules, ...(step.rules as Partial<ScheduleRules>) });
    model.settle(state, state, true);
  }
  model.run();
};

test("[TI-26] [TI-18] the only timer is set to the earliest action, and no action is overdue or repeats forever", () => {
  let autostartCount = 0;
  let otherBuilds = 0;
  fc.assert(
    fc.property(fc.array(stepArbitrary, { minLength: 30, maxLength: 80, size: "max" }), (steps) => {
      const model = new Model(createRules());
      for (const step of steps) {
        applyStep(model, step as Step);
        model.check();
      }
      for (const { reason, dormant } of model.builds) {
        if (reason === "autostart") autostartCount++;
        else otherBuilds++;
        if (dormant) expect(["dormancy", "autodelete"]).toContain(reason);
      }
      expect(["pending", "running", "succeeded", "failed", "canceled"]).toContain(toJobStatus(model.state.job));
    }),
    { numRuns: 300 },
  );
  // The test is meaningful only if something happened.
  expect(Math.min(autostartCount, otherBuilds)).toBeGreaterThan(3);
});
