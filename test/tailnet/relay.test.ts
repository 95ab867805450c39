// The relay over real sockets: peers introduce themselves, exchange packets and leave. The relay disconnects a peer that violates the
// protocol, without affecting others.
import { describe, expect, test } from "bun:test";
import { toAgentsOwner } from "#src/api/http/holders.ts";
import { createKeyPair, deriveSharedKey, seal } from "#src/tailnet/box.ts";
import { encodeFrame, FRAME, FrameReader, MAX_PACKET } from "#src/tailnet/derp-frame.ts";
import { PacketQueue, QueuePool } from "#src/tailnet/packet-queue.ts";
import { Relay } from "#src/tailnet/relay.ts";
import { connectAgent } from "#test/api/agents/rpc-agent.ts";
import { forFile } from "#test/support/for-file.ts";
import { describeInProcess, testInProcess } from "#test/support/in-process.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { getContext, seedAgent } from "#test/support/seed.ts";
import { startTestServer, type TestServer } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import vectors from "./nacl-vectors.json" with { type: "json" };
import { coordinate, RelayPeer } from "./peers.ts";

const server = await forFile(startTestServer());

const encodeText = (message: string): Uint8Array => new TextEncoder().encode(message);

describe("connecting", () => {
  test("[TL-3] accepts WebSockets with the subprotocol derp, answers other upgrades with 426, and the latency check with 200", async () => {
    await using peer = await RelayPeer.join(server);
    expect(peer.socket.protocol).toBe("derp");
    for (const headers of [
      {},
      { upgrade: "DERP", connection: "Upgrade" },
      { upgrade: "websocket", connection: "Upgrade" },
    ] as Record<string, string>[]) {
      const response = await fetch(new URL("/derp", server.url), { headers });
      expect([response.status, response.headers.get("upgrade")]).toEqual([426, "websocket"]);
      expect(((await response.json()) as { message: string }).message).toContain("derp");
    }
    const probe = await fetch(new URL("/derp/latency-check", server.url));
    expect([probe.status, await probe.text()]).toEqual([200, ""]);
  });

  testInProcess("[TL-1] [TL-3] encodes the frames of an introduction like an independent implementation", () => {
    const secret = new Uint8Array(Buffer.from(vectors.frames.relay_secret, "hex"));
    const relay = new Relay(new ManualClock(), createKeyPair(secret));
    const sent: string[] = [];
    const client = relay.connect({
      transmit: (bytes) => sent.push(Buffer.from(bytes).toString("hex")),
      close: (code, reason) => sent.push(`${code} ${reason}`),
    });
    expect(sent).toEqual([vectors.frames.server_key]);
    client.push(Buffer.from(vectors.frames.client_info, "hex"));
    expect(client.address).toBe(vectors.frames.client_public);
    expect(sent[1]?.slice(0, 10)).toBe(vectors.frames.server_info.slice(0, 10));
    expect(sent).toHaveLength(2);
  });

  test("[TL-5] limits the total size of all queues, and leaves room in each client's queue", () => {
    const pool = new QueuePool();
    const frame = new Uint8Array(64 * 1024);
    const queues = Array.from({ length: 500 }, () => new PacketQueue(pool));
    for (let round = 0; round < 40; round += 1) for (const queue of queues) queue.put("packet", frame);
    expect(pool.bytes).toBeLessThanOrEqual(64 * 1024 * 1024 + frame.byteLength);
    expect(pool.filled).toBe(500);
    // Another client can queue packets even while the others use the whole pool.
    const slow = new PacketQueue(pool);
    slow.put("control", new Uint8Array(100));
    slow.put("packet", new Uint8Array(1_000));
    expect(slow.bytes).toBe(1_100);
    slow.clear();
    for (const queue of queues) queue.clear();
    expect([pool.bytes, pool.filled]).toEqual([0, 0]);
    const firstQueue = queues[0] as PacketQueue;
    for (let i = 0; i < 40; i += 1) firstQueue.put("packet", frame);
    expect(firstQueue.bytes).toBe(2 * 1024 * 1024);
  });
});

