// Distinguishes an SSH connection that a person uses from an idle one. Only bytes sent by the client count: the keepalives of editors and
// OpenSSH take less than a few hundred bytes a second, and output of programs is not sent by the client. The command line and the SSH
// server of a workspace both use this class.
import type { Clock } from "#base/clock.ts";

const WINDOW_MS = 60_000;
/**
 * A connection with at least this many bytes in one window is in use. Keepalives and acknowledgments of an idle VS Code stay below 8,000; a
 * dozen typed characters exceed the minimum.
 */
const MIN_BYTES = 12_000;

export class ConnectionUse {
  readonly #clock: Pick<Clock, "monotonic">;
  #windowStart: number;
  #bytes = 0;
  #isUsed = false;

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
    this.#windowStart = clock.monotonic();
  }

  /** Called when the client has sent this many bytes. */
  onSent(bytes: number): void {
    const now = this.#clock.monotonic();
    if (now - this.#windowStart >= WINDOW_MS) {
      this.#windowStart = now;
      this.#bytes = 0;
    }
    this.#bytes += bytes;
    if (this.#bytes >= MIN_BYTES) this.#isUsed = true;
  }

  /** Called when a person has typed into a terminal, which sends too few bytes to be counted as use. */
  onTyped(): void {
    this.#isUsed = true;
  }

  /** Returns true if the connection was used since the last call. */
  takeUsed(): boolean {
    const isUsed = this.#isUsed;
    this.#isUsed = false;
    return isUsed;
  }
}
