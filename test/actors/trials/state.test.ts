// Transitions of trials: examples, and random events checked against the rules.
import { expect, test } from "bun:test";
import {
  countOpen,
  isActiveWay,
  isEnding,
  isOver,
  type TrialEvent,
  type TrialState,
  transition,
} from "#actors/trials/state.ts";
import type { StoredWay } from "#db/trials/trials.ts";
import type { TrialCheck } from "#schema/chats/trial.ts";
import { randomFrom } from "#test/support/random.ts";

const SEED = Number(Bun.env.SLIPWAY_TEST_SEED ?? Date.now() % 1_000_000);

const createWay = (number: number): StoredWay => ({
  number,
  prompt: "try",
  model_config_id: null,
  coding_agent: null,
  workspace_id: `w${number}`,
  chat_id: `c${number}`,
  status: "waiting",
  error: "",
  message_id: null,
  turn: 0,
  interrupts: false,
  measured: false,
  changes: null,
  changes_error: "",
  check: null,
  started_at: null,
  ended_at: null,
  gone: false,
});

const createTrial = (count: number, check_command = "true"): TrialState => ({
  status: "running",
  error: "",
  check_command,
  ways: Array.from({ length: count }, (_, index) => createWay(index + 1)),
  keep: null,
});

/** Returns the state after these events; throws if one is rejected. */
const applyEvents = (state: TrialState, ...events: readonly TrialEvent[]): TrialState =>
  events.reduce((current, event) => {
    const decision = transition(current, event);
    if (decision.kind === "refused") throw decision.error;
    return decision.kind === "change" ? decision.state : current;
  }, state);

const getRefusal = (state: TrialState, event: TrialEvent): string => {
  const decision = transition(state, event);
  return decision.kind === "refused" ? `${decision.error.kind}: ${decision.error.message}` : decision.kind;
};

const now = 1_000;
const makeDelivered = (number: number): TrialEvent => ({ type: "delivered", number, message_id: number * 10, now });
const makeSeen = (number: number, chat: "running" | "needs_approval" | "idle", overrides: object = {}): TrialEvent => ({
  type: "seen",
  number,
  chat,
  now: now + 5,
  ...overrides,
});
const makeCheck = (exit_code: number, timed_out = false) => ({ exit_code, timed_out, output: "", duration_ms: 1 });
const makeMeasured = (number: number, turn = 1): TrialEvent => ({
  type: "measured",
  number,
  turn,
  changes: { files: 1, added: 2, removed: 3 },
  changes_error: "",
});
const makeChecked = (number: number, turn: number, check: TrialCheck | null): TrialEvent => ({
  type: "checked",
  number,
  turn,
  check,
  error: check ? "" : "it could not run",
});
const makeKeep = (number: number): TrialEvent => ({ type: "keep", number, snapshot_id: "s", safety_id: "b", now });
const listStatuses = ({ ways }: TrialState): string => ways.map(({ status }) => status).join(" ");

test("[TY-3] a way passes through fork, turn and check, and is checked again when its chat continues", () => {
  const working = applyEvents(createTrial(2), makeDelivered(1), makeDelivered(2), makeSeen(1, "running"));
  expect([listStatuses(working), working.status]).toEqual(["working working", "running"]);
  const asking = applyEvents(working, makeSeen(1, "needs_approval"));
  expect(listStatuses(asking)).toBe("needs_you working");
  const checking = applyEvents(
    asking,
    makeSeen(1, "running"),
    makeSeen(1, "idle"),
    makeSeen(2, "idle", { failed: "no model" }),
  );
  expect(listStatuses(checking)).toBe("checking error");
  expect(checking.ways[1]?.error).toBe("no model");
  const ready = applyEvents(checking, makeMeasured(1), makeChecked(1, 1, makeCheck(1)));
  expect([listStatuses(ready), ready.status]).toEqual(["failed error", "ready"]);
  const continued = applyEvents(ready, makeSeen(1, "running"));
  expect(continued.ways[0]).toMatchObject({ status: "working", turn: 2, measured: false, check: null });
  // Further results of the first check are ignored.
  expect(transition(applyEvents(continued, makeSeen(1, "idle")), makeChecked(1, 1, makeCheck(0))).kind).toBe("stale");
  const passed = applyEvents(continued, makeSeen(1, "idle"), makeMeasured(1, 2), makeChecked(1, 2, makeCheck(0)));
  expect([listStatuses(passed), passed.status]).toEqual(["passed error", "ready"]);
  const ended = applyEvents(createTrial(2), makeDelivered(1), makeSeen(1, "idle"), makeMeasured(1));
  expect(listStatuses(applyEvents(ended, makeChecked(1, 1, makeCheck(0, true))))).toBe("failed waiting");
  expect(listStatuses(applyEvents(ended, makeChecked(1, 1, null)))).toBe("error waiting");
  expect(listStatuses(applyEvents(createTrial(1, ""), makeDelivered(1), makeSeen(1, "idle"), makeMeasured(1)))).toBe(
    "finished",
  );
});

test("[TY-6] a stop ends active ways, even while a prompt is being sent, and an interrupted way is not treated as active", () => {
  const stopped = applyEvents(createTrial(3), makeDelivered(1), makeDelivered(2), makeSeen(2, "idle"), {
    type: "stop",
    now,
  });
  expect([listStatuses(stopped), stopped.status]).toEqual(["stopped stopped stopped", "ready"]);
  expect(stopped.ways.map(({ interrupts }) => interrupts)).toEqual([true, false, false]);
  expect(transition(stopped, makeSeen(1, "running")).kind).toBe("stale");
  expect(applyEvents(stopped, makeSeen(1, "idle")).ways[0]).toMatchObject({ status: "stopped", interrupts: false });
  expect(applyEvents(stopped, makeDelivered(3)).ways[2]).toMatchObject({
    status: "stopped",
    interrupts: true,
    message_id: 30,
  });
  expect(getRefusal(stopped, { type: "stop", now })).toBe("conflict: None of the ways is running.");
});

