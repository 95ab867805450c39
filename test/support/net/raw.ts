// Raw bytes on a TCP connection, for requests that no well-behaved client would send.
import { connect, type Socket } from "node:net";

/** An open connection. `received` is the text received so far. */
export class RawConnection implements Disposable {
  readonly socket: Socket;
  readonly closed: Promise<void>;
  #received = "";
  #waiting: (() => void)[] = [];

  constructor(url: URL) {
    this.socket = connect(Number(url.port), url.hostname);
    this.socket.on("data", (data) => {
      this.#received += data.toString("latin1");
      for (const wake of this.#waiting.splice(0)) wake();
    });
    this.socket.on("error", () => {});
    this.closed = new Promise((resolve) =>
      this.socket.on("close", () => {
        for (const wake of this.#waiting.splice(0)) wake();
        resolve();
      }),
    );
  }

  get received(): string {
    return this.#received;
  }

  send(data: string | Uint8Array): void {
    this.socket.write(data);
  }

  /** Resolves when the text received so far satisfies the condition, or the connection is closed. */
  async until(done: (received: string) => boolean): Promise<string> {
    while (!done(this.#received) && !this.socket.closed) await new Promise<void>((wake) => this.#waiting.push(wake));
    return this.#received;
  }

  [Symbol.dispose](): void {
    this.socket.destroy();
  }
}

/** Sends one raw request and returns the status and body of the first response. */
export const rawRequest = async (url: URL, text: string): Promise<{ status: number; body: string }> => {
  using connection = new RawConnection(url);
  connection.send(text);
  const received = await connection.until(isComplete);
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(received)?.[1] ?? 0);
  return { status, body: received.slice(received.indexOf("\r\n\r\n") + 4) };
};

const isComplete = (received: string): boolean => {
  const end = received.indexOf("\r\n\r\n");
  if (end < 0) return false;
  const length = /content-length: (\d+)/i.exec(received.slice(0, end))?.[1];
  return length !== undefined && received.length >= end + 4 + Number(length);
};
