// A model provider on a real socket: streams OpenAI's chat-completions protocol, Anthropic's messages and Google's generateContent. A call
// waits until the test answers it; the test can even send single bytes.
import { createServer, type Socket } from "node:net";
import { findProtocol, frame, type OutputItem, type Protocol, toOpening } from "./model-frames.ts";
import { findRefusal, type Refusal } from "./receiver-rules.ts";

/** One request to the provider, and its answer. */
export class ModelCall {
  readonly protocol: Protocol;
  readonly path: string;
  readonly headers: ReadonlyMap<string, string>;
  /** When the request was complete, by `performance.now()`. Benchmarks use it: reading a long request takes this server some milliseconds. */
  readonly received_at = performance.now();
  /** The request body. */
  readonly body: Record<string, unknown>;
  /** The reason for which the server has rejected the call; undefined if it has not. */
  refusal: Refusal | undefined;
  /** Resolves when either side has closed the connection. */
  readonly gone: Promise<void>;
  readonly #socket: Socket;
  #hasHead = false;
  #isLast = false;
  #blocks = 0;

  constructor(socket: Socket, gone: Promise<void>, head: string, body: string) {
    const [requestLine = "", ...lines] = head.split("\r\n");
    this.#socket = socket;
    this.gone = gone;
    this.path = requestLine.split(" ")[1] ?? "";
    this.headers = new Map(
      lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 1).trim()]),
    );
    this.body = body === "" ? {} : (JSON.parse(body) as Record<string, unknown>);
    this.protocol = findProtocol(this.path);
  }

  /** Sends a complete response. */
  answer(status: number, body: unknown = {}, headers: Record<string, string> = {}): void {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const allHeaders = {
      "content-type": "application/json",
      "content-length": String(Buffer.byteLength(text)),
      ...headers,
    };
    this.#socket.write(`${formatHead(status, allHeaders)}${text}`);
  }

  /** Sends raw bytes of the stream. */
  sendRaw(text: string): this {
    this.#begin();
    if (text !== "") this.#socket.write(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`);
    return this;
  }

  say(...items: OutputItem[]): this {
    for (const item of items) this.sendRaw(frame(this.protocol, item, this.#blocks++));
    return this;
  }

  /** Ends the stream properly, no matter what was sent. */
  end(): void {
    this.#begin();
    this.#socket.write("0\r\n\r\n");
  }

  /** Says hello and ends the answer. */
  greet(): void {
    this.#isLast = true;
    this.say({ text: "Hello." }, { finish: "stop" }).end();
    this.#socket.end();
  }

  /** Resets the connection, before or during the answer. */
  resetConnection(): void {
    this.#socket.resetAndDestroy();
  }

  #begin(): void {
    if (this.#hasHead) return;
    this.#hasHead = true;
    const closeHeader = this.#isLast ? { connection: "close" } : undefined;
    const head = { "content-type": "text/event-stream", "transfer-encoding": "chunked" };
    this.#socket.write(formatHead(200, Object.assign(head, closeHeader)));
    this.sendRaw(toOpening(this.protocol));
  }
}

const formatHead = (status: number, headers: Record<string, string>): string =>
  `HTTP/1.1 ${status} Status\r\n${Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join("")}\r\n`;

const GREETING_PROMPT = "Say hello in one short sentence.";

export class ModelServer implements AsyncDisposable {
  /** All calls so far. */
  readonly calls: ModelCall[] = [];
  /** Calls that the server has rejected. */
  readonly refused: ModelCall[] = [];
  /** Answers the greeting that a server asks of a new default model. A test that answers it itself sets this to false. */
  answersGreeting = true;
  /** Number of connections so far, with or without requests. */
  connections = 0;
  readonly #server = createServer((socket) => this.#serve(socket));
  readonly #sockets = new Set<Socket>();
  #takenCount = 0;
  #isClosed = false;
  #wake: (() => void) | undefined;

  static async start(): Promise<ModelServer> {
    const server = new ModelServer();
    await new Promise<void>((resolve) => server.#server.listen(0, "127.0.0.1", resolve));
    return server;
  }

  get port(): number {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("the model server does not listen");
    return address.port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Returns the next call that the test has not taken yet. */
  async next(): Promise<ModelCall> {
    while (this.#takenCount >= this.calls.length) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.calls[this.#takenCount++] as ModelCall;
  }

  /** Passes every call to `answer`, in order, until the server is closed. */
  async answerAll(answer: (call: ModelCall) => void): Promise<void> {
    for (;;) {
      const call = await this.next();
      if (this.#isClosed) return;
      answer(call);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Rejects the call if the real server would; otherwise queues it for the test. */
  #receive(call: ModelCall): void {
    const refusal = findRefusal(call.protocol, call.body, call.path);
    if (refusal) {
      call.refusal = refusal;
      this.refused.push(call);
      call.answer(refusal.status, refusal.body);
      return;
    }
    if (this.answersGreeting && JSON.stringify(call.body).includes(GREETING_PROMPT)) {
      // The server's own check of a new model; tests do not count its connection.
      this.connections -= 1;
      call.greet();
      return;
    }
    this.calls.push(call);
    this.#wake?.();
  }

  #serve(socket: Socket): void {
    this.connections += 1;
    this.#sockets.add(socket);
    const gone = new Promise<void>((resolve) => {
      socket.on("close", () => {
        this.#sockets.delete(socket);
        resolve();
      });
    });
    socket.on("error", () => {});
    let text = "";
    socket.setEncoding("latin1");
    socket.on("data", (received: string) => {
      text += received;
      for (;;) {
        const end = text.indexOf("\r\n\r\n");
        if (end < 0) return;
        const head = text.slice(0, end);
        const parsed = isChunked(head) ? readChunkedBody(text, end + 4) : readSizedBody(text, head, end + 4);
        if (parsed === undefined) return;
        text = text.slice(parsed.next);
        this.#receive(new ModelCall(socket, gone, head, Buffer.from(parsed.body, "latin1").toString("utf8")));
      }
    });
  }
}

/** A body and the index of the next request; undefined while bytes are missing. */
type ParsedBody = { readonly body: string; readonly next: number } | undefined;

const isChunked = (head: string): boolean => /\r\ntransfer-encoding:[^\r]*\bchunked\b/i.test(head);

const readSizedBody = (text: string, head: string, from: number): ParsedBody => {
  const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0);
  const next = from + length;
  return text.length < next ? undefined : { body: text.slice(from, next), next };
};

/** Reads chunks with size prefixes up to an empty one; skips trailers. */
const readChunkedBody = (text: string, from: number): ParsedBody => {
  let body = "";
  for (let offset = from; ; ) {
    const line = text.indexOf("\r\n", offset);
    if (line < 0) return undefined;
    const size = Number.parseInt(text.slice(offset, line), 16);
    if (!Number.isSafeInteger(size)) throw new Error(`invalid chunk size: ${text.slice(offset, line)}`);
    const begin = line + 2;
    if (size === 0) {
      // Without trailers, the line of the last size is followed by an empty line.
      const trailersEnd = text.indexOf("\r\n\r\n", line);
      return trailersEnd < 0 ? undefined : { body, next: trailersEnd + 4 };
    }
    if (text.length < begin + size + 2) return undefined;
    body += text.slice(begin, begin + size);
    offset = begin + size + 2;
  }
};
