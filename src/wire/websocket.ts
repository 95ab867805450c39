// Wraps a client WebSocket as a byte stream, for the daemon and other programs that connect to a server. Client sockets have no drain
// event, so `bufferedAmount` is polled while the socket is full. [WI-3]
import type { Clock } from "#base/clock.ts";
import { ByteStream, type ByteStreamOptions, toCloseError } from "./byte-stream.ts";
import { WireError } from "./wire-error.ts";

/** Writers wait while the socket has more unsent bytes than this. */
const MAX_BUFFERED_BYTES = 512 * 1024;
const POLL_INTERVAL_MS = 4;

/**
 * Waits until the socket is open, and returns the stream, which owns the socket from then on. Throws WireError `closed` if the socket
 * cannot be opened.
 */
export const createWebSocketStream = (
  socket: WebSocket,
  clock: Clock,
  options: ByteStreamOptions = {},
): Promise<ByteStream> => {
  socket.binaryType = "arraybuffer";
  const opened = Promise.withResolvers<ByteStream>();
  let isPolling = false;
  const pollDrain = (): void => {
    if (socket.readyState !== WebSocket.OPEN) return;
    if (socket.bufferedAmount > MAX_BUFFERED_BYTES / 2) {
      clock.after(POLL_INTERVAL_MS, pollDrain);
      return;
    }
    isPolling = false;
    stream.drain();
  };
  const stream = new ByteStream(
    {
      send(bytes) {
        if (socket.readyState !== WebSocket.OPEN) return 0;
        // The DOM type of `send` excludes shared buffers, which are never created here.
        socket.send(bytes as Uint8Array<ArrayBuffer>);
        if (socket.bufferedAmount <= MAX_BUFFERED_BYTES) return bytes.byteLength;
        if (!isPolling) clock.after(POLL_INTERVAL_MS, pollDrain);
        isPolling = true;
        return -1;
      },
      close: (code, reason) => socket.close(code, reason),
    },
    options,
  );
  socket.addEventListener("open", () => opened.resolve(stream));
  socket.addEventListener("message", (event: MessageEvent<ArrayBuffer | string>) => stream.push(event.data));
  socket.addEventListener("close", (event) => {
    opened.reject(new WireError("closed", `The connection was not opened: ${event.code} ${event.reason}`.trimEnd()));
    stream.end(toCloseError(event.code, event.reason));
  });
  if (socket.readyState === WebSocket.OPEN) opened.resolve(stream);
  return opened.promise;
};
