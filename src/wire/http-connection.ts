// An HTTP/1.1 client over any two-way channel: sends requests one after another, streams responses, and upgrades. The server uses it for
// daemons and workspace apps through the tunnel (rules TN-8, TN-9). Limits the size of heads, and never buffers a whole body on its own.

import { parseJson } from "#base/json/read.ts";
import { ChunkDecoder } from "./chunk-decoder.ts";
import type { Duplex } from "./duplex.ts";
import { type BodyFraming, encodeHead, type HttpHead, parseHead, toFraming } from "./http-head.ts";
import { toWireProblem } from "./json-problem.ts";
import { Lookahead } from "./lookahead.ts";
import { WireError } from "./wire-error.ts";

export type HttpRequest = {
  method: string;
  /** Path and query, sent unchanged. */
  path: string;
  headers?: Iterable<readonly [string, string]>;
  /** Bytes are sent with their length. A streamed body is chunked unless `length` is set. */
  body?: Uint8Array | AsyncIterable<Uint8Array>;
  /** The exact length of a streamed body. */
  length?: number;
  /** Breaks the connection when it fires, also while the response's body is read. */
  signal?: AbortSignal;
};

const MAX_HEAD_BYTES = 64 * 1024;
const MAX_INTERIM_RESPONSES = 8;

/** `bytes` calls `wait` to reserve memory before it buffers more than `above` bytes of a body. */
export type AnswerReserve = { readonly above: number; readonly wait: () => Promise<unknown> | undefined };

/** A response whose body can be read once. */
export class HttpResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: AsyncGenerator<Uint8Array, void, undefined>;
  reserve: AnswerReserve | undefined;
  #read: () => void = () => {};

  constructor(head: HttpHead, body: AsyncGenerator<Uint8Array, void, undefined>) {
    this.status = head.status;
    this.headers = head.headers;
    this.body = body;
  }

  /** Sets the function that is called when the body has been read completely. */
  onRead(run: () => void): void {
    this.#read = run;
  }

  /** Called by the connection when the body has been read completely. */
  markRead(): void {
    this.#read();
  }

  /** Returns the body as text. Throws WireError `too_large` beyond `limit` bytes. */
  async text(limit?: number): Promise<string> {
    return Buffer.from(await this.bytes(limit)).toString("utf8");
  }

  async bytes(limit = 4 * 1024 * 1024): Promise<Uint8Array> {
    const parts: Uint8Array[] = [];
    let size = 0;
    for await (const part of this.body) {
      const before = size;
      size += part.byteLength;
      if (size > limit) throw new WireError("too_large", "The answer is too large.");
      if (this.reserve && before <= this.reserve.above && size > this.reserve.above) await this.reserve.wait();
      parts.push(part);
    }
    return Buffer.concat(parts);
  }

  /** Discards the body. Closes the connection unless the body has ended. */
  async discard(): Promise<void> {
    await this.body.return();
  }

  /** Returns the body as JSON. Throws WireError `too_large` if it has too many bytes or values to parse in one turn of the event loop. */
  async json<T>(limit?: number): Promise<T> {
    const bytes = await this.bytes(limit);
    try {
      return parseJson(bytes) as T;
    } catch (error) {
      throw toWireProblem("The answer", error);
    }
  }
}

/** The result of an upgrade request: the raw channel after 101, otherwise an ordinary response. */
export type Upgrade = { head: HttpHead; stream: Duplex } | { response: HttpResponse };

export class HttpConnection {
  readonly #stream: Lookahead;
  #isBusy = false;
  #isUnusable = false;
  #isSending = false;
  #release: () => void = () => {};

  constructor(stream: Duplex) {
    this.#stream = new Lookahead(stream);
  }

  /** True if another request can be sent: the last response was read completely, and the server keeps the connection open. */
  get reusable(): boolean {
    return !this.#isBusy && !this.#isUnusable;
  }

  /** Settles when an idle connection cannot be reused: it was closed, or received bytes without a request. */
  async waitUntilUnusable(): Promise<void> {
    await this.#stream.waitForActivity();
  }

  /** Sends the request and resolves when the head has arrived. Throws WireError. */
  async request(request: HttpRequest): Promise<HttpResponse> {
    const head = await this.#exchange(request);
    if (head.status === 101) throw this.#breakConnection("The answer changes the protocol.");
    return this.#toResponse(request, head);
  }

