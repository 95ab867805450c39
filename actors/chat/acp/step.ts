// One step of a coding agent's turn: its text and calls since the last commit, as messages of the chat and as message parts
// for the people who watch the chat live.
import { toRfc3339 } from "#base/clock.ts";
import type { MessagePart } from "#schema/chats/chat-part.ts";
import {
  type AgentShell,
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
  /** The tool that Slipway runs for the agent. */
  own: ChatTool | undefined;
  answer: ToolAnswer | undefined;
  /** Why the call was refused. */
  refusal: string | undefined;
  /** The output that was already sent to the people who watch the chat. */
  pushedOutput: string;
  ended_at: number | undefined;
};

type Push = (part: MessagePart, role: "assistant" | "tool") => void;

/** Maximum characters of a step's text and calls: half of a message's limit, because the collector also counts the events' overhead. */
const MAX_STEP_CHARACTERS = MAX_MESSAGE_CHARACTERS / 2;

/**
 * What to do with unfinished calls when the step is stored: keep the call that a person is asked about, answer all with an error, or carry
 * them into the next step.
 */
type UnfinishedCalls = { readonly asked: string } | { readonly error: string } | "carried";

export class AgentStep {
  readonly #mask: SecretMask;
  readonly #push: Push;
  readonly #readTerminal: (id: string) => string | undefined;
  readonly #getShell: () => AgentShell | undefined;
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
  /** `getShell` returns the agent's shell, once its session is open. */
  constructor(
    mask: SecretMask,
    push: Push,
    readTerminal: (id: string) => string | undefined,
    getShell: () => AgentShell | undefined,
  ) {
    this.#readTerminal = readTerminal;
    this.#getShell = getShell;
    this.#mask = mask;
    this.#push = push;
  }

  /** Adds a call of an earlier step that still needs a result; `refusal` is the reason for the refusal. */
  adopt({ tool_call_id, tool_name, args }: PendingCall, now: number, refusal?: string): void {
    const call = applyUpdate(undefined, { toolCallId: tool_call_id, rawInput: args });
    const noResult = { own: undefined, answer: undefined, refusal, pushedOutput: "", ended_at: undefined };
    const stepCall = { call, part: undefined, isStored: true, tool_name, ...noResult };
    this.#calls.set(tool_call_id, stepCall);
    this.#open += 1;
    if (refusal !== undefined) this.#end(stepCall, now);
  }

  /** Takes over the calls that were open when the previous step was stored, and are in none of its messages. */
  carry(before: AgentStep, now: number): void {
    for (const { call, ended_at, isStored } of before.#calls.values()) {
      const isCarried = ended_at === undefined && !isStored && !before.#asked.has(call.id);
      if (isCarried) this.#update({ toolCallId: call.id }, now, call);
    }
  }

  /** Returns whether the call was running when the step was stored. */
  isRunning(id: string): boolean {
    const stepCall = this.#calls.get(id);
    return stepCall !== undefined && stepCall.ended_at === undefined && !this.#asked.has(id);
  }

