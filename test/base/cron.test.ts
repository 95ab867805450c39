// Schedules in time zones: valid and invalid schedules, and the next times, including daylight saving changes.
import { describe, expect, test } from "bun:test";
import { findNextTime, findScheduleProblem } from "#base/schedule/cron.ts";
import { WEEKDAYS } from "#base/schedule/weekdays.ts";

describe("[TI-1] the schedule format", () => {
  test.each([
    "30 9 * * 1-5",
    "CRON_TZ=Europe/Berlin 30 9 * * 1-5",
    "CRON_TZ=UTC */15 8-18 * * *",
    "CRON_TZ=America/New_York 0 9 * * MON-FRI",
    "CRON_TZ=US/Central 0,30 9 * * 0,6",
    "  CRON_TZ=Asia/Tokyo   0 9 * * 7 ",
  ])("%s is a valid schedule", (text) => {
    expect(findScheduleProblem(text)).toBeUndefined();
  });

  test.each([
    ["", "five fields"],
    ["@daily", "five fields"],
    ["@every 5m", "five fields"],
    ["30 9 * *", "five fields"],
    ["30 9 * * 1-5 2030", "five fields"],
    ["0 30 9 * * 1-5", "five fields"],
    ["30 9 1 * *", "must be *"],
    ["30 9 * 1 *", "must be *"],
    ["30 9 * * 8", "not a schedule"],
    ["60 9 * * 1", "not a schedule"],
    ["30 24 * * 1", "not a schedule"],
    ["30 9 * * 1#2", "not a schedule"],
    ["30 9 * * ,", "not a schedule"],
    ["x 9 * * 1", "not a schedule"],
    ["CRON_TZ=Local 30 9 * * 1", "time zone"],
    ["CRON_TZ=Nowhere/Else 30 9 * * 1", "time zone"],
    ["CRON_TZ=+02:00 30 9 * * 1", "time zone"],
    ["CRON_TZ= 30 9 * * 1", "time zone"],
    ["TZ=UTC 30 9 * * 1", "five fields"],
  ])("%p is refused: %s", (text, reason) => {
    expect(findScheduleProblem(text)).toContain(reason);
  });
});

const listNextTimes = (text: string, from: string, count: number, days?: string[]): string[] => {
  const times: string[] = [];
  let time = Date.parse(from);
  for (let i = 0; i < count; i++) {
    time = findNextTime(text, time, days) ?? Number.NaN;
    times.push(new Date(time).toISOString().slice(0, 16));
  }
  return times;
};

describe("[TI-2] local time applies, including clock changes", () => {
  test.each([
    ["spring in Berlin", "CRON_TZ=Europe/Berlin 0 9 * * *", "2030-03-30T00:00Z", "2030-03-30T08:00 2030-03-31T07:00"],
    ["autumn in Berlin", "CRON_TZ=Europe/Berlin 0 9 * * *", "2030-10-26T00:00Z", "2030-10-26T07:00 2030-10-27T08:00"],
    [
      "spring in New York",
      "CRON_TZ=America/New_York 0 9 * * *",
      "2030-03-09T00:00Z",
      "2030-03-09T14:00 2030-03-10T13:00",
    ],
    [
      "autumn in New York",
      "CRON_TZ=America/New_York 0 9 * * *",
      "2030-11-02T00:00Z",
      "2030-11-02T13:00 2030-11-03T14:00",
    ],
    ["skipped in Berlin", "CRON_TZ=Europe/Berlin 30 2 * * *", "2030-03-30T02:00Z", "2030-03-31T01:00 2030-04-01T00:30"],
    [
      "skipped in New York",
      "CRON_TZ=America/New_York 30 2 * * *",
      "2030-03-09T08:00Z",
      "2030-03-10T07:00 2030-03-11T06:30",
    ],
    ["twice in Berlin", "CRON_TZ=Europe/Berlin 30 2 * * *", "2030-10-26T12:00Z", "2030-10-27T00:30 2030-10-28T01:30"],
    [
      "twice in New York",
      "CRON_TZ=America/New_York 30 1 * * *",
      "2030-11-02T12:00Z",
      "2030-11-03T05:30 2030-11-04T06:30",
    ],
    ["without a zone", "0 9 * * *", "2030-03-30T00:00Z", "2030-03-30T09:00 2030-03-31T09:00"],
  ])("%s", (_, text, from, expected) => {
    expect(listNextTimes(text, from, 2).join(" ")).toBe(expected);
  });
});

test("[TI-3] only the allowed days apply, in the schedule's own zone", () => {
  // 2030-01-01 is a Tuesday. Monday 00:30 in Berlin is still Sunday in UTC.
  const text = "CRON_TZ=Europe/Berlin 30 0 * * *";
  expect(listNextTimes(text, "2030-01-01T00:00Z", 2, ["monday"])).toEqual(["2030-01-06T23:30", "2030-01-13T23:30"]);
  expect(listNextTimes("* * * * *", "2030-01-01T00:00Z", 2, ["saturday"])).toEqual([
    "2030-01-05T00:00",
    "2030-01-05T00:01",
  ]);
  expect(findNextTime("0 9 * * 1-5", 0, ["sunday"])).toBeUndefined();
  expect(findNextTime("0 9 * * 1-5", 0, [])).toBeUndefined();
  expect(listNextTimes("0 9 * * 0", "2030-01-01T00:00Z", 1)).toEqual(
    listNextTimes("0 9 * * 7", "2030-01-01T00:00Z", 1),
  );
  expect(WEEKDAYS).toHaveLength(7);
});
