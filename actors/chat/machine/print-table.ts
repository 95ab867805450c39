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

/** Returns a chat in the named state, with `queuedCount` queued messages if the state has a queue. */
export const sample = (name: StateName, queuedCount: number): Execution => {
  const letter = name.replace("X", "").charAt(0);
  const hasPendingCall = letter === "A" || letter === "R";
  return {
    status: name === "invalid" ? "completed" : (STATUSES[letter] ?? ""),
    archived: name.startsWith("X"),
    queue: name.endsWith("1") ? Array.from({ length: queuedCount }, (_, index) => toQueued(index + 1)) : [],
    pending_calls: hasPendingCall ? [{ message_id: 5, tool_call_id: "call", tool_name: "ask", args: {} }] : [],
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
const message = toQueued(50);

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

/** One command of each kind that applies to `sample`. Commands about a queued message select the last one. */
const TRIGGERS: readonly { readonly name: string; readonly command: (state: Execution) => Command }[] = [
  {
    name: "send, queue",
    command: () => ({ ...at, type: "send", message, behavior: "queue" }),
  },
  {
    name: "send, interrupt",
    command: () => ({ ...at, type: "send", message, behavior: "interrupt" }),
  },
  {
    name: "edit",
    command: () => ({ ...at, type: "edit", from: 4, last_assistant_id: 0, message: toMessage("user") }),
  },
  {
    name: "delete queued",
    command: ({ queue }) => ({ ...at, type: "delete_queued", queued_id: queue.at(-1)?.id ?? 0 }),
  },
  {
    name: "promote queued",
    command: ({ queue }) => ({ ...at, type: "promote_queued", queued_id: queue.at(-1)?.id ?? 0 }),
  },
  {
    name: "request compaction",
    command: () => ({
      ...at,
      type: "request_compaction",
      request: { instructions: "", context: "", notice: "" },
      is_empty: false,
    }),
  },
  {
    name: "clear",
    command: () => ({
      ...at,
      type: "clear",
      rows: [{ ...toMessage("user"), visibility: "model", replayed: 0 }],
      is_empty: false,
    }),
  },
  { name: "interrupt", command: () => ({ ...at, type: "interrupt" }) },
  { name: "record attempt", command: () => ({ ...at, type: "record_attempt", history_version }) },
  {
    name: "record retry",
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
    name: "commit step",
    command: () => ({ ...at, type: "commit_step", fence, messages: [toMessage("assistant")] }),
  },
  { name: "enter requires action", command: () => ({ ...at, type: "enter_requires_action", history_version }) },
  { name: "finish turn", command: () => ({ ...at, type: "finish_turn", history_version }) },
  {
    name: "finish error",
    command: () => ({
      ...at,
      type: "finish_error",
      fence,
      error: { kind: "generic", message: "It failed.", retryable: false },
      messages: [toMessage("assistant")],
    }),
  },
  {
    name: "finish interruption",
    command: () => ({ ...at, type: "finish_interruption", history_version, partial: [toMessage("assistant")] }),
  },
  {
    name: "complete requires action",
    command: () => ({
      ...at,
      type: "complete_requires_action",
      results: [{ tool_call_id: "call", output: 1, is_error: false }],
    }),
  },
  {
    name: "answer permissions",
    command: ({ pending_calls }) => ({
      ...at,
      type: "answer_permissions",
      answers: pending_calls.map(({ tool_call_id }) => ({ tool_call_id, permission: "granted" as const })),
    }),
  },
  {
    name: "pause for budget",
    command: () => ({ ...at, type: "pause_for_budget", fence, pause: PAUSE, resets_at: 2 }),
  },
  { name: "budget raised", command: () => ({ ...at, type: "budget_raised", budget_id: PAUSE.budget_id }) },
  { name: "cancel requires action", command: () => ({ ...at, type: "cancel_requires_action" }) },
  { name: "archive", command: () => ({ ...at, type: "archive" }) },
  { name: "unarchive", command: () => ({ ...at, type: "unarchive" }) },
  { name: "reconcile invalid", command: () => ({ ...at, type: "reconcile_invalid" }) },
];

export type TableLine = {
  readonly from: StateName;
  readonly trigger: string;
  readonly to: string;
  readonly also: string;
};

/** Returns every possible transition. States with a queue are tried with one and with two messages. */
export const tableLines = (): TableLine[] =>
  STATE_NAMES.flatMap((from) => TRIGGERS.flatMap(({ name, command }) => tryTransition(from, name, command) ?? []));

const askForPermission = (state: Execution): Execution => ({
  ...state,
  pending_calls: state.pending_calls.map((call) => ({ ...call, permission: "asked" as const })),
});

/** A budget pauses a turn only while it has no calls. */
const removeCalls = (state: Execution): Execution => ({ ...state, pending_calls: [] });

const pauseForBudget = (state: Execution): Execution => ({ ...state, pending_calls: [], budget_pause: PAUSE });

/** Changes that a sample needs before the command of this name can apply to it. */
const PREPARATIONS: Readonly<Record<string, (state: Execution) => Execution>> = {
  "answer permissions": askForPermission,
  "pause for budget": removeCalls,
  "budget raised": pauseForBudget,
};

const tryTransition = (
  from: StateName,
  trigger: string,
  toCommand: (state: Execution) => Command,
): TableLine | undefined => {
  const prepare = PREPARATIONS[trigger] ?? ((state: Execution) => state);
  const results = listSamples(from).flatMap((unprepared) => {
    const state = prepare(unprepared);
    const decision = transition(state, toCommand(state));
    return decision.kind === "change"
      ? [{ to: toStateName(decision.state), also: formatEffects(state, decision) }]
      : [];
  });
  if (results.length === 0) return undefined;
  const names = [...new Set(results.map(({ to }) => to))].sort();
  return { from, trigger, to: names.join(" or "), also: results.at(-1)?.also ?? "" };
};

const listSamples = (name: StateName): Execution[] => {
  if (name.endsWith("1")) return [sample(name, 1), sample(name, 2)];
  // A chat in an invalid state may have a queue.
  if (name === "invalid") return [sample(name, 0), { ...sample(name, 0), queue: [toQueued(1)] }];
  return [sample(name, 0)];
};

type Changed = Extract<ReturnType<typeof transition>, { kind: "change" }>;

const formatEffects = (before: Execution, { state, inserted, deleted_from, effects }: Changed): string => {
  const [oldIds, newIds] = [before, state].map(({ queue }) => queue.map(({ id }) => id)) as [number[], number[]];
  const removed = oldIds.filter((id) => !newIds.includes(id));
  const roles = inserted.map(({ role }) => role);
  const effectTexts: string[] = [];
  if (deleted_from !== null) effectTexts.push("the message and all later ones leave the history");
  if (newIds.some((id) => !oldIds.includes(id))) effectTexts.push("queued at the tail");
  if (removed.length > 1) effectTexts.push("queue emptied");
  if (removed.length === 0 && oldIds.length > 1 && newIds[0] === oldIds.at(-1)) effectTexts.push("moved to the head");
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
  for (const effect of effects) effectTexts.push(effect.do === "generate" ? "turn begins" : "turn is stopped");
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