  /** Applies an update of the agent. `toChatCallId` returns the chat's ID for the agent's call. */
  applyUpdate(
    update: SessionUpdate,
    now: number,
    toChatCallId: (agent_id: string) => string,
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
        const toolCallId = toChatCallId(update.toolCallId);
        if (!done.has(toolCallId)) this.#update(Object.assign({}, update, { toolCallId }), now);
        return;
      }
      case "plan": {
        const text = update.entries.map(({ content, status }) => `- [${MARKS[status] ?? " "}] ${content}`).join("\n");
        this.#textSize += text.length + EVENT_CHARACTERS;
        if (this.isTooLarge) return;
        this.#endText(now);
        const delta = `Plan:\n${this.#mask.text(text)}\n`;
        this.#pushParts(this.#collector.add({ type: "reasoning", delta, ends: true }, now));
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

  /** Adds a call that the agent requests to the step, and returns it as the chat displays it. */
  addCall(update: ToolCallUpdate, now: number, own?: ChatTool): AgentToolCall {
    return this.#update(update, now, undefined, { own }).call;
  }

  /** Returns the resulting call without adding it to the step. */
  preview(update: ToolCallUpdate): AgentToolCall {
    return applyUpdate(this.#calls.get(update.toolCallId)?.call, update);
  }

  /** Refuses the call. The reason is its result, whatever the agent reports later. */
  refuse(id: string, why: string, now: number): void {
    const stepCall = this.#calls.get(id);
    if (!stepCall || stepCall.ended_at !== undefined) return;
    stepCall.refusal = why;
    this.#end(stepCall, now);
  }

  /** Records the end of a write through the client. A write that needed no permission is not shown in the chat. */
  endWrite(id: string, error: string | undefined, now: number): void {
    if (!this.#calls.has(id)) return;
    const output =
      error === undefined ? [] : [{ type: "content" as const, content: { type: "text" as const, text: error } }];
    const status = error === undefined ? "completed" : "failed";
    this.#update({ toolCallId: id, kind: "edit", status, content: output }, now);
  }

  /**
   * Records the answer of a call that Slipway ran. A call that needed no permission is not in the step: the chat shows the agent's tool call
   * instead.
   */
  ran(id: string, answer: ToolAnswer, now: number): void {
    const stepCall = this.#calls.get(id);
    if (!stepCall || stepCall.ended_at !== undefined) return;
    stepCall.answer = answer;
    this.#end(stepCall, now);
  }

  /** Updates the calls that show this terminal. */
  onTerminalOutput(terminal_id: string): void {
    for (const stepCall of this.#calls.values()) {
      const isShown = stepCall.call.content.some((one) => one.type === "terminal" && one.terminalId === terminal_id);
      const isOwn = stepCall.call.id === `terminal-${terminal_id}`;
      if (stepCall.ended_at === undefined && (isShown || isOwn)) this.#showOutput(stepCall);
    }
  }

  /** Whether the step has calls and all of them have ended, so that it can be stored. */
  get isComplete(): boolean {
    return this.#calls.size > 0 && this.#open === 0;
  }

  /** Whether the agent has written more than a step may contain. The excess is dropped. */
  get isTooLarge(): boolean {
    return this.#textSize + this.#callsSize > MAX_STEP_CHARACTERS;
  }

  get openCalls(): number {
    return this.#open;
  }

  /** Returns whether the call has a result. */
  isOver(id: string): boolean {
    return this.#calls.get(id)?.ended_at !== undefined;
  }

  /** IDs of the calls that have results. */
  get ended(): readonly string[] {
    return [...this.#calls.values()].flatMap(({ call, ended_at }) => (ended_at === undefined ? [] : [call.id]));
  }

  /** The finished calls, as lifecycle hooks receive them. */
  get answered(): readonly AnsweredCall[] {
    return [...this.#calls.values()].flatMap((stepCall) =>
      stepCall.ended_at === undefined || stepCall.refusal !== undefined
        ? []
        : [
            {
              call: { tool_call_id: stepCall.call.id, tool_name: toToolName(stepCall) },
              ...this.#toCallResult(stepCall),
            },
          ],
    );
  }

  /** Returns the step as messages: first the text, then the results. */
  messages(now: number, open: UnfinishedCalls): NewMessage[] {
    if (open !== "carried" && "asked" in open) this.#asked.add(open.asked);
    this.#endText(now);
    const calls = [...this.#calls.values()];
    const error = open !== "carried" && "error" in open ? open.error : undefined;
    if (error !== undefined) for (const stepCall of calls) this.#show(stepCall, now);
    const isKept = ({ call, ended_at }: StepCall): boolean =>
      ended_at !== undefined || error !== undefined || this.#asked.has(call.id);
    const unfinished = new Set(calls.flatMap((stepCall) => (isKept(stepCall) ? [] : [stepCall.call.id])));
    const content = this.#collector
      .content(now)
      .filter(({ type, tool_call_id = "" }) => type !== "tool-call" || !unfinished.has(tool_call_id));
    return [
      ...(content.length === 0 ? [] : [toAssistantMessage(content, this.#usage)]),
      ...calls.flatMap((stepCall) => {
        if (stepCall.ended_at !== undefined) return [this.#message(stepCall, stepCall.ended_at)];
        if (error === undefined) return [];
        return [
          toolMessage({ ...toCallRef(stepCall), result: this.#toPartialResult(stepCall, error), is_error: true, now }),
        ];
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
    const stepCall: StepCall = before ?? {
      call,
      part: undefined,
      isStored: false,
      tool_name: undefined,
      own: requested?.own,
      answer: undefined,
      refusal: undefined,
      pushedOutput: "",
      ended_at: undefined,
    };
    stepCall.call = call;
    if (!before) this.#open += 1;
    this.#calls.set(id, stepCall);
    if (stepCall.ended_at !== undefined) return stepCall;
    if (requested || isDescribed(call)) this.#show(stepCall, now);
    this.#showOutput(stepCall);
    if (isOver(call)) this.#end(stepCall, now);
    return stepCall;
  }

  /** Returns the call, or one without content if the step is too large with it. */
  #measure(call: AgentToolCall): AgentToolCall {
    const size = measureCall(call);
    this.#callsSize += size - (this.#callSizes.get(call.id) ?? 0);
    this.#callSizes.set(call.id, size);
    return this.isTooLarge ? { ...call, content: [], raw_input: undefined, raw_output: undefined } : call;
  }

  /** Adds the call to the message, or updates it with newer information. */
  #show(stepCall: StepCall, now: number): void {
    if (stepCall.isStored) return;
    const { tool_name, args } = this.#toTool(stepCall);
    if (stepCall.part?.tool_name === tool_name && Bun.deepEquals(stepCall.part.args, args)) return;
    if (stepCall.part) {
      Object.assign(stepCall.part, { tool_name, args });
      this.#push(stepCall.part, "assistant");
      return;
    }
    this.#endText(now);
    const shown = this.#collector.add({ type: "tool_call", id: stepCall.call.id, name: tool_name, args }, now);
    stepCall.part = shown.at(-1);
    this.#pushParts(shown);
  }

  #showOutput(stepCall: StepCall): void {
    const ids = { tool_call_id: stepCall.call.id, tool_name: toToolName(stepCall) };
    const output = this.#getOutput(stepCall.call, true);
    if (output === stepCall.pushedOutput || isOver(stepCall.call)) return;
    const isMore = output.startsWith(stepCall.pushedOutput);
    if (!isMore) this.#push({ type: "tool-result", ...ids, result_reset: true }, "tool");
    const result_delta = isMore ? output.slice(stepCall.pushedOutput.length) : output;
    stepCall.pushedOutput = output;
    this.#push({ type: "tool-result", ...ids, result_delta }, "tool");
  }

  #end(stepCall: StepCall, now: number): void {
    this.#show(stepCall, now);
    stepCall.ended_at = now;
    this.#open -= 1;
    const { result, is_error } = this.#toCallResult(stepCall);
    const part = { type: "tool-result" as const, ...toCallRef(stepCall), result, is_error, created_at: toRfc3339(now) };
    this.#push(part, "tool");
  }

  #message(stepCall: StepCall, now: number): NewMessage {
    return toolMessage({ ...toCallRef(stepCall), ...this.#toCallResult(stepCall), now });
  }

  #toCallResult(stepCall: StepCall): { readonly result: unknown; readonly is_error: boolean } {
    if (stepCall.refusal !== undefined) return { result: { error: stepCall.refusal }, is_error: true };
    if (stepCall.answer !== undefined) return { ...stepCall.answer, result: this.#mask.result(stepCall.answer.result) };
    const { result, is_error } = toResult(stepCall.call, this.#getOutput(stepCall.call));
    return { result, is_error };
  }

  #toPartialResult(stepCall: StepCall, error: string): Record<string, unknown> {
    const output = this.#getOutput(stepCall.call, true);
    return output === "" ? { error } : { output, error };
  }

  /** `isOpen`: more output may follow, so trailing text that could be the start of a secret is left out. */
  #getOutput(call: AgentToolCall, isOpen = false): string {
    const output = readOutput(call, this.#readTerminal);
    const masked = isOpen ? this.#mask.maskPartial(output) : this.#mask.text(output);
    return truncateMiddle(masked, MAX_OUTPUT_BYTES).text;
  }

  #toTool({ own, call }: StepCall) {
    const { tool_name, args } = own ?? toChatTool(call, this.#getShell());
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
    if (delta !== "") this.#pushParts(this.#collector.add({ type, delta }, now));
  }

  #pushParts(parts: readonly MessagePart[]): void {
    for (const part of parts) this.#push(part, "assistant");
  }
}

const MARKS: Readonly<Record<string, string>> = { completed: "x", in_progress: "~" };

const toToolName = ({ part, tool_name, call }: StepCall): string =>
  tool_name ?? part?.tool_name ?? toChatTool(call).tool_name;
const toCallRef = (stepCall: StepCall) => ({ tool_call_id: stepCall.call.id, tool_name: toToolName(stepCall) });

const toAssistantMessage = (content: readonly MessagePart[], usage: Usage | null): NewMessage => ({
  role: "assistant",
  visibility: "both",
  content,
  created_by: null,
  model_config_id: null,
  usage,
});
