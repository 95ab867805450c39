// Workspaces of one person that start on their own, one each minute: each once, whichever node has its part then.
import type { Client } from "#src/client.ts";
import { until } from "#test/support/until.ts";
import { call, insist, read } from "../oracle/calls.ts";
import { endedBuild, makeWorkspace } from "../server-world.ts";

const MINUTE_MS = 60_000;
/** Between what is said of a time and the time itself. */
const AHEAD_MS = 10_000;
/** A start by the clock may wait for a node that takes over, and for the scheduler. */
const LATE_MS = 30_000;

export class Dues {
  readonly #owner: Client;
  /** Of workspaces, in the order of their times. */
  readonly #ids: readonly string[];
  #first_at = 0;
  /** Those that have started. */
  begun = 0;

  private constructor(owner: Client, ids: readonly string[]) {
    this.#owner = owner;
    this.#ids = ids;
  }

  /** So many workspaces, stopped. */
  static async make(owner: Client, template_id: string, count: number): Promise<Dues> {
    const ids: string[] = [];
    for (let n = 0; n < count; n++) {
      const { id } = await makeWorkspace(owner, `due-${n}`, template_id);
      const stop = await owner.post<{ id: string }>(`/api/v2/workspaces/${id}/builds`, { transition: "stop" });
      await endedBuild(owner, stop.id);
      ids.push(id);
    }
    return new Dues(owner, ids);
  }

  /** The first one starts at the next minute, each other one a minute later. */
  async begin(): Promise<void> {
    this.#first_at = Math.ceil((Date.now() + AHEAD_MS) / MINUTE_MS) * MINUTE_MS;
    for (const [n, id] of this.#ids.entries()) {
      const time = new Date(this.#atOf(n));
      const schedule = `CRON_TZ=UTC ${time.getUTCMinutes()} ${time.getUTCHours()} * * *`;
      await insist(() => call(this.#owner, "PUT", `/api/v2/workspaces/${id}/autostart`, { schedule }));
    }
  }

  /** What is wrong with those whose time has come. The first one is waited for. */
  async check(): Promise<string[]> {
    const wrong: string[] = [];
    for (const [n, id] of this.#ids.entries()) {
      const wait = this.#atOf(n) - Date.now();
      if (n > 0 && wait > 0) break;
      await until(async () => (await this.#startsOf(id)) > 0, { patience: Math.max(0, wait) + LATE_MS }).catch(
        () => {},
      );
      const count = await this.#startsOf(id);
      this.begun += count;
      if (count !== 1) wrong.push(`a workspace that was to start once by itself was started ${count} times`);
    }
    return wrong;
  }

  #atOf(n: number): number {
    return this.#first_at + n * MINUTE_MS;
  }

  async #startsOf(id: string): Promise<number> {
    const builds = await read<{ reason: string }[]>(this.#owner, `/api/v2/workspaces/${id}/builds`);
    return builds.filter(({ reason }) => reason === "autostart").length;
  }
}
