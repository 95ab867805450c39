// When a running workspace stops, as a table: first deadlines, template requirements, and extensions.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  computeMaxDeadline,
  type Deadlines,
  findExtendProblem,
  initialDeadlines,
  renewDeadlines,
  toEffectiveTtl,
} from "#actors/workspace/deadline.ts";
import { PREBUILDS_USER_ID } from "#schema/workspaces/prebuilds.ts";
import { createRules, DAY, FAILED, HOUR, iso, MINUTE, PENDING, START, stateWith } from "./schedule-state.ts";

const workspaceWith = (ttl_ms: number | null, autostart_schedule: string | null = null, owner_id = "owner") => ({
  ttl_ms,
  autostart_schedule,
  owner_id,
});

test("[TI-4] the first deadline is the time at which the start completed plus the time to live; without a time to live, no deadline is set", () => {
  expect(initialDeadlines(workspaceWith(2 * HOUR), createRules(), START)).toEqual({
    deadline: START + 2 * HOUR,
    max_deadline: null,
  });
  expect(initialDeadlines(workspaceWith(null), createRules(), START).deadline).toBeNull();
  const forbidding = createRules({ allow_user_autostop: false, default_ttl_ms: HOUR });
  expect(toEffectiveTtl(workspaceWith(null), forbidding)).toBe(HOUR);
  expect(initialDeadlines(workspaceWith(5 * HOUR), forbidding, START).deadline).toBe(START + HOUR);
  expect(initialDeadlines(workspaceWith(HOUR, null, PREBUILDS_USER_ID), createRules(), START).deadline).toBeNull();
});

test("[TI-5] a first deadline past the next autostart becomes that autostart plus the time to live", () => {
  // START is 12:00; autostart would be at 14:00.
  const schedule = "CRON_TZ=UTC 0 14 * * *";
  expect(iso(initialDeadlines(workspaceWith(HOUR, schedule), createRules(), START).deadline)).toBe("2030-01-01T13:00");
  expect(iso(initialDeadlines(workspaceWith(2 * HOUR, schedule), createRules(), START).deadline)).toBe(
    "2030-01-01T14:00",
  );
  expect(iso(initialDeadlines(workspaceWith(3 * HOUR, schedule), createRules(), START).deadline)).toBe(
    "2030-01-01T17:00",
  );
  const forbidding = createRules({ allow_user_autostart: false });
  expect(iso(initialDeadlines(workspaceWith(3 * HOUR, schedule), forbidding, START).deadline)).toBe("2030-01-01T15:00");
  const weekend = createRules({ autostart_requirement_days: ["saturday"] });
  expect(iso(initialDeadlines(workspaceWith(3 * HOUR, schedule), weekend, START).deadline)).toBe("2030-01-01T15:00");
});

describe("[TI-6] the latest deadline is the first required midnight at least 105 minutes away", () => {
  const toTime = (text: string): number => Date.parse(text);
  // 2023-01-02 is the Monday of week 0; 2030-01-07 begins week 366.
  test.each([
    [[], 1, "2030-01-01T12:00Z", null],
    [["wednesday"], 1, "2030-01-01T12:00Z", "2030-01-02T00:00"],
    [["wednesday"], 1, "2030-01-01T22:15Z", "2030-01-02T00:00"],
    [["wednesday"], 1, "2030-01-01T22:16Z", "2030-01-09T00:00"],
    [["tuesday"], 1, "2030-01-01T00:00Z", "2030-01-08T00:00"],
    [["saturday", "sunday"], 1, "2030-01-01T12:00Z", "2030-01-05T00:00"],
    [["sunday", "saturday"], 1, "2030-01-05T00:00Z", "2030-01-06T00:00"],
    [["monday"], 2, "2030-01-01T12:00Z", "2030-01-07T00:00"],
    [["monday"], 2, "2030-01-07T00:00Z", "2030-01-21T00:00"],
    [["monday"], 4, "2030-01-01T12:00Z", "2030-01-21T00:00"],
    [["friday"], 16, "2030-01-01T12:00Z", "2030-01-25T00:00"],
  ] as const)("%p every %p weeks from %s: %p", (days, weeks, ended, expected) => {
    const rules = createRules({ autostop_requirement_days: [...days], autostop_requirement_weeks: weeks });
    expect(iso(computeMaxDeadline(rules, toTime(ended)))).toBe(expected);
  });

  test("[TI-6] a deadline is at most max_deadline; without a time to live it equals max_deadline", () => {
    const rules = createRules({ autostop_requirement_days: ["wednesday"] });
    const midnight = toTime("2030-01-02T00:00Z");
    expect(initialDeadlines(workspaceWith(HOUR), rules, START)).toEqual({
      deadline: START + HOUR,
      max_deadline: midnight,
    });
    expect(initialDeadlines(workspaceWith(DAY), rules, START)).toEqual({ deadline: midnight, max_deadline: midnight });
    expect(initialDeadlines(workspaceWith(null), rules, START)).toEqual({ deadline: midnight, max_deadline: midnight });
  });
});

const DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

