// The scenario that every genuine coding agent goes through, in any workspace: it edits a repository after a person's approval, is
// interrupted during an answer, and continues the conversation after it was killed. At the end, its work is undone.
import { expect } from "bun:test";
import type { Chat, ChatMessage, EditedMessage, MessagePage } from "#schema/chats/chat.ts";
import type { Client } from "#src/client.ts";
import { Follower, sendMessage, toTextContent } from "../chats.ts";
import { until } from "../until.ts";
import { findAgentProcesses, killAgents, listPendingCalls } from "./agent-world.ts";
import { type AgentUpstream, FILE_CONTENT, FINAL_TEXT, PARTIAL_TEXT } from "./upstream.ts";

export type StoryWorld = {
  /** The owner of the chat. */
  readonly owner: Client;
  readonly organization_id: string;
  readonly workspace_id: string;
  readonly upstream: AgentUpstream;
  /** A repository in the workspace: its path, the content of a file (undefined if missing), and the output of `git status`. */
  readonly repository: string;
  readonly read: (path: string) => Promise<string | undefined>;
  readonly status: () => Promise<string>;
};

/** Agents start slowly on a loaded machine. */
const SLOW_START = { timeoutMs: 240_000 };

export class AgentStory {
  readonly #world: StoryWorld;
  readonly #name: string;
  readonly id: string;
  readonly file: string;

  private constructor(world: StoryWorld, name: string, { id, file }: { readonly id: string; readonly file: string }) {
    this.#world = world;
    this.#name = name;
    this.id = id;
    this.file = file;
  }

  /** Creates a chat with a request to write a file into the repository. */
  static async start(world: StoryWorld, name: string, fields: Record<string, unknown> = {}): Promise<AgentStory> {
    const { owner, organization_id, workspace_id, repository } = world;
    const file = `${repository}/proof-${name}.txt`;
    const permissions = { default: "ask_changes", rules: [] };
    const request = {
      organization_id,
      workspace_id,
      coding_agent: name,
      permissions,
      content: toTextContent(`Write ${file}`),
    };
    const { id } = await owner.post<Chat>("/api/v2/chats", Object.assign(request, fields));
    return new AgentStory(world, name, { id, file });
  }

  /** The agent asks for approval before it writes the file. */
  async edit(): Promise<void> {
    const { owner, read, status } = this.#world;
    await this.#awaitStatus("requires_action");
    expect(await read(this.file)).toBeUndefined();
    const [call] = await listPendingCalls(owner, this.id);
    expect(call?.tool_name).toMatch(/^(write_file|edit_files|execute)$/);
    const answers = [{ tool_call_id: call?.tool_call_id, decision: "allow" }];
    await owner.post<unknown>(`/api/v2/chats/${this.id}/permissions`, { answers });
    await this.#awaitStatus("waiting");
    expect(await read(this.file)).toBe(FILE_CONTENT);
    expect(await status()).toContain(`?? proof-${this.#name}.txt`);
    const results = (await this.messages())
      .flatMap(({ content }) => content)
      .filter(({ type }) => type === "tool-result");
    expect(results.map(({ is_error }) => is_error)).toEqual([false]);
    expect(await this.#readLastText()).toContain(FINAL_TEXT);
  }

  /** The model's partial answer is kept. */
  async interrupt(): Promise<void> {
    const { owner, upstream } = this.#world;
    using follower = await Follower.open(owner, this.id);
    await sendMessage({ owner }, this.id, `Hold on, ${this.#name}.`);
    await until(() => upstream.held.includes(this.#name), SLOW_START);
    await follower.until(({ preview }) => preview.includes(PARTIAL_TEXT));
    await owner.post<unknown>(`/api/v2/chats/${this.id}/interrupt`, {});
    await this.#awaitStatus("waiting");
    expect(await this.#readLastText()).toContain(PARTIAL_TEXT);
  }

  /** The agent's processes are killed; the next one knows the conversation. */
  async resume(): Promise<void> {
    const { owner, upstream } = this.#world;
    expect(findAgentProcesses(this.id).length).toBeGreaterThan(0);
    killAgents(this.id);
    await until(() => findAgentProcesses(this.id).length === 0);
    // Not every agent cancels the model call. If it does not, the call ends with its process.
    await until(() => !upstream.held.includes(this.#name));
    const messageCount = (await this.messages()).length;
    const callCount = upstream.bodies.length;
    await sendMessage({ owner }, this.id, "Answer me.");
    await until(async () => (await this.messages()).length >= messageCount + 2, SLOW_START);
    await this.#awaitStatus("waiting");
    expect(await this.#readLastText()).toContain(FINAL_TEXT);
    const bodies = upstream.bodies.slice(callCount).filter((body) => body.includes("Answer me"));
    expect(bodies.at(-1)).toContain(`Write ${this.file}`);
    // Replayed messages are already stored.
    expect(await this.messages()).toHaveLength(messageCount + 2);
  }

  /** The first message is edited, and the files are restored to their earlier state. */
  async undo(): Promise<void> {
    const { owner, read, status } = this.#world;
    const firstMessage = (await this.messages()).find(({ role }) => role === "user");
    const path = `/api/v2/chats/${this.id}/messages/${firstMessage?.id}`;
    const { warnings = [] } = await owner.patch<EditedMessage>(path, {
      content: toTextContent("Answer me."),
      restore_files: true,
    });
    expect(warnings).toEqual([]);
    expect(await read(this.file)).toBeUndefined();
    expect(await status()).not.toContain(this.#name);
    await until(async () => (await this.messages()).length === 2, SLOW_START);
    await this.#awaitStatus("waiting");
    expect(await this.#readLastText()).toContain(FINAL_TEXT);
  }

  async messages(): Promise<ChatMessage[]> {
    const { messages } = await this.#world.owner.get<MessagePage>(`/api/v2/chats/${this.id}/messages?limit=200`);
    return messages.filter(({ role }) => role !== "system").reverse();
  }

  async #readLastText(): Promise<string> {
    const content = (await this.messages()).at(-1)?.content ?? [];
    return content.flatMap(({ type, text }) => (type === "text" && text ? [text] : [])).join("");
  }

  async #awaitStatus(expected: string): Promise<void> {
    const hasStatus = async (): Promise<boolean> => {
      const { status, last_error } = await this.#world.owner.get<Chat>(`/api/v2/chats/${this.id}`);
      if (last_error) throw new Error(JSON.stringify(last_error));
      return status === expected;
    };
    await until(hasStatus, { ...SLOW_START, what: `${expected} of ${this.#name}` });
  }
}
