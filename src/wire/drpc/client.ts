// The client side of calls: opens one stream per call, sends the method and the requests, reads the responses. An Error packet becomes an
// `RpcError`; an aborted signal resets the stream. [WI-13] [WI-15]

import type { Duplex } from "../duplex.ts";
import { WireError } from "../wire-error.ts";
import { decodeError, KIND, MAX_PACKET, NO_BODY } from "./frame.ts";
import { type OutgoingPacket, PacketReader, PacketWriter } from "./packets.ts";

/** Opens streams, such as a `YamuxSession`. */
export interface Opener {
  open(): Promise<Duplex>;
}

/** One bidirectional call. Iterate once over the responses; leaving the loop early cancels the call. */
export interface BidiCall extends AsyncIterable<Uint8Array> {
  /** Sends one request; waits while the peer grants no window. */
  send(request: Uint8Array): Promise<void>;
  /** States that no more requests follow. Responses continue. */
  closeSend(): Promise<void>;
  /** Cancels the call. */
  cancel(reason?: string): void;
}

// Each call has its own yamux stream, on which its ID is 1 (facts/wire 1.4).
const STREAM_ID = 1;

/** Unary call: returns the response's bytes. Throws RpcError for the peer's error, WireError if the stream broke or `signal` fired. */
export const call = async (
  session: Opener,
  method: string,
  request: Uint8Array,
  signal?: AbortSignal,
): Promise<Uint8Array> => {
  requireMessageSize(request);
  const outgoing = await OutgoingCall.open(session, signal);
  // The response is read concurrently: an error may arrive before a long request is sent.
  outgoing.sendUnawaited([KIND.invoke, utf8(method)], [KIND.message, request], [KIND.close_send, NO_BODY]);
  try {
    const answer = await outgoing.next();
    if (!answer) throw new WireError("closed", "The call ended without an answer.");
    return answer;
  } finally {
    outgoing.finish();
  }
};

/** Server-streaming call: yields the responses' bytes until the server ends. Leaving the loop early cancels the call. */
export async function* callServerStream(
  session: Opener,
  method: string,
  request: Uint8Array,
  signal?: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  requireMessageSize(request);
  const outgoing = await OutgoingCall.open(session, signal);
  outgoing.sendUnawaited([KIND.invoke, utf8(method)], [KIND.message, request], [KIND.close_send, NO_BODY]);
  yield* outgoing.iterateAnswers();
}

/** Bidirectional call. Resolves when the method has been sent. */
export const callBidi = async (session: Opener, method: string, signal?: AbortSignal): Promise<BidiCall> => {
  const outgoing = await OutgoingCall.open(session, signal);
  await outgoing.send([KIND.invoke, utf8(method)]);
  return {
    send: (request) => outgoing.send([KIND.message, request]),
    closeSend: () => outgoing.send([KIND.close_send, NO_BODY]),
    cancel: (reason) => outgoing.cancel(reason),
    [Symbol.asyncIterator]: () => outgoing.iterateAnswers(),
  };
};

class OutgoingCall {
  readonly #stream: Duplex;
  readonly #in: PacketReader;
  readonly #out: PacketWriter;
  readonly #removeListener: () => void;
  #sendsInProgress = 0;
  #hasEnded = false;

  static async open(session: Opener, signal?: AbortSignal): Promise<OutgoingCall> {
    if (signal?.aborted) throw toCancelledError(signal);
    const stream = await session.open();
    return new OutgoingCall(stream, signal);
  }

  constructor(stream: Duplex, signal?: AbortSignal) {
    this.#stream = stream;
    this.#in = new PacketReader(stream);
    this.#out = new PacketWriter(stream, STREAM_ID);
    const abort = (): void => this.cancel("The call was cancelled.");
    signal?.addEventListener("abort", abort, { once: true });
    this.#removeListener = () => signal?.removeEventListener("abort", abort);
    if (signal?.aborted) abort();
  }

  async send(...packets: readonly OutgoingPacket[]): Promise<void> {
    this.#sendsInProgress += 1;
    await this.#out.send(...packets);
    this.#sendsInProgress -= 1;
  }

  /** Sends without waiting; a broken stream is reported when the response is read. */
  sendUnawaited(...packets: readonly OutgoingPacket[]): void {
    this.send(...packets).catch(() => {});
  }

  /** Returns the next response; undefined when the server has ended cleanly. */
  async next(): Promise<Uint8Array | undefined> {
    const packet = await this.#in.next();
    if (packet?.kind === KIND.message) return packet.body;
    this.#hasEnded = true;
    if (packet?.kind === KIND.close_send) return undefined;
    if (packet?.kind === KIND.error) throw decodeError(packet.body);
    throw new WireError("closed", "The server ended the call early.");
  }

  async *iterateAnswers(): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for (;;) {
        const answer = await this.next();
        if (!answer) return;
        yield answer;
      }
    } finally {
      if (this.#hasEnded) this.finish();
      else this.cancel();
    }
  }

  /**
   * Closes the call cleanly with a Close packet and the end of this side. Resets the stream instead if a request is not sent completely.
   */
  finish(): void {
    this.#removeListener();
    if (this.#sendsInProgress > 0) {
      this.#stream.reset();
      return;
    }
    this.#out
      .send([KIND.close, NO_BODY])
      .then(() => this.#stream.end())
      .catch(() => this.#stream.reset());
  }

  cancel(reason = "The call was cancelled."): void {
    this.#removeListener();
    this.#stream.reset(reason);
  }
}

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);

const requireMessageSize = (request: Uint8Array): void => {
  if (request.byteLength > MAX_PACKET) throw new WireError("too_large", "A request of more than 4 MiB.");
};

const toCancelledError = (signal: AbortSignal): WireError =>
  new WireError("closed", "The call was cancelled.", signal.reason);
