// One person's workspaces with autostart. One of them is due each minute, and must start exactly once, no matter which node has its shard
// at that time.
import type { Client } from "#src/client.ts";
import { until } from "#test/support/until.ts";
import { call, read, retryUntilAnswered } from "../oracle/calls.ts";
import { makeWorkspace, waitForBuild } from "../server-world.ts";

const MINUTE_MS = 60_000;
/** Time between scheduling and the scheduled time. */
const AHEAD_MS = 10_000;
/** An autostart may be delayed by a node that takes over, and by the scheduler. */
const MAX_DELAY_MS = 30_000;

export class AutostartCheck {
  readonly #owner: Client;
  /** Workspace IDs in the order of their times. */
  readonly #ids: readonly string[];
  #firstStartAt = 0;
  /** Number of started workspaces. */
  startCount = 0;

  private constructor(owner: Client, ids: readonly string[]) {
    this.#owner = owner;
    this.#ids = ids;
  }

  /** Creates this many stopped workspaces. */
  static async make(owner: Client, template_id: string, count: number): Promise<AutostartCheck> {
    const ids: string[] = [];
    for (let n = 0; n < count; n++) {
      const { id } = await makeWorkspace(owner, `due-${n}`, template_id);
      const stop = await owner.post<{ id: string }>(`/api/v2/workspaces/${id}/builds`, { transition: "stop" });
      await waitForBuild(owner, stop.id);
      ids.push(id);
    }
    return new AutostartCheck(owner, ids);
  }

  /** Schedules the first workspace for the next minute, and each following one a minute later. */
  async begin(): Promise<void> {
    this.#firstStartAt = Math.ceil((Date.now() + AHEAD_MS) / MINUTE_MS) * MINUTE_MS;
    for (const [n, id] of this.#ids.entries()) {
      const time = new Date(this.#dueAt(n));
      const schedule = `CRON_TZ=UTC ${time.getUTCMinutes()} ${time.getUTCHours()} * * *`;
      await retryUntilAnswered(() => call(this.#owner, "PUT", `/api/v2/workspaces/${id}/autostart`, { schedule }));
    }
  }

  /** Returns problems with the workspaces that are due. Waits until the first is due. */
  async check(): Promise<string[]> {
    const problems: string[] = [];
    for (const [n, id] of this.#ids.entries()) {
      const wait = this.#dueAt(n) - Date.now();
      if (n > 0 && wait > 0) break;
      await until(async () => (await this.#countStarts(id)) > 0, { timeoutMs: Math.max(0, wait) + MAX_DELAY_MS }).catch(
        () => {},
      );
      const count = await this.#countStarts(id);
      this.startCount += count;
      if (count !== 1) problems.push(`a workspace with one scheduled start was started ${count} times`);
    }
    return problems;
  }

  #dueAt(n: number): number {
    return this.#firstStartAt + n * MINUTE_MS;
  }

  async #countStarts(id: string): Promise<number> {
    const builds = await read<{ reason: string }[]>(this.#owner, `/api/v2/workspaces/${id}/builds`);
    return builds.filter(({ reason }) => reason === "autostart").length;
  }
}
