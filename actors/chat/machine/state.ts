// The state machine of a chat: a table with one rule for each state and each command that the state allows (facts/chats 1.3). The function
// `transition` applies the table and rejects all other commands; a late report of a turn is `stale`. Pure.
import { AppError, conflict, invalid, notFound } from "#base/errors.ts";
import type { ChatError } from "#schema/chats/chat-error.ts";
import { type StateName, toStateName } from "../names.ts";
import type { Command, CommandOf, CommandType, Decision, Execution, Fence, PendingCall } from "./decision.ts";
import { Draft, MAX_QUEUED, toolMessage } from "./draft.ts";

/** How long to wait for results of the client's tools (facts/chats 1.10). */
export const ACTION_TIMEOUT_MS = 300_000;

/** A cell of the table: changes the draft, or returns why the command is rejected. */
type Rule<C extends CommandType> = (draft: Draft<Execution>, command: CommandOf<C>, before: Execution) => Outcome;
type Outcome = AppError | "stale" | undefined;
type Row = { readonly [C in CommandType]?: Rule<C> };

const toQueueFullError = (): AppError =>
  new AppError("too_many_requests", "The chat's queue is full.", {
    detail: `At most ${MAX_QUEUED} messages can wait.`,
  });

const enqueue = (draft: Draft<Execution>, { message }: CommandOf<"send">): Outcome => {
  if (draft.isQueueFull) return toQueueFullError();
  draft.enqueue(message);
  return undefined;
};

/** Appends the message to the history and begins its turn. */
const sendNow: Rule<"send"> = (draft, { message: { content, created_by, model_config_id, custom_prompt = null } }) => {
  draft.become("running");
  const text = { content, created_by, model_config_id, custom_prompt };
  draft.appendUser({ role: "user", visibility: "both", ...text, usage: null });
  draft.generate();
  return undefined;
};

/** Queues the message, and begins the turn of the oldest queued message. */
const sendBehindHead: Rule<"send"> = (draft, command) => {
  const refusal = enqueue(draft, command);
  if (refusal) return refusal;
  draft.become("running");
  draft.promote();
  draft.generate();
  return undefined;
};

const sendToRunning: Rule<"send"> = (draft, command) => {
  const refusal = enqueue(draft, command);
  if (!refusal && command.behavior === "interrupt") draft.interrupt();
  return refusal;
};

/** Queues the message. With `interrupt`, the model first gets a turn in which it sees that its calls were canceled. */
const sendToAwaiting: Rule<"send"> = (draft, command, before) => {
  const refusal = enqueue(draft, command);
  if (!refusal && command.behavior === "interrupt") stopAwaiting(draft, before);
  return refusal;
};

const edit: Rule<"edit"> = (draft, { from, last_assistant_id, message }) => {
  draft.become("running");
  draft.deleteFrom(from, last_assistant_id);
  draft.clearQueue();
  draft.appendUser(message);
  draft.generate();
  return undefined;
};

const deleteQueued: Rule<"delete_queued"> = (draft, { queued_id }) => {
  if (!draft.findQueued(queued_id)) return notFound();
  draft.removeQueued(queued_id);
  return undefined;
};

/** Promotes the selected message into the history immediately. */
const promoteNow: Rule<"promote_queued"> = (draft, { queued_id }) => {
  if (!draft.findQueued(queued_id)) return notFound();
  draft.become("running");
  draft.promote(queued_id);
  draft.generate();
  return undefined;
};

/** Moves the selected message to the head of the queue. With `interruptsTurn`, also interrupts the running turn. */
const moveToHead =
  (interruptsTurn: boolean): Rule<"promote_queued"> =>
  (draft, { queued_id }) => {
    const row = draft.findQueued(queued_id);
    if (!row) return notFound();
    draft.moveToHead(row);
    if (interruptsTurn) draft.interrupt();
    return undefined;
  };

/** Begins a turn that only summarizes the history. Cancels the calls that a failed turn left without a result. */
const requestCompaction: Rule<"request_compaction"> = (draft, { request, is_empty }) => {
  if (is_empty) return conflict("There is nothing to summarize yet.");
  draft.cancelCalls(NOT_ANSWERED);
  draft.become("running");
  draft.requestCompaction(request);
  return undefined;
};

const clear: Rule<"clear"> = (draft, { rows, is_empty }) => {
  if (is_empty) return conflict("There is nothing to clear.");
  draft.cancelCalls(NOT_ANSWERED);
  for (const row of rows) draft.append(row);
  draft.become("waiting");
  return undefined;
};

