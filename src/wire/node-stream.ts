// Adapts a connection to a Node stream, which ssh2 and TLS require, and opens TLS over a connection. Backpressure applies in both
// directions.
import { Duplex as NodeDuplex } from "node:stream";
import { connect } from "node:tls";
import { type Duplex, readChunks } from "./duplex.ts";
import { WireError } from "./wire-error.ts";

/** Returns a stream that ends with the connection. Destroying it resets the connection. `halfOpen`: one side may end before the other. */
export const toNodeStream = (connection: Duplex, { halfOpen = false } = {}): NodeDuplex => {
  let isReading = false;
  const stream = new NodeDuplex({
    allowHalfOpen: halfOpen,
    read() {
      if (isReading) return;
      isReading = true;
      void pump().catch((error: Error) => stream.destroy(error));
    },
    write(chunk: Buffer, _encoding, done) {
      // A copy, because ssh2 may reuse its buffer.
      connection.write(new Uint8Array(chunk)).then(() => done(), done);
    },
    final(done) {
      connection.end().then(() => done(), done);
    },
    destroy(error, done) {
      if (error) connection.reset(error.message);
      else void connection.end();
      done(error);
    },
  });
  const pump = async (): Promise<void> => {
    for (;;) {
      const chunk = await connection.read();
      if (chunk === undefined) {
        stream.push(null);
        return;
      }
      if (stream.push(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength))) continue;
      isReading = false;
      return;
    }
  };
  void connection.closed.then((failure) => {
    // After a clean end, the stream is not destroyed, so that unread bytes are delivered first.
    if (failure && !stream.destroyed) stream.destroy(failure);
  });
  return stream;
};

/** Adapts a Node stream to a connection. */
const fromNodeSocket = (stream: NodeDuplex): Duplex => {
  const settled = Promise.withResolvers<WireError | undefined>();
  const chunks = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  let failure: WireError | undefined;
  const onError = (error: Error): void => {
    failure ??= new WireError("closed", error.message);
  };
  stream.on("error", onError);
  stream.once("close", () => settled.resolve(failure));
  const duplex: Duplex = {
    closed: settled.promise,
    async read() {
      const next = await chunks.next().catch((error: Error) => {
        onError(error);
        throw failure;
      });
      return next.done ? undefined : next.value;
    },
    write: (bytes) =>
      new Promise((resolve, reject) => {
        stream.write(bytes, (error) => (error ? reject(new WireError("closed", error.message)) : resolve()));
      }),
    async end() {
      stream.end();
    },
    reset: (reason = "The connection was reset.") => {
      failure ??= new WireError("reset", reason);
      stream.destroy(new Error(reason));
    },
    [Symbol.asyncIterator]: () => readChunks(duplex),
  };
  return duplex;
};

/**
 * Opens TLS over a stream, with the server as the TLS client: for workspace programs that use TLS behind an agent that cannot open it
 * itself. Any certificate is accepted, since the path is inside the workspace. Throws WireError `refused` if the other side does not use
 * TLS; the stream cannot be used after that.
 */
export const wrapTls = async (stream: Duplex, signal?: AbortSignal): Promise<Duplex> => {
  const socket = connect({ socket: toNodeStream(stream), rejectUnauthorized: false });
  const onAbort = (): void => void socket.destroy(new Error("The connection was canceled."));
  signal?.addEventListener("abort", onAbort, { once: true });
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once("secureConnect", resolve);
      socket.once("error", reject);
      socket.once("close", () => reject(new Error("closed")));
      if (signal?.aborted) onAbort();
    });
    return fromNodeSocket(socket);
  } catch (error) {
    stream.reset("It does not speak TLS.");
    throw new WireError("refused", "It does not speak TLS.", error);
  } finally {
    signal?.removeEventListener("abort", onAbort);
  }
};