  /** Sends a request with `upgrade` headers: the connection belongs to the caller after 101. */
  async upgrade(request: HttpRequest): Promise<Upgrade> {
    const head = await this.#exchange(request);
    if (head.status !== 101) return { response: this.#toResponse(request, head) };
    this.#isUnusable = true;
    this.#release();
    return { head, stream: this.#stream };
  }

  close(): void {
    this.#isUnusable = true;
    this.#release();
    this.#stream.reset("The connection is no longer needed.");
  }

  async #exchange({ method, path, headers = [], body, length, signal }: HttpRequest): Promise<HttpHead> {
    if (!this.reusable) throw new WireError("refused", "The connection is in use.");
    const isComplete = body === undefined || body instanceof Uint8Array;
    const head = encodeHead(method, path, headers, isComplete ? (body?.byteLength ?? 0) : length);
    this.#isBusy = true;
    const abort = (): void => this.#stream.reset("The request was given up.");
    if (signal?.aborted) abort();
    signal?.addEventListener("abort", abort, { once: true });
    this.#release = () => signal?.removeEventListener("abort", abort);
    try {
      // Sends concurrently: a server that does not read the body responds before the body is sent.
      this.#isSending = true;
      this.#send(head, body, length).then(
        () => {
          this.#isSending = false;
        },
        () => {},
      );
      return await this.#readHead();
    } catch (error) {
      this.close();
      throw error;
    }
  }

  async #send(head: Uint8Array, body: HttpRequest["body"], length: number | undefined): Promise<void> {
    if (body === undefined) return this.#stream.write(head);
    if (body instanceof Uint8Array) return this.#stream.write(Buffer.concat([head, body]));
    await this.#stream.write(head);
    if (length !== undefined) return this.#sendCounted(body, length);
    for await (const part of body) {
      if (part.byteLength === 0) continue;
      const size = new TextEncoder().encode(`${part.byteLength.toString(16)}\r\n`);
      await this.#stream.write(Buffer.concat([size, part, CRLF]));
    }
    await this.#stream.write(LAST_CHUNK);
  }

  async #sendCounted(body: AsyncIterable<Uint8Array>, length: number): Promise<void> {
    let remaining = length;
    for await (const part of body) {
      remaining -= part.byteLength;
      if (remaining < 0) break;
      await this.#stream.write(part);
    }
    // With a wrong length, the server would read following bytes as part of the body, or a part of the body as the next request.
    if (remaining !== 0) throw this.#breakConnection("The body has another length than was said.");
  }

  async #readHead(): Promise<HttpHead> {
    for (let interim = 0; interim < MAX_INTERIM_RESPONSES; interim += 1) {
      const text = await this.#stream.readUntil("\r\n\r\n", MAX_HEAD_BYTES);
      if (text === undefined) throw new WireError("closed", "The connection was closed before an answer came.");
      const head = parseHead(text);
      if (head.status >= 200 || head.status === 101) return head;
    }
    throw new WireError("protocol", "Too many interim answers.");
  }

  #toResponse({ method }: HttpRequest, head: HttpHead): HttpResponse {
    const framing = toFraming(method, head);
    const isEmpty = framing.kind === "none" || (framing.kind === "length" && framing.length === 0);
    if (isEmpty) this.#finish(head, true);
    const response: HttpResponse = new HttpResponse(
      head,
      this.#readBody(isEmpty ? NO_BODY : framing, head, () => response.markRead()),
    );
    return response;
  }

  #finish({ headers }: HttpHead, isComplete: boolean): void {
    this.#release();
    this.#isBusy = false;
    // A connection whose body was not read or sent completely cannot be reused.
    if (!isComplete || this.#isSending || headers.get("connection")?.toLowerCase() === "close") this.close();
  }

  /** Yields the body and then calls `onRead`. A single generator, because each nested one would cost three promises per chunk. */
  async *#readBody(
    framing: BodyFraming,
    head: HttpHead,
    onRead: () => void,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    if (framing.kind === "none") return onRead();
    let isComplete = false;
    try {
      const chunks = framing.kind === "chunked" ? new ChunkDecoder() : undefined;
      for (let remaining = toLength(framing); chunks ? !chunks.isOver : remaining > 0; ) {
        const part = chunks ? await this.#readChunked(chunks) : await this.#stream.readAtMost(remaining);
        if (part === undefined && framing.kind === "close") break;
        if (part === undefined) throw new WireError("closed", "The answer was cut short.");
        remaining -= part.byteLength;
        if (part.byteLength > 0) yield part;
      }
      isComplete = framing.kind !== "close";
    } finally {
      this.#finish(head, isComplete);
    }
    onRead();
  }

  /** Reads once and returns the payload in it; undefined when the channel has ended. */
  async #readChunked(decoder: ChunkDecoder): Promise<Uint8Array | undefined> {
    const bytes = await this.#stream.read();
    if (bytes === undefined) return undefined;
    try {
      const { payload, rest } = decoder.push(bytes);
      this.#stream.unread(rest);
      return payload;
    } catch (error) {
      this.close();
      throw error;
    }
  }

  #breakConnection(reason: string): WireError {
    this.close();
    return new WireError("protocol", reason);
  }
}

const NO_BODY = { kind: "none" } as const;
const toLength = (framing: BodyFraming): number =>
  framing.kind === "length" ? framing.length : Number.POSITIVE_INFINITY;
const CRLF = new TextEncoder().encode("\r\n");
const LAST_CHUNK = new TextEncoder().encode("0\r\n\r\n");
