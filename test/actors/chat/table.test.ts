// The chat's state table in the code equals the one derived by hand from the rules.
import { expect, test } from "bun:test";
import type { Command } from "#actors/chat/machine/decision.ts";
import { commandTypes, sample, tableLines } from "#actors/chat/machine/print-table.ts";
import { TABLE, transition } from "#actors/chat/machine/state.ts";
import { STATE_NAMES } from "#actors/chat/names.ts";
import { AppError, STATUS } from "#base/errors.ts";
import type { BudgetPause } from "#schema/ai/budget.ts";

const EXPECTED_TABLE = `
W: send, queue -> R0 | send, interrupt -> R0 | edit -> R0 | request compaction -> R0 | clear -> W | finish error -> E0 | archive -> XW
E0: send, queue -> R0 | send, interrupt -> R0 | edit -> R0 | request compaction -> R0 | clear -> W | archive -> XE0
E1: send, queue -> R1 | send, interrupt -> R1 | edit -> R0 | delete queued -> E0 or E1 | promote queued -> R0 or R1 | request compaction -> R1 | archive -> XE1
R0: send, queue -> R1 | send, interrupt -> I1 | edit -> R0 | interrupt -> I0 | record attempt -> R0 | record retry -> R0 | commit step -> R0 | enter requires action -> A0 | finish turn -> W | finish error -> E0 | pause for budget -> A0
R1: send, queue -> R1 | send, interrupt -> I1 | edit -> R0 | delete queued -> R0 or R1 | promote queued -> I1 | interrupt -> I1 | record attempt -> R1 | record retry -> R1 | commit step -> R1 | enter requires action -> A1 | finish turn -> R0 or R1 | finish error -> E1 | pause for budget -> A1
I0: send, queue -> I1 | send, interrupt -> I1 | edit -> R0 | finish interruption -> W
I1: send, queue -> I1 | send, interrupt -> I1 | edit -> R0 | delete queued -> I0 or I1 | promote queued -> I1 | finish interruption -> R0 or R1
A0: send, queue -> A1 | send, interrupt -> R1 | edit -> R0 | interrupt -> R0 | complete requires action -> R0 | answer permissions -> R0 | budget raised -> R0 | cancel requires action -> R0
A1: send, queue -> A1 | send, interrupt -> R1 | edit -> R0 | delete queued -> A0 or A1 | promote queued -> R0 or R1 | interrupt -> R1 | complete requires action -> R1 | answer permissions -> R1 | budget raised -> R1 | cancel requires action -> R1
XW: unarchive -> W
XE0: unarchive -> E0
XE1: unarchive -> E1
invalid: reconcile invalid -> E0 or E1`;

test("[CH-1] the code follows the transition table from every state and for every command", () => {
  const transitions = STATE_NAMES.map((name) => {
    const lines = tableLines().filter(({ from }) => from === name);
    return `${name}: ${lines.map(({ trigger, to }) => `${trigger} -> ${to}`).join(" | ")}`;
  });
  expect(transitions).toEqual(EXPECTED_TABLE.trim().split("\n"));
});

const base = { now: 1, first_id: 1 };
const fence = { history_version: 8, generation_attempt: 1 };
const message = {
  role: "user",
  visibility: "both",
  content: [],
  created_by: "u",
  model_config_id: null,
  usage: null,
} as const;
const queuedMessage = { id: 1, content: [], created_by: "u", model_config_id: null, reasoning_effort: "" };
const error = { kind: "generic", message: "It failed.", retryable: false } as const;
const retry = {
  attempt: 1,
  delay_ms: 1,
  error: "",
  kind: "generic",
  provider: "",
  retrying_at: 1,
  status_code: null,
} as const;

const pause: BudgetPause = {
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

const COMMANDS: Command[] = [
  { ...base, type: "send", message: queuedMessage, behavior: "queue" },
  { ...base, type: "edit", from: 1, last_assistant_id: 0, message },
  { ...base, type: "delete_queued", queued_id: 1 },
  { ...base, type: "promote_queued", queued_id: 1 },
  { ...base, type: "request_compaction", request: { instructions: "", context: "", notice: "" }, is_empty: false },
  { ...base, type: "clear", rows: [message], is_empty: false },
  { ...base, type: "interrupt" },
  { ...base, type: "record_attempt", history_version: 8 },
  { ...base, type: "record_retry", fence, retry },
  { ...base, type: "commit_step", fence, messages: [message] },
  { ...base, type: "enter_requires_action", history_version: 8 },
  { ...base, type: "finish_turn", history_version: 8 },
  { ...base, type: "finish_error", fence, error },
  { ...base, type: "finish_interruption", history_version: 8, partial: [] },
  { ...base, type: "complete_requires_action", results: [] },
  { ...base, type: "answer_permissions", answers: [] },
  { ...base, type: "pause_for_budget", fence, pause, resets_at: 2 },
  { ...base, type: "budget_raised", budget_id: "budget" },
  { ...base, type: "cancel_requires_action" },
  { ...base, type: "archive" },
  { ...base, type: "unarchive" },
  { ...base, type: "reconcile_invalid" },
];
const REPORTS = /^(record|commit|enter|finish|cancel|pause|budget)_/;

const getExpectedStatus = (name: string, { type }: Command): number => {
  if (type === "reconcile_invalid" || name === "invalid") return 409;
  if (name.startsWith("X")) return type === "archive" ? 400 : 409;
  return type === "unarchive" ? 400 : 409;
};

test("[CH-2] refuses transitions that are not in the table and changes nothing; late reports are stale", () => {
  expect(COMMANDS.map(({ type }) => type).sort()).toEqual(commandTypes().sort());
  for (const name of STATE_NAMES) {
    for (const command of COMMANDS.filter(({ type }) => !(type in TABLE[name]))) {
      const state = sample(name, 1);
      const before = structuredClone(state);
      const decision = transition(state, command);
      expect(state).toEqual(before);
      if (REPORTS.test(command.type))
        expect([name, command.type, decision.kind]).toEqual([name, command.type, "stale"]);
      else {
        const refusal = decision.kind === "refused" ? decision.error : new AppError("internal", "was not refused");
        const status: number = STATUS[refusal.kind];
        expect([name, command.type, status] as unknown[]).toEqual([
          name,
          command.type,
          getExpectedStatus(name, command),
        ]);
      }
    }
  }
});

test("[CH-9] a report about another history version or attempt is stale", () => {
  const running = sample("R1", 2);
  for (const command of COMMANDS.filter(({ type }) => REPORTS.test(type) && type in TABLE.R1)) {
    const outdatedCommands =
      "fence" in command
        ? [
            { ...command, fence: { ...fence, generation_attempt: 0 } },
            { ...command, fence: { ...fence, history_version: 7 } },
          ]
        : [{ ...command, history_version: 7 } as Command];
    for (const outdated of outdatedCommands)
      expect([outdated.type, transition(running, outdated).kind]).toEqual([outdated.type, "stale"]);
    // The model is called only when no tool call is pending.
    const state = command.type === "pause_for_budget" ? { ...running, pending_calls: [] } : running;
    expect([command.type, transition(state, command).kind]).toEqual([command.type, "change"]);
  }
});
