// A client WebSocket as a byte stream, for the daemon and other programs that connect to a server. Such sockets have no drain event, so
// `bufferedAmount` is polled while the socket is full. [WI-3]
import type { Clock } from "#base/clock.ts";
import { ByteStream, type ByteStreamOptions, endedBy } from "./byte-stream.ts";
import { WireError } from "./wire-error.ts";

/** Maximum number of unsent bytes in the socket before writers wait. */
const FULL_AT = 512 * 1024;
const LOOK_AGAIN_MS = 4;

/**
 * Waits until the socket is open and wraps it. Throws WireError `closed` if it cannot be opened. The stream then owns the socket's events.
 */
export const streamOverWebSocket = (
  socket: WebSocket,
  clock: Clock,
  options: ByteStreamOptions = {},
): Promise<ByteStream> => {
  socket.binaryType = "arraybuffer";
  const opened = Promise.withResolvers<ByteStream>();
  let polling = false;
  const look = (): void => {
    if (socket.readyState !== WebSocket.OPEN) return;
    if (socket.bufferedAmount > FULL_AT / 2) {
      clock.after(LOOK_AGAIN_MS, look);
      return;
    }
    polling = false;
    stream.drain();
  };
  const stream = new ByteStream(
    {
      send(bytes) {
        if (socket.readyState !== WebSocket.OPEN) return 0;
        // The DOM type of `send` excludes shared buffers, which are never created here.
        socket.send(bytes as Uint8Array<ArrayBuffer>);
        if (socket.bufferedAmount <= FULL_AT) return bytes.byteLength;
        if (!polling) clock.after(LOOK_AGAIN_MS, look);
        polling = true;
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
    stream.end(endedBy(event.code, event.reason));
  });
  if (socket.readyState === WebSocket.OPEN) opened.resolve(stream);
  return opened.promise;
};
