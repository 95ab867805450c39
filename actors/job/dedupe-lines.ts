// Prevents storing log lines twice. A sender sends lines again if their commit could not be confirmed.
import type { Store } from "#db/engine/store.ts";
import { listJobLogs } from "#db/workspaces/jobs.ts";
import type { JobOutput } from "./report.ts";

export class OutputDeduplicator {
  readonly #store: Store;
  /** The ID of the last message, and of its first line. */
  #last: { readonly id: string; readonly first_id: number } | undefined;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Reserves IDs for the lines and returns the first one. Returns "stored" if an earlier attempt has stored the lines. */
  async reserveIds(
    job: { readonly key: number },
    { id, logs }: Pick<JobOutput, "id" | "logs">,
  ): Promise<number | "stored"> {
    if (logs.length === 0) return 0;
    if (id !== undefined && id === this.#last?.id && (await this.#isStored(job.key, this.#last.first_id)))
      return "stored";
    const first_id = await this.#store.reserve("job_logs", logs.length);
    this.#last = id === undefined ? undefined : { id, first_id };
    return first_id;
  }

  async #isStored(job: number, id: number): Promise<boolean> {
    const [row] = await this.#store.all(listJobLogs({ job, after: id - 1, before: id + 1, limit: 1 }));
    return row !== undefined;
  }
}
