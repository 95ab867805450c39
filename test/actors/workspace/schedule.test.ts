// The automatic actions on a workspace, case by case: when they happen, in which order, and when they don't
// (docs/spec/facts/platform.md, 2.7).
import { describe, expect, test } from "bun:test";
import { deriveTimes, findDueAction, findNextAction, nextCheckTime } from "#actors/workspace/schedule.ts";
import type { ScheduleRules } from "#actors/workspace/schedule-rules.ts";
import { PREBUILDS_USER_ID } from "#schema/workspaces/prebuilds.ts";
import { createRules, DAY, FAILED, type Facts, HOUR, iso, PENDING, START, stateWith } from "./schedule-state.ts";

const CANCELED = { canceled_at: START };
const deadline = START + HOUR;
const next_start_at = START + 2 * HOUR;
const autostart_schedule = "CRON_TZ=UTC 0 14 * * *";
const scheduled = { autostart_schedule, next_start_at };
const stopped = { transition: "stop" } as const;
const asleep = { dormant_at: START };

// biome-ignore format: a table
const TABLE: [rule: string, what: string, facts: Facts, rules: Partial<ScheduleRules>, kind: string | undefined, at?: number][] = [
  ["TI-14", "a running workspace stops at its deadline", { build: { deadline } }, {}, "autostop", deadline],
  ["TI-14", "a workspace without a deadline keeps running", {}, {}, undefined],
  ["TI-14", "a workspace that is starting is not stopped", { build: { deadline }, job: PENDING }, {}, undefined],
  ["TI-14", "a workspace whose start failed is not stopped", { build: { deadline }, job: FAILED }, {}, undefined],
  ["TI-14", "a stopped workspace is not stopped again", { build: { deadline, ...stopped } }, {}, undefined],
  ["TI-14", "a deleted workspace is not stopped", { build: { deadline }, workspace: { deleted: true } }, {}, undefined],
  ["TI-14", "a prebuild is not stopped", { build: { deadline }, workspace: { owner_id: PREBUILDS_USER_ID } }, {}, undefined],
  ["TI-16", "a suspended owner's workspace is stopped immediately", {}, { owner_status: "suspended" }, "owner_suspended", START],
  ["TI-16", "a suspended owner's workspace is stopped before its deadline", { build: { deadline } }, { owner_status: "suspended" }, "owner_suspended", START],
  ["TI-16", "a suspended owner's workspace is stopped even if its start was canceled", { job: CANCELED }, { owner_status: "suspended" }, "owner_suspended", START],
  ["TI-16", "a suspended owner's stopped workspace stays stopped", { build: stopped }, { owner_status: "suspended" }, undefined],
  ["TI-17", "a stopped workspace starts at its scheduled time", { workspace: scheduled, build: stopped }, {}, "autostart", next_start_at],
  ["TI-18", "a running workspace is not started", { workspace: scheduled }, {}, undefined],
  ["TI-18", "a workspace whose stop failed is not started", { workspace: scheduled, build: stopped, job: FAILED }, {}, undefined],
  ["TI-18", "a dormant workspace is not started", { workspace: { ...scheduled, ...asleep }, build: stopped }, {}, undefined],
  ["TI-18", "a suspended owner's workspace is not started", { workspace: scheduled, build: stopped }, { owner_status: "suspended" }, undefined],
  ["TI-18", "a dormant owner's workspace is not started", { workspace: scheduled, build: stopped }, { owner_status: "dormant" }, undefined],
  ["TI-18", "a workspace is not started if its template forbids autostart", { workspace: scheduled, build: stopped }, { allow_user_autostart: false }, undefined],
  ["TI-18", "a workspace is not started on a day that its template excludes", { workspace: scheduled, build: stopped }, { autostart_requirement_days: ["monday"] }, undefined],
  ["TI-18", "a workspace without a schedule is not started", { workspace: { next_start_at }, build: stopped }, {}, undefined],
  ["TI-21", "a workspace whose start failed is stopped after the template's failure period", { job: FAILED }, { failure_ttl_ms: HOUR }, "failure", START + HOUR],
  ["TI-21", "a failed start is kept if the template has no failure period", { job: FAILED }, {}, undefined],
  ["TI-21", "a failed stop is not retried", { build: stopped, job: FAILED }, { failure_ttl_ms: HOUR }, undefined],
  ["TI-22", "an unused workspace becomes dormant", {}, { time_til_dormant_ms: DAY }, "dormancy", START + DAY],
  ["TI-22", "an unused stopped workspace becomes dormant", { build: stopped }, { time_til_dormant_ms: DAY }, "dormancy", START + DAY],
  ["TI-22", "a dormant workspace does not become dormant again", { workspace: asleep, build: stopped }, { time_til_dormant_ms: DAY }, undefined],
  ["TI-22", "a running dormant workspace is stopped", { workspace: asleep }, {}, "dormancy", START],
  ["TI-22", "a dormant workspace ignores its deadline", { workspace: asleep, build: { ...stopped, deadline } }, {}, undefined],
  ["TI-23", "a dormant workspace is deleted after the template's period", { workspace: asleep, build: stopped }, { time_til_dormant_autodelete_ms: DAY }, "autodelete", START + DAY],
  ["TI-23", "a dormant workspace is kept if the template has no such period", { workspace: asleep, build: stopped }, {}, undefined],
  ["TI-23", "a workspace that is not dormant is not deleted", { build: stopped }, { time_til_dormant_autodelete_ms: DAY }, undefined],
  ["TI-23", "a failed delete is retried after a day", { workspace: asleep, build: { transition: "delete" }, job: { ...FAILED, completed_at: START + 9 * DAY } },
    { time_til_dormant_autodelete_ms: DAY }, "autodelete", START + 10 * DAY],
];

