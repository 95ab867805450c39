// Peers of the private network for tests: the real protocol over real sockets, to the coordinator and to the relay.
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
  let waiting: CoordinateResponse_PeerUpdate[] = [];
  return {
    send: call.send,
    cancel: call.cancel,
    /** Returns the next update, the error text, or `end`. */
    async next(): Promise<CoordinateResponse_PeerUpdate | string> {
      while (waiting.length === 0) {
        const { value, done } = await responses.next();
        if (done) return "end";
        if (value.error !== "") return value.error;
        waiting = value.peerUpdates;
      }
      return waiting.shift() as CoordinateResponse_PeerUpdate;
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
  #waiting: (() => void) | undefined;
  #over = false;

  constructor(server: TestServer, pair: KeyPair = createKeyPair()) {
    this.pair = pair;
    this.socket = new WebSocket(socketUrl(server, "/derp"), ["derp"]);
    this.socket.binaryType = "arraybuffer";
    this.closed = awaitClose(this.socket).then((closed) => {
      this.#over = true;
      this.#waiting?.();
      return closed;
    });
    this.socket.addEventListener("message", ({ data }: MessageEvent<ArrayBuffer>) => {
      for (const { type, payload } of this.#reader.push(new Uint8Array(data)))
        this.#frames.push({ type, payload: payload.slice() });
      this.#waiting?.();
    });
  }

  /** Connects a peer, introduces it, and checks the relay's information frame. */
  static async join(server: TestServer, pair?: KeyPair): Promise<RelayPeer> {
    const peer = new RelayPeer(server, pair);
    const shared = await peer.readGreeting();
    const info = new TextEncoder().encode('{"version":2,"meshKey":"","CanAckPings":true,"IsProber":false}');
    peer.send(encodeFrame(FRAME.client_info, peer.pair.public, seal(shared, info)));
    const answer = await peer.next();
    if (answer?.type !== FRAME.server_info) throw new Error("the relay did not introduce itself");
    const text = new TextDecoder().decode(open(shared, answer.payload));
    if (JSON.parse(text).version !== 2) throw new Error(`the relay said ${text}`);
    return peer;
  }

  /** Reads the relay's key; returns the shared secret. */
  async readGreeting(): Promise<Uint8Array> {
    const hello = await this.next();
    if (hello?.type !== FRAME.server_key || Buffer.compare(hello.payload.subarray(0, 8), DERP_MAGIC) !== 0)
      throw new Error("the relay did not name its key");
    return deriveSharedKey(this.pair.secret, hello.payload.subarray(8)) as Uint8Array;
  }

  get address(): string {
    return Buffer.from(this.pair.public).toString("hex");
  }

  /** Sends bytes as one message. */
  send(bytes: Uint8Array): void {
    this.socket.send(bytes as Uint8Array<ArrayBuffer>);
  }

  packet(to: RelayPeer | Uint8Array, packet: Uint8Array | string): void {
    const key = to instanceof RelayPeer ? to.pair.public : to;
    const bytes = typeof packet === "string" ? new TextEncoder().encode(packet) : packet;
    this.send(encodeFrame(FRAME.send_packet, key, bytes));
  }

  /** Returns the next frame; undefined when the connection has ended. */
  async next(): Promise<Frame | undefined> {
    while (this.#frames.length === 0) {
      if (this.#over) return undefined;
      await new Promise<void>((resolve) => {
        this.#waiting = resolve;
      });
    }
    return this.#frames.shift();
  }

  /** Returns the next packet as text, and its sender's key. */
  async receiveText(): Promise<{ from: string; text: string }> {
    const frame = await this.next();
    if (frame?.type !== FRAME.receive_packet) throw new Error(`no packet but ${frame?.type}`);
    const from = Buffer.from(frame.payload.subarray(0, 32)).toString("hex");
    return { from, text: new TextDecoder().decode(frame.payload.subarray(32)) };
  }

  /** Resolves when the relay has read everything sent before. */
  async waitUntilRead(): Promise<void> {
    const mark = crypto.getRandomValues(new Uint8Array(8));
    this.send(encodeFrame(FRAME.ping, mark));
    for (;;) {
      const frame = await this.next();
      if (frame === undefined) throw new Error("the connection is over");
      if (frame.type === FRAME.pong && Buffer.compare(frame.payload, mark) === 0) return;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.socket.close();
    await this.closed;
  }
}