describeInProcess("unknown clients", () => {
  testInProcess(
    "[TL-34] are limited in number: the oldest is disconnected, but clients with announced keys stay",
    async () => {
      // With a longer maximum message, fewer clients are allowed.
      await using smallServer = await startTestServer({ env: { SLIPWAY_APP_MESSAGE_MB: "1024" } });
      const seeded = await seedAgent(smallServer);
      await using known = await RelayPeer.join(smallServer);
      await using agent = await connectAgent(smallServer, seeded.agent_token);
      const agentStream = await coordinate(agent.tailnet);
      const key = Buffer.concat([Buffer.from("np"), known.pair.public]);
      await agentStream.send({ updateSelf: { node: { id: 1n, key, preferredDerp: 999 } } });
      await until(() => getContext(smallServer).tailnet.coordinator.isAnnounced(known.address));
      const unknown = [await RelayPeer.join(smallServer)];
      let isDisconnected = false;
      void unknown[0]?.closed.then(() => {
        isDisconnected = true;
      });
      while (!isDisconnected) unknown.push(await RelayPeer.join(smallServer));
      expect(unknown.length).toBeGreaterThan(8);
      known.sendPacket(unknown.at(-1) as RelayPeer, "hello");
      expect((await unknown.at(-1)?.receiveText())?.text).toBe("hello");
      for (const peer of unknown) await peer[Symbol.asyncDispose]();
    },
  );
});

describeInProcess("connections with announced keys", () => {
  testInProcess("[TL-34] count for the user who announced the key, whatever addresses they come from", async () => {
    const seeded = await seedAgent(server);
    await using agent = await connectAgent(server, seeded.agent_token);
    const atAgent = await coordinate(agent.tailnet);
    await using peer = await RelayPeer.join(server);
    const key = Buffer.concat([Buffer.from("np"), peer.pair.public]);
    await atAgent.send({ updateSelf: { node: { id: 1n, key, preferredDerp: 999 } } });
    const { sockets, tailnet } = getContext(server);
    await until(() => tailnet.coordinator.isAnnounced(peer.address));
    const holder = toAgentsOwner({ owner_id: seeded.owner_id });
    const before = sockets.countHeld(holder);
    // Known keys are looked for when a client connects.
    await using _other = await RelayPeer.join(server);
    expect(sockets.countHeld(holder)).toBe(before + 1);
  });
});

describe("connections of one key", () => {
  test("[TL-34] are limited to two, also if a peer has announced the key", async () => {
    const { agent_token } = await seedAgent(server);
    await using agent = await connectAgent(server, agent_token);
    const atAgent = await coordinate(agent.tailnet);
    await using first = await RelayPeer.join(server);
    const key = Buffer.concat([Buffer.from("np"), first.pair.public]);
    await atAgent.send({ updateSelf: { node: { id: 1n, key, preferredDerp: 999 } } });
    await until(() => getContext(server).tailnet.coordinator.isAnnounced(first.address));
    await using second = await RelayPeer.join(server, first.pair);
    await using third = await RelayPeer.join(server, first.pair);
    // Known keys are looked for when a client connects.
    await using other = await RelayPeer.join(server);
    await first.closed;
    expect([second, third].map(({ socket }) => socket.readyState)).toEqual([WebSocket.OPEN, WebSocket.OPEN]);
    other.sendPacket(third, "hello");
    expect((await third.receiveText()).text).toBe("hello");
  });
});

