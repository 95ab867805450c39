// A chat that starts sub-chats, for tests: one scripted model speaks for all of them, and anyone who asks names the chat by its first message.
import type { Chat } from "#schema/chats/chat.ts";
import { type ChatWorld, createChat } from "#test/support/chats.ts";
import type { ScriptedCall } from "#test/support/models/scripted-models.ts";
import type { Result } from "./world.ts";

const openingOf = ({ request }: ScriptedCall): string =>
  (request.messages.find(({ role }) => role === "user")?.content ?? []).map(({ text = "" }) => text).join("");

export class Family {
  readonly world: Pick<ChatWorld, "owner" | "organization_id" | "models">;
  readonly #name: string;
  readonly #waiting: ScriptedCall[] = [];

  /** `name` is what the root begins with: families of one server must not share their openings. */
  constructor(world: Pick<ChatWorld, "owner" | "organization_id" | "models">, name = "root") {
    this.world = world;
    this.#name = name;
  }

  /** The next call of the model for the chat that began with these words. One at a time. */
  async call(opening: string): Promise<ScriptedCall> {
    for (;;) {
      const at = this.#waiting.findIndex((one) => openingOf(one) === opening);
      const [found] = at < 0 ? [] : this.#waiting.splice(at, 1);
      if (found) return found;
      this.#waiting.push(await this.world.models.next());
    }
  }

  /** The root chat, and its first call. */
  async root(more: Record<string, unknown> = {}): Promise<{ id: string; call: ScriptedCall }> {
    const { id } = await createChat(this.world, this.#name, more);
    return { id, call: await this.call(this.#name) };
  }

  /** Lets the root call these tools in one step, and answers what it is told next. */
  async step(call: ScriptedCall, ...calls: readonly (readonly [name: string, args?: unknown])[]) {
    this.begin(call, ...calls);
    return this.answers();
  }

  begin(call: ScriptedCall, ...calls: readonly (readonly [name: string, args?: unknown])[]): void {
    for (const [index, [name, args]] of calls.entries()) call.callTool(`call-${index}`, name, args ?? {});
    call.finish("tool_calls");
  }

  /** What the root's calls have come to, and its next call. */
  async answers(): Promise<{ results: Result[]; next: ScriptedCall }> {
    const next = await this.call(this.#name);
    const { messages } = next.request;
    const parts = messages
      .slice(messages.findLastIndex(({ role }) => role === "assistant") + 1)
      .flatMap(({ content }) => content);
    return { results: parts.map(({ result }) => result as Result), next };
  }

  /** Starts a sub-chat that begins with these words; its id, its first call, and the root's next one. */
  async spawn(call: ScriptedCall, prompt: string, more: Record<string, unknown> = {}) {
    const { results, next } = await this.step(call, ["spawn_agent", { type: "general", prompt, ...more }]);
    return { id: String(results[0]?.chat_id), call: await this.call(prompt), next, result: results[0] };
  }

  read(id: string): Promise<Chat> {
    return this.world.owner.get<Chat>(`/api/v2/chats/${id}`);
  }
}

export const namesOf = ({ request }: ScriptedCall): string[] => request.tools.map(({ name }) => name);

/** What the model was told before the history. */
export const systemOf = ({ request }: ScriptedCall): string =>
  request.messages
    .filter(({ role }) => role === "system")
    .flatMap(({ content }) => content.map(({ text = "" }) => text))
    .join("\n");
