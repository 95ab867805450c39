// The chat's transitions against a model based only on the rules: random commands in random order, on time and late. A failure prints the
// seed to reproduce it.
import { expect, test } from "bun:test";
import fc from "fast-check";
import type {
  Change,
  Command,
  CommandType,
  Execution,
  Message,
  NewMessage,
  QueueItem,
} from "#actors/chat/machine/decision.ts";
import { updatePendingCalls } from "#actors/chat/machine/pending.ts";
import { sample } from "#actors/chat/machine/print-table.ts";
import { ACTION_TIMEOUT_MS, countMessageIds, transition } from "#actors/chat/machine/state.ts";
import { toStateName } from "#actors/chat/names.ts";
import { toClearingRows } from "#actors/chat/prompt/compact.ts";
import { AppError } from "#base/errors.ts";
import type { BudgetPause } from "#schema/ai/budget.ts";
import type { MessagePart } from "#schema/chats/chat-part.ts";

type ModelState = {
  state: Execution;
  history: Message[];
  nextId: number;
  nextQueuedId: number;
  now: number;
  callCount: number;
};

const KINDS: readonly CommandType[] = [
  "send",
  "edit",
  "delete_queued",
  "promote_queued",
  "request_compaction",
  "clear",
  "interrupt",
  "record_attempt",
  "record_retry",
  "commit_step",
  "enter_requires_action",
  "finish_turn",
  "finish_error",
  "finish_interruption",
  "complete_requires_action",
  "answer_permissions",
  "cancel_requires_action",
  "pause_for_budget",
  "budget_raised",
  "archive",
  "unarchive",
  "reconcile_invalid",
];

const stepArbitrary = fc.record({
  kind: fc.constantFrom(...KINDS),
  pick: fc.nat(30),
  flag: fc.boolean(),
  late: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
  wait: fc.constantFrom(0, 1_000, ACTION_TIMEOUT_MS),
});
type Step = typeof stepArbitrary extends fc.Arbitrary<infer T> ? T : never;

const createMessage = (role: NewMessage["role"], content: MessagePart[]): NewMessage => ({
  role,
  visibility: "both",
  content,
  created_by: null,
  model_config_id: null,
  usage: null,
});

const PAUSE: BudgetPause = {
  budget_id: "0",
  scope: "everyone",
  name: "",
  period: "day",
  unit: "usd",
  limit: 1,
  spent: 1,
  suggested: 1,
  resets_at: "1970-01-01T00:00:00.000Z",
  deciders: [],
};