describe("packets", () => {
  test("[TL-4] reach the peer with that key in order, with their sender's key, however messages are split", async () => {
    await using a = await RelayPeer.join(server);
    await using b = await RelayPeer.join(server);
    a.sendPacket(b, "one");
    expect(await b.receiveText()).toEqual({ from: a.address, text: "one" });
    const two = encodeFrame(FRAME.send_packet, b.pair.public, encodeText("two"));
    const three = encodeFrame(FRAME.send_packet, b.pair.public, encodeText("three"));
    const both = Buffer.concat([two, three]);
    for (let position = 0; position < both.byteLength; position += 7) a.send(both.subarray(position, position + 7));
    a.send(both);
    for (const word of ["two", "three", "two", "three"]) expect((await b.receiveText()).text).toBe(word);
    const largest = "x".repeat(MAX_PACKET);
    b.sendPacket(a, largest);
    expect((await a.receiveText()).text === largest).toBe(true);
    b.sendPacket(a, "");
    expect(await a.receiveText()).toEqual({ from: b.address, text: "" });
  });

  test("[TL-4] to an absent key are reported as undeliverable; pings are answered, and unknown frames are skipped", async () => {
    await using a = await RelayPeer.join(server);
    const absent = createKeyPair().public;
    a.sendPacket(absent, "hello?");
    expect(await a.next()).toEqual({
      type: FRAME.peer_gone,
      payload: Buffer.concat([absent, Uint8Array.of(1)]) as never,
    });
    a.send(encodeFrame(FRAME.note_preferred, Uint8Array.of(1)));
    a.send(encodeFrame(0x77, encodeText("of a later version")));
    a.send(encodeFrame(FRAME.ping, encodeText("12345678")));
    expect(await a.next()).toEqual({ type: FRAME.pong, payload: encodeText("12345678") });
    // The relay sends only a few of these replies per second.
    for (let i = 0; i < 200; i += 1) a.sendPacket(absent, "hello?");
    a.send(encodeFrame(FRAME.ping, encodeText("87654321")));
    let notices = 0;
    for (let frame = await a.next(); frame?.type === FRAME.peer_gone; frame = await a.next()) notices += 1;
    expect(notices).toBeGreaterThan(0);
    expect(notices).toBeLessThan(200);
  });

  test("[TL-4] the end of a peer's last connection is reported only to peers that received its packets", async () => {
    await using a = await RelayPeer.join(server);
    await using c = await RelayPeer.join(server);
    const b = await RelayPeer.join(server);
    const secondConnection = await RelayPeer.join(server, b.pair);
    b.sendPacket(a, "hello");
    await a.receiveText();
    // Packets for a key go to its most recently active connection.
    a.sendPacket(b, "to the first");
    expect((await b.receiveText()).text).toBe("to the first");
    await secondConnection.waitUntilRead();
    a.sendPacket(b, "to the second");
    expect((await secondConnection.receiveText()).text).toBe("to the second");
    await b[Symbol.asyncDispose]();
    secondConnection.sendPacket(a, "still here");
    expect((await a.receiveText()).text).toBe("still here");
    await secondConnection[Symbol.asyncDispose]();
    expect(await a.next()).toEqual({
      type: FRAME.peer_gone,
      payload: Buffer.concat([b.pair.public, Uint8Array.of(0)]) as never,
    });
    await c.waitUntilRead();
  });
});

