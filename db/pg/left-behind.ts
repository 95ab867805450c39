// Connections that were given up while a transaction may have been under way on them. Its COMMIT may have arrived and may take long, as while the
// machine is busy or a standby is away: anyone who decided by what is there before it is done would do the same again.
import type { ReservedSQL } from "bun";
import { systemClock } from "#base/clock.ts";
import { pause } from "#base/retry.ts";

/** A process of the database: numbers come again. */
type Backend = { readonly pid: number; readonly began: string };

const LOOK_MS = 20;

const WHO = "select pid, backend_start::text as began from pg_stat_get_activity(pg_backend_pid())";
/**
 * One that has nothing to do is ended, as what was sent to it may still be on its way. One that does something is not: a commit that is cancelled while
 * it waits for a standby counts, though the standby lacks it.
 */
const STILL = `select case when coalesce(state, '') not in ('active', 'fastpath function call') and state not like 'idle in transaction%'
    then pg_terminate_backend(pid) end
  from pg_stat_activity where pid = $1 and backend_start = $2::timestamptz and pid <> pg_backend_pid()`;

export class LeftBehind {
  readonly #left = new Set<Backend>();
  #current: Backend | undefined;

  /** Answers what is called where this connection is used from now on: at once, so that nobody gives it up unseen. */
  async use(connection: ReservedSQL): Promise<() => void> {
    const [backend] = await connection.unsafe(WHO);
    return () => {
      this.#current = backend;
    };
  }

  /** The connection was given up. */
  leave(): void {
    if (this.#current) this.#left.add(this.#current);
    this.#current = undefined;
  }

  /** Resolves when all that was under way on those connections has ended, or nobody wants to wait any more. */
  async settled(connection: ReservedSQL, isWanted: () => boolean): Promise<void> {
    for (const backend of [...this.#left]) {
      while (isWanted() && (await connection.unsafe(STILL, [backend.pid, backend.began])).length > 0)
        await pause(systemClock, LOOK_MS);
      if (isWanted()) this.#left.delete(backend);
    }
  }
}