const toCommand = (model: ModelState, { kind, pick, flag, late }: Step): Command | undefined => {
  const { state, history, now } = model;
  const base = { now, first_id: model.nextId };
  const history_version = state.history_version - (late ? 1 : 0);
  const fence = { history_version, generation_attempt: state.generation_attempt };
  const queuedId = (state.queue[pick % Math.max(state.queue.length, 1)] as QueueItem | undefined)?.id ?? 0;
  const error = { kind: "timeout", message: "It took too long.", retryable: true } as const;
  switch (kind) {
    case "send": {
      const message = {
        id: model.nextQueuedId,
        content: [{ type: "text" as const, text: `message ${pick}` }],
        created_by: "user",
        model_config_id: null,
        reasoning_effort: "",
      };
      return { ...base, type: kind, message, behavior: flag ? "queue" : "interrupt" };
    }
    case "edit": {
      const users = history.filter(({ role }) => role === "user");
      const target = users[pick % users.length];
      if (!target) return undefined;
      const before = history.filter(({ id, role }) => role === "assistant" && id < target.id);
      const message = createMessage("user", [{ type: "text", text: `edited ${pick}` }]);
      return { ...base, type: kind, from: target.id, last_assistant_id: before.at(-1)?.id ?? 0, message };
    }
    case "delete_queued":
    case "promote_queued":
      return { ...base, type: kind, queued_id: queuedId };
    case "enter_requires_action":
      return {
        ...base,
        type: kind,
        history_version,
        asked: flag ? state.pending_calls.map((call) => call.tool_call_id) : [],
      };
    case "record_attempt":
    case "finish_turn":
      return { ...base, type: kind, history_version };
    case "record_retry":
      return {
        ...base,
        type: kind,
        fence,
        retry: {
          attempt: 1,
          delay_ms: 5,
          error: "",
          kind: "timeout",
          provider: "",
          retrying_at: now + 5,
          status_code: null,
        },
      };
    case "commit_step": {
      const calls: MessagePart[] = flag
        ? [{ type: "tool-call", tool_call_id: `call-${model.callCount++}`, tool_name: "ask", args: {} }]
        : [];
      return {
        ...base,
        type: kind,
        fence,
        messages: [createMessage("assistant", [{ type: "text", text: "so" }, ...calls])],
      };
    }
    case "finish_error":
      return { ...base, type: kind, fence, error };
    case "finish_interruption":
      return {
        ...base,
        type: kind,
        history_version,
        partial: flag ? [createMessage("assistant", [{ type: "text", text: "par" }])] : [],
      };
    case "complete_requires_action": {
      const results = state.pending_calls.map(({ tool_call_id }) => ({ tool_call_id, output: pick, is_error: false }));
      return { ...base, type: kind, results: late ? results.slice(1) : results };
    }
    case "answer_permissions": {
      const requested = state.pending_calls.filter(({ permission }) => permission === "asked");
      const answers = requested.map(({ tool_call_id }) => ({
        tool_call_id,
        permission: flag ? ("granted" as const) : ("refused" as const),
      }));
      return { ...base, type: kind, answers: late ? answers.slice(1) : answers };
    }
    case "pause_for_budget":
      return { ...base, type: kind, fence, pause: { ...PAUSE, budget_id: `${pick % 2}` }, resets_at: now + 1_000 };
    case "budget_raised":
      return { ...base, type: kind, budget_id: `${pick % 2}` };
    case "request_compaction":
      return { ...base, type: kind, request: { instructions: `${pick}`, context: "", notice: "" }, is_empty: late };
    case "clear":
      return { ...base, type: kind, rows: toClearingRows({ call_id: `clear-${pick}`, now }), is_empty: late };
    default:
      return { ...base, type: kind };
  }
};

/** The expected queue, as a list of numbers. */
const getExpectedQueue = (ids: number[], command: Command, from: string): number[] => {
  const [, ...rest] = ids;
  switch (command.type) {
    case "send":
      if (["W", "E0"].includes(from)) return ids;
      return from === "E1" ? [...rest, command.message.id] : [...ids, command.message.id];
    case "edit":
      return [];
    case "delete_queued":
      return ids.filter((id) => id !== command.queued_id);
    case "promote_queued": {
      const others = ids.filter((id) => id !== command.queued_id);
      return ["R1", "I1"].includes(from) ? [command.queued_id, ...others] : others;
    }
    case "finish_turn":
    case "finish_interruption":
      return rest;
    default:
      return ids;
  }
};

const isPaused = ({ budget_pause }: Execution): boolean => budget_pause !== null;
const interrupts = (command: Command): boolean => command.type === "send" && command.behavior === "interrupt";