describe("the next action", () => {
  test.each(TABLE.map((row) => [row[0], row[1], row] as const))(
    "[%s] %s",
    (_, _title, [, , facts, rules, kind, time]) => {
      const state = stateWith(facts);
      const next = findNextAction(state, createRules(rules));
      expect([next?.kind, next?.at]).toEqual([kind as never, time]);
      if (time === undefined) return;
      expect(findDueAction(state, createRules(rules), time - 1)).toBeUndefined();
      expect(findDueAction(state, createRules(rules), time)?.kind).toBe(kind as never);
    },
  );

  test("[TI-14] if several actions are due, the first in the table runs", () => {
    const state = stateWith({ build: { deadline } });
    const rules = createRules({ time_til_dormant_ms: HOUR, owner_status: "suspended" });
    expect(findDueAction(state, rules, START + DAY)?.kind).toBe("autostop");
  });
});

test("[TK-6] the deadline of a task's workspace is reported as the task's pause", () => {
  const getReason = (task_id: string | null) =>
    findDueAction(stateWith({ build: { deadline }, workspace: { task_id } }), createRules({}), START + DAY)?.reason;
  expect([getReason(null), getReason("task")]).toEqual(["autostop", "task_auto_pause"]);
});

describe("[TI-17] the time of the next start", () => {
  const derive = (before: Facts | undefined, after: Facts, rules: Partial<ScheduleRules>, now: number) =>
    iso(deriveTimes(before && stateWith(before), stateWith(after), createRules(rules), now).next_start_at);
  const workspace = { autostart_schedule };
  const scheduledFacts = { workspace: scheduled, build: stopped };

  // `undefined` means unchanged. START is 12:00.
  // biome-ignore format: a table
  const cases: [string, Facts | undefined, Facts, Partial<ScheduleRules>, number, string | null | undefined][] = [
    ["is set for a new workspace", undefined, { workspace }, {}, START, "2030-01-01T14:00"],
    ["is set when a schedule is set", {}, { workspace }, {}, START, "2030-01-01T14:00"],
    ["is cleared when the schedule is removed", scheduledFacts, { workspace: { next_start_at } }, {}, START, null],
    ["is cleared when the template forbids autostart", scheduledFacts, scheduledFacts, { allow_user_autostart: false }, START, null],
    ["is cleared when the workspace becomes dormant", scheduledFacts, { workspace: { ...scheduled, ...asleep }, build: stopped }, {}, START, null],
    ["is cleared when the workspace is deleted", scheduledFacts, { workspace: { ...scheduled, deleted: true } }, {}, START, null],
    ["follows the template's days", scheduledFacts, scheduledFacts, { autostart_requirement_days: ["friday"] }, START, "2030-01-04T14:00"],
    ["is unchanged before it arrives", scheduledFacts, scheduledFacts, {}, START, undefined],
    ["is unchanged while the start is due", scheduledFacts, scheduledFacts, {}, START + 3 * HOUR, undefined],
    ["is unchanged while a build is in progress", { ...scheduledFacts, job: PENDING }, { ...scheduledFacts, job: PENDING }, {}, START + 3 * HOUR, undefined],
    ["advances if the start is not possible", scheduledFacts, scheduledFacts, { owner_status: "suspended" }, START + 3 * HOUR, "2030-01-02T14:00"],
    ["advances while the workspace runs", { workspace: scheduled }, { workspace: scheduled }, {}, START + 3 * HOUR, "2030-01-02T14:00"],
    ["is calculated again for a new build", scheduledFacts, { workspace: scheduled, build: { id: "build-2" }, job: PENDING }, {}, START + 2 * HOUR, "2030-01-02T14:00"],
  ];
  test.each(cases)("%s", (_, before, after, rules, now, expected) => {
    expect(derive(before, after, rules, now)).toBe(expected as string);
  });
});

test("[TI-26] the timer is set to the earliest action, and removed if no action is planned", () => {
  const findNextCheck = (facts: Facts, rules: Partial<ScheduleRules> = {}): number | undefined =>
    nextCheckTime(stateWith(facts), createRules(rules));
  expect(findNextCheck({})).toBeUndefined();
  expect(findNextCheck({ build: { deadline } })).toBe(deadline);
  expect(findNextCheck({ build: { deadline }, workspace: scheduled })).toBe(deadline);
  expect(findNextCheck({ build: { deadline: START + DAY }, workspace: scheduled })).toBe(next_start_at);
  expect(findNextCheck({ build: { deadline } }, { time_til_dormant_ms: 1 })).toBe(START + 1);
  expect(findNextCheck({ build: { deadline }, workspace: scheduled, job: PENDING })).toBeUndefined();
  expect(findNextCheck({ build: { deadline }, workspace: { ...scheduled, deleted: true } })).toBeUndefined();
});
