// A chat that starts sub-chats. One scripted model answers for all of them; a call is selected by the first message of its chat.
import type { Chat } from "#schema/chats/chat.ts";
import { type ChatWorld, createChat } from "#test/support/chats.ts";
import type { ScriptedCall } from "#test/support/models/scripted-models.ts";
import type { Result } from "./world.ts";

const getFirstPrompt = ({ request }: ScriptedCall): string =>
  (request.messages.find(({ role }) => role === "user")?.content ?? []).map(({ text = "" }) => text).join("");

export class Family {
  readonly world: Pick<ChatWorld, "owner" | "organization_id" | "models">;
  readonly #name: string;
  readonly #waiting: ScriptedCall[] = [];

  /** `name` is the root chat's first message. It must be unique among the families on a server. */
  constructor(world: Pick<ChatWorld, "owner" | "organization_id" | "models">, name = "root") {
    this.world = world;
    this.#name = name;
  }

  /** Returns the next model call of the chat with this first message. Only one caller may wait at a time. */
  async call(firstPrompt: string): Promise<ScriptedCall> {
    for (;;) {
      const index = this.#waiting.findIndex((call) => getFirstPrompt(call) === firstPrompt);
      const [call] = index < 0 ? [] : this.#waiting.splice(index, 1);
      if (call) return call;
      this.#waiting.push(await this.world.models.next());
    }
  }

  /** Creates the root chat, and returns its first call. */
  async root(options: Record<string, unknown> = {}): Promise<{ id: string; call: ScriptedCall }> {
    const { id } = await createChat(this.world, this.#name, options);
    return { id, call: await this.call(this.#name) };
  }

  /** Makes the root call these tools in one step, and returns the results. */
  async step(call: ScriptedCall, ...calls: readonly (readonly [name: string, args?: unknown])[]) {
    this.startCalls(call, ...calls);
    return this.nextResults();
  }

  startCalls(call: ScriptedCall, ...calls: readonly (readonly [name: string, args?: unknown])[]): void {
    for (const [index, [name, args]] of calls.entries()) call.callTool(`call-${index}`, name, args ?? {});
    call.finish("tool_calls");
  }

  /** Returns the results of the root's calls, and its next call. */
  async nextResults(): Promise<{ results: Result[]; next: ScriptedCall }> {
    const next = await this.call(this.#name);
    const { messages } = next.request;
    const parts = messages
      .slice(messages.findLastIndex(({ role }) => role === "assistant") + 1)
      .flatMap(({ content }) => content);
    return { results: parts.map(({ result }) => result as Result), next };
  }

  /** Starts a sub-chat with this first message. Returns its ID and first call, and the root's next call. */
  async spawn(call: ScriptedCall, prompt: string, options: Record<string, unknown> = {}) {
    const { results, next } = await this.step(call, ["spawn_agent", { type: "general", prompt, ...options }]);
    return { id: String(results[0]?.chat_id), call: await this.call(prompt), next, result: results[0] };
  }

  read(id: string): Promise<Chat> {
    return this.world.owner.get<Chat>(`/api/v2/chats/${id}`);
  }
}

export const listToolNames = ({ request }: ScriptedCall): string[] => request.tools.map(({ name }) => name);

/** Returns the system prompt. */
export const getSystemPrompt = ({ request }: ScriptedCall): string =>
  request.messages
    .filter(({ role }) => role === "system")
    .flatMap(({ content }) => content.map(({ text = "" }) => text))
    .join("\n");