const check = (model: ModelState, command: Command, { state, inserted, deleted_from }: Change): void => {
  const before = model.state;
  const version = before.snapshot_version + 1;
  expect(state.snapshot_version).toBe(version);
  expect(toStateName(state)).not.toBe("invalid");
  const resumesPaused =
    command.type === "budget_raised" || (command.type === "cancel_requires_action" && isPaused(before));
  const startsTurn = command.type === "answer_permissions" || command.type === "request_compaction" || resumesPaused;
  const changed = inserted.length > 0 || deleted_from !== null || startsTurn;
  expect(state.history_version).toBe(changed ? version : before.history_version);
  for (const [index, row] of inserted.entries()) {
    expect(row).toMatchObject({ id: model.nextId + index, revision: version, created_at: model.now });
  }
  if (changed) expect(state.generation_attempt).toBe(0);
  else if (command.type === "record_attempt") expect(state.generation_attempt).toBe(before.generation_attempt + 1);
  else expect(state.generation_attempt).toBe(before.generation_attempt);
  const listQueueIds = (execution: Execution): number[] => execution.queue.map(({ id }) => id);
  // A turn that waits for a budget ends when it is stopped, and the next message starts.
  const isStopped = isPaused(before) && (command.type === "interrupt" || interrupts(command));
  const queue = getExpectedQueue(listQueueIds(before), command, toStateName(before));
  expect(listQueueIds(state)).toEqual(isStopped ? queue.slice(1) : queue);
  // A message that is queued and starts immediately has been in the queue.
  const sameQueue = listQueueIds(state).join() === listQueueIds(before).join() && !(isStopped && interrupts(command));
  expect(state.queue_version).toBe(sameQueue ? before.queue_version : version);
  expect(state.queue.map(({ position }) => position)).toEqual(
    state.queue.map(({ position }) => position).sort((a, b) => a - b),
  );
  const sameRetry = JSON.stringify(state.retry_state) === JSON.stringify(before.retry_state);
  if (!sameRetry) expect(state.retry_version).toBe(version);
  if (sameRetry && state.retry_state === null) expect(state.retry_version).toBe(before.retry_version);
  if (state.retry_state !== null) expect(state.status).toBe("running");
  expect(state.last_error !== null).toBe(state.status === "error");
  // A compaction request lasts as long as its turn, and as long as the history is unchanged.
  const continues = before.status === "running" && state.status === "running" && !changed;
  const keptRequest = continues ? before.compaction : null;
  const requested = command.type === "request_compaction" ? { ...command.request } : keptRequest;
  expect(JSON.stringify(state.compaction)).toBe(JSON.stringify(requested));
  expect(state.requires_action_deadline !== null).toBe(state.status === "requires_action");
  if (isPaused(state)) expect(state.status).toBe("requires_action");
  if (state.status === "requires_action") expect(state.pending_calls.length > 0).toBe(!isPaused(state));
};

test("[CH-3] random commands never break an invariant, lose a queued message or leave a call unanswered before a user message", () => {
  const coveredTransitions = new Set<string>();
  fc.assert(
    fc.property(fc.array(stepArbitrary, { minLength: 20, maxLength: 120 }), (steps) => {
      const model: ModelState = {
        state: sample("W", 0),
        history: [],
        nextId: 100,
        nextQueuedId: 1,
        now: 0,
        callCount: 0,
      };
      model.state = { ...model.state, pending_calls: [], last_assistant_id: 0 };
      for (const step of steps) {
        model.now += step.wait;
        const command = toCommand(model, step);
        if (!command) continue;
        const before = structuredClone(model.state);
        const decision = transition(model.state, command);
        expect(model.state).toEqual(before);
        if (decision.kind !== "change") continue;
        check(model, command, decision);
        expect(decision.inserted.length).toBeLessThanOrEqual(countMessageIds(before, command));
        coveredTransitions.add(`${toStateName(before)} ${command.type}`);
        const { deleted_from, inserted } = decision;
        model.history = model.history.filter(({ id }) => deleted_from === null || id < deleted_from).concat(inserted);
        model.nextId += inserted.length;
        if (command.type === "send") model.nextQueuedId += 1;
        model.state = decision.state;
        let pending: readonly ReturnType<typeof updatePendingCalls>[number][] = [];
        for (const row of model.history) {
          if (row.role === "user") expect(pending).toEqual([]);
          pending = updatePendingCalls(pending, row);
        }
        expect(model.state.pending_calls.map(({ permission: _, ...call }) => call)).toEqual([...pending]);
        const lastAssistant = model.history.filter(({ role }) => role === "assistant").at(-1)?.id ?? 0;
        expect(model.state.last_assistant_id).toBe(lastAssistant);
      }
    }),
    { numRuns: 500 },
  );
  // Random, but large enough to cover every row of the table.
  expect(coveredTransitions.size).toBeGreaterThan(35);
});

const applyCommand = (state: Execution, command: Command): Change => {
  const decision = transition(state, command);
  if (decision.kind !== "change") throw new Error(`${command.type} led to ${decision.kind}`);
  return decision;
};
const base = { now: 1, first_id: 1 };
const message = { id: 1, content: [], created_by: "u", model_config_id: null, reasoning_effort: "" };