const interrupt: Rule<"interrupt"> = (draft) => {
  draft.interrupt();
  return undefined;
};

const NOT_ANSWERED = "The client did not answer this call: it was cancelled.";

const NOT_APPROVED = "This call was not approved in time, so it did not run.";

/** Cancels the calls and lets the model continue. */
const cancelAndContinue = (draft: Draft<Execution>, reason: string): undefined => {
  draft.become("running");
  draft.cancelCalls(reason);
  draft.generate();
};

/** Cancels the calls that the chat waits for and lets the model continue. Ends a turn that waits for a budget, which has no calls. */
const stopAwaiting = (draft: Draft<Execution>, { budget_pause }: Execution, refusal?: ChatError): undefined =>
  budget_pause === null ? cancelAndContinue(draft, NOT_ANSWERED) : endTurn(draft, refusal);

const pauseForBudget: Rule<"pause_for_budget"> = (draft, { fence, pause, resets_at }, before) => {
  if (!isCurrent(fence, before) || before.pending_calls.length > 0) return "stale";
  draft.pauseForBudget(pause, resets_at);
  return undefined;
};

/** Continues the turn with the model call that the budget blocked. */
const budgetRaised: Rule<"budget_raised"> = (draft, { budget_id }, { budget_pause }) => {
  if (budget_pause?.budget_id !== budget_id) return "stale";
  draft.become("running");
  draft.restartGeneration();
  draft.generate();
  return undefined;
};

const recordAttempt: Rule<"record_attempt"> = (draft, { history_version }, before) => {
  if (history_version !== before.history_version) return "stale";
  draft.beginAttempt();
  return undefined;
};

const recordRetry: Rule<"record_retry"> = (draft, { fence, retry }, before) => {
  if (!isCurrent(fence, before)) return "stale";
  draft.retry(retry);
  return undefined;
};

const commitStep: Rule<"commit_step"> = (draft, { fence, messages }, before) => {
  if (!isCurrent(fence, before)) return "stale";
  for (const message of messages) draft.append(message);
  return undefined;
};

const enterRequiresAction: Rule<"enter_requires_action"> = (draft, command, before) => {
  const { history_version, asked = [], approval_ms = ACTION_TIMEOUT_MS, now } = command;
  if (history_version !== before.history_version || before.pending_calls.length === 0) return "stale";
  draft.markCalls((id) => (asked.includes(id) ? { permission: "asked" } : undefined));
  // People take longer to approve calls than programs take to answer them.
  draft.awaitResultsUntil(now + (asked.length > 0 ? approval_ms : ACTION_TIMEOUT_MS));
  return undefined;
};

/** Ends the turn. Begins the next turn with the first queued message, unless there is a `refusal`, with which the chat fails. */
const endTurn = (draft: Draft<Execution>, refusal?: ChatError): undefined => {
  if (draft.isQueueEmpty) {
    draft.become("waiting");
    return;
  }
  if (refusal) {
    draft.fail(refusal);
    return;
  }
  draft.become("running");
  draft.promote();
  draft.generate();
};

const finishTurn: Rule<"finish_turn"> = (draft, { history_version, refusal }, before) =>
  history_version === before.history_version ? endTurn(draft, refusal) : "stale";

const finishError: Rule<"finish_error"> = (draft, { fence, error, messages = [] }, before) => {
  if (!isCurrent(fence, before)) return "stale";
  for (const message of messages) draft.append(message);
  draft.fail(error);
  return undefined;
};

const finishInterruption: Rule<"finish_interruption"> = (draft, command, before) => {
  const { history_version, partial, refusal } = command;
  if (history_version !== before.history_version) return "stale";
  for (const message of partial) draft.append(message);
  draft.cancelCalls(CALL_INTERRUPTED);
  if (!refusal) return endTurn(draft);
  draft.fail(refusal);
  return undefined;
};

const CALL_INTERRUPTED = "The call was interrupted.";