test("[TI-6] the latest deadline is the first midnight of a required day and week that is far enough away", () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.constantFrom(...DAYS), { minLength: 1 }),
      fc.integer({ min: 1, max: 16 }),
      fc.integer({ min: Date.UTC(2023, 0, 2), max: Date.UTC(2040, 0, 1) }),
      (days, weeks, ended) => {
        const rules = createRules({ autostop_requirement_days: days, autostop_requirement_weeks: weeks });
        const isAllowedDay = (day: number): boolean =>
          days.includes(DAYS[(new Date(day).getUTCDay() + 6) % 7] ?? "") &&
          Math.floor((day - Date.UTC(2023, 0, 2)) / (7 * DAY)) % weeks === 0 &&
          day - ended >= 105 * MINUTE;
        let expected = Math.floor(ended / DAY) * DAY;
        while (!isAllowedDay(expected)) expected += DAY;
        expect(computeMaxDeadline(rules, ended)).toBe(expected);
      },
    ),
  );
});

test("[TI-4] [TI-6] no deadline is after max_deadline, and a deadline that is earlier than start plus time to live equals max_deadline", () => {
  fc.assert(
    fc.property(
      fc.option(fc.integer({ min: 1, max: 43_200 }).map((minutes) => minutes * MINUTE)),
      fc.option(fc.constantFrom("0 9 * * 1-5", "CRON_TZ=Europe/Berlin 30 2 * * *", "*/10 * * * *")),
      fc.subarray(DAYS),
      fc.integer({ min: START, max: START + 400 * DAY }),
      (ttl, schedule, days, ended) => {
        const rules = createRules({ autostop_requirement_days: days });
        const { deadline, max_deadline } = initialDeadlines(workspaceWith(ttl, schedule), rules, ended);
        expect(max_deadline === null).toBe(days.length === 0);
        expect(deadline === null).toBe(ttl === null && max_deadline === null);
        if (deadline === null) return;
        if (max_deadline !== null) expect(deadline).toBeLessThanOrEqual(max_deadline);
        if (ttl !== null && deadline !== max_deadline) expect(deadline).toBeGreaterThanOrEqual(ended + ttl);
        expect(deadline).toBeGreaterThan(ended);
      },
    ),
  );
});

describe("[TI-8] a deadline", () => {
  const deadline = START + 4 * HOUR;
  const running = { build: { deadline } };
  const now = START + HOUR;
  test.each([
    ["can be moved later", running, now + 10 * HOUR, undefined],
    ["can be moved earlier", running, now + 30 * MINUTE, undefined],
    ["can be moved to 29 minutes from now", running, now + 29 * MINUTE, undefined],
    ["cannot be moved to less than 29 minutes from now", running, now + 29 * MINUTE - 1, "invalid"],
    ["cannot be moved into the past", running, START, "invalid"],
    ["can be moved to the maximum deadline", { build: { deadline, max_deadline: now + DAY } }, now + DAY, undefined],
    [
      "cannot be moved past the maximum deadline",
      { build: { deadline, max_deadline: now + DAY } },
      now + DAY + 1,
      "invalid",
    ],
    [
      "cannot be moved for a stopped workspace",
      { build: { deadline, transition: "stop" as const } },
      now + HOUR,
      "conflict",
    ],
    ["cannot be moved during the start", { build: { deadline }, job: PENDING }, now + HOUR, "conflict"],
    ["cannot be moved after a failed start", { build: { deadline }, job: FAILED }, now + HOUR, "conflict"],
    ["cannot be moved if the workspace has none", { build: { deadline: null } }, now + HOUR, "conflict"],
    [
      "cannot be moved for a prebuild",
      { ...running, workspace: { owner_id: PREBUILDS_USER_ID } },
      now + HOUR,
      "conflict",
    ],
  ])("%s", (_, facts, newDeadline, kind) => {
    expect(findExtendProblem(stateWith(facts), newDeadline, now)?.kind).toBe(kind as "invalid");
  });
});

describe("[TI-28] changing a required stop while the workspace runs", () => {
  const now = START + HOUR;
  const wednesday = createRules({ autostop_requirement_days: ["wednesday"] });
  const renew = (build: Deadlines, rules: ReturnType<typeof createRules>, time = now, ttl: number | null = null) =>
    renewDeadlines(stateWith({ workspace: { ttl_ms: ttl }, build, job: { completed_at: START } }), rules, time);

  test("moves the latest deadline, and a deadline that is past it", () => {
    const max = computeMaxDeadline(wednesday, START) as number;
    expect(renew({ deadline: null, max_deadline: null }, wednesday)).toEqual({ deadline: max, max_deadline: max });
    const [before, after] = [max - HOUR, max + HOUR];
    const ttl = DAY;
    expect(renew({ deadline: before, max_deadline: null }, wednesday, now, ttl)).toEqual({
      deadline: before,
      max_deadline: max,
    });
    expect(renew({ deadline: after, max_deadline: null }, wednesday, now, ttl)).toEqual({
      deadline: max,
      max_deadline: max,
    });
  });

  test("changes nothing if the requirement is unchanged, even close to the stop and past it", () => {
    const max = computeMaxDeadline(wednesday, START) as number;
    for (const time of [now, max - HOUR, max, max + HOUR]) {
      expect(renew({ deadline: max, max_deadline: max }, wednesday, time)).toBeUndefined();
    }
  });

  test("grants two hours if the stop would already be due, and removes the deadline when no stop is required", () => {
    const max = computeMaxDeadline(wednesday, START) as number;
    const time = max + DAY;
    const extended = renew({ deadline: null, max_deadline: null }, wednesday, time);
    expect(extended).toEqual({ deadline: time + 2 * HOUR, max_deadline: time + 2 * HOUR });
    expect(renew(extended as Deadlines, wednesday, time + HOUR)).toBeUndefined();
    expect(renew({ deadline: max, max_deadline: max }, createRules())).toEqual({ deadline: null, max_deadline: null });
  });
});
