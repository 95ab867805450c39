// Normalizes the tool calls in a prompt: each has exactly one result, directly after its message, and an ID in the receiver's format that
// is unique in the request. A history gets the same IDs in every request, so that providers find it in their cache. Pure.
import type { LanguageModelV4Message } from "@ai-sdk/provider";
import { sha256 } from "#base/ids.ts";
import type { MessagesForm } from "./form.ts";

type Role<R extends LanguageModelV4Message["role"]> = Extract<LanguageModelV4Message, { role: R }>;
type Turn = Role<"user" | "assistant" | "tool">;
type CallPart = Extract<Role<"assistant">["content"][number], { type: "tool-call" }>;
type ResultPart = Extract<Role<"tool">["content"][number], { type: "tool-result" }>;

const LOST_RESULT: ResultPart["output"] = { type: "error-text", value: "There is no result of this call." };

/** Some servers refuse an empty message. */
const fillEmpty = (output: ResultPart["output"]): ResultPart["output"] =>
  (output.type === "text" || output.type === "error-text") && output.value.trim() === ""
    ? { ...output, value: "(no output)" }
    : output;

/** Returns the messages with calls and results paired. A result without a call is removed; a call without a result gets an error. */
export const pairCalls = (turns: readonly Turn[], form: MessagesForm): Turn[] => {
  const results = new Results(turns);
  const ids = new CallIds(form);
  return turns.flatMap((message, index): Turn[] => {
    if (message.role === "tool") return [];
    if (message.role === "user") return [message];
    const answers: ResultPart[] = [];
    const content = message.content.map((part) => {
      if (part.type !== "tool-call" || part.providerExecuted) return part;
      const toolName = form.getOfferedName(part.toolName);
      const toolCallId = ids.allocate(part, toolName);
      const output = fillEmpty(results.takeResult(part.toolCallId, index) ?? LOST_RESULT);
      answers.push({ type: "tool-result", toolCallId, toolName, output });
      return { ...part, toolCallId, toolName, input: toArgumentsObject(form.toOfferedArgs(part.toolName, part.input)) };
    });
    const answer: Turn[] = answers.length === 0 ? [] : [{ role: "tool", content: answers }];
    return [{ ...message, content }, ...answer];
  });
};

/** Every API requires an object here; models also write arrays and plain values. */
const toArgumentsObject = (value: unknown): unknown =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? value : { input: value ?? null };

/** The results of a prompt by call ID, in order. */
class Results {
  readonly #byId = new Map<string, { readonly index: number; readonly output: ResultPart["output"] }[]>();
  /** Positions of the calls with an ID: a result belongs to the last call before it. */
  readonly #calls = new Map<string, number[]>();

  constructor(turns: readonly Turn[]) {
    for (const [index, { role, content }] of turns.entries()) {
      for (const part of content) {
        if (role === "tool" && part.type === "tool-result")
          add(this.#byId, part.toolCallId, { index, output: part.output });
        if (role === "assistant" && part.type === "tool-call") add(this.#calls, part.toolCallId, index);
      }
    }
  }

  /** Takes the first unused result after the message at `index` and before the next message with a call of the same ID. */
  takeResult(id: string, index: number): ResultPart["output"] | undefined {
    const nextCallIndex = this.#calls.get(id)?.find((other) => other > index) ?? Number.POSITIVE_INFINITY;
    const all = this.#byId.get(id) ?? [];
    const found = all.findIndex((one) => one.index > index && one.index < nextCallIndex);
    return found < 0 ? undefined : all.splice(found, 1)[0]?.output;
  }
}

const add = <T>(map: Map<string, T[]>, key: string, value: T): void => {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
};

/** The IDs of one request. */
class CallIds {
  readonly #form: MessagesForm;
  readonly #used = new Set<string>();
  readonly #seen = new Map<string, number>();
  #position = 0;

  constructor(form: MessagesForm) {
    this.#form = form;
  }

  allocate({ toolCallId }: CallPart, name: string): string {
    const { callId, makeCallId } = this.#form.receiver;
    const seen = this.#seen.get(toolCallId) ?? 0;
    this.#seen.set(toolCallId, seen + 1);
    let id = toolCallId;
    for (let salt = 0; !callId.test(id) || this.#used.has(id); salt += 1) {
      const digest = sha256(`${toolCallId}\n${seen}\n${salt}`);
      id = makeCallId({ digest, position: this.#position + salt, name });
    }
    this.#used.add(id);
    this.#position += 1;
    return id;
  }
}