const completeAction: Rule<"complete_requires_action"> = (draft, { results, rows = [], now }, before) => {
  const { pending_calls, budget_pause } = before;
  if (budget_pause) return conflict("The chat waits for a budget, not for tool results.");
  if (pending_calls.some(awaitsPermission)) return conflict("The chat waits for permission, not for tool results.");
  const refusal = checkAnswers("results", results, pending_calls);
  if (refusal) return refusal;
  draft.become("running");
  for (const { tool_call_id, tool_name } of pending_calls) {
    const { output, is_error } = results.find((result) => result.tool_call_id === tool_call_id) ?? { is_error: true };
    draft.append(toolMessage({ tool_call_id, tool_name, result: output ?? null, is_error, now }));
  }
  for (const row of rows) draft.append(row);
  draft.generate();
  return undefined;
};

const awaitsPermission = ({ permission }: PendingCall): boolean => permission === "asked";

/** Stores the answers. The continued turn runs the approved calls and answers the refused ones. */
const answerPermissions: Rule<"answer_permissions"> = (draft, { answers }, { pending_calls }) => {
  const requested = pending_calls.filter(awaitsPermission);
  if (requested.length === 0) return conflict("The chat does not wait for permission.");
  const refusal = checkAnswers("answers", answers, requested);
  if (refusal) return refusal;
  const given = new Map(answers.map(({ tool_call_id, ...mark }) => [tool_call_id, mark]));
  draft.become("running");
  draft.markCalls((id) => given.get(id));
  draft.restartGeneration();
  draft.generate();
  return undefined;
};

/** Cancels the calls. A turn that waits for a budget continues, because the budget has been reset. */
const cancelAction: Rule<"cancel_requires_action"> = (draft, { now }, before) => {
  const { requires_action_deadline, pending_calls, budget_pause } = before;
  if (requires_action_deadline !== null && now < requires_action_deadline) return "stale";
  if (budget_pause) draft.restartGeneration();
  return cancelAndContinue(draft, pending_calls.some(awaitsPermission) ? NOT_APPROVED : NOT_ANSWERED);
};

const setArchived =
  (archived: boolean): Rule<"archive"> & Rule<"unarchive"> =>
  (draft) => {
    draft.setArchived(archived);
    return undefined;
  };

const reconcile: Rule<"reconcile_invalid"> = (draft) => {
  draft.cancelCalls(NOT_ANSWERED);
  draft.setArchived(false);
  draft.fail(WAS_INVALID);
  return undefined;
};

const WAS_INVALID: ChatError = {
  kind: "generic",
  message: "The chat was in an invalid state. Send a new message or edit an earlier one to continue.",
  retryable: false,
};

const idle: Row = { edit, request_compaction: requestCompaction, archive: setArchived(true) };
const running: Row = {
  record_attempt: recordAttempt,
  record_retry: recordRetry,
  commit_step: commitStep,
  enter_requires_action: enterRequiresAction,
  pause_for_budget: pauseForBudget,
  interrupt,
  send: sendToRunning,
  edit,
  finish_turn: finishTurn,
  finish_error: finishError,
};
const interrupting: Row = { send: enqueue, edit, finish_interruption: finishInterruption };
const awaiting: Row = {
  complete_requires_action: completeAction,
  answer_permissions: answerPermissions,
  interrupt: (draft, { refusal }, before) => stopAwaiting(draft, before, refusal),
  cancel_requires_action: cancelAction,
  budget_raised: budgetRaised,
  send: sendToAwaiting,
  edit,
};

/** The table. A command that is not in the row of a state is invalid in that state. */
export const TABLE: Readonly<Record<StateName, Row>> = {
  W: { ...idle, send: sendNow, clear, finish_error: finishError },
  E0: { ...idle, send: sendNow, clear },
  E1: { ...idle, send: sendBehindHead, delete_queued: deleteQueued, promote_queued: promoteNow },
  R0: running,
  R1: { ...running, delete_queued: deleteQueued, promote_queued: moveToHead(true) },
  I0: interrupting,
  I1: { ...interrupting, delete_queued: deleteQueued, promote_queued: moveToHead(false) },
  A0: awaiting,
  A1: { ...awaiting, delete_queued: deleteQueued, promote_queued: promoteNow },
  XW: { unarchive: setArchived(false) },
  XE0: { unarchive: setArchived(false) },
  XE1: { unarchive: setArchived(false) },
  invalid: { reconcile_invalid: reconcile },
};

/** Decides one command (rules CH-1 to CH-9). */
export const transition = <S extends Execution>(state: S, command: Command): Decision<S> => {
  const rule = TABLE[toStateName(state)][command.type] as Rule<CommandType> | undefined;
  if (!rule) {
    return REPORTS.has(command.type) ? { kind: "stale" } : { kind: "refused", error: toRefusal(state, command.type) };
  }
  const draft = new Draft(state, command);
  const outcome = rule(draft as unknown as Draft<Execution>, command as CommandOf<CommandType>, state);
  if (outcome === "stale") return { kind: "stale" };
  return outcome ? { kind: "refused", error: outcome } : draft.finish();
};

