// Models with random answers: text, reasoning, calls of known and unknown tools, every kind of failure, silence, and abnormal ends. They
// report histories that contain a user message twice. Used by random-run.ts.
import type { ChatErrorKind } from "#schema/chats/chat-error.ts";
import { type LanguageModels, ModelError, type ModelEvent, type ModelRequest } from "#src/llm/model.ts";
import { SCRIPTED } from "#test/support/models/scripted-models.ts";
import type { Random } from "./random.ts";

const TRANSIENT_ERRORS: readonly ChatErrorKind[] = ["overloaded", "rate_limit", "timeout"];
const PERMANENT_ERRORS: readonly ChatErrorKind[] = ["auth", "usage_limit", "config", "provider_disabled"];

export const nextTick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export class RandomModels implements LanguageModels {
  isCalm = false;
  calls = 0;
  readonly problems: string[] = [];
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  resolve(id: string | null) {
    return id === null || id === SCRIPTED.id ? SCRIPTED : undefined;
  }

  async *stream({ attempt, tools, messages, signal }: ModelRequest): AsyncIterable<ModelEvent> {
    this.calls += 1;
    this.#check(messages);
    const { below, pick } = this.#random;
    const outcome = this.isCalm ? 99 : below(100);
    for (let word = below(20); word > 0; word--) {
      if (below(3) === 0) await nextTick();
      yield { type: below(6) === 0 ? "reasoning" : "text", delta: `w${word} ` };
    }
    const retry_after_ms = below(2) * 3_000;
    if (outcome < 6) throw new ModelError(pick(TRANSIENT_ERRORS), "not now", { retry_after_ms });
    if (outcome < 12) throw new ModelError(pick(PERMANENT_ERRORS), "never");
    if (outcome < 14) throw new Error("the model is broken");
    if (outcome < 17 && attempt < 3) return;
    if (outcome < 19) return yield { type: "finish", reason: "content_filter" };
    if (outcome < 23) await new Promise((resolve) => signal.addEventListener("abort", resolve));
    if (outcome < 52 && tools.length > 0) {
      for (let remaining = below(3); remaining >= 0; remaining--) {
        yield { type: "tool_call", id: crypto.randomUUID(), name: pick(["ask", "ask", "unknown"]), args: {} };
      }
    }
    yield { type: "finish", reason: "stop" };
  }

  #check(messages: ModelRequest["messages"]): void {
    const texts = messages.filter(({ role }) => role === "user").map(({ content }) => content[0]?.text ?? "");
    if (new Set(texts).size < texts.length)
      this.problems.push(`a model received a message twice: ${texts.sort().join()}`);
  }
}
