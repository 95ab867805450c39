// The same app as echo.go in Node: pages of any length, echoed bodies, and a WebSocket that returns every frame.
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { Readable, Transform } from "node:stream";

const PART = 64 * 1024;

/** Byte i is (i*7 + length) mod 251, as in echo.go. */
function* pageOf(length) {
  for (let at = 0; at < length; at += PART) {
    const part = Buffer.allocUnsafe(Math.min(PART, length - at));
    for (let i = 0; i < part.length; i += 1) part[i] = ((at + i) * 7 + length) % 251;
    yield part;
  }
}

const server = createServer((request, response) => {
  const url = new URL(request.url, "http://app");
  const [, kind, rest] = url.pathname.split("/");
  const length = Number(rest);
  if (kind === "length") {
    response.writeHead(200, { "content-type": "application/octet-stream", "content-length": length });
    Readable.from(pageOf(length)).pipe(response);
  } else if (kind === "chunked") {
    response.writeHead(200, { "content-type": "text/plain; charset=latin1", "set-cookie": "n=\u00e9; Path=/" });
    Readable.from(pageOf(length)).pipe(response);
  } else if (kind === "status") response.writeHead(length).end();
  else if (kind === "echo") {
    response.setHeader("x-query", url.search.slice(1));
    response.setHeader("content-type", request.headers["content-type"] ?? "");
    request.pipe(response);
  } else response.writeHead(404).end("not found");
});

/** Returns each frame without its mask; a ping becomes a pong. Forwards a frame as it arrives instead of buffering it. */
const unmasking = () => {
  let head = Buffer.alloc(0);
  let mask;
  let at = 0;
  let left = 0;
  return new Transform({
    highWaterMark: 256 * 1024,
    transform(chunk, _, done) {
      let rest = chunk;
      while (rest.length > 0) {
        if (left === 0 && mask === undefined) {
          head = Buffer.concat([head, rest]);
          const short = head.length > 1 ? head[1] & 0x7f : 0;
          const more = short === 126 ? 2 : short === 127 ? 8 : 0;
          if (head.length < 2 + more + 4) break;
          left = more === 0 ? short : more === 2 ? head.readUInt16BE(2) : Number(head.readBigUInt64BE(2));
          mask = head.subarray(2 + more, 2 + more + 4);
          at = 0;
          const kind = head[0] & 0x0f;
          this.push(
            Buffer.concat([Buffer.from([kind === 9 ? 0x8a : head[0], head[1] & 0x7f]), head.subarray(2, 2 + more)]),
          );
          rest = head.subarray(2 + more + 4);
          head = Buffer.alloc(0);
        }
        const part = Buffer.from(rest.subarray(0, left));
        for (let i = 0; i < part.length; i += 1) part[i] ^= mask[(at + i) & 3];
        at += part.length;
        left -= part.length;
        if (part.length > 0) this.push(part);
        rest = rest.subarray(part.length);
        if (left === 0) mask = undefined;
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
  socket.pipe(unmasking()).pipe(socket);
});

server.listen(0, "127.0.0.1", () => process.stdout.write(`listening on ${server.address().port}\n`));
