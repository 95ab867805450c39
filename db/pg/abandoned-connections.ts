// Tracks abandoned connections whose transaction may still be in progress: its COMMIT may have arrived and may take long, for example while
// the machine is busy or a standby is missing. If the work were retried before the end of that transaction, it could be done twice.
import type { ReservedSQL } from "bun";
import { systemClock } from "#base/clock.ts";
import { pause } from "#base/retry.ts";

/** A backend process of the database. Identified by its ID and its start time, because process IDs are reused. */
type Backend = { readonly pid: number; readonly started_at: string };

const CHECK_INTERVAL_MS = 20;

const SELECT_BACKEND = "select pid, backend_start::text as started_at from pg_stat_get_activity(pg_backend_pid())";
/**
 * Terminates an idle backend, because statements that were sent to it may still arrive. Does not terminate an active backend: a commit that
 * is canceled while it waits for a standby still takes effect, although the standby does not have it.
 */
const TERMINATE_IF_IDLE = `select case when coalesce(state, '') not in ('active', 'fastpath function call') and state not like 'idle in transaction%'
    then pg_terminate_backend(pid) end
  from pg_stat_activity where pid = $1 and backend_start = $2::timestamptz and pid <> pg_backend_pid()`;

export class AbandonedConnections {
  readonly #abandoned = new Set<Backend>();
  #current: Backend | undefined;

  /**
   * Returns a function to call when the connection comes into use. It is synchronous, so that the connection cannot be abandoned in
   * between.
   */
  async use(connection: ReservedSQL): Promise<() => void> {
    const [backend] = await connection.unsafe(SELECT_BACKEND);
    return () => {
      this.#current = backend;
    };
  }

  /** Called when the connection was abandoned. */
  abandon(): void {
    if (this.#current) this.#abandoned.add(this.#current);
    this.#current = undefined;
  }

  /** Resolves when all work on abandoned connections has ended, or when `isWanted` returns false. */
  async whenEnded(connection: ReservedSQL, isWanted: () => boolean): Promise<void> {
    for (const backend of [...this.#abandoned]) {
      while (isWanted() && (await connection.unsafe(TERMINATE_IF_IDLE, [backend.pid, backend.started_at])).length > 0)
        await pause(systemClock, CHECK_INTERVAL_MS);
      if (isWanted()) this.#abandoned.delete(backend);
    }
  }
}
