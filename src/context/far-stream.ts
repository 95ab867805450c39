// One stream that another node keeps: reads ahead one piece, so that its end is known although nobody reads, and writes one piece at a time.
import type { Clock, Timer } from "#base/clock.ts";
import { chunksOf, type Duplex } from "#src/wire/duplex.ts";
import { Wakeup } from "#src/wire/wakeup.ts";
import { asWireError, WireError } from "#src/wire/wire-error.ts";
import type { Asked, Said } from "./far-streams.ts";

/** Bytes of one piece. */
const PIECE = 256 * 1024;
/** How often the other node hears that the stream is still wanted, also while nobody reads. */
const ALIVE_MS = 20_000;

export class FarStream implements Duplex {
  readonly #settled = Promise.withResolvers<WireError | undefined>();
  readonly closed = this.#settled.promise;
  readonly #id: string;
  readonly #ask: (asked: Asked) => Promise<Said>;
  readonly #readable = new Wakeup();
  readonly #taken = new Wakeup();
  readonly #alive: Timer;
  #ahead: Uint8Array | undefined;
  #peerEnded = false;
  #ended: Promise<void> | undefined;
  #isShut = false;
  #failure: WireError | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(clock: Clock, id: string, ask: (asked: Asked) => Promise<Said>) {
    this.#id = id;
    this.#ask = ask;
    this.#alive = clock.every(ALIVE_MS, () => void ask({ type: "alive", id }).catch((error) => this.#fail(error)));
    void this.#run();
  }

  async read(): Promise<Uint8Array | undefined> {
    for (;;) {
      const chunk = this.#ahead;
      if (chunk) {
        this.#ahead = undefined;
        this.#taken.ring();
        return chunk;
      }
      if (this.#failure) throw this.#failure;
      if (this.#peerEnded) return undefined;
      await this.#readable.wait();
    }
  }

  write(bytes: Uint8Array): Promise<void> {
    if (this.#ended) return Promise.reject(new WireError("closed", "Our side of the stream has ended."));
    const written = this.#writing.then(() => this.#writeAll(bytes));
    this.#writing = written.catch(() => {});
    return written;
  }

  end(): Promise<void> {
    this.#ended ??= this.#writing.then(() => this.#shut()).catch((error) => this.#fail(error));
    return this.#ended;
  }

  reset(reason = "The stream was reset."): void {
    if (this.#failure) return;
    this.#ahead = undefined;
    this.#fail(new WireError("reset", reason));
  }

  [Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    return chunksOf(this);
  }

  async #run(): Promise<void> {
    try {
      while (!this.#failure && !this.#peerEnded) {
        const { bytes, over } = await this.#ask({ type: "read", id: this.#id });
        if (bytes !== undefined) this.#ahead = Buffer.from(bytes, "base64");
        if (over) this.#peerEnded = true;
        this.#readable.ring();
        while (this.#ahead && !this.#failure) await this.#taken.wait();
      }
      this.#look();
    } catch (error) {
      this.#fail(error);
    }
  }

  async #shut(): Promise<void> {
    if (this.#failure) return;
    await this.#ask({ type: "end", id: this.#id });
    this.#isShut = true;
    this.#look();
  }

  async #writeAll(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.byteLength; at += PIECE) {
      if (this.#failure) throw this.#failure;
      const piece = Buffer.from(bytes.subarray(at, at + PIECE)).toString("base64");
      await this.#ask({ type: "write", id: this.#id, bytes: piece }).catch((error) => {
        this.#fail(error);
        throw asWireError(error);
      });
    }
  }

  /** Both sides have ended. */
  #look(): void {
    if (!this.#isShut || !this.#peerEnded) return;
    this.#alive.cancel();
    this.#settled.resolve(undefined);
  }

  #fail(error: unknown): void {
    if (this.#failure || (this.#isShut && this.#peerEnded)) return;
    this.#failure = asWireError(error);
    this.#alive.cancel();
    // Whatever has broken, the other node need not keep it.
    this.#ask({ type: "reset", id: this.#id }).catch(() => {});
    this.#readable.ring();
    this.#taken.ring();
    this.#settled.resolve(this.#failure);
  }
}
