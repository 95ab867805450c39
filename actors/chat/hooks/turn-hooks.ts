// Asks the lifecycle hooks about the events of one turn, and returns the rows that they add to the history. Runs outside of the mailbox; the
// turn stores the rows. Throws `HookFailure`, or the reason of the turn's signal once the turn was stopped.
import type { Clock } from "#base/clock.ts";
import { mapConcurrently } from "#base/concurrency-limit.ts";
import { uuid } from "#base/ids.ts";
import type { MessagePart } from "#schema/chats/chat-part.ts";
import type { Hooks } from "#src/hooks/hooks.ts";
import type { HookAnswer, HookEvent, HookRequest } from "#src/hooks/protocol.ts";
import type { NewMessage, PendingCall } from "../machine/decision.ts";
import type { StartedAttempt } from "../messages.ts";
import { type HistoryRow, isClearing } from "../prompt/compact.ts";
import { toEffectRows } from "./effects.ts";
import { toHookMeta } from "./prompts.ts";
import {
  findSchema,
  formatDenial,
  isUnambiguousOverride,
  toProposedInput,
  toRefusal,
  toRewrittenCall,
} from "./proposals.ts";

/** Maximum results about which hooks are asked at the same time. */
export const MAX_CONCURRENT_RESULTS = 8;

type Deps = { readonly hooks: Hooks; readonly clock: Clock };
type HookedAttempt = Pick<StartedAttempt, "chat" | "family">;

/** A step after the hook has decided about its calls. */
export type ProposedStep = {
  readonly content: readonly MessagePart[];
  /** Results of calls that must not run. */
  readonly refused: readonly NewMessage[];
  /** Rows that the hook adds to the history. */
  readonly rows: readonly NewMessage[];
};

/** A call that was run, and its result. */
export type AnsweredCall = {
  readonly call: Pick<PendingCall, "tool_call_id" | "tool_name">;
  readonly result: unknown;
  readonly is_error: boolean;
};

export class TurnHooks {
  readonly #deps: Deps;
  readonly #chat_id: string;
  readonly #signal: AbortSignal;
  readonly #turn_id = uuid();

  constructor(deps: Deps, chat_id: string, signal: AbortSignal) {
    this.#deps = deps;
    this.#chat_id = chat_id;
    this.#signal = signal;
  }

  onSessionStart(attempt: HookedAttempt, history: readonly HistoryRow[]): Promise<NewMessage[]> {
    return this.askForRows(attempt, "session_start", { source: toSource(history) });
  }

  /** Sends an event to the hooks and returns the rows that they add to the history. */
  async askForRows(attempt: HookedAttempt, event: HookEvent, data: HookRequest["data"] = {}): Promise<NewMessage[]> {
    return toEffectRows(await this.ask(attempt, event, data));
  }

  ask(
    attempt: HookedAttempt,
    event: HookEvent,
    data: HookRequest["data"] = {},
    options: Partial<HookRequest> = {},
  ): Promise<HookAnswer> {
    const { owner_id, workspace_id } = attempt.chat;
    const chat = { id: this.#chat_id, owner_id, workspace_id, ...attempt.family };
    const meta = { ...toHookMeta(chat), turn_id: this.#turn_id };
    return this.#deps.hooks.decide({ event, meta, data, ...options }, this.#signal);
  }

  /** Asks about each of the step's calls in order. `inputs`: the model's raw arguments by call ID. */
  async propose(
    attempt: HookedAttempt & Pick<StartedAttempt, "tools">,
    content: readonly MessagePart[],
    inputs: ReadonlyMap<string, string>,
  ): Promise<ProposedStep> {
    if (this.#deps.hooks.isOff) return { content, refused: [], rows: [] };
    const step = { content: [] as MessagePart[], refused: [] as NewMessage[], rows: [] as NewMessage[] };
    for (const part of content) {
      const { call, refusal, rows } = await this.#proposePart(attempt, part, inputs);
      step.content.push(call);
      if (refusal !== undefined) step.refused.push(toRefusal(part, refusal, this.#deps.clock.now()));
      step.rows.push(...rows);
    }
    return step;
  }

  /** Asks about a part of a step if it is a call. Returns the call with the hook's arguments, and why it must not run. */
  async #proposePart(
    attempt: HookedAttempt & Pick<StartedAttempt, "tools">,
    part: MessagePart,
    inputs: ReadonlyMap<string, string>,
  ): Promise<{ call: MessagePart; refusal?: string; rows: readonly NewMessage[] }> {
    const { tool_call_id = "", tool_name = "", args } = part;
    const schema = findSchema(attempt.tools, part);
    if (schema === undefined) return { call: part, rows: [] };
    const input = toProposedInput(tool_name, schema, { args, raw: inputs.get(tool_call_id) });
    if ("refusal" in input) return { call: part, rows: [], ...(this.#deps.hooks.isEnforced ? input : {}) };
    const data = { tool_use_id: tool_call_id, tool_name };
    const answer = await this.ask(attempt, "pre_tool_use", data, {
      tool_input: input.tool_input,
      accepts: (override) => isUnambiguousOverride(tool_name, schema, override),
    });
    const { permission } = answer;
    const rows = toEffectRows(answer);
    if (permission?.decision === "deny") {
      return { call: part, refusal: answer.denial ?? formatDenial(permission.reason ?? ""), rows };
    }
    const override = permission?.input_override;
    return { call: override ? toRewrittenCall(part, override) : part, rows };
  }

  /** Asks about calls that have run, a few at a time. The rows keep the order of the calls. */
  async onAnswered(attempt: HookedAttempt, answers: readonly AnsweredCall[]): Promise<NewMessage[]> {
    const ask = (answer: AnsweredCall): Promise<NewMessage[]> =>
      this.askForRows(attempt, "post_tool_use", toAnswerData(answer));
    const rows = await mapConcurrently(MAX_CONCURRENT_RESULTS, answers, ask);
    return rows.flat();
  }
}

/** Returns `resume` if the model has answered since the chat was created or cleared. */
const toSource = (history: readonly HistoryRow[]): "startup" | "resume" | "clear" => {
  if (history.some((row) => row.role === "assistant" || (row.replayed !== null && !isClearing(row)))) return "resume";
  return history.some(isClearing) ? "clear" : "startup";
};

/** Returns the data of a `post_tool_use` event. */
export const toAnswerData = ({ call: { tool_call_id, tool_name }, result, is_error }: AnsweredCall) => ({
  tool_use_id: tool_call_id,
  tool_name,
  ...(is_error ? { tool_error: result } : { tool_response: result }),
});
