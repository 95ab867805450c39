// Distinguishes an SSH connection that a person uses from an idle one. Only bytes sent by the client count: editors and OpenSSH send less
// than a few hundred bytes a second as keepalives, and programs that only print send nothing. The command line and the workspace's SSH
// server measure in the same way.
import type { Clock } from "#base/clock.ts";

const WINDOW_MS = 60_000;
/**
 * Minimum number of bytes in one window: keepalives and acknowledgments of an idle VS Code stay below 8,000, and a dozen typed characters
 * are above.
 */
const MIN_BYTES = 12_000;

export class ConnectionUse {
  readonly #clock: Pick<Clock, "monotonic">;
  #began: number;
  #bytes = 0;
  #isUsed = false;

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
    this.#began = clock.monotonic();
  }

  /** The client has sent this many bytes. */
  onSent(bytes: number): void {
    const now = this.#clock.monotonic();
    if (now - this.#began >= WINDOW_MS) {
      this.#began = now;
      this.#bytes = 0;
    }
    this.#bytes += bytes;
    if (this.#bytes >= MIN_BYTES) this.#isUsed = true;
  }

  /** Someone has typed into a terminal, which sends few bytes. */
  onTyped(): void {
    this.#isUsed = true;
  }

  /** Returns true if it was used since the last call. */
  takeUsed(): boolean {
    const isUsed = this.#isUsed;
    this.#isUsed = false;
    return isUsed;
  }
}
