// The same app as echo.go, for Node: pages of any length, echoed bodies, and a WebSocket that echoes every frame.
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { Readable, Transform } from "node:stream";

const CHUNK_BYTES = 64 * 1024;

/** Yields a page of `length` bytes. Byte i is (i*7 + length) mod 251, as in echo.go. */
function* createPage(length) {
  for (let offset = 0; offset < length; offset += CHUNK_BYTES) {
    const chunk = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, length - offset));
    for (let i = 0; i < chunk.length; i += 1) chunk[i] = ((offset + i) * 7 + length) % 251;
    yield chunk;
  }
}

const server = createServer((request, response) => {
  const url = new URL(request.url, "http://app");
  const [, kind, argument] = url.pathname.split("/");
  const length = Number(argument);
  if (kind === "length") {
    response.writeHead(200, { "content-type": "application/octet-stream", "content-length": length });
    Readable.from(createPage(length)).pipe(response);
  } else if (kind === "chunked") {
    response.writeHead(200, { "content-type": "text/plain; charset=latin1", "set-cookie": "n=\u00e9; Path=/" });
    Readable.from(createPage(length)).pipe(response);
  } else if (kind === "status") response.writeHead(length).end();
  else if (kind === "echo") {
    response.setHeader("x-query", url.search.slice(1));
    response.setHeader("content-type", request.headers["content-type"] ?? "");
    request.pipe(response);
  } else response.writeHead(404).end("not found");
});

/** Echoes each frame without its mask, and a ping as a pong. Forwards the parts of a frame as they arrive. */
const createEchoTransform = () => {
  let head = Buffer.alloc(0);
  let mask;
  let maskOffset = 0;
  let remaining = 0;
  return new Transform({
    highWaterMark: 256 * 1024,
    transform(chunk, _, done) {
      let unread = chunk;
      while (unread.length > 0) {
        if (remaining === 0 && mask === undefined) {
          head = Buffer.concat([head, unread]);
          const lengthCode = head.length > 1 ? head[1] & 0x7f : 0;
          const extendedBytes = lengthCode === 126 ? 2 : lengthCode === 127 ? 8 : 0;
          if (head.length < 2 + extendedBytes + 4) break;
          remaining =
            extendedBytes === 0
              ? lengthCode
              : extendedBytes === 2
                ? head.readUInt16BE(2)
                : Number(head.readBigUInt64BE(2));
          mask = head.subarray(2 + extendedBytes, 2 + extendedBytes + 4);
          maskOffset = 0;
          const opcode = head[0] & 0x0f;
          this.push(
            Buffer.concat([
              Buffer.from([opcode === 9 ? 0x8a : head[0], head[1] & 0x7f]),
              head.subarray(2, 2 + extendedBytes),
            ]),
          );
          unread = head.subarray(2 + extendedBytes + 4);
          head = Buffer.alloc(0);
        }
        const payload = Buffer.from(unread.subarray(0, remaining));
        for (let i = 0; i < payload.length; i += 1) payload[i] ^= mask[(maskOffset + i) & 3];
        maskOffset += payload.length;
        remaining -= payload.length;
        if (payload.length > 0) this.push(payload);
        unread = unread.subarray(payload.length);
        if (remaining === 0) mask = undefined;
      }
      done();
    },
  });
};

server.on("upgrade", (request, socket, head) => {
  const accept = createHash("sha1")
    .update(`${request.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
    .digest("base64");
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
  );
  if (head.length > 0) socket.unshift(head);
  socket.on("error", () => socket.destroy());
  socket.pipe(createEchoTransform()).pipe(socket);
});

server.listen(0, "127.0.0.1", () => process.stdout.write(`listening on ${server.address().port}\n`));
