// Connects tunnel streams to a TCP or Unix socket of the workspace. Stops reading from the socket while received data is not consumed, and
// waits while the socket cannot accept data (rule TN-3).
import type { Socket } from "bun";
import type { Clock } from "#base/clock.ts";
import { type Duplex, readChunks, Wakeup, WireError } from "#src/wire/index.ts";

/** When this many bytes are buffered here, reading from the socket pauses. */
const MAX_BUFFERED_BYTES = 256 * 1024;
const CONNECT_TIMEOUT_MS = 10_000;

/** With `tls`, any certificate is accepted: the other side is a program on this machine. */
export type SocketTarget = { unix: string } | { hostname: string; port: number; tls?: boolean };

/** Connects within ten seconds. Throws WireError `refused` with a readable reason. */
export const connectSocket = async (target: SocketTarget, clock: Clock): Promise<Duplex> => {
  const duplex = new SocketDuplex();
  const connectTimeout = Promise.withResolvers<never>();
  const timer = clock.after(CONNECT_TIMEOUT_MS, () =>
    connectTimeout.reject(new WireError("refused", "It does not answer.")),
  );
  try {
    const tls = "tls" in target && target.tls ? { rejectUnauthorized: false } : undefined;
    const connecting = Bun.connect({ ...target, tls, allowHalfOpen: !tls, socket: duplex.events } as never);
    connecting.catch(() => {});
    connectTimeout.promise.catch(() => duplex.reset("It does not answer."));
    await Promise.race([tls ? connecting.then(() => duplex.secured) : connecting, connectTimeout.promise]);
    return duplex;
  } catch (error) {
    if (error instanceof WireError) throw error;
    throw new WireError(
      "refused",
      `Nothing listens there: ${(error as { code?: string }).code ?? "connection failed"}.`,
    );
  } finally {
    timer.cancel();
  }
};

class SocketDuplex implements Duplex {
  readonly #settled = Promise.withResolvers<WireError | undefined>();
  readonly closed = this.#settled.promise;
  readonly #secured = Promise.withResolvers<void>();
  /** Settles when the TLS handshake is done; used only with TLS. */
  readonly secured = this.#secured.promise;
  readonly #readable = new Wakeup();
  readonly #writable = new Wakeup();
  #socket: Socket | undefined;
  #received: Uint8Array[] = [];
  #unread = 0;
  #isPaused = false;
  #hasPeerEnded = false;
  #isShutDown = false;
  #ended: Promise<void> | undefined;
  #failure: WireError | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor() {
    this.secured.catch(() => {});
  }

  readonly events = {
    open: (socket: Socket): void => {
      this.#socket = socket;
      // The connection took too long, and the caller has given up.
      if (this.#failure) socket.terminate();
    },
    // The certificate does not matter: the other side is a program of the workspace.
    handshake: (): void => this.#secured.resolve(),
    data: (_: Socket, chunk: Buffer): void => {
      this.#received.push(chunk);
      this.#unread += chunk.byteLength;
      if (this.#unread >= MAX_BUFFERED_BYTES && !this.#isPaused) {
        this.#isPaused = true;
        this.#socket?.pause();
      }
      this.#readable.wake();
    },
    drain: (): void => this.#writable.wake(),
    end: (): void => this.#onEnd(),
    error: (_: Socket, error: Error): void => this.#fail(new WireError("closed", error.message)),
    close: (_: Socket, error?: Error | null): void => {
      // Once our side has ended, Bun reports the other side's end only as a close.
      if (!error && this.#isShutDown) this.#onEnd();
      else this.#fail(new WireError("closed", error?.message ?? "The other side has closed the connection."));
      this.#settled.resolve(this.#failure);
    },
  };

  async read(): Promise<Uint8Array | undefined> {
    for (;;) {
      const chunk = this.#received.shift();
      if (chunk) {
        this.#unread -= chunk.byteLength;
        if (this.#isPaused && this.#unread < MAX_BUFFERED_BYTES / 2) {
          this.#isPaused = false;
          this.#socket?.resume();
        }
        return chunk;
      }
      if (this.#hasPeerEnded) return undefined;
      if (this.#failure) throw this.#failure;
      await this.#readable.wait();
    }
  }

  write(bytes: Uint8Array): Promise<void> {
    if (this.#ended) return Promise.reject(new WireError("closed", "Our side of the connection has ended."));
    const written = this.#writing.then(() => this.#writeAll(bytes));
    this.#writing = written.catch(() => {});
    return written;
  }

  end(): Promise<void> {
    this.#ended ??= this.#writing.then(() => {
      this.#isShutDown = true;
      this.#socket?.shutdown();
      this.#closeIfBothEnded();
    });
    return this.#ended;
  }

  reset(reason = "The connection was reset."): void {
    this.#fail(new WireError("reset", reason));
    this.#received = [];
    this.#unread = 0;
    this.#socket?.terminate();
    this.#settled.resolve(this.#failure);
  }

  [Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    return readChunks(this);
  }

  async #writeAll(bytes: Uint8Array): Promise<void> {
    for (let offset = 0; offset < bytes.byteLength; ) {
      if (this.#failure) throw this.#failure;
      const sent = this.#socket?.write(bytes, offset, bytes.byteLength - offset) ?? -1;
      if (sent < 0) throw new WireError("closed", "The connection is closed.");
      offset += sent;
      if (offset < bytes.byteLength) await this.#writable.wait();
    }
  }

  #onEnd(): void {
    if (this.#hasPeerEnded) return;
    this.#hasPeerEnded = true;
    this.#readable.wake();
    this.#closeIfBothEnded();
  }

  #closeIfBothEnded(): void {
    if (this.#ended && this.#hasPeerEnded) this.#socket?.end();
  }

  #fail(failure: WireError): void {
    this.#failure ??= failure;
    this.#secured.reject(new WireError("refused", "It does not speak TLS."));
    this.#readable.wake();
    this.#writable.wake();
  }
}
