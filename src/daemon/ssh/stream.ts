// A connection as a Node stream, which is what ssh2 speaks over. Reads only while somebody takes, writes only while the peer takes.
import { Duplex as NodeDuplex } from "node:stream";
import type { Duplex } from "#src/wire/duplex.ts";

/** Ends with the connection; destroying it resets the connection. `halfOpen`: one side may end while the other goes on. */
export const nodeStream = (connection: Duplex, { halfOpen = false } = {}): NodeDuplex => {
  let isReading = false;
  const stream = new NodeDuplex({
    allowHalfOpen: halfOpen,
    read() {
      if (isReading) return;
      isReading = true;
      void pump().catch((error: Error) => stream.destroy(error));
    },
    write(chunk: Buffer, _encoding, done) {
      // ssh2 may use its buffer again.
      connection.write(Uint8Array.from(chunk)).then(() => done(), done);
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
    if (!stream.destroyed) stream.destroy(failure);
  });
  return stream;
};
