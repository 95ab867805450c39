// Prints the table in README.md from the code by trying every command in every state. `bun run docs` writes it into the page.

import type { BudgetPause } from "#schema/ai/budget.ts";
import { STATE_NAMES, type StateName, toStateName } from "../names.ts";
import type { Command, CommandType, Execution, NewMessage, QueueItem } from "./decision.ts";
import { TABLE, transition } from "./state.ts";

const toMessage = (role: NewMessage["role"]): NewMessage => ({
  role,
  visibility: "both",
  content: [{ type: "text", text: "hello" }],
  created_by: null,
  model_config_id: null,
  usage: null,
});

const toQueued = (id: number): QueueItem => ({
  id,
  position: id,
  content: [{ type: "text", text: `queued ${id}` }],
  created_by: "user",
  model_config_id: null,
  reasoning_effort: "",
  created_at: 0,
});

const STATUSES: Readonly<Record<string, string>> = {
  W: "waiting",
  E: "error",
  R: "running",
  I: "interrupting",
  A: "requires_action",
};

/** Returns a chat in the named state, with `waiting` queued messages if the state has a queue. */
export const sample = (name: StateName, waiting: number): Execution => {
  const letter = name.replace("X", "").charAt(0);
  const isWaiting = letter === "A" || letter === "R";
  return {
    status: name === "invalid" ? "completed" : (STATUSES[letter] ?? ""),
    archived: name.startsWith("X"),
    queue: name.endsWith("1") ? Array.from({ length: waiting }, (_, index) => toQueued(index + 1)) : [],
    pending_calls: isWaiting ? [{ message_id: 5, tool_call_id: "call", tool_name: "ask", args: {} }] : [],
    compaction: null,
    last_error: letter === "E" ? { kind: "generic", message: "It failed.", retryable: false } : null,
    retry_state: null,
    requires_action_deadline: letter === "A" ? 0 : null,
    budget_pause: null,
    snapshot_version: 9,
    history_version: 8,
    queue_version: 7,
    retry_version: 0,
    generation_attempt: 1,
    last_assistant_id: 5,
    asked_by: null,
    updated_at: 0,
  };
};

const at = { now: 1, first_id: 100 };
const fence = { history_version: 8, generation_attempt: 1 };
const { history_version } = fence;
const message = { ...toQueued(50), created_by: "user" };

const PAUSE: BudgetPause = {
  budget_id: "budget",
  scope: "everyone",
  name: "",
  period: "day",
  unit: "usd",
  limit: 1,
  spent: 1,
  suggested: 1,
  resets_at: "1970-01-01T00:00:00.002Z",
  deciders: [],
};

/** One command of each kind that applies to `sample`. The second queued message is the selected one. */
const TRIGGERS: readonly { readonly words: string; readonly command: (state: Execution) => Command }[] = [
  {
    words: "send, queue",
    command: () => ({ ...at, type: "send", message, behavior: "queue" }),
  },
  {
    words: "send, interrupt",
    command: () => ({ ...at, type: "send", message, behavior: "interrupt" }),
  },
  {
    words: "edit",
    command: () => ({ ...at, type: "edit", from: 4, last_assistant_id: 0, message: toMessage("user") }),
  },
  {
    words: "delete queued",
    command: ({ queue }) => ({ ...at, type: "delete_queued", queued_id: queue.at(-1)?.id ?? 0 }),
  },
  {
    words: "promote queued",
    command: ({ queue }) => ({ ...at, type: "promote_queued", queued_id: queue.at(-1)?.id ?? 0 }),
  },
  {
    words: "request compaction",
    command: () => ({
      ...at,
      type: "request_compaction",
      request: { instructions: "", context: "", notice: "" },
      is_empty: false,
    }),
  },
  {
    words: "clear",
    command: () => ({
      ...at,
      type: "clear",
      rows: [{ ...toMessage("user"), visibility: "model", replayed: 0 }],
      is_empty: false,
    }),
  },
  { words: "interrupt", command: () => ({ ...at, type: "interrupt" }) },
  { words: "record attempt", command: () => ({ ...at, type: "record_attempt", history_version }) },
  {
    words: "record retry",
    command: () => ({
      ...at,
      type: "record_retry",
      fence,
      retry: {
        attempt: 1,
        delay_ms: 1,
        error: "",
        kind: "generic",
        provider: "",
        retrying_at: 2,
        status_code: null,
      },
    }),
  },
  {
    words: "commit step",
    command: () => ({ ...at, type: "commit_step", fence, messages: [toMessage("assistant")] }),
  },
  { words: "enter requires action", command: () => ({ ...at, type: "enter_requires_action", history_version }) },
  { words: "finish turn", command: () => ({ ...at, type: "finish_turn", history_version }) },
  {
    words: "finish error",
    command: () => ({
      ...at,
      type: "finish_error",
      fence,
      error: { kind: "generic", message: "It failed.", retryable: false },
      messages: [toMessage("assistant")],
    }),
  },
  {
    words: "finish interruption",
    command: () => ({ ...at, type: "finish_interruption", history_version, partial: [toMessage("assistant")] }),
  },
  {
    words: "complete requires action",
    command: () => ({
      ...at,
      type: "complete_requires_action",
      results: [{ tool_call_id: "call", output: 1, is_error: false }],
    }),
  },
  {
    words: "answer permissions",
    command: ({ pending_calls }) => ({
      ...at,
      type: "answer_permissions",
      answers: pending_calls.map(({ tool_call_id }) => ({ tool_call_id, permission: "granted" as const })),
    }),
  },
  {
    words: "pause for budget",
    command: () => ({ ...at, type: "pause_for_budget", fence, pause: PAUSE, resets_at: 2 }),
  },
  { words: "budget raised", command: () => ({ ...at, type: "budget_raised", budget_id: PAUSE.budget_id }) },
  { words: "cancel requires action", command: () => ({ ...at, type: "cancel_requires_action" }) },
  { words: "archive", command: () => ({ ...at, type: "archive" }) },
  { words: "unarchive", command: () => ({ ...at, type: "unarchive" }) },
  { words: "reconcile invalid", command: () => ({ ...at, type: "reconcile_invalid" }) },
];

