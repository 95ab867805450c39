// The state machine of a trial as pure functions. Its keeper passes in observations of forks, chats and builds, and requests of the owner.
// A trial runs until all ways are done, waits until one is kept or all are discarded, and ends when every fork is kept or deleted.
import { type AppError, conflict, invalidField } from "#base/errors.ts";
import type { StoredKeep, StoredWay, TrialRow } from "#db/trials/trials.ts";
import type { TrialCheck, WayStatus } from "#schema/chats/trial.ts";

/** The columns of a trial that decisions read and change. */
export type TrialState = Pick<TrialRow, "status" | "error" | "check_command" | "ways" | "keep">;

/** The changes of a way since its prompt, or why they are unknown. */
export type WayChanges = Pick<StoredWay, "changes" | "changes_error">;

/** The result of a check; null if it could not run. */
export type CheckResult = { readonly check: TrialCheck | null; readonly error: string };

export type TrialEvent =
  /** The chat of the way has the prompt. */
  | { readonly type: "delivered"; readonly number: number; readonly message_id: number; readonly now: number }
  /** The chat's current state; `failed` contains why its turn failed. */
  | {
      readonly type: "seen";
      readonly number: number;
      readonly chat: "running" | "needs_approval" | "idle";
      readonly failed?: string;
      readonly now: number;
    }
  /** The way cannot continue: its fork was not created, or its workspace or chat was deleted. */
  | { readonly type: "broken"; readonly number: number; readonly error: string; readonly now: number }
  /** The way's turn has ended, and its changes are known. */
  | ({ readonly type: "measured"; readonly number: number; readonly turn: number } & WayChanges)
  /** The way's check has ended, or could not run for the reason in `error`. */
  | ({ readonly type: "checked"; readonly number: number; readonly turn: number } & CheckResult)
  | { readonly type: "stop"; readonly now: number }
  | ({ readonly type: "keep"; readonly now: number } & Omit<StoredKeep, "restored">)
  | { readonly type: "keep_failed"; readonly error: string }
  /** The first workspace and its chat have the kept way's files and history. */
  | { readonly type: "restored" }
  | { readonly type: "discard"; readonly now: number }
  /** The way is cleaned up; `error` says what could not be deleted. */
  | { readonly type: "gone"; readonly number: number; readonly error?: string };

export type TrialDecision =
  | { readonly kind: "change"; readonly state: TrialState }
  | { readonly kind: "refused"; readonly error: AppError }
  | { readonly kind: "stale" };

const ACTIVE_STATUSES: ReadonlySet<WayStatus> = new Set(["waiting", "working", "needs_you", "checking"]);

/** Returns whether the way is in progress. */
export const isActiveWay = ({ status }: Pick<StoredWay, "status">): boolean => ACTIVE_STATUSES.has(status);

/** Returns whether the trial is over. */
export const isOver = ({ status }: Pick<TrialRow, "status">): boolean => status === "kept" || status === "discarded";

/** Returns whether forks are being deleted. */
export const isEnding = ({ status, keep }: Pick<TrialRow, "status" | "keep">): boolean =>
  status === "discarding" || (status === "keeping" && keep?.restored === true);

/** Returns how many of the ways count toward the owner's limit. */
export const countOpen = ({ ways }: Pick<TrialRow, "ways">): number => ways.filter(({ gone }) => !gone).length;

const STALE = { kind: "stale" } as const;
const toRefused = (error: AppError): TrialDecision => ({ kind: "refused", error });

/** Returns the changes that follow from an event. Late observations are `stale`; invalid requests are rejected with 400 or 409. */
export const transition = (state: TrialState, event: TrialEvent): TrialDecision => {
  if (isOver(state)) return event.type in REQUESTS ? toRefused(conflict("This trial has already ended.")) : STALE;
  switch (event.type) {
    case "delivered":
      return withWay(state, event.number, (way) => onDelivered(way, event));
    case "seen":
      return withWay(state, event.number, (way) => onChatSeen(way, event));
    case "broken":
      return withWay(state, event.number, (way) =>
        isActiveWay(way) ? onBroken(way, event.error, event.now) : undefined,
      );
    case "measured":
      return withWay(state, event.number, (way) => onMeasured(way, event, state.check_command !== ""));
    case "checked":
      return withWay(state, event.number, (way) => onChecked(way, event));
    case "stop":
      return stop(state, event.now);
    case "keep":
      return keepWay(state, event);
    case "keep_failed":
      return state.status === "keeping" && state.keep?.restored === false
        ? change({ ...state, status: "ready", keep: null, error: event.error })
        : STALE;
    case "restored":
      return state.status === "keeping" && state.keep?.restored === false
        ? change({ ...state, keep: { ...state.keep, restored: true }, error: "" })
        : STALE;
    case "discard":
      if (isEnding(state) || state.status === "keeping") return toRefused(conflict(ALREADY_ENDING));
      return change({
        ...state,
        status: "discarding",
        error: "",
        ways: state.ways.map((way) => stopWay(way, event.now)),
      });
    case "gone":
      if (!isEnding(state)) return STALE;
      return withWay(state, event.number, (way) =>
        way.gone ? undefined : { ...way, gone: true, interrupts: false, error: event.error ?? way.error },
      );
  }
};