describe("peers that do not read", () => {
  testInProcess(
    "[TL-5] peers that do not read lose their oldest packets, use little memory and stall no other peer",
    async () => {
      const relay = new Relay(new ManualClock());
      let isFull = false;
      const messages: Uint8Array[] = [];
      const a = connectClient(relay, () => 1);
      const b = connectClient(relay, (bytes) => {
        messages.push(bytes.slice());
        return isFull ? -1 : 1;
      });
      messages.length = 0;
      isFull = true;
      const discovery = Buffer.concat([Uint8Array.of(0x54, 0x53, 0xf0, 0x9f, 0x92, 0xac), encodeText("ping")]);
      for (let i = 0; i < 600; i += 1) a.client.push(encodeFrame(FRAME.send_packet, b.key, new Uint8Array(60_000)));
      a.client.push(encodeFrame(FRAME.send_packet, b.key, discovery));
      expect(b.client.waiting.bytes).toBeLessThan(2 * 1024 * 1024 + 1_000);
      expect(b.client.waiting.dropped).toBeGreaterThan(500);
      expect(messages).toHaveLength(1);
      isFull = false;
      b.client.drain();
      // Discovery packets are sent first, because peers use them to find another path when one is congested.
      const parseFrames = (messages: Uint8Array[]) => [...new FrameReader().push(Buffer.concat(messages))];
      expect(parseFrames(messages.slice(1))[0]?.payload.subarray(32)).toEqual(discovery);
      expect(b.client.waiting.bytes).toBe(0);
      messages.length = 0;
      for (let i = 0; i < 5_000; i += 1) a.client.push(encodeFrame(FRAME.send_packet, b.key, encodeText("small")));
      await new Promise<void>((resolve) => setImmediate(resolve));
      expect(parseFrames(messages)).toHaveLength(5_000);
    },
  );

  test("[TL-5] a peer that reads nothing delays neither the sender nor other peers", async () => {
    await using a = await RelayPeer.join(server);
    await using c = await RelayPeer.join(server);
    const b = await RelayPeer.join(server);
    // Uses TCP directly, because the runtime's WebSocket client reads even if the test does not.
    await b[Symbol.asyncDispose]();
    await using stalled = await StalledPeer.join(server);
    const block = new Uint8Array(MAX_PACKET).fill(7);
    for (let round = 0; round < 20; round += 1) {
      for (let i = 0; i < 16; i += 1) a.sendPacket(stalled.key, block);
      await a.waitUntilRead();
    }
    a.sendPacket(c, "and you?");
    expect((await c.receiveText()).text).toBe("and you?");
    c.sendPacket(a, "fine");
    expect((await a.receiveText()).text).toBe("fine");
  });
});

/** Connects a client to a relay without a server. The relay sends to it with `transmit`. */
const connectClient = (relay: Relay, transmit: (bytes: Uint8Array) => number) => {
  const pair = createKeyPair();
  const client = relay.connect({ transmit, close: () => {} });
  const shared = deriveSharedKey(pair.secret, relay.key.public) as Uint8Array;
  client.push(encodeFrame(FRAME.client_info, pair.public, seal(shared, encodeText('{"version":2}'))));
  return { client, key: pair.public };
};

