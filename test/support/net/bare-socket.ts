// A WebSocket client on bare TCP that reads only on request. Simulates a hung browser, a suspended laptop, or a slow connection.
import net from "node:net";

const READ_BUFFER_BYTES = 64 * 1024;

export type Frame = { readonly opcode: number; readonly payload: Buffer };
export type CloseFrame = { readonly code: number; readonly reason: string };

export class BareSocket implements AsyncDisposable {
  readonly #socket: net.Socket;
  #bytes = Buffer.alloc(0);

  private constructor(socket: net.Socket) {
    this.#socket = socket;
  }

  /** Connects, and stops reading once the server has accepted the connection and `bytes` bytes of frames have arrived. */
  static async open(url: URL, path: string, token: string, bytes = 0): Promise<BareSocket> {
    const socket = net.connect({
      port: Number(url.port),
      host: url.hostname,
      readableHighWaterMark: READ_BUFFER_BYTES,
    } as never);
    const bare = new BareSocket(socket);
    socket.write(
      `GET ${path} HTTP/1.1\r\nHost: ${url.host}\r\nService-Session-Token: ${token}\r\nUpgrade: websocket\r\n` +
        "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
    );
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const onChunk = (chunk: Buffer): void => {
      bare.#bytes = Buffer.concat([bare.#bytes, chunk]);
      const end = bare.#bytes.indexOf("\r\n\r\n");
      if (end < 0 || bare.#bytes.length < end + 4 + bytes) return;
      if (!bare.#bytes.toString("latin1", 0, 12).endsWith("101")) reject(new Error(bare.#bytes.toString()));
      bare.#bytes = bare.#bytes.subarray(end + 4);
      socket.off("data", onChunk);
      socket.pause();
      resolve();
    };
    socket.on("data", onChunk);
    socket.on("error", reject);
    await promise;
    return bare;
  }

  /** Sends one masked text message. */
  send(text: string): void {
    const payload = Buffer.from(text);
    if (payload.byteLength > 125) throw new Error("short messages only");
    this.#socket.write(Buffer.concat([Buffer.from([0x81, 0x80 | payload.byteLength, 0, 0, 0, 0]), payload]));
  }

  /** Yields the server's frames, read in small steps. Servers neither mask nor fragment frames. */
  async *frames(): AsyncGenerator<Frame> {
    for (;;) {
      const head = await this.#readBytes(2);
      if (!head) return;
      let length = (head[1] as number) & 127;
      if (length === 126) length = ((await this.#readBytes(2)) as Buffer).readUInt16BE(0);
      else if (length === 127) length = Number(((await this.#readBytes(8)) as Buffer).readBigUInt64BE(0));
      const payload = await this.#readBytes(length);
      if (!payload) return;
      yield { opcode: (head[0] as number) & 15, payload };
    }
  }

  async #readBytes(length: number): Promise<Buffer | undefined> {
    while (this.#bytes.byteLength < length) {
      const chunk = await new Promise<Buffer | undefined>((resolve) => {
        const done = (received?: Buffer): void => {
          this.#socket.off("data", done);
          this.#socket.off("close", onClose);
          this.#socket.pause();
          resolve(received);
        };
        const onClose = (): void => done();
        this.#socket.once("data", done);
        this.#socket.once("close", onClose);
        this.#socket.resume();
      });
      if (!chunk) return undefined;
      this.#bytes = Buffer.concat([this.#bytes, chunk]);
    }
    const bytes = this.#bytes.subarray(0, length);
    this.#bytes = this.#bytes.subarray(length);
    return bytes;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.destroy();
  }
}

/** Parses a close frame. */
export const closeFrame = ({ payload }: Frame): CloseFrame => ({
  code: payload.readUInt16BE(0),
  reason: payload.toString("utf8", 2),
});
