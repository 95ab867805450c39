// Becoming dormant and waking up, and schedule changes by people, as pure decisions.
import { describe, expect, test } from "bun:test";
import type { Originator } from "#actors/workspace/activity-note.ts";
import type { Decision, NewBuild } from "#actors/workspace/decision.ts";
import { isDormant, mayBeRunning, toDeletionTime, toDormancyPatch } from "#actors/workspace/dormancy.ts";
import { extendDeadline, withAutostart, withDormancy, withTtl } from "#actors/workspace/schedule-edits.ts";
import { NIL_UUID } from "#base/ids.ts";
import { PREBUILDS_USER_ID } from "#schema/workspaces/prebuilds.ts";
import {
  createRules,
  DAY,
  FAILED,
  type Facts,
  HOUR,
  MINUTE,
  PENDING,
  PLAIN_BUILD,
  START,
  stateWith,
} from "./schedule-state.ts";

const ADA: Originator = { kind: "user", id: NIL_UUID, name: "ada" };
const STOP: NewBuild = {
  ...PLAIN_BUILD,
  id: "build-2",
  job_id: "job-2",
  job_key: 2,
  transition: "stop",
  reason: "dormancy",
};

const getState = (decision: Decision) => {
  if (decision.kind !== "change") throw new Error(`led to ${decision.kind}`);
  return decision.state;
};
const getOutcome = (decision: Decision): string => (decision.kind === "refused" ? decision.error.kind : decision.kind);

describe("[TI-25] dormancy", () => {
  const now = START + DAY;

  test("[TI-25] a running workspace is stopped in the same batch, and watchers are notified once", () => {
    const decision = withDormancy(stateWith(), { dormant: true, by: ADA, stop: STOP }, now);
    const { workspace, build } = getState(decision);
    expect(workspace).toMatchObject({ dormant_at: now, latest_build_id: "build-2", version: 2 });
    expect(build).toMatchObject({ transition: "stop", reason: "dormancy", build_number: 2 });
    expect(decision).toMatchObject({ effects: [{ do: "submit", job_id: "job-2" }], events: [{ topic: "workspace" }] });
  });

  test("[TI-25] a stopped workspace is only marked; waking clears both times and is recorded as use", () => {
    const stopped = stateWith({ build: { transition: "stop" } });
    const dormant = getState(withDormancy(stopped, { dormant: true, by: ADA }, now));
    expect(dormant.workspace.dormant_at).toBe(now);
    expect(dormant.build.build_number).toBe(1);
    const woken = getState(withDormancy(dormant, { dormant: false, by: ADA }, now + HOUR));
    expect(woken.workspace).toMatchObject({ dormant_at: null, deleting_at: null, last_used_at: now + HOUR });
    expect(withDormancy(woken, { dormant: false, by: ADA }, now).kind).toBe("stale");
    expect(withDormancy(dormant, { dormant: true, by: ADA }, now).kind).toBe("stale");
  });

  test.each([
    ["started", true, {}],
    ["a failed start", true, { job: FAILED }],
    ["starting", false, { job: PENDING }],
    ["stopped", false, { build: { transition: "stop" as const } }],
  ])("[TI-25] whether processes of a workspace may be running: %s: %p", (_, expected, facts: Facts) => {
    expect(mayBeRunning(stateWith(facts))).toBe(expected);
  });

  test("[TI-25] a dormant workspace is deleted after the template's period, or never", () => {
    const dormant_at = START;
    expect(toDeletionTime({ dormant_at }, createRules({ time_til_dormant_autodelete_ms: DAY }))).toBe(START + DAY);
    expect(toDeletionTime({ dormant_at }, createRules())).toBeNull();
    expect(toDeletionTime({ dormant_at: null }, createRules({ time_til_dormant_autodelete_ms: DAY }))).toBeNull();
    expect([isDormant({ dormant_at }), isDormant({ dormant_at: null })]).toEqual([true, false]);
    expect(toDormancyPatch(true, now)).toEqual({ dormant_at: now, updated_at: now });
  });
});

describe("[TI-27] an unclaimed prebuild and a deleted workspace", () => {
  const prebuild = stateWith({ workspace: { owner_id: PREBUILDS_USER_ID }, build: { deadline: START + DAY } });
  const deleted = stateWith({ workspace: { deleted: true }, build: { deadline: START + DAY } });
  test.each([
    [
      "time to live",
      (workspace: typeof prebuild) => withTtl(workspace, createRules(), { ttl_ms: HOUR, by: ADA }, START),
    ],
    ["autostart", (workspace: typeof prebuild) => withAutostart(workspace, createRules(), "0 9 * * *", START)],
    [
      "extension",
      (workspace: typeof prebuild) => extendDeadline(workspace, { deadline: START + HOUR, by: ADA }, START),
    ],
    ["dormancy", (workspace: typeof prebuild) => withDormancy(workspace, { dormant: true, by: ADA }, START)],
  ])("%s: 409 and 410", (_, change) => {
    expect(getOutcome(change(prebuild))).toBe("conflict");
    expect(getOutcome(change(deleted))).toBe("gone");
  });
});

describe("[TI-7] the time to live", () => {
  const setTtl = (ttl_ms: number | null, facts: Facts = {}, rules = createRules()) =>
    withTtl(stateWith(facts), rules, { ttl_ms, by: ADA }, START);
  const deadline = START + HOUR;

  test("[TI-7] applies from the next start: the running deadline stays", () => {
    const { workspace, build } = getState(setTtl(2 * HOUR, { build: { deadline } }));
    expect([workspace.ttl_ms, build.deadline]).toEqual([2 * HOUR, deadline]);
    expect(setTtl(2 * HOUR, { workspace: { ttl_ms: 2 * HOUR }, build: { deadline } }).kind).toBe("stale");
  });

  test("[TI-7] removing it removes the running deadline, except the latest deadline that the template requires", () => {
    const facts = { workspace: { ttl_ms: HOUR }, build: { deadline } };
    expect(getState(setTtl(null, facts)).build.deadline).toBeNull();
    const max_deadline = START + DAY;
    expect(getState(setTtl(null, { ...facts, build: { deadline, max_deadline } })).build.deadline).toBe(max_deadline);
    const stopped = getState(setTtl(null, { ...facts, build: { deadline, transition: "stop" } }));
    expect([stopped.workspace.ttl_ms, stopped.build.deadline]).toEqual([null, deadline]);
  });

  test.each([
    [MINUTE - 1, "invalid"],
    [MINUTE, "change"],
    [30 * DAY, "change"],
    [30 * DAY + 1, "invalid"],
    [Number.NaN, "invalid"],
    [-HOUR, "invalid"],
  ])("%p ms: %s", (ttl, kind) => {
    expect(getOutcome(setTtl(ttl))).toBe(kind);
  });

  test("[TI-7] the template may forbid it", () => {
    expect(getOutcome(setTtl(HOUR, {}, createRules({ allow_user_autostop: false })))).toBe("invalid");
  });
});
