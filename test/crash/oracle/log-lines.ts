// Compares a server's log lines with the lines that writers have sent (RELIABILITY section 4, points 1 to 4): every acknowledged line
// exists once and in order, a batch with an unknown result exists completely or not at all, IDs ascend and are never reused.
import type { AgentLog } from "#schema/agents/agent-log.ts";
import type { Client } from "#src/client.ts";
import { read } from "./calls.ts";
import type { LogWriter } from "./log-writer.ts";

/** Returns all stored lines of an agent, page by page. */
export const listStoredLines = async (reader: Client, agent_id: string, after = 0): Promise<AgentLog[]> => {
  const logs: AgentLog[] = [];
  for (;;) {
    const cursor = logs.at(-1)?.id ?? after;
    const page = await read<AgentLog[]>(reader, `/api/v2/workspaceagents/${agent_id}/logs?after=${cursor}`);
    if (page.length === 0) return logs;
    for (const line of page) logs.push(line);
  }
};

export class LineOracle {
  /** The name of the writer whose line has this ID, over the whole run. */
  readonly #owners = new Map<number, string>();
  readonly #shownIds = new Map<string, number[]>();
  lines = 0;

  /** Reads the new lines of each writer's agent and returns the problems. */
  async check(reader: Client, writers: readonly LogWriter[]): Promise<string[]> {
    const problems: string[] = [];
    for (const writer of writers) problems.push(...writer.problems, ...(await this.#checkWriter(reader, writer)));
    return problems;
  }

  /** Rechecks all lines from the first on: what was shown once must always be shown. */
  async checkWhole(reader: Client, writers: readonly LogWriter[]): Promise<string[]> {
    const problems = await this.check(reader, writers);
    for (const { options } of writers) {
      const ids = (await listStoredLines(reader, options.agent_id)).map(({ id }) => id);
      const idsBefore = this.#shownIds.get(options.agent_id) ?? [];
      if (idsBefore.some((id, i) => ids[i] !== id))
        problems.push(`${options.name}: lines that were shown have changed`);
    }
    return problems;
  }

  async #checkWriter(reader: Client, writer: LogWriter): Promise<string[]> {
    const { name, agent_id } = writer.options;
    const problems: string[] = [];
    const ids = this.#shownIds.get(agent_id) ?? [];
    this.#shownIds.set(agent_id, ids);
    const acknowledged = writer.acknowledged;
    const newLines = await listStoredLines(reader, agent_id, ids.at(-1));
    for (const { id, output, source_id } of newLines) {
      const sent = writer.sent[ids.length];
      if (sent?.output !== output || sent.source_id !== source_id) {
        problems.push(
          `${name}: line ${ids.length} is "${output.slice(0, 40)}", sent was "${sent?.output.slice(0, 40)}"`,
        );
        break;
      }
      if (id <= (ids.at(-1) ?? 0)) problems.push(`${name}: ID ${id} comes after ${ids.at(-1)}`);
      if (this.#owners.has(id)) problems.push(`ID ${id} belongs to ${name} and to ${this.#owners.get(id)}`);
      this.#owners.set(id, name);
      ids.push(id);
    }
    this.lines += newLines.length;
    if (ids.length < acknowledged)
      problems.push(`${name}: LOST, ${acknowledged} lines are acknowledged and ${ids.length} exist`);
    if (!writer.borders.has(ids.length)) problems.push(`${name}: a batch is incomplete, ${ids.length} lines`);
    return problems;
  }
}
