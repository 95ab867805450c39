// The lifecycle hooks of one turn: asks at each event and returns the resulting rows. Runs outside of the mailbox; the turn stores the rows
// in the commit they belong to. Throws `HookFailure`, or the reason of the turn's signal after the turn was stopped.
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

/** Maximum results about which the hook is asked concurrently. */
export const MAX_CONCURRENT_RESULTS = 8;

type Deps = { readonly hooks: Hooks; readonly clock: Clock };
type HookedAttempt = Pick<StartedAttempt, "about" | "family">;

/** A step after the hook has decided about its calls. */
export type ProposedStep = {
  readonly content: readonly MessagePart[];
  /** Results of calls that are not run. */
  readonly refused: readonly NewMessage[];
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
  #hasBegun = false;

  constructor(deps: Deps, chat_id: string, signal: AbortSignal) {
    this.#deps = deps;
    this.#chat_id = chat_id;
    this.#signal = signal;
  }

  /** Runs once in a turn, before its first model call. */
  async onSessionStart(attempt: HookedAttempt, history: readonly HistoryRow[]): Promise<NewMessage[]> {
    if (this.#hasBegun) return [];
    this.#hasBegun = true;
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
    const { about: properties, family: ancestry } = attempt;
    const { owner_id, workspace_id } = properties;
    const chat = { id: this.#chat_id, owner_id, workspace_id, ...ancestry };
    const meta = { ...toHookMeta(chat), turn_id: this.#turn_id };
    return this.#deps.hooks.decide({ event, meta, data, ...options }, this.#signal);
  }

  /** Asks about each call in order. `inputs`: the model's raw arguments by call ID. */
  async propose(
    attempt: HookedAttempt & Pick<StartedAttempt, "tools">,
    content: readonly MessagePart[],
    inputs: ReadonlyMap<string, string>,
  ): Promise<ProposedStep> {
    const { hooks, clock } = this.#deps;
    if (hooks.isOff) return { content, refused: [], rows: [] };
    const proposed = { content: [] as MessagePart[], refused: [] as NewMessage[], rows: [] as NewMessage[] };
    for (const part of content) {
      const schema = findSchema(attempt.tools, part);
      const { tool_call_id = "", tool_name = "", args } = part;
      const input =
        schema === undefined ? undefined : toProposedInput(tool_name, schema, { args, raw: inputs.get(tool_call_id) });
      if (!input || ("refusal" in input && !hooks.isEnforced)) {
        proposed.content.push(part);
        continue;
      }
      if ("refusal" in input) {
        proposed.content.push(part);
        proposed.refused.push(toRefusal(part, input.refusal, clock.now()));
        continue;
      }
      const answer = await this.ask(
        attempt,
        "pre_tool_use",
        { tool_use_id: tool_call_id, tool_name },
        {
          tool_input: input.tool_input,
          accepts: (override) => isUnambiguousOverride(tool_name, schema, override),
        },
      );
      const { permission } = answer;
      const override = permission?.decision === "allow" ? permission.input_override : undefined;
      proposed.content.push(override ? toRewrittenCall(part, override) : part);
      if (permission?.decision === "deny") {
        proposed.refused.push(toRefusal(part, answer.denial ?? formatDenial(permission.reason ?? ""), clock.now()));
      }
      proposed.rows.push(...toEffectRows(answer));
    }
    return proposed;
  }

  /** Asks about finished calls, a few at a time. The rows keep the order of the calls. */
  async onAnswered(attempt: HookedAttempt, answers: readonly AnsweredCall[]): Promise<NewMessage[]> {
    const ask = (answer: AnsweredCall): Promise<NewMessage[]> =>
      this.askForRows(attempt, "post_tool_use", toAnswerData(answer));
    const rows = await mapConcurrently(MAX_CONCURRENT_RESULTS, answers, ask);
    return rows.flat();
  }
}

/** Returns `startup` before a model's first answer, `clear` before the first answer since the chat was cleared, otherwise `resume`. */
const toSource = (history: readonly HistoryRow[]): "startup" | "resume" | "clear" => {
  if (history.some((row) => row.role === "assistant" || (row.replayed !== null && !isClearing(row)))) return "resume";
  return history.some(isClearing) ? "clear" : "startup";
};

/** Returns the data about a finished call that a hook receives. */
export const toAnswerData = ({ call: { tool_call_id, tool_name }, result, is_error }: AnsweredCall) => ({
  tool_use_id: tool_call_id,
  tool_name,
  ...(is_error ? { tool_error: result } : { tool_response: result }),
});
