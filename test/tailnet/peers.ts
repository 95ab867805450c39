// Peers for tests of the private network, which use the real protocol over real sockets with the coordinator and the relay.
import { systemClock } from "#base/clock.ts";
import { createKeyPair, deriveSharedKey, type KeyPair, open, seal } from "#src/tailnet/box.ts";
import { DERP_MAGIC, encodeFrame, FRAME, type Frame, FrameReader } from "#src/tailnet/derp-frame.ts";
import type { CoordinateResponse_PeerUpdate } from "#src/wire/gen/tailnet_pb.ts";
import { createTailnetClient } from "#src/wire/tailnet-api.ts";
import { createWebSocketStream } from "#src/wire/websocket.ts";
import { YamuxSession } from "#src/wire/yamux.ts";
import type { TestServer } from "#test/support/server.ts";

export type CloseInfo = { code: number; reason: string };

const awaitClose = (socket: WebSocket): Promise<CloseInfo> =>
  new Promise((resolve) => {
    socket.addEventListener("close", ({ code, reason }) => resolve({ code, reason }));
  });

const socketUrl = (server: TestServer, path: string): URL => {
  const url = new URL(path, server.url);
  url.protocol = "ws:";
  return url;
};

/** Connects a client of the Tailnet service. Rejects if the server refuses the connection. */
export const connectTailnet = async (server: TestServer, path: string, token: string) => {
  const socket = new WebSocket(socketUrl(server, path), { headers: { "Coder-Session-Token": token } } as never);
  const closed = awaitClose(socket);
  const stream = await createWebSocketStream(socket, systemClock);
  const session = new YamuxSession(stream, { role: "client", clock: systemClock });
  return {
    tailnet: createTailnetClient(session),
    socket,
    closed,
    async [Symbol.asyncDispose]() {
      session.close();
      await closed;
    },
  };
};

type Tailnet = ReturnType<typeof createTailnetClient>;

/** Opens a Coordinate stream, whose updates are read one by one. */
export const coordinate = async (tailnet: Tailnet) => {
  const call = await tailnet.coordinate();
  const responses = call[Symbol.asyncIterator]();
  let unread: CoordinateResponse_PeerUpdate[] = [];
  return {
    send: call.send,
    cancel: call.cancel,
    /** Returns the next update, the error text, or `end`. */
    async next(): Promise<CoordinateResponse_PeerUpdate | string> {
      while (unread.length === 0) {
        const { value, done } = await responses.next();
        if (done) return "end";
        if (value.error !== "") return value.error;
        unread = value.peerUpdates;
      }
      return unread.shift() as CoordinateResponse_PeerUpdate;
    },
  };
};

/** A client of the relay that has completed its handshake. */
export class RelayPeer implements AsyncDisposable {
  readonly pair: KeyPair;
  readonly socket: WebSocket;
  readonly closed: Promise<CloseInfo>;
  readonly #reader = new FrameReader();
  #frames: Frame[] = [];
  #wake: (() => void) | undefined;
  #isClosed = false;

  constructor(server: TestServer, pair: KeyPair = createKeyPair()) {
    this.pair = pair;
    this.socket = new WebSocket(socketUrl(server, "/derp"), ["derp"]);
    this.socket.binaryType = "arraybuffer";
    this.closed = awaitClose(this.socket).then((closed) => {
      this.#isClosed = true;
      this.#wake?.();
      return closed;
    });
    this.socket.addEventListener("message", ({ data }: MessageEvent<ArrayBuffer>) => {
      for (const { type, payload } of this.#reader.push(new Uint8Array(data)))
        this.#frames.push({ type, payload: payload.slice() });
      this.#wake?.();
    });
  }

  /** Connects a peer, introduces it, and checks the relay's information frame. */
  static async join(server: TestServer, pair?: KeyPair): Promise<RelayPeer> {
    const peer = new RelayPeer(server, pair);
    const shared = await peer.readGreeting();
    const info = new TextEncoder().encode('{"version":2,"meshKey":"","CanAckPings":true,"IsProber":false}');
    peer.send(encodeFrame(FRAME.client_info, peer.pair.public, seal(shared, info)));
    const response = await peer.next();
    if (response?.type !== FRAME.server_info) throw new Error("the relay did not introduce itself");
    const text = new TextDecoder().decode(open(shared, response.payload));
    if (JSON.parse(text).version !== 2) throw new Error(`unexpected information from the relay: ${text}`);
    return peer;
  }

  /** Reads the relay's key; returns the shared secret. */
  async readGreeting(): Promise<Uint8Array> {
    const greeting = await this.next();
    if (greeting?.type !== FRAME.server_key || Buffer.compare(greeting.payload.subarray(0, 8), DERP_MAGIC) !== 0)
      throw new Error("the relay did not send its key");
    return deriveSharedKey(this.pair.secret, greeting.payload.subarray(8)) as Uint8Array;
  }

  get address(): string {
    return Buffer.from(this.pair.public).toString("hex");
  }

  /** Sends bytes as one message. */
  send(bytes: Uint8Array): void {
    this.socket.send(bytes as Uint8Array<ArrayBuffer>);
  }

  sendPacket(to: RelayPeer | Uint8Array, packet: Uint8Array | string): void {
    const key = to instanceof RelayPeer ? to.pair.public : to;
    const bytes = typeof packet === "string" ? new TextEncoder().encode(packet) : packet;
    this.send(encodeFrame(FRAME.send_packet, key, bytes));
  }

  /** Returns the next frame; undefined when the connection has ended. */
  async next(): Promise<Frame | undefined> {
    while (this.#frames.length === 0) {
      if (this.#isClosed) return undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.#frames.shift();
  }

  /** Returns the next packet as text, and its sender's key. */
  async receiveText(): Promise<{ from: string; text: string }> {
    const frame = await this.next();
    if (frame?.type !== FRAME.receive_packet) throw new Error(`expected a packet, got ${frame?.type}`);
    const from = Buffer.from(frame.payload.subarray(0, 32)).toString("hex");
    return { from, text: new TextDecoder().decode(frame.payload.subarray(32)) };
  }

  /** Resolves when the relay has read everything sent before. */
  async waitUntilRead(): Promise<void> {
    const payload = crypto.getRandomValues(new Uint8Array(8));
    this.send(encodeFrame(FRAME.ping, payload));
    for (;;) {
      const frame = await this.next();
      if (frame === undefined) throw new Error("the connection has ended");
      if (frame.type === FRAME.pong && Buffer.compare(frame.payload, payload) === 0) return;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.socket.close();
    await this.closed;
  }
}