/** The events that are requests of people. */
const REQUESTS = { stop: true, keep: true, discard: true } as const;
const ALREADY_ENDING = "One of the ways is being kept, or all of them are being deleted.";

const change = (state: TrialState): TrialDecision => ({ kind: "change", state: withDerivedStatus(state) });

/** Returns the trial with the status that follows from its ways. */
const withDerivedStatus = (state: TrialState): TrialState => {
  const { status, ways } = state;
  if (isEnding(state)) {
    if (!ways.every(({ gone }) => gone)) return state;
    return { ...state, status: status === "keeping" ? "kept" : "discarded" };
  }
  if (status !== "running" && status !== "ready") return state;
  return { ...state, status: ways.some(isActiveWay) ? "running" : "ready" };
};

const withWay = (
  state: TrialState,
  number: number,
  decide: (way: StoredWay) => StoredWay | undefined,
): TrialDecision => {
  const way = state.ways.find((one) => one.number === number);
  const next = way && decide(way);
  if (!next) return STALE;
  return change({ ...state, ways: state.ways.map((one) => (one === way ? next : one)) });
};

const onDelivered = (way: StoredWay, { message_id, now }: Extract<TrialEvent, { type: "delivered" }>) => {
  if (way.message_id !== null || way.gone) return undefined;
  const delivered = { ...way, message_id, started_at: now, turn: 1 };
  // The owner stopped the way while the chat got its prompt.
  return way.status === "waiting" ? { ...delivered, status: "working" as const } : { ...delivered, interrupts: true };
};

const onChatSeen = (
  way: StoredWay,
  { chat, failed, now }: Extract<TrialEvent, { type: "seen" }>,
): StoredWay | undefined => {
  if (way.message_id === null || way.gone) return undefined;
  if (way.interrupts) return chat === "idle" ? { ...way, interrupts: false } : undefined;
  if (chat !== "idle") {
    const status = chat === "running" ? "working" : "needs_you";
    if (way.status === status) return undefined;
    if (way.status === "working" || way.status === "needs_you") return { ...way, status };
    // The owner continued in the way's chat, so earlier results are outdated.
    return { ...way, status, turn: way.turn + 1, measured: false, check: null, error: "", ended_at: null };
  }
  if (way.status !== "working" && way.status !== "needs_you") return undefined;
  if (failed !== undefined) return onBroken(way, failed, now);
  return { ...way, status: "checking", ended_at: now };
};

const onBroken = (way: StoredWay, error: string, now: number): StoredWay => ({
  ...way,
  status: "error",
  error,
  ended_at: way.started_at === null ? null : (way.ended_at ?? now),
});

const onMeasured = (
  way: StoredWay,
  { turn, changes, changes_error }: Extract<TrialEvent, { type: "measured" }>,
  isChecked: boolean,
): StoredWay | undefined => {
  if (way.turn !== turn || way.measured || way.gone) return undefined;
  const measured = { ...way, measured: true, changes, changes_error };
  return way.status === "checking" && !isChecked ? { ...measured, status: "finished" } : measured;
};

const onChecked = (
  way: StoredWay,
  { turn, check, error }: Extract<TrialEvent, { type: "checked" }>,
): StoredWay | undefined => {
  if (way.turn !== turn || way.status !== "checking" || !way.measured) return undefined;
  if (check === null) return { ...way, status: "error", error };
  return { ...way, check, status: check.exit_code === 0 && !check.timed_out ? "passed" : "failed" };
};

/** Stops the way if it is in progress. */
const stopWay = (way: StoredWay, now: number): StoredWay =>
  isActiveWay(way)
    ? {
        ...way,
        status: "stopped",
        interrupts: way.status === "working" || way.status === "needs_you",
        ended_at: way.started_at === null ? null : (way.ended_at ?? now),
      }
    : way;

const stop = (state: TrialState, now: number): TrialDecision => {
  if (state.status === "keeping" || isEnding(state)) return toRefused(conflict(ALREADY_ENDING));
  if (!state.ways.some(isActiveWay)) return toRefused(conflict("None of the ways is running."));
  return change({ ...state, ways: state.ways.map((way) => stopWay(way, now)) });
};

const keepWay = (
  state: TrialState,
  { number, snapshot_id, safety_id, now }: Extract<TrialEvent, { type: "keep" }>,
): TrialDecision => {
  if (state.status === "keeping" || isEnding(state)) return toRefused(conflict(ALREADY_ENDING));
  const way = state.ways.find((one) => one.number === number);
  if (!way) return toRefused(invalidField("way", `must be 1 to ${state.ways.length}`));
  if (isActiveWay(way) || way.interrupts) {
    return toRefused(conflict(`Way ${number} is still running. Wait for it, or stop it first.`));
  }
  if (way.message_id === null) {
    return toRefused(conflict(`Way ${number} has not started, so there is nothing to keep.`));
  }
  const others = state.ways.map((one) => (one === way ? one : stopWay(one, now)));
  const kept = { number, snapshot_id, safety_id, restored: false };
  return change({ ...state, status: "keeping", error: "", ways: others, keep: kept });
};