describe("clients that violate the protocol", () => {
  const sendUntilClosed = async (messages: (Uint8Array | string)[], isIntroduced: boolean) => {
    const peer = isIntroduced ? await RelayPeer.join(server) : new RelayPeer(server);
    if (!isIntroduced) await peer.readGreeting();
    for (const message of messages) peer.socket.send(message as never);
    return peer.closed;
  };
  const makeHeader = (size: number, type: number): Uint8Array => {
    const header = new Uint8Array(5);
    header[0] = type;
    new DataView(header.buffer).setUint32(1, size);
    return header;
  };

  // biome-ignore format: a table of cases
  const cases: [string, boolean, () => (Uint8Array | string)[], Awaited<RelayPeer["closed"]>][] = [
    ["text", false, () => ["hello"], { code: 1003, reason: "only binary messages are allowed here" }],
    ["a packet before the introduction", false, () => [encodeFrame(FRAME.send_packet, new Uint8Array(40))], { code: 1002, reason: "the first frame must introduce the client" }],
    ["a ping before the introduction", false, () => [encodeFrame(FRAME.ping, new Uint8Array(8))], { code: 1002, reason: "the first frame must introduce the client" }],
    ["an introduction cut off", false, () => [encodeFrame(FRAME.client_info, new Uint8Array(40))], { code: 1002, reason: "the introduction is cut off" }],
    ["the key of another client", false, () => [encodeFrame(FRAME.client_info, createKeyPair().public, seal(new Uint8Array(32), encodeText("{}")))], { code: 1008, reason: "the introduction does not prove the key" }],
    ["a key without a secret", false, () => [encodeFrame(FRAME.client_info, new Uint8Array(32), seal(new Uint8Array(32), encodeText("{}")))], { code: 1008, reason: "the introduction does not prove the key" }],
    ["an introduction of a gigabyte", false, () => [makeHeader(2 ** 30, FRAME.client_info)], { code: 1009, reason: `a frame of ${2 ** 30} bytes is too large` }],
    ["a packet above the limit", true, () => [makeHeader(32 + MAX_PACKET + 1, FRAME.send_packet)], { code: 1009, reason: `a frame of ${32 + MAX_PACKET + 1} bytes is too large` }],
    ["an unknown frame above the limit", true, () => [makeHeader(0xffff_ffff, 0x77)], { code: 1009, reason: "a frame of 4294967295 bytes is too large" }],
    ["a packet without a whole address", true, () => [encodeFrame(FRAME.send_packet, new Uint8Array(31))], { code: 1002, reason: "a packet without a whole address" }],
    ["a second introduction", true, () => [encodeFrame(FRAME.client_info, new Uint8Array(100))], { code: 1002, reason: "introduced twice" }],
    ["a ping of the wrong size", true, () => [encodeFrame(FRAME.ping, new Uint8Array(7))], { code: 1002, reason: "a ping has 8 bytes" }],
    ["forwarding as in a mesh", true, () => [encodeFrame(FRAME.forward_packet, new Uint8Array(80))], { code: 1008, reason: "this relay has no mesh" }],
    ["watching as in a mesh", true, () => [encodeFrame(FRAME.watch_connections)], { code: 1008, reason: "this relay has no mesh" }],
    ["closing another client as in a mesh", true, () => [encodeFrame(FRAME.close_peer, new Uint8Array(32))], { code: 1008, reason: "this relay has no mesh" }],
  ];
  test.each(cases)("[TL-6] are disconnected with a reason: %s", async (_violation, isIntroduced, messages, reason) => {
    expect(await sendUntilClosed(messages(), isIntroduced)).toEqual(reason);
  });

  testInProcess(
    "[TL-6] disconnects a client without an introduction after 10 seconds; others get a keep-alive every minute",
    async () => {
      const clock = new ManualClock();
      await using clockedServer = await startTestServer({ clock });
      const silentPeer = new RelayPeer(clockedServer);
      await silentPeer.readGreeting();
      await using introducedPeer = await RelayPeer.join(clockedServer);
      clock.advance(10_000);
      expect(await silentPeer.closed).toEqual({ code: 1008, reason: "no introduction within 10 seconds" });
      expect(getContext(clockedServer).tailnet.relay.counts).toEqual({ clients: 1, keys: 1 });
      clock.advance(50_000);
      expect((await introducedPeer.next())?.type).toBe(FRAME.keep_alive);
    },
  );
});

/** A client over plain TCP that introduces itself and then does not read. */
class StalledPeer implements AsyncDisposable {
  readonly key: Uint8Array;
  readonly #socket: Bun.Socket;

  private constructor(key: Uint8Array, socket: Bun.Socket) {
    this.key = key;
    this.#socket = socket;
  }

  static async join(server: TestServer): Promise<StalledPeer> {
    const pair = createKeyPair();
    const introduced = Promise.withResolvers<void>();
    let received = Buffer.alloc(0);
    let isIntroduced = false;
    const socket = await Bun.connect({
      hostname: server.url.hostname,
      port: Number(server.url.port),
      socket: {
        data(tcp, chunk) {
          received = Buffer.concat([received, chunk]);
          const head = received.indexOf("\r\n\r\n");
          // The greeting has a 2-byte WebSocket header, a 5-byte frame header, 8 magic bytes and a 32-byte key.
          if (head < 0 || received.byteLength < head + 4 + 47) return;
          if (isIntroduced) {
            tcp.pause();
            return introduced.resolve();
          }
          isIntroduced = true;
          const shared = deriveSharedKey(pair.secret, received.subarray(head + 4 + 15, head + 4 + 47)) as Uint8Array;
          const info = encodeFrame(FRAME.client_info, pair.public, seal(shared, encodeText('{"version":2}')));
          const header = Buffer.from([0x82, 0x80 | 126, info.byteLength >> 8, info.byteLength & 255, 0, 0, 0, 0]);
          tcp.write(Buffer.concat([header, info]));
        },
      },
    });
    socket.write(
      `GET /derp HTTP/1.1\r\nHost: ${server.url.host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: derp\r\n\r\n",
    );
    await introduced.promise;
    return new StalledPeer(pair.public, socket);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.terminate();
  }
}
