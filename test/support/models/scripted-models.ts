// A language model controlled by the test: each call waits in `calls` until the test answers it.
import type { ModelCost } from "#schema/chats/model-price.ts";
import { type LanguageModels, ModelError, type ModelEvent, type ModelInfo, type ModelRequest } from "#src/llm/model.ts";

export const SCRIPTED: ModelInfo = {
  id: "00000000-0000-4000-8000-00000000005c",
  provider: "scripted",
  display_name: "Scripted model",
};

/** One call, as the model sees it. */
export class ScriptedCall {
  readonly request: ModelRequest;
  readonly #events: (ModelEvent | Error)[] = [];
  #wake: (() => void) | undefined;
  #ended = false;
  #hasSpoken = false;

  constructor(request: ModelRequest) {
    this.request = request;
  }

  /** The text of the last user message. */
  get prompt(): string {
    const lastUserMessage = this.request.messages.findLast(({ role }) => role === "user");
    return (lastUserMessage?.content ?? []).map(({ text = "" }) => text).join("");
  }

  push(...events: (ModelEvent | Error)[]): this {
    this.#hasSpoken ||= events.some((event) => !(event instanceof Error) && event.type !== "usage");
    this.#events.push(...events);
    this.#wake?.();
    return this;
  }

  say(...deltas: string[]): this {
    return this.push(...deltas.map((delta) => ({ type: "text", delta }) as const));
  }

  callTool(id: string, name: string, args: unknown = {}): this {
    return this.push({ type: "tool_call", id, name, args });
  }

  /** Ends the answer. If nothing was said, says "Done." first, because an empty answer would be retried. */
  finish(reason: "stop" | "tool_calls" | "content_filter" = "stop"): this {
    if (reason === "stop" && !this.#hasSpoken) this.say("Done.");
    return this.push({ type: "finish", reason }).end();
  }

  fail(kind: ModelError["kind"], options?: ConstructorParameters<typeof ModelError>[2]): this {
    return this.push(new ModelError(kind, "A scripted failure.", options));
  }

  /** Ends the stream, with or without a finish reason. */
  end(): this {
    this.#ended = true;
    this.#wake?.();
    return this;
  }

  async *stream(): AsyncIterable<ModelEvent> {
    for (;;) {
      const event = this.#events.shift();
      if (event instanceof Error) throw event;
      if (event) yield event;
      else if (this.#ended) return;
      else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }
}

export class ScriptedModels implements LanguageModels {
  /** True if titles and summaries are also requested. */
  readonly #hasSide: boolean;
  /** All calls so far. */
  readonly calls: ScriptedCall[] = [];
  /** The price of the model; undefined if unknown. */
  cost: ModelCost | undefined;
  #takenCount = 0;
  #wake: (() => void) | undefined;

  constructor(hasSide = false) {
    this.#hasSide = hasSide;
  }

  resolveSideModel(): ModelInfo | undefined {
    return this.#hasSide ? SCRIPTED : undefined;
  }

  resolve(id: string | null): ModelInfo | undefined {
    return id === null || id === SCRIPTED.id ? SCRIPTED : undefined;
  }

  findModelPrice(): ModelCost | undefined {
    return this.cost;
  }

  stream(request: ModelRequest): AsyncIterable<ModelEvent> {
    const call = new ScriptedCall(request);
    this.calls.push(call);
    this.#wake?.();
    return call.stream();
  }

  /** Returns the next call that the test has not taken yet. */
  async next(): Promise<ScriptedCall> {
    while (this.#takenCount >= this.calls.length) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.calls[this.#takenCount++] as ScriptedCall;
  }
}