test("[TY-4] [TY-5] keeps one finished way or none; a failed keep leaves the choice open", () => {
  const ready = applyEvents(
    createTrial(2),
    makeDelivered(1),
    makeSeen(1, "idle"),
    makeMeasured(1),
    makeChecked(1, 1, makeCheck(0)),
  );
  expect(getRefusal(ready, makeKeep(2))).toStartWith("conflict: Way 2 is still running");
  expect(getRefusal(ready, makeKeep(3))).toStartWith("invalid");
  const keeping = applyEvents(ready, makeKeep(1));
  expect([keeping.status, listStatuses(keeping), isEnding(keeping)]).toEqual(["keeping", "passed stopped", false]);
  for (const event of [makeKeep(1), { type: "discard", now }, { type: "stop", now }] as const) {
    expect(getRefusal(keeping, event)).toStartWith("conflict: One of the ways is being kept");
  }
  expect(transition(keeping, { type: "gone", number: 2 }).kind).toBe("stale");
  expect(applyEvents(keeping, { type: "keep_failed", error: "no space" })).toMatchObject({
    status: "ready",
    keep: null,
    error: "no space",
  });
  const restored = applyEvents(keeping, { type: "restored" }, { type: "gone", number: 2 });
  expect([restored.status, countOpen(restored)]).toEqual(["keeping", 1]);
  expect(applyEvents(restored, { type: "gone", number: 1 }).status).toBe("kept");
  const discarded = applyEvents(
    ready,
    { type: "discard", now },
    { type: "gone", number: 1 },
    { type: "gone", number: 2 },
  );
  expect(discarded.status).toBe("discarded");
  expect(getRefusal(discarded, makeKeep(1))).toBe("conflict: This trial has already ended.");
  expect(getRefusal(applyEvents(createTrial(2), { type: "stop", now }), makeKeep(1))).toStartWith(
    "conflict: Way 1 has not started",
  );
});

test(`[TY-7] in any order of events and requests, each way of a trial ends up kept or discarded (seed ${SEED})`, () => {
  const random = randomFrom(SEED);
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
  const outcomes = new Set<string>();
  for (let run = 0; run < 400; run++) {
    const count = 2 + Math.floor(random() * 3);
    let state = createTrial(count, pick(["", "true"]));
    const promptedWays = new Set<number>();
    for (let step = 0; step < 80 && !isOver(state); step++) {
      const number = 1 + Math.floor(random() * count);
      const turn = 1 + Math.floor(random() * 2);
      const event = pick<() => TrialEvent>([
        () => makeDelivered(number),
        () =>
          makeSeen(
            number,
            pick(["running", "needs_approval", "idle"] as const),
            random() < 0.2 ? { failed: "it failed" } : {},
          ),
        () => ({ type: "broken", number, error: "it broke", now }),
        () => makeMeasured(number, turn),
        () => makeChecked(number, turn, pick([makeCheck(0), makeCheck(1), null])),
        () => (random() < 0.2 ? { type: "stop", now } : makeSeen(number, "idle")),
        () => (random() < 0.3 ? makeKeep(number) : makeSeen(number, "idle")),
        () => ({ type: "keep_failed", error: "no" }),
        () => ({ type: "restored" }),
        () => (random() < 0.05 ? { type: "discard", now } : { type: "gone", number }),
        () => ({ type: "gone", number }),
      ])();
      const decision = transition(state, event);
      if (decision.kind !== "change") continue;
      const next = decision.state;
      checkStep(state, next, event);
      if (event.type === "delivered") {
        // The prompt is delivered once.
        expect(promptedWays.has(number)).toBe(false);
        promptedWays.add(number);
      }
      state = next;
    }
    // Eventually someone decides, and deletions complete.
    if (!isOver(state) && !isEnding(state)) {
      const ended = state.status === "keeping" ? ({ type: "restored" } as const) : ({ type: "discard", now } as const);
      state = applyEvents(state, ended);
    }
    state = applyEvents(state, ...state.ways.map(({ number }): TrialEvent => ({ type: "gone", number })));
    expect(isOver(state)).toBe(true);
    expect(countOpen(state)).toBe(0);
    outcomes.add(state.status);
  }
  // The test is meaningful only if something happened.
  expect([...outcomes].sort()).toEqual(["discarded", "kept"]);
});

/** Checks the invariants of every step. */
const checkStep = (before: TrialState, next: TrialState, event: TrialEvent): void => {
  const isActive = next.ways.some(isActiveWay);
  if (next.status === "running") expect(isActive).toBe(true);
  if (next.status === "ready") expect(isActive).toBe(false);
  expect(next.status === "keeping" || next.status === "kept").toBe(next.keep !== null);
  for (const [index, way] of next.ways.entries()) {
    const previous = before.ways[index] as StoredWay;
    // Nothing is deleted before a decision, and deleted ways stay deleted.
    if (way.gone && !previous.gone) expect(isEnding(before)).toBe(true);
    if (previous.gone) expect(way.gone).toBe(true);
    expect(way.turn).toBeGreaterThanOrEqual(previous.turn);
    if (way.status === "passed" || way.status === "failed") expect(way.check).not.toBeNull();
    if (way.interrupts) expect(isActiveWay(way)).toBe(false);
    // A way is interrupted only by a decision.
    if (way.interrupts && !previous.interrupts) expect(["stop", "keep", "discard", "delivered"]).toContain(event.type);
  }
};