export type TableLine = {
  readonly from: StateName;
  readonly trigger: string;
  readonly to: string;
  readonly also: string;
};

/** Returns every possible transition. States with a queue are tried with one and with two messages. */
export const tableLines = (): TableLine[] =>
  STATE_NAMES.flatMap((from) => TRIGGERS.flatMap(({ words, command }) => tryTransition(from, words, command) ?? []));

/** Returns the state with calls that wait for permission. */
const withQuestion = (state: Execution): Execution => ({
  ...state,
  pending_calls: state.pending_calls.map((call) => ({ ...call, permission: "asked" as const })),
});

/** Returns the state without calls, as before a budget pause. */
const withoutCalls = (state: Execution): Execution => ({ ...state, pending_calls: [] });

/** Returns the state of a turn that waits for a budget. */
const withBudgetPause = (state: Execution): Execution => ({ ...state, pending_calls: [], budget_pause: PAUSE });

const PREPARED: Readonly<Record<string, (state: Execution) => Execution>> = {
  "answer permissions": withQuestion,
  "pause for budget": withoutCalls,
  "budget raised": withBudgetPause,
};

const tryTransition = (
  from: StateName,
  trigger: string,
  toCommand: (state: Execution) => Command,
): TableLine | undefined => {
  // An unknown status may have a queue or not.
  const samples =
    from === "invalid"
      ? [sample(from, 0), { ...sample(from, 0), queue: [toQueued(1)] }]
      : from.endsWith("1")
        ? [sample(from, 1), sample(from, 2)]
        : [sample(from, 0)];
  const all = samples.map(PREPARED[trigger] ?? ((state) => state));
  const results = all.flatMap((state) => {
    const decision = transition(state, toCommand(state));
    return decision.kind === "change"
      ? [{ to: toStateName(decision.state), also: formatEffects(state, decision) }]
      : [];
  });
  if (results.length === 0) return undefined;
  const names = [...new Set(results.map(({ to }) => to))].sort();
  return { from, trigger, to: names.join(" or "), also: results.at(-1)?.also ?? "" };
};

type Changed = Extract<ReturnType<typeof transition>, { kind: "change" }>;

const formatEffects = (before: Execution, { state, inserted, deleted_from, effects }: Changed): string => {
  const ids = (execution: Execution): number[] => execution.queue.map(({ id }) => id);
  const removed = ids(before).filter((id) => !ids(state).includes(id));
  const roles = inserted.map(({ role }) => role);
  const effectTexts: string[] = [];
  if (deleted_from !== null) effectTexts.push("the message and all later ones leave the history");
  if (ids(state).some((id) => !ids(before).includes(id))) effectTexts.push("queued at the tail");
  if (removed.length > 1) effectTexts.push("queue emptied");
  if (removed.length < ids(before).length && ids(state).length > 0 && ids(state)[0] === ids(before).at(-1)) {
    if (removed.length === 0 && ids(before).length > 1) effectTexts.push("moved to the head");
  }
  if (roles.includes("assistant")) effectTexts.push("assistant message");
  if (roles.includes("tool"))
    effectTexts.push(before.status === "requires_action" ? "tool results" : "calls cancelled");
  if (inserted.some((row) => row.replayed === 0)) effectTexts.push("the model starts over");
  else if (roles.includes("user"))
    effectTexts.push(removed.length === 1 ? "queued message into the history" : "user message");
  if (removed.length === 1 && !roles.includes("user")) effectTexts.push("queued message gone");
  if (before.last_error && !state.last_error) effectTexts.push("error cleared");
  if (!before.last_error && state.last_error) effectTexts.push("error stored");
  if (state.requires_action_deadline !== null && before.requires_action_deadline === null)
    effectTexts.push("deadline set");
  if (state.retry_state) effectTexts.push("retry stored");
  if (state.compaction && !before.compaction) effectTexts.push("compaction asked for");
  if (state.generation_attempt > before.generation_attempt) effectTexts.push("attempt + 1");
  for (const { do: what } of effects) effectTexts.push(what === "generate" ? "turn begins" : "turn is stopped");
  return effectTexts.join("; ");
};

/** Returns the table in Markdown. */
export const printTable = (): string => {
  const rows = tableLines().map(({ from, trigger, to, also }) => `| ${from} | ${trigger} | ${to} | ${also} |`);
  return ["| from | on | to | also |", "|---|---|---|---|", ...rows, ""].join("\n");
};

/** The commands that the table must cover, so that a new command cannot be forgotten. */
export const commandTypes = (): CommandType[] => [
  ...new Set(Object.values(TABLE).flatMap((row) => Object.keys(row) as CommandType[])),
];
