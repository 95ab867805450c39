// The link to the relay over the network: a WebSocket with automatic reconnect. Packets are datagrams: they are dropped while there is no
// connection or too many bytes are queued, and the TCP connections in the tunnel retransmit them. [TL-27]
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import type { Random } from "#base/random.ts";
import { type ByteStream, connectPlainWebSocket, createWebSocketStream } from "#src/wire/index.ts";
import type { KeyPair } from "../box.ts";
import { RelaySession } from "./relay-session.ts";

/** Maximum number of queued bytes. */
const MAX_UNSENT_BYTES = 2 * 1024 * 1024;
const RETRY_MS = { min: 200, max: 3_000 } as const;
/** The relay sends a frame every minute, so a longer silence means a dead connection. */
const SILENCE_TIMEOUT_MS = 120_000;

export type RelayLinkOptions = {
  /** The server's URL; its scheme determines whether TLS is used. */
  url: URL;
  /** Additional headers of the WebSocket request, such as headers that a proxy requires. */
  headers?: Readonly<Record<string, string>>;
  key: KeyPair;
  clock: Clock;
  random: Random;
  receive(from: Uint8Array, packet: Uint8Array): void;
  /** Called when the relay has accepted this peer, initially and after each reconnect; packets sent before were dropped. */
  onAccepted?(): void;
  gone?(key: Uint8Array): void;
};

/** The link over which a peer sends its packets. */
export interface Link {
  /** Resolves when the relay has first accepted this peer. */
  readonly ready: Promise<void>;
  /** Sends a packet, which must be valid until the function returns. */
  send(to: Uint8Array, packet: Uint8Array): void;
  close(): void;
}

export class RelayLink implements Link {
  readonly #options: RelayLinkOptions;
  readonly #url: URL;
  readonly #ready = Promise.withResolvers<void>();
  readonly ready = this.#ready.promise;
  #session: RelaySession | undefined;
  #stream: ByteStream | undefined;
  #unsent = 0;
  #isOver = false;
  #tries = 0;
  /** Number of dropped packets. */
  dropped = 0;

  constructor(options: RelayLinkOptions) {
    this.#options = options;
    this.#url = new URL("/derp", options.url);
    this.#url.protocol = options.url.protocol === "https:" ? "wss:" : "ws:";
    void this.#run();
  }

  send(to: Uint8Array, packet: Uint8Array): void {
    if (this.#unsent > MAX_UNSENT_BYTES || !this.#session?.send(to, packet)) this.dropped += 1;
  }

  close(): void {
    this.#isOver = true;
    this.#session?.close();
    this.#stream?.close();
  }

  async #run(): Promise<void> {
    const { clock, random } = this.#options;
    while (!this.#isOver) {
      try {
        await this.#runOnce();
      } catch (error) {
        log("tailnet").debug("no relay: {error}", { error });
      }
      if (this.#isOver) return;
      const delayMs = Math.min(RETRY_MS.max, RETRY_MS.min * 2 ** this.#tries) * (0.5 + random());
      this.#tries += 1;
      await new Promise<void>((resolve) => clock.after(delayMs, resolve));
    }
  }

  async #runOnce(): Promise<void> {
    const stream = await this.#open();
    this.#stream = stream;
    if (this.#isOver) stream.close();
    this.#unsent = 0;
    const session = new RelaySession({
      ...this.#options,
      write: (bytes) => this.#write(stream, bytes),
      ready: () => {
        this.#tries = 0;
        this.#ready.resolve();
        this.#options.onAccepted?.();
      },
    });
    this.#session = session;
    let receivedAt = this.#options.clock.monotonic();
    const watch = this.#options.clock.every(SILENCE_TIMEOUT_MS / 4, () => {
      if (this.#options.clock.monotonic() - receivedAt > SILENCE_TIMEOUT_MS) stream.close();
    });
    try {
      for await (const bytes of stream) {
        receivedAt = this.#options.clock.monotonic();
        session.push(bytes);
      }
    } finally {
      watch.cancel();
      session.close();
      stream.close();
    }
  }

  #open(): Promise<ByteStream> {
    const { clock, headers = {} } = this.#options;
    if (this.#url.protocol === "ws:") {
      return connectPlainWebSocket({
        url: this.#url,
        headers: { ...headers, "sec-websocket-protocol": "derp" },
        clock,
      });
    }
    const options = { headers, protocols: ["derp"], perMessageDeflate: false };
    return createWebSocketStream(new WebSocket(this.#url, options as never), clock);
  }

  #write(stream: ByteStream, bytes: Uint8Array): void {
    if (!stream.isBackedUp) {
      // The bytes are sent or copied before the call returns.
      stream.write(bytes).catch(() => {});
      return;
    }
    this.#unsent += bytes.byteLength;
    const onSent = (): void => {
      if (stream === this.#stream) this.#unsent -= bytes.byteLength;
    };
    // Errors are ignored here, because reading from a broken stream throws them too.
    stream.write(bytes.slice()).then(onSent, onSent);
  }
}
