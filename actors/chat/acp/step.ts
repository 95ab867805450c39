// One step of a coding agent's turn: its text and calls since the last commit. Becomes messages of the chat, and is published live to the
// chat's followers.
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
import { toAssistantMessage } from "../turn/ending.ts";

type StepCall = {
  call: AgentToolCall;
  /** The call's part in the message; undefined if an earlier message has it, or until the call is described. */
  part: MessagePart | undefined;
  /** Whether a message in the history already has the call. */
  readonly isStored: boolean;
  /** The tool's name in the history, if the call is stored. */
  readonly tool_name: string | undefined;
  /** The call as Slipway runs it, if it is one of Slipway's tools. */
  readonly serverCall: ChatTool | undefined;
  answer: ToolAnswer | undefined;
  /** Why the call was refused. */
  refusal: string | undefined;
  /** The output that followers already have. */
  pushedOutput: string;
  ended_at: number | undefined;
};

type Push = (part: MessagePart, role: "assistant" | "tool") => void;

/** Maximum characters of a step's text and calls: half of a message's limit, because the collector also counts the events' overhead. */
const MAX_STEP_CHARACTERS = MAX_MESSAGE_CHARACTERS / 2;

/**
 * What to do with unfinished calls when the step is stored: store the call that a person is asked about, answer all with an error, or carry
 * them into the next step.
 */
export type UnfinishedCalls = { readonly asked: string } | { readonly error: string } | "carried";

export class AgentStep {
  readonly #mask: SecretMask;
  readonly #push: Push;
  readonly #readTerminal: (id: string) => string | undefined;
  readonly #getShell: () => AgentShell | undefined;
  readonly #collector = new Collector();
  readonly #calls = new Map<string, StepCall>();
  /** IDs of the calls that a person is asked about. */
  readonly #askedIds = new Set<string>();
  /** Number of calls without a result. */
  #openCalls = 0;
  /** The text or reasoning in progress. Its stream holds back text that may be the beginning of a secret. */
  #openText: { readonly type: "text" | "reasoning"; readonly stream: MaskedStream } | undefined;
  #usage: Usage | null = null;
  /** Characters of the text, of all calls, and of each call by its ID. */
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

  /** Adds a call of the history that still needs a result. With `refusal`, which says why the call was refused, this is its result. */
  addStoredCall({ tool_call_id, tool_name, args }: PendingCall, now: number, refusal?: string): void {
    const call = applyUpdate(undefined, { toolCallId: tool_call_id, rawInput: args });
    const stepCall = Object.assign(toNewCall(call), { isStored: true, tool_name, refusal });
    this.#calls.set(tool_call_id, stepCall);
    this.#openCalls += 1;
    if (refusal !== undefined) this.#end(stepCall, now);
  }

  /** Takes over the calls that were carried when the previous step was stored. */
  takeCarriedCalls(previous: AgentStep, now: number): void {
    for (const { call, isStored } of previous.#calls.values()) {
      if (previous.isUnfinished(call.id) && !isStored) this.#update({ toolCallId: call.id }, now, call);
    }
  }

  /** Returns whether the call was still running, rather than waiting for a person, when the step was stored. */
  isUnfinished(id: string): boolean {
    const stepCall = this.#calls.get(id);
    return stepCall !== undefined && stepCall.ended_at === undefined && !this.#askedIds.has(id);
  }

