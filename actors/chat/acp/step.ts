// One step of a coding agent's turn: its text and calls since the last commit, as messages of the chat and as parts for followers.
import { toRfc3339 } from "#base/clock.ts";
import type { MessagePart } from "#schema/chats/chat-part.ts";
import {
  type AgentToolCall,
  applyUpdate,
  type ChatTool,
  isDescribed,
  isOver,
  measureCall,
  readOutput,
  toChatTool,
  toResult,
} from "#src/acp/calls.ts";
import type { SessionUpdate, ToolCallUpdate } from "#src/acp/connection.ts";
import { truncateMiddle } from "#src/tools/cut.ts";
import type { MaskedStream, SecretMask } from "#src/tools/mask.ts";
import { MAX_OUTPUT_BYTES } from "#src/tools/processes/processes.ts";
import type { ToolAnswer } from "#src/tools/run.ts";
import type { AnsweredCall } from "../hooks/turn-hooks.ts";
import type { NewMessage, PendingCall, Usage } from "../machine/decision.ts";
import { toolMessage } from "../machine/draft.ts";
import { Collector, EVENT_CHARACTERS, MAX_MESSAGE_CHARACTERS } from "../turn/collector.ts";

type StepCall = {
  call: AgentToolCall;
  /** The part in the message; undefined when the call is already in the history, or too little is known about it. */
  part: MessagePart | undefined;
  readonly isStored: boolean;
  readonly tool_name: string | undefined;
  /** The tool of ours that Slipway runs for the agent. */
  own: ChatTool | undefined;
  answer: ToolAnswer | undefined;
  /** Why the call was refused. */
  refusal: string | undefined;
  shown: string;
  over_at: number | undefined;
};

type Push = (part: MessagePart, role: "assistant" | "tool") => void;

/** Maximum characters of a step's text and calls, which the collector counts with their events. */
const MAX_STEP_CHARACTERS = MAX_MESSAGE_CHARACTERS / 2;

/** What to do with calls that are still open when the step is stored: carry them into the next step, or answer them with an error. */
type Open = { readonly asked: string } | { readonly error: string } | "carried";

export class AgentStep {
  readonly #mask: SecretMask;
  readonly #push: Push;
  readonly #readTerminal: (id: string) => string | undefined;
  readonly #collector = new Collector();
  readonly #calls = new Map<string, StepCall>();
  readonly #asked = new Set<string>();
  /** Number of calls without a result. */
  #open = 0;
  /** The text or reasoning in progress. The beginning of a possible secret is held back. */
  #openText: { readonly type: "text" | "reasoning"; readonly stream: MaskedStream } | undefined;
  #usage: Usage | null = null;
  /** Characters of the text so far, and of each call. */
  #textSize = 0;
  #callsSize = 0;
  readonly #callSizes = new Map<string, number>();

  /** `readTerminal` returns the output of one of the agent's terminals. */
  constructor(mask: SecretMask, push: Push, readTerminal: (id: string) => string | undefined) {
    this.#readTerminal = readTerminal;
    this.#mask = mask;
    this.#push = push;
  }

  /** Adds a call of an earlier step that still needs a result; `refusal` is the reason for the refusal. */
  adopt({ tool_call_id, tool_name, args }: PendingCall, now: number, refusal?: string): void {
    const call = applyUpdate(undefined, { toolCallId: tool_call_id, rawInput: args });
    const more = { own: undefined, answer: undefined, refusal, shown: "", over_at: undefined };
    const known = { call, part: undefined, isStored: true, tool_name, ...more };
    this.#calls.set(tool_call_id, known);
    this.#open += 1;
    if (refusal !== undefined) this.#end(known, now);
  }

  /** Takes over calls that were open, and in no message, when the previous step was stored. */
  carry(before: AgentStep, now: number): void {
    for (const { call, over_at, isStored } of before.#calls.values()) {
      const isLeft = over_at === undefined && !isStored && !before.#asked.has(call.id);
      if (isLeft) this.#update({ toolCallId: call.id }, now, call);
    }
  }

  /** Returns whether the call was running when the step was stored. */
  isRunning(id: string): boolean {
    const known = this.#calls.get(id);
    return known !== undefined && known.over_at === undefined && !this.#asked.has(id);
  }

  /** Applies an update of the agent. `nameOf` returns the chat's ID for the agent's call. */
  applyUpdate(
    update: SessionUpdate,
    now: number,
    nameOf: (agent_id: string) => string,
    done: ReadonlySet<string>,
  ): void {
    switch (update.sessionUpdate) {
      case "agent_message_chunk":
      case "agent_thought_chunk": {
        if (update.content.type !== "text") return;
        const type = update.sessionUpdate === "agent_message_chunk" ? "text" : "reasoning";
        this.#textSize += update.content.text.length + EVENT_CHARACTERS;
        if (!this.isTooLarge) this.#appendText(type, update.content.text, now);
        return;
      }
      case "tool_call":
      case "tool_call_update": {
        const toolCallId = nameOf(update.toolCallId);
        if (!done.has(toolCallId)) this.#update(Object.assign({}, update, { toolCallId }), now);
        return;
      }
      case "plan": {
        const text = update.entries.map(({ content, status }) => `- [${MARKS[status] ?? " "}] ${content}`).join("\n");
        this.#textSize += text.length + EVENT_CHARACTERS;
        if (this.isTooLarge) return;
        this.#endText(now);
        const delta = `Plan:\n${this.#mask.text(text)}\n`;
        this.#live(this.#collector.add({ type: "reasoning", delta, ends: true }, now));
        return;
      }
      case "usage_update":
        this.#usage = { context_limit: update.size, input_tokens: update.used };
        return;
      default:
        // Commands, titles and modes are internal to the agent.
        return;
    }
  }

