// Deduplicates log lines: a sender sends lines again if their commit could not be confirmed. Lines that are already stored are not stored
// again.
import type { Store } from "#db/engine/store.ts";
import { listJobLogs } from "#db/workspaces/jobs.ts";
import type { JobOutput } from "./report.ts";

export class OutputDeduplicator {
  readonly #store: Store;
  #last: { readonly id: string; readonly first_id: number } | undefined;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Returns the number of the first line, or "stored" when an earlier attempt has stored the lines. */
  async numbersFor(
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