  /** Applies an update of the agent, unless it is about a finished call. `toChatCallId` returns the chat's ID for the agent's call. */
  applyUpdate(
    update: SessionUpdate,
    now: number,
    toChatCallId: (agent_id: string) => string,
    finishedCalls: ReadonlySet<string>,
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
        if (!finishedCalls.has(toolCallId)) this.#update(Object.assign({}, update, { toolCallId }), now);
        return;
      }
      case "plan": {
        const lines = update.entries.map(({ content, status }) => `- [${PLAN_MARKS[status] ?? " "}] ${content}`);
        const plan = lines.join("\n");
        this.#textSize += plan.length + EVENT_CHARACTERS;
        if (this.isTooLarge) return;
        this.#endText(now);
        const delta = `Plan:\n${this.#mask.text(plan)}\n`;
        this.#pushParts(this.#collector.add({ type: "reasoning", delta, ends: true }, now));
        return;
      }
      case "usage_update":
        this.#usage = { context_limit: update.size, input_tokens: update.used };
        return;
      default:
        // People do not see the agent's commands, titles and modes in the chat's history.
        return;
    }
  }

  /** Adds a call that needs permission. The chat shows it even if the agent has not described it. */
  addCall(update: ToolCallUpdate, now: number, serverCall?: ChatTool): void {
    this.#update(update, now, undefined, { serverCall });
  }

  /** Returns the resulting call without adding it to the step. */
  preview(update: ToolCallUpdate): AgentToolCall {
    return applyUpdate(this.#calls.get(update.toolCallId)?.call, update);
  }

  /** Refuses the call. The reason becomes its result, and the agent's later updates are ignored. */
  refuse(id: string, why: string, now: number): void {
    const stepCall = this.#calls.get(id);
    if (!stepCall || stepCall.ended_at !== undefined) return;
    stepCall.refusal = why;
    this.#end(stepCall, now);
  }

  /** Records the end of a write that Slipway made for the agent. The chat does not show a write that needed no permission. */
  endWrite(id: string, error: string | undefined, now: number): void {
    if (!this.#calls.has(id)) return;
    const output =
      error === undefined ? [] : [{ type: "content" as const, content: { type: "text" as const, text: error } }];
    const status = error === undefined ? "completed" : "failed";
    this.#update({ toolCallId: id, kind: "edit", status, content: output }, now);
  }

  /** Records the answer of a call that Slipway ran. Ignores a call that needed no permission: the chat shows the agent's own call instead. */
  recordAnswer(id: string, answer: ToolAnswer, now: number): void {
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
    return this.#calls.size > 0 && this.#openCalls === 0;
  }

  /** Whether the agent has written more than a step may contain. Further output is dropped. */
  get isTooLarge(): boolean {
    return this.#textSize + this.#callsSize > MAX_STEP_CHARACTERS;
  }

  get openCalls(): number {
    return this.#openCalls;
  }

  /** Returns whether the call has a result. */
  isOver(id: string): boolean {
    return this.#calls.get(id)?.ended_at !== undefined;
  }

  /** IDs of the calls that have results. */
  get endedCallIds(): readonly string[] {
    return [...this.#calls.values()].flatMap(({ call, ended_at }) => (ended_at === undefined ? [] : [call.id]));
  }

  /** The calls that ran, as lifecycle hooks receive them. */
  get answered(): readonly AnsweredCall[] {
    return [...this.#calls.values()]
      .filter(({ ended_at, refusal }) => ended_at !== undefined && refusal === undefined)
      .map((stepCall) => ({ call: toCallRef(stepCall), ...this.#toCallResult(stepCall) }));
  }

  /** Returns the step as messages: the text with its calls, then the results. */
  toMessages(now: number, unfinished: UnfinishedCalls): NewMessage[] {
    if (unfinished !== "carried" && "asked" in unfinished) this.#askedIds.add(unfinished.asked);
    const error = unfinished !== "carried" && "error" in unfinished ? unfinished.error : undefined;
    this.#endText(now);
    const calls = [...this.#calls.values()];
    if (error !== undefined) for (const stepCall of calls) this.#show(stepCall, now);
    const carriedIds = new Set(
      error === undefined ? [...this.#calls.keys()].filter((id) => this.isUnfinished(id)) : [],
    );
    const content = this.#collector
      .content(now)
      .filter(({ type, tool_call_id = "" }) => type !== "tool-call" || !carriedIds.has(tool_call_id));
    const results = calls.flatMap((stepCall) => {
      const { ended_at } = stepCall;
      const ref = toCallRef(stepCall);
      if (ended_at !== undefined) return [toolMessage({ ...ref, ...this.#toCallResult(stepCall), now: ended_at })];
      if (error === undefined) return [];
      return [toolMessage({ ...ref, result: this.#toPartialResult(stepCall, error), is_error: true, now })];
    });
    return [...(content.length === 0 ? [] : [toAssistantMessage(content, this.#usage, null)]), ...results];
  }

  /** Adds or updates a call. `carried`: the call's state in the previous step. `requested`: the agent asks for permission for the call. */
  #update(
    update: ToolCallUpdate,
    now: number,
    carried?: AgentToolCall,
    requested?: { readonly serverCall: ChatTool | undefined },
  ): void {
    const id = update.toolCallId;
    const known = this.#calls.get(id);
    const call = this.#limitSize(applyUpdate(known?.call ?? carried, update));
    const stepCall = known ?? toNewCall(call, requested?.serverCall);
    stepCall.call = call;
    if (!known) this.#openCalls += 1;
    this.#calls.set(id, stepCall);
    if (stepCall.ended_at !== undefined) return;
    if (requested || isDescribed(call)) this.#show(stepCall, now);
    this.#showOutput(stepCall);
    if (isOver(call)) this.#end(stepCall, now);
  }

  /** Counts the call's characters. Returns the call without its content if the step is too large with it. */
  #limitSize(call: AgentToolCall): AgentToolCall {
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

  /** Sends the call's new output to followers. Output that does not continue the earlier one replaces it. */
  #showOutput(stepCall: StepCall): void {
    const ref = toCallRef(stepCall);
    const output = this.#getOutput(stepCall.call, true);
    if (output === stepCall.pushedOutput || isOver(stepCall.call)) return;
    const isContinued = output.startsWith(stepCall.pushedOutput);
    if (!isContinued) this.#push({ type: "tool-result", ...ref, result_reset: true }, "tool");
    const result_delta = isContinued ? output.slice(stepCall.pushedOutput.length) : output;
    stepCall.pushedOutput = output;
    this.#push({ type: "tool-result", ...ref, result_delta }, "tool");
  }

  #end(stepCall: StepCall, now: number): void {
    this.#show(stepCall, now);
    stepCall.ended_at = now;
    this.#openCalls -= 1;
    const { result, is_error } = this.#toCallResult(stepCall);
    const part = { type: "tool-result" as const, ...toCallRef(stepCall), result, is_error, created_at: toRfc3339(now) };
    this.#push(part, "tool");
  }

  #toCallResult(stepCall: StepCall): { readonly result: unknown; readonly is_error: boolean } {
    if (stepCall.refusal !== undefined) return { result: { error: stepCall.refusal }, is_error: true };
    if (stepCall.answer !== undefined) return { ...stepCall.answer, result: this.#mask.result(stepCall.answer.result) };
    return toResult(stepCall.call, this.#getOutput(stepCall.call));
  }

  #toPartialResult(stepCall: StepCall, error: string): Record<string, unknown> {
    const output = this.#getOutput(stepCall.call, true);
    return output === "" ? { error } : { output, error };
  }

  /** Returns the masked output. With `isOpen`, more output may follow, so an end that may be the beginning of a secret is left out. */
  #getOutput(call: AgentToolCall, isOpen = false): string {
    const output = readOutput(call, this.#readTerminal);
    const masked = isOpen ? this.#mask.maskPartial(output) : this.#mask.text(output);
    return truncateMiddle(masked, MAX_OUTPUT_BYTES).text;
  }

  #toTool({ serverCall, call }: StepCall) {
    const { tool_name, args } = serverCall ?? toChatTool(call, this.#getShell());
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

/** The checkbox of a plan's entry, by status. */
const PLAN_MARKS: Readonly<Record<string, string>> = { completed: "x", in_progress: "~" };

const toNewCall = (call: AgentToolCall, serverCall?: ChatTool): StepCall => ({
  call,
  part: undefined,
  isStored: false,
  tool_name: undefined,
  serverCall,
  answer: undefined,
  refusal: undefined,
  pushedOutput: "",
  ended_at: undefined,
});

const toToolName = ({ part, tool_name, call }: StepCall): string =>
  tool_name ?? part?.tool_name ?? toChatTool(call).tool_name;
const toCallRef = (stepCall: StepCall) => ({ tool_call_id: stepCall.call.id, tool_name: toToolName(stepCall) });