test("[CH-4] twenty messages can wait; one more is refused with 429 and nothing is lost", () => {
  let state = sample("R0", 0);
  for (let id = 1; id <= 20; id++) {
    state = applyCommand(state, { ...base, type: "send", message: { ...message, id }, behavior: "queue" }).state;
  }
  const decision = transition(state, { ...base, type: "send", message: { ...message, id: 21 }, behavior: "queue" });
  expect(decision).toMatchObject({ kind: "refused", error: { kind: "too_many_requests" } });
  expect(state.queue.map(({ id }) => id)).toEqual(Array.from({ length: 20 }, (_, index) => index + 1));
});

test("[CH-5] tool results must name every awaited call exactly once", () => {
  const awaiting = sample("A0", 0);
  const createResult = (tool_call_id: string) => ({ tool_call_id, output: 1, is_error: false });
  const completeWith = (...ids: string[]) =>
    transition(awaiting, { ...base, type: "complete_requires_action", results: ids.map(createResult) });
  for (const wrong of [
    completeWith(),
    completeWith("call", "call"),
    completeWith("other"),
    completeWith("call", "other"),
  ]) {
    expect(wrong).toMatchObject({ kind: "refused", error: { kind: "invalid" } });
    if (wrong.kind === "refused") expect(wrong.error).toBeInstanceOf(AppError);
  }
  const completed = applyCommand(awaiting, {
    ...base,
    type: "complete_requires_action",
    results: [createResult("call")],
  });
  expect(completed.inserted).toMatchObject([
    { role: "tool", content: [{ tool_call_id: "call", result: 1, is_error: false }] },
  ]);
});

test("[CH-6] archiving keeps the error, and unarchiving restores the chat", () => {
  const failed = sample("E1", 2);
  const archived = applyCommand(failed, { ...base, type: "archive" }).state;
  expect(archived.last_error).toEqual(failed.last_error);
  const restored = applyCommand(archived, { ...base, type: "unarchive" }).state;
  expect([toStateName(archived), toStateName(restored)]).toEqual(["XE1", "E1"]);
  expect(restored.queue).toEqual(failed.queue);
});

test("[CH-7] the deadline fires only when it is due", () => {
  const awaiting = { ...sample("A0", 0), requires_action_deadline: 1_000 };
  expect(transition(awaiting, { now: 999, first_id: 1, type: "cancel_requires_action" }).kind).toBe("stale");
  const completed = applyCommand(awaiting, { now: 1_000, first_id: 1, type: "cancel_requires_action" });
  expect(completed.state.status).toBe("running");
  expect(completed.inserted).toMatchObject([{ role: "tool", content: [{ is_error: true }] }]);
});

test("[PE-18] approvals have a separate time limit, and the model is informed that a call was not approved in time", () => {
  const running = { ...sample("R0", 0), pending_calls: sample("A0", 0).pending_calls };
  const [call] = running.pending_calls;
  const enter = { ...base, type: "enter_requires_action", history_version: running.history_version } as const;
  const requests = [call?.tool_call_id ?? ""];
  const waiting = applyCommand(running, { ...enter, asked: requests, approval_ms: 86_400_000 }).state;
  expect(waiting.requires_action_deadline).toBe(base.now + 86_400_000);
  // Client results are still awaited.
  expect(applyCommand(running, { ...enter, approval_ms: 86_400_000 }).state.requires_action_deadline).toBe(
    base.now + ACTION_TIMEOUT_MS,
  );
  const late = { now: base.now + 86_400_000, first_id: 1, type: "cancel_requires_action" } as const;
  expect(transition(waiting, { ...late, now: late.now - 1 }).kind).toBe("stale");
  expect(JSON.stringify(applyCommand(waiting, late).inserted)).toContain("This call was not approved in time");
});

test("[CH-8] an interrupted turn keeps its output, then the oldest queued message starts", () => {
  const partial = createMessage("assistant", [{ type: "text", text: "half a" }]);
  const ended = applyCommand(sample("I1", 2), {
    ...base,
    type: "finish_interruption",
    history_version: 8,
    partial: [partial],
  });
  expect(ended.inserted.map(({ role }) => role)).toEqual(["assistant", "user"]);
  expect(toStateName(ended.state)).toBe("R1");
  expect(ended.effects).toEqual([{ do: "generate", history_version: ended.state.history_version }]);
});
