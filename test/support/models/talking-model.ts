// A model for browser stories; the last message selects what it does. "Fix" edits a file and runs a command, "Count to n" says numbers one
// by one, "Count on" does so until it is interrupted, "Ask me" asks a question, "Plan it" writes and proposes a plan, "Be busy" is rejected
// twice before it is answered, "Send two" starts two sub-agents, "Paint it" opens a red window on the desktop that records typed text. All
// other messages get a fixed answer. Speaks OpenAI's protocol on a real socket.
import { type ModelCall, ModelServer } from "./model-server.ts";

type ChatMessage = { readonly role: string; readonly content?: unknown; readonly tool_calls?: readonly unknown[] };

/** Delay between two numbers, so that a person can follow them. */
const PACE_MS = 25;
const EDIT = { old_text: "$1 - $2", new_text: "$1 + $2" };
const COMMAND = 'echo "looking"; sh sum.sh 2 3';

export const BROKEN_SCRIPT = "echo $(($1 - $2))\n";

const PAINT = `xterm -geometry 200x60+0+0 -bg '#ff0000' -e 'read said; echo "$said" > typed' > /dev/null 2>&1 &`;
const MAX_REFUSALS = 2;
const HELPERS = ["Reads the tests", "Reads the code"];
const PLAN = "# Sort the shelf\n\n1. Take all of it down\n2. Put it back by **colour**\n";

const QUESTION = {
  header: "Color",
  question: "Which color should it be?",
  options: [
    { label: "Blue", description: "Like the sea." },
    { label: "Green", description: "Like the woods." },
  ],
};

const DONE = `The script subtracted instead of adding.

## What changed

- \`sum.sh\` now adds its two numbers
- for **2 and 3** it prints 5

\`\`\`sh
# adds two numbers
echo $(($1 + $2))
\`\`\`

| input | output |
|---|---|
| 2 and 3 | 5 |

Not HTML: <img src=x onerror="document.title='broken'"> and [a link](javascript:alert(1)).`;

/** Returns the last message. Consecutive messages arrive as one message, with a part or paragraph for each. */
const findLastText = (content: unknown): string => {
  const parts: readonly unknown[] = Array.isArray(content) ? content : [{ text: content }];
  const texts = parts.flatMap((part) => (part as { text?: unknown }).text ?? []);
  return (
    String(texts.at(-1) ?? "")
      .split("\n\n")
      .at(-1) ?? ""
  );
};

export class TalkingModel implements AsyncDisposable {
  readonly server: ModelServer;
  #refusalCount = 0;
  #callCount = 0;

  private constructor(server: ModelServer) {
    this.server = server;
    void server.answerAll((call) => void this.#answer(call));
  }

  static async start(): Promise<TalkingModel> {
    return new TalkingModel(await ModelServer.start());
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.server[Symbol.asyncDispose]();
  }

  async #answer(call: ModelCall): Promise<void> {
    const history = (call.body.messages ?? []) as ChatMessage[];
    const promptIndex = history.findLastIndex(({ role }) => role === "user");
    const prompt = findLastText(history[promptIndex]?.content);
    const step = history.slice(promptIndex + 1).filter(({ tool_calls }) => (tool_calls ?? []).length > 0).length;
    const count = prompt.includes("Count on") ? Infinity : Number(/Count to (\d+)/.exec(prompt)?.[1] ?? 0);
    // A summary request has no tools, and quotes earlier messages.
    if (!Array.isArray(call.body.tools)) this.#end(call.say({ text: "I will remember that." }));
    else if (prompt.includes("Fix")) this.#fix(call, step);
    else if (prompt.includes("Ask me") && step === 0) this.#tool(call, "ask_user_question", { questions: [QUESTION] });
    else if (prompt.includes("Paint it") && step === 0) this.#tool(call, "execute", { command: PAINT });
    else if (prompt.includes("Plan it")) this.#plan(call, step, JSON.stringify(history[0]?.content ?? ""));
    else if (prompt.includes("Be busy") && this.#refusalCount < MAX_REFUSALS) {
      this.#refusalCount += 1;
      call.answer(503, { error: { message: "Too many concurrent requests." } });
    } else if (prompt.includes("Send two") && step < HELPERS.length) {
      this.#tool(call, "spawn_agent", { type: "explore", title: HELPERS[step], prompt: "Count to 40" });
    } else if (count > 0) await this.#count(call, count);
    else this.#end(call.say({ text: "I will remember that." }));
  }

  #fix(call: ModelCall, step: number): void {
    const path = "work/sum.sh";
    if (step === 0) {
      call.say({ text: "Let me read the script first. " });
      this.#tool(call, "read_file", { path });
    } else if (step === 1) {
      call.say({ text: "It subtracts instead of adding. I'll fix that." });
      this.#tool(call, "edit_files", { files: [{ path, edits: [EDIT] }] });
    } else if (step === 2) {
      call.say({ text: "Now let me run it." });
      this.#tool(call, "execute", { command: COMMAND, workdir: "work", timeout: "60s" });
    } else this.#end(call.say({ text: DONE }));
  }

  /** Writes the plan to the file that the prompt names. */
  #plan(call: ModelCall, step: number, history: string): void {
    const path = /[^\s"'`]+\.md/.exec(history)?.[0] ?? "plan.md";
    if (step === 0) this.#tool(call, "write_file", { path, content: PLAN });
    else if (step === 1) this.#tool(call, "propose_plan", { path });
    else this.#end(call.say({ text: "It is done." }));
  }

  async #count(call: ModelCall, to: number): Promise<void> {
    let isGone = false;
    void call.gone.then(() => {
      isGone = true;
    });
    for (let n = 1; n <= to && !isGone; n++) {
      call.say({ text: `${n} ` });
      await Bun.sleep(PACE_MS);
    }
    if (!isGone) this.#end(call);
  }

  #tool(call: ModelCall, name: string, args: unknown): void {
    this.#callCount += 1;
    call
      .say(
        { call: { id: `call-${name}-${this.#callCount}`, name, args: JSON.stringify(args) } },
        { finish: "tool_calls" },
      )
      .end();
  }

  #end(call: ModelCall): void {
    call.say({ finish: "stop", usage: { input: 12_000, output: 400 } }).end();
  }
}
