// Activity of a workspace, and how it moves the deadline.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type ActivityReport, recordActivity } from "#actors/workspace/activity.ts";
import type { Decision } from "#actors/workspace/decision.ts";
import { PREBUILDS_USER_ID } from "#schema/workspaces/prebuilds.ts";
import { createRules, DAY, FAILED, type Facts, HOUR, MINUTE, PENDING, START, stateWith } from "./schedule-state.ts";

const CONNECTED_REPORT: ActivityReport = { reason: "agent_stats", at: START, agent_id: "agent-1" };
const getDeadline = (decision: Decision): number | null | undefined =>
  decision.kind === "change" ? decision.state.build.deadline : undefined;

const ttl_ms = 8 * HOUR;
/** Returns a running workspace whose deadline is `left_ms` after START. */
const runningWith = (left_ms: number, overrides: Facts = {}) =>
  stateWith({
    workspace: { ttl_ms, ...overrides.workspace },
    build: { deadline: START + left_ms, ...overrides.build },
    job: overrides.job ?? {},
  });

describe("[TI-10] activity moves the deadline to one bump from now", () => {
  test.each([
    ["when less than a bump is left", 30 * MINUTE, HOUR],
    ["when the deadline is nearly due", 1, HOUR],
    ["not before 5 % of the bump has passed", 57 * MINUTE + 1, undefined],
    ["once 5 % of the bump has passed", 57 * MINUTE, HOUR],
    ["not when more than a bump is left", 3 * HOUR, undefined],
  ])("%s", (_, leftMs, bumped) => {
    const decision = recordActivity(runningWith(leftMs), createRules(), CONNECTED_REPORT, START);
    expect(getDeadline(decision)).toBe(bumped === undefined ? undefined : START + bumped);
  });

  test("[TI-10] the template sets the bump, which ends at the latest deadline and covers the next autostart with its time to live", () => {
    const rules = createRules({ activity_bump_ms: 3 * HOUR });
    expect(getDeadline(recordActivity(runningWith(HOUR), rules, CONNECTED_REPORT, START))).toBe(START + 3 * HOUR);
    const capped = runningWith(HOUR, { build: { max_deadline: START + 2 * HOUR } });
    expect(getDeadline(recordActivity(capped, rules, CONNECTED_REPORT, START))).toBe(START + 2 * HOUR);
    const atCap = runningWith(HOUR, { build: { max_deadline: START + HOUR } });
    expect(recordActivity(atCap, rules, CONNECTED_REPORT, START).kind).toBe("stale");
    const scheduled = runningWith(HOUR, { workspace: { autostart_schedule: "CRON_TZ=UTC 0 14 * * *" } });
    expect(getDeadline(recordActivity(scheduled, rules, CONNECTED_REPORT, START))).toBe(START + 2 * HOUR + ttl_ms);
  });

  test("[TI-10] a report with a future time is treated as now", () => {
    const ahead = { ...CONNECTED_REPORT, at: START + DAY };
    expect(getDeadline(recordActivity(runningWith(MINUTE), createRules(), ahead, START))).toBe(START + HOUR);
  });
});

describe("[TI-11] what moves the deadline", () => {
  test.each([
    ["nothing without a deadline", { build: { deadline: null } }],
    ["nothing without a time to live", { workspace: { ttl_ms: null } }],
    ["nothing after a stop", { build: { transition: "stop" as const } }],
    ["nothing while a start is in progress", { job: PENDING }],
    ["nothing after a failed start", { job: FAILED }],
    ["nothing in a prebuild", { workspace: { owner_id: PREBUILDS_USER_ID } }],
  ])("%s", (_, facts) => {
    expect(recordActivity(runningWith(MINUTE, facts), createRules(), CONNECTED_REPORT, START).kind).toBe("stale");
  });

  test.each([
    ["not the traffic of an app", { reason: "app_traffic", app_name: "code" }, "stale"],
    ["not use without an app", { reason: "usage" }, "stale"],
    ["use of an app", { reason: "usage", agent_id: "agent-1", app_name: "ssh" }, "change"],
    ["a terminal", { reason: "terminal" }, "change"],
    ["a port", { reason: "port_forward" }, "change"],
    ["a working app", { reason: "app_status" }, "change"],
  ] as const)("%s", (_, report, kind) => {
    expect(recordActivity(runningWith(MINUTE), createRules(), { ...report, at: START }, START).kind).toBe(kind);
  });

  test("[TI-11] nothing if the template has no activity bump", () => {
    const rules = createRules({ activity_bump_ms: 0 });
    expect(recordActivity(runningWith(MINUTE), rules, CONNECTED_REPORT, START).kind).toBe("stale");
  });
});

test("[TI-10] reports only extend a deadline, at most to the latest deadline, and without autostart to one bump from now", () => {
  const report = fc.record({
    wait: fc.integer({ min: 0, max: 3 * HOUR }),
    reason: fc.constantFrom("agent_stats", "terminal", "app_traffic", "usage"),
  } as const);
  fc.assert(
    fc.property(
      fc.array(report, { maxLength: 40 }),
      fc.option(fc.integer({ min: 0, max: 3 * DAY })),
      fc.integer({ min: 0, max: 5 * HOUR }),
      fc.option(fc.constant("CRON_TZ=Europe/Berlin 0 9 * * *")),
      (reports, max, bump, autostart_schedule) => {
        const max_deadline = max === null ? null : START + HOUR + max;
        let state = runningWith(HOUR, { workspace: { autostart_schedule }, build: { max_deadline } });
        let now = START;
        for (const { wait, reason } of reports) {
          now += wait;
          const rules = createRules({ activity_bump_ms: bump });
          const decision = recordActivity(state, rules, { reason, at: now, app_name: "ssh" }, now);
          if (decision.kind !== "change") continue;
          const [previous, moved] = [state.build.deadline ?? 0, decision.state.build.deadline ?? 0];
          expect(reason).not.toBe("app_traffic");
          expect(moved).toBeGreaterThan(previous);
          if (max_deadline !== null) expect(moved).toBeLessThanOrEqual(max_deadline);
          if (autostart_schedule === null) expect(moved).toBeLessThanOrEqual(now + bump);
          expect(decision.state.workspace.version).toBe(state.workspace.version + 1);
          state = decision.state;
        }
      },
    ),
  );
});
