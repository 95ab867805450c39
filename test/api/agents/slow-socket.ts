// A WebSocket client on bare TCP that reads only when told to, and then slowly: what a browser on a poor line looks like.
import net from "node:net";

const WINDOW = 64 * 1024;

export class SlowSocket implements AsyncDisposable {
  readonly #socket: net.Socket;
  #bytes = Buffer.alloc(0);

  private constructor(socket: net.Socket) {
    this.#socket = socket;
  }

  static async open(url: URL, path: string, token: string): Promise<SlowSocket> {
    const socket = net.connect({ port: Number(url.port), host: url.hostname, readableHighWaterMark: WINDOW } as never);
    const slow = new SlowSocket(socket);
    socket.write(
      `GET ${path} HTTP/1.1\r\nHost: ${url.host}\r\nService-Session-Token: ${token}\r\nUpgrade: websocket\r\n` +
        "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
    );
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const hear = (chunk: Buffer): void => {
      slow.#bytes = Buffer.concat([slow.#bytes, chunk]);
      const end = slow.#bytes.indexOf("\r\n\r\n");
      if (end < 0) return;
      if (!slow.#bytes.toString("latin1", 0, 12).endsWith("101")) reject(new Error(slow.#bytes.toString()));
      slow.#bytes = slow.#bytes.subarray(end + 4);
      socket.off("data", hear);
      socket.pause();
      resolve();
    };
    socket.on("data", hear);
    socket.on("error", reject);
    await promise;
    return slow;
  }

  /** Waits until nothing more fits between the server and us. */
  async stalled(): Promise<void> {
    // The kernel alone knows; a second without reading fills every buffer on this machine.
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }

  /** Sends one masked text message. */
  send(text: string): void {
    const payload = Buffer.from(text);
    if (payload.byteLength > 125) throw new Error("short messages only");
    this.#socket.write(Buffer.concat([Buffer.from([0x81, 0x80 | payload.byteLength, 0, 0, 0, 0]), payload]));
  }

  /** Reads to the close frame in small steps, checking each byte of the payload against `expected`. */
  async readToEnd(
    size: number,
    expected: (at: number) => number,
  ): Promise<{ bytes: number; right: boolean; close: { code: number; reason: string } | undefined }> {
    let at = 0;
    let right = true;
    for await (const { opcode, payload } of this.#frames()) {
      if (opcode === 8) {
        return { bytes: at, right, close: { code: payload.readUInt16BE(0), reason: payload.toString("utf8", 2) } };
      }
      if (opcode !== 2) continue;
      for (const byte of payload) {
        if (at >= size || byte !== expected(at)) right = false;
        at += 1;
      }
    }
    return { bytes: at, right, close: undefined };
  }

  async *#frames(): AsyncGenerator<{ opcode: number; payload: Buffer }> {
    for (;;) {
      const head = await this.#take(2);
      if (!head) return;
      let length = (head[1] as number) & 127;
      if (length === 126) length = ((await this.#take(2)) as Buffer).readUInt16BE(0);
      else if (length === 127) length = Number(((await this.#take(8)) as Buffer).readBigUInt64BE(0));
      const payload = await this.#take(length);
      if (!payload) return;
      yield { opcode: (head[0] as number) & 15, payload };
    }
  }

  async #take(length: number): Promise<Buffer | undefined> {
    while (this.#bytes.byteLength < length) {
      const chunk = await new Promise<Buffer | undefined>((resolve) => {
        const done = (found?: Buffer): void => {
          this.#socket.off("data", done);
          this.#socket.off("close", closed);
          this.#socket.pause();
          resolve(found);
        };
        const closed = (): void => done();
        this.#socket.once("data", done);
        this.#socket.once("close", closed);
        this.#socket.resume();
      });
      if (!chunk) return undefined;
      this.#bytes = Buffer.concat([this.#bytes, chunk]);
    }
    const taken = this.#bytes.subarray(0, length);
    this.#bytes = this.#bytes.subarray(length);
    return taken;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.destroy();
  }
}
