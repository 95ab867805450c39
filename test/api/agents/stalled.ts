// A follower on a bare TCP connection that reads only when told to, as a hung browser or a suspended laptop would.
import net from "node:net";
import type { AgentLog } from "#schema/agents/agent-log.ts";

export class StalledFollower implements AsyncDisposable {
  readonly #socket: net.Socket;
  #bytes = Buffer.alloc(0);

  private constructor(socket: net.Socket) {
    this.#socket = socket;
  }

  /** Opens the WebSocket and stops reading as soon as the server has agreed. */
  static async open(url: URL, path: string, token: string): Promise<StalledFollower> {
    const socket = net.connect(Number(url.port), url.hostname);
    const follower = new StalledFollower(socket);
    socket.write(
      `GET ${path} HTTP/1.1\r\nHost: ${url.host}\r\nService-Session-Token: ${token}\r\nUpgrade: websocket\r\n` +
        "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
    );
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const hear = (chunk: Buffer): void => {
      follower.#bytes = Buffer.concat([follower.#bytes, chunk]);
      const end = follower.#bytes.indexOf("\r\n\r\n");
      // The first array is empty and comes right behind the answer: after it the follower is live.
      if (end < 0 || follower.#bytes.length < end + 8) return;
      if (!follower.#bytes.toString("latin1", 0, 12).endsWith("101")) reject(new Error("no upgrade"));
      follower.#bytes = follower.#bytes.subarray(end + 4);
      socket.off("data", hear);
      socket.pause();
      resolve();
    };
    socket.on("data", hear);
    socket.on("error", reject);
    await promise;
    return follower;
  }

  /** Reads all that is left: the lines, and the close frame if there is one. */
  async readToEnd(): Promise<{ logs: AgentLog[]; close: { code: number; reason: string } | undefined }> {
    const chunks: Buffer[] = [this.#bytes];
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    this.#socket.on("close", () => resolve());
    this.#socket.resume();
    await promise;
    const logs: AgentLog[] = [];
    for (const { opcode, payload } of frames(Buffer.concat(chunks))) {
      if (opcode === 8) return { logs, close: { code: payload.readUInt16BE(0), reason: payload.toString("utf8", 2) } };
      if (opcode === 1) logs.push(...(JSON.parse(payload.toString("utf8")) as AgentLog[]));
    }
    return { logs, close: undefined };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.destroy();
  }
}

/** The frames a server sends: never masked, never split here. */
function* frames(bytes: Buffer): Generator<{ opcode: number; payload: Buffer }> {
  let at = 0;
  while (at + 2 <= bytes.length) {
    const opcode = (bytes[at] as number) & 15;
    let length = (bytes[at + 1] as number) & 127;
    at += 2;
    if (length === 126) {
      length = bytes.readUInt16BE(at);
      at += 2;
    } else if (length === 127) {
      length = Number(bytes.readBigUInt64BE(at));
      at += 8;
    }
    yield { opcode, payload: bytes.subarray(at, at + length) };
    at += length;
  }
}