  /** Returns the call in question as the chat displays it. */
  describe(update: ToolCallUpdate, now: number, own?: ChatTool): AgentToolCall {
    return this.#update(update, now, undefined, { own }).call;
  }

  /** Returns the resulting call without adding it to the step. */
  preview(update: ToolCallUpdate): AgentToolCall {
    return applyUpdate(this.#calls.get(update.toolCallId)?.call, update);
  }

  /** Refuses the call. The reason is its result, whatever the agent reports later. */
  refuse(id: string, why: string, now: number): void {
    const known = this.#calls.get(id);
    if (!known || known.over_at !== undefined) return;
    known.refusal = why;
    this.#end(known, now);
  }

  /** Records the end of a write through the client. A write without a question is not a call of the chat. */
  endWrite(id: string, error: string | undefined, now: number): void {
    if (!this.#calls.has(id)) return;
    const output =
      error === undefined ? [] : [{ type: "content" as const, content: { type: "text" as const, text: error } }];
    const status = error === undefined ? "completed" : "failed";
    this.#update({ toolCallId: id, kind: "edit", status, content: output }, now);
  }

  /** Records the answer of a call that Slipway ran. If it ran without a question, only the agent's own call is displayed. */
  ran(id: string, answer: ToolAnswer, now: number): void {
    const known = this.#calls.get(id);
    if (!known || known.over_at !== undefined) return;
    known.answer = answer;
    this.#end(known, now);
  }

  /** Updates the calls that show this terminal. */
  onTerminalOutput(terminal_id: string): void {
    for (const known of this.#calls.values()) {
      const isShown = known.call.content.some((one) => one.type === "terminal" && one.terminalId === terminal_id);
      const isOwn = known.call.id === `terminal-${terminal_id}`;
      if (known.over_at === undefined && (isShown || isOwn)) this.#showOutput(known);
    }
  }

  /** Whether calls have ended and none is open, so that the step can be stored. */
  get isComplete(): boolean {
    return this.#calls.size > 0 && this.#open === 0;
  }

  /** Whether the agent has written more than a step may contain. What exceeds it was left out. */
  get isTooLarge(): boolean {
    return this.#textSize + this.#callsSize > MAX_STEP_CHARACTERS;
  }

  get openCalls(): number {
    return this.#open;
  }

  /** Returns whether the call has a result. */
  isOver(id: string): boolean {
    return this.#calls.get(id)?.over_at !== undefined;
  }

  /** IDs of the calls that have results. */
  get ended(): readonly string[] {
    return [...this.#calls.values()].flatMap(({ call, over_at }) => (over_at === undefined ? [] : [call.id]));
  }

  /** The finished calls, as lifecycle hooks receive them. */
  get answered(): readonly AnsweredCall[] {
    return [...this.#calls.values()].flatMap((known) =>
      known.over_at === undefined || known.refusal !== undefined
        ? []
        : [{ call: { tool_call_id: known.call.id, tool_name: toToolName(known) }, ...this.#toCallResult(known) }],
    );
  }

  /** Returns the step as messages: first the text, then the results. */
  messages(now: number, open: Open): NewMessage[] {
    if (open !== "carried" && "asked" in open) this.#asked.add(open.asked);
    this.#endText(now);
    const calls = [...this.#calls.values()];
    const error = open !== "carried" && "error" in open ? open.error : undefined;
    if (error !== undefined) for (const known of calls) this.#show(known, now);
    const isKept = ({ call, over_at }: StepCall): boolean =>
      over_at !== undefined || error !== undefined || this.#asked.has(call.id);
    const left = new Set(calls.flatMap((known) => (isKept(known) ? [] : [known.call.id])));
    const content = this.#collector
      .content(now)
      .filter(({ type, tool_call_id = "" }) => type !== "tool-call" || !left.has(tool_call_id));
    return [
      ...(content.length === 0 ? [] : [toAssistantMessage(content, this.#usage)]),
      ...calls.flatMap((known) => {
        if (known.over_at !== undefined) return [this.#message(known, known.over_at)];
        if (error === undefined) return [];
        return [toolMessage({ ...toCallRef(known), result: this.#toPartialResult(known, error), is_error: true, now })];
      }),
    ];
  }

  #update(
    update: ToolCallUpdate,
    now: number,
    from?: AgentToolCall,
    requested?: { readonly own: ChatTool | undefined },
  ): StepCall {
    const id = update.toolCallId;
    const before = this.#calls.get(id);
    const call = this.#measure(applyUpdate(before?.call ?? from, update));
    const known: StepCall = before ?? {
      call,
      part: undefined,
      isStored: false,
      tool_name: undefined,
      own: requested?.own,
      answer: undefined,
      refusal: undefined,
      shown: "",
      over_at: undefined,
    };
    known.call = call;
    if (!before) this.#open += 1;
    this.#calls.set(id, known);
    if (known.over_at !== undefined) return known;
    if (requested || isDescribed(call)) this.#show(known, now);
    this.#showOutput(known);
    if (isOver(call)) this.#end(known, now);
    return known;
  }

  /** Returns the call, or one without content if the step is too large with it. */
  #measure(call: AgentToolCall): AgentToolCall {
    const size = measureCall(call);
    this.#callsSize += size - (this.#callSizes.get(call.id) ?? 0);
    this.#callSizes.set(call.id, size);
    return this.isTooLarge ? { ...call, content: [], raw_input: undefined, raw_output: undefined } : call;
  }

  /** Adds the call to the message, or updates it with newer information. */
  #show(known: StepCall, now: number): void {
    if (known.isStored) return;
    const { tool_name, args } = this.#toTool(known);
    if (known.part?.tool_name === tool_name && Bun.deepEquals(known.part.args, args)) return;
    if (known.part) {
      Object.assign(known.part, { tool_name, args });
      this.#push(known.part, "assistant");
      return;
    }
    this.#endText(now);
    const shown = this.#collector.add({ type: "tool_call", id: known.call.id, name: tool_name, args }, now);
    known.part = shown.at(-1);
    this.#live(shown);
  }

  #showOutput(known: StepCall): void {
    const ids = { tool_call_id: known.call.id, tool_name: toToolName(known) };
    const output = this.#getOutput(known.call, true);
    if (output === known.shown || isOver(known.call)) return;
    const isMore = output.startsWith(known.shown);
    if (!isMore) this.#push({ type: "tool-result", ...ids, result_reset: true }, "tool");
    const result_delta = isMore ? output.slice(known.shown.length) : output;
    known.shown = output;
    this.#push({ type: "tool-result", ...ids, result_delta }, "tool");
  }

  #end(known: StepCall, now: number): void {
    this.#show(known, now);
    known.over_at = now;
    this.#open -= 1;
    const { result, is_error } = this.#toCallResult(known);
    const part = { type: "tool-result" as const, ...toCallRef(known), result, is_error, created_at: toRfc3339(now) };
    this.#push(part, "tool");
  }

  #message(known: StepCall, now: number): NewMessage {
    return toolMessage({ ...toCallRef(known), ...this.#toCallResult(known), now });
  }

  #toCallResult(known: StepCall): { readonly result: unknown; readonly is_error: boolean } {
    if (known.refusal !== undefined) return { result: { error: known.refusal }, is_error: true };
    if (known.answer !== undefined) return { ...known.answer, result: this.#mask.result(known.answer.result) };
    const { result, is_error } = toResult(known.call, this.#getOutput(known.call));
    return { result, is_error };
  }

  #toPartialResult(known: StepCall, error: string): Record<string, unknown> {
    const output = this.#getOutput(known.call, true);
    return output === "" ? { error } : { output, error };
  }

  /** `isOpen`: more may follow, so the start of a secret at the end is left out. */
  #getOutput(call: AgentToolCall, isOpen = false): string {
    const output = readOutput(call, this.#readTerminal);
    const masked = isOpen ? this.#mask.open(output) : this.#mask.text(output);
    return truncateMiddle(masked, MAX_OUTPUT_BYTES).text;
  }

  #toTool({ own, call }: StepCall) {
    const { tool_name, args } = own ?? toChatTool(call);
    return { tool_name, args: this.#mask.result(args) };
  }

  #appendText(type: "text" | "reasoning", delta: string, now: number): void {
    if (this.#openText?.type !== type) {
      this.#endText(now);
      this.#openText = { type, stream: this.#mask.stream() };
    }
    this.#add(type, this.#openText.stream.push(delta), now);
  }

  #endText(now: number): void {
    const { type, stream } = this.#openText ?? {};
    this.#openText = undefined;
    if (type && stream) this.#add(type, stream.end(), now);
  }

  #add(type: "text" | "reasoning", delta: string, now: number): void {
    if (delta !== "") this.#live(this.#collector.add({ type, delta }, now));
  }

  #live(parts: readonly MessagePart[]): void {
    for (const part of parts) this.#push(part, "assistant");
  }
}

const MARKS: Readonly<Record<string, string>> = { completed: "x", in_progress: "~" };

const toToolName = ({ part, tool_name, call }: StepCall): string =>
  tool_name ?? part?.tool_name ?? toChatTool(call).tool_name;
const toCallRef = (known: StepCall) => ({ tool_call_id: known.call.id, tool_name: toToolName(known) });

const toAssistantMessage = (content: readonly MessagePart[], usage: Usage | null): NewMessage => ({
  role: "assistant",
  visibility: "both",
  content,
  created_by: null,
  model_config_id: null,
  usage,
});