/** Returns how many message IDs a command may need. */
export const countMessageIds = ({ pending_calls }: Execution, command: { readonly type: CommandType }): number => {
  if (COMMANDS_WITHOUT_MESSAGES.has(command.type)) return 0;
  const messageCount = "messages" in command ? (command.messages as unknown[]).length : 0;
  if (command.type === "finish_error") return messageCount;
  const partialCount = "partial" in command ? (command.partial as unknown[]).length : 0;
  const rowCount = "rows" in command ? ((command.rows as unknown[] | undefined) ?? []).length : 0;
  return pending_calls.length + messageCount + partialCount + rowCount + 1;
};

const COMMANDS_WITHOUT_MESSAGES: ReadonlySet<CommandType> = new Set([
  "record_attempt",
  "record_retry",
  "enter_requires_action",
  "pause_for_budget",
  "budget_raised",
  "answer_permissions",
  "delete_queued",
  "archive",
  "unarchive",
] as const);

/** Commands from turns and timers instead of people. If one of them comes too late, it is `stale` instead of an error. */
const REPORTS: ReadonlySet<CommandType> = new Set([
  "record_attempt",
  "record_retry",
  "commit_step",
  "enter_requires_action",
  "finish_turn",
  "finish_error",
  "finish_interruption",
  "cancel_requires_action",
  "pause_for_budget",
  "budget_raised",
] as const);

const isCurrent = (fence: Fence, { history_version, generation_attempt }: Execution): boolean =>
  fence.history_version === history_version && fence.generation_attempt === generation_attempt;

type CallAnswer = { readonly tool_call_id: string };

const checkAnswers = (
  field: "results" | "answers",
  answers: readonly CallAnswer[],
  awaited: readonly CallAnswer[],
): AppError | undefined => {
  const givenIds = answers.map(({ tool_call_id }) => tool_call_id);
  const pendingIds = awaited.map(({ tool_call_id }) => tool_call_id);
  const invalidField = (detail: string) =>
    invalid(`Invalid ${field === "results" ? "tool results" : "answers"}.`, [{ field, detail }]);
  if (givenIds.length === 0) return invalidField("must not be empty");
  const duplicate = givenIds.find((id, index) => givenIds.indexOf(id) !== index);
  if (duplicate !== undefined) return invalidField(`has the call ${duplicate} more than once`);
  const unknown = givenIds.find((id) => !pendingIds.includes(id));
  if (unknown !== undefined) return invalidField(`names ${unknown}, which is not awaited`);
  const missing = pendingIds.find((id) => !givenIds.includes(id));
  return missing === undefined ? undefined : invalidField(`lacks the call ${missing}`);
};

const ARCHIVED_WRITES: readonly CommandType[] = [
  "send",
  "edit",
  "request_compaction",
  "clear",
  "interrupt",
  "promote_queued",
  "complete_requires_action",
  "answer_permissions",
];

const toRefusal = (state: Execution, type: CommandType): AppError => {
  if (type === "reconcile_invalid") return conflict("The chat is not in an invalid state.");
  if (toStateName(state) === "invalid") return conflict("The chat is in an invalid state.");
  if (type === "archive" && state.archived) return new AppError("invalid", "The chat is already archived.");
  if (type === "unarchive") return new AppError("invalid", "The chat is not archived.");
  if (state.archived && ARCHIVED_WRITES.includes(type)) return conflict("The chat is archived. Unarchive it first.");
  return conflict(REFUSALS[type] ?? "The chat's current state does not allow this.");
};

const REFUSALS: { readonly [C in CommandType]?: string } = {
  archive: "The chat or one of its sub-chats is active: interrupt it first.",
  request_compaction: "The chat is busy: interrupt it first, or wait until its turn has ended.",
  clear: "The chat is busy or has queued messages. Interrupt it or empty its queue first.",
  interrupt: "There is nothing to interrupt.",
  complete_requires_action: "The chat does not wait for tool results.",
  answer_permissions: "The chat does not wait for permission.",
  delete_queued: "The chat has no queued messages.",
  promote_queued: "The chat has no queued messages.",
};
