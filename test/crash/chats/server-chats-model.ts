// A model provider on a real socket, with random behavior, for chats whose server dies: it answers, thinks, calls tools, breaks off,
// rejects calls, or hangs after a few words. It checks that no history contains a user message twice. Used by server-chats.ts.
import { type ModelCall, ModelServer } from "#test/support/models/model-server.ts";

/** Every message starts with a unique text in this form. */
export const MESSAGE = /<\w+-\d+>/g;

export class UnreliableProvider implements AsyncDisposable {
  readonly server: ModelServer;
  readonly problems: string[] = [];
  /** Number of answered calls by behavior. */
  readonly answered = new Map<string, number>();
  /** If set, every call succeeds. */
  isCalm = false;
  readonly #random: () => number;
  readonly #hanging = new Set<ModelCall>();

  private constructor(server: ModelServer, random: () => number) {
    this.server = server;
    this.#random = random;
    void server.answerAll((call) => {
      this.#check(call);
      void this.#answer(call);
    });
  }

  static async start(random: () => number): Promise<UnreliableProvider> {
    return new UnreliableProvider(await ModelServer.start(), random);
  }

  /** Ends hanging calls and answers successfully from now on. */
  calm(): void {
    this.isCalm = true;
    for (const call of this.#hanging) call.say({ finish: "stop" }).end();
    this.#hanging.clear();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.server[Symbol.asyncDispose]();
  }

  #randomBelow(n: number): number {
    return Math.floor(this.#random() * n);
  }

  #pickBehavior(): string {
    const dice = this.isCalm ? 99 : this.#randomBelow(100);
    if (dice < 3) return "overloaded";
    if (dice < 5) return "unauthorized";
    if (dice < 8) return "torn";
    if (dice < 10) return "unfinished";
    if (dice < 12) return "refusing";
    if (dice < 22) return "hanging";
    if (dice < 36) return "asking";
    if (dice < 40) return "confused";
    return "helpful";
  }

  async #answer(call: ModelCall): Promise<void> {
    const behavior = this.#pickBehavior();
    this.answered.set(behavior, (this.answered.get(behavior) ?? 0) + 1);
    if (behavior === "overloaded") return call.answer(503, { error: { message: "overloaded" } });
    if (behavior === "unauthorized") return call.answer(401, { error: { message: "who are you?" } });
    if (behavior === "refusing") return call.say({ finish: "content_filter" }).end();
    const wordCount = this.isCalm ? 1 : this.#randomBelow(12);
    for (let word = 0; word < wordCount; word++) {
      call.say(this.#randomBelow(6) === 0 ? { reasoning: `hm ${word} ` } : { text: `w${word} ` });
      if (this.#randomBelow(3) === 0) await Bun.sleep(this.#randomBelow(12));
    }
    if (behavior === "torn") return call.resetConnection();
    if (behavior === "unfinished") return call.end();
    if (behavior === "hanging" && !this.isCalm) return void this.#hanging.add(call);
    if (behavior === "asking" || behavior === "confused") {
      const name = behavior === "asking" ? "ask" : "unknown";
      for (let n = this.#randomBelow(2); n >= 0; n--) {
        call.say({ call: { id: crypto.randomUUID(), name, args: '{"what":"?"}' } });
      }
      return call.say({ finish: "tool_calls" }).end();
    }
    call.say({ text: "done." }, { finish: "stop" }).end();
  }

  #check({ body }: ModelCall): void {
    const messages = (body.messages ?? []) as { role: string; content: unknown }[];
    const users = messages.filter(({ role }) => role === "user");
    const prompts = users.flatMap(({ content }) => JSON.stringify(content).match(MESSAGE) ?? []);
    const duplicate = prompts.find((text, index) => prompts.indexOf(text) !== index);
    if (duplicate !== undefined) this.problems.push(`the model received ${duplicate} twice`);
  }
}
