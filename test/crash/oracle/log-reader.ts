// A follower of an agent's lines that is disconnected again and again, resumes after the last line that it has seen, and must see exactly
// what is stored (RELIABILITY section 4, point 8).
import type { AgentLog } from "#schema/agents/agent-log.ts";
import type { Client, ClientSocket } from "#src/client.ts";
import { PAUSE_MS } from "./calls.ts";

export class LogReader {
  readonly lines: AgentLog[] = [];
  /** Number of connections made. */
  connections = 0;
  readonly #client: Client;
  readonly #agent_id: string;
  #socket: ClientSocket | undefined;
  #stopped = false;

  constructor(client: Client, agent_id: string) {
    this.#client = client;
    this.#agent_id = agent_id;
  }

  /** Follows until `stop`, reconnecting as often as needed. */
  async run(): Promise<void> {
    while (!this.#stopped) {
      try {
        await this.#follow();
      } catch {
        // The server is down, or the connection broke within a message.
      }
      if (!this.#stopped) await Bun.sleep(PAUSE_MS);
    }
  }

  /** Breaks the connection, as a network would. */
  drop(): void {
    this.#socket?.[Symbol.dispose]();
  }

  stop(): void {
    this.#stopped = true;
    this.drop();
  }

  /** Resolves when the follower has seen this many lines. */
  async waitForLines(count: number, timeoutMs = 30_000): Promise<void> {
    const deadline = performance.now() + timeoutMs;
    while (this.lines.length < count) {
      if (performance.now() > deadline) throw new Error(`a follower has seen ${this.lines.length} of ${count} lines`);
      await Bun.sleep(PAUSE_MS);
    }
  }

  async #follow(): Promise<void> {
    const after = this.lines.at(-1)?.id ?? 0;
    const path = `/api/v2/workspaceagents/${this.#agent_id}/logs?follow=true&after=${after}`;
    const socket = await this.#client.socket(path);
    this.#socket = socket;
    this.connections += 1;
    for await (const message of socket) {
      for (const line of JSON.parse(message as string) as AgentLog[]) this.lines.push(line);
    }
  }
}

/** Describes the first difference between a follower's lines and the stored lines. */
export const findDifferences = (followed: readonly AgentLog[], stored: readonly AgentLog[]): string[] => {
  for (let i = 0; i < Math.max(followed.length, stored.length); i++) {
    if (Bun.deepEquals(followed[i], stored[i])) continue;
    const formatLine = (line: AgentLog | undefined): string =>
      line ? `${line.id} "${line.output.slice(0, 30)}"` : "nothing";
    return [`line ${i}: a follower saw ${formatLine(followed[i])}, stored is ${formatLine(stored[i])}`];
  }
  return [];
};
