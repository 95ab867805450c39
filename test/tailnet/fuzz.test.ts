// Invalid data for the relay and the Tailnet sockets: random, truncated, too large or out of order. The server disconnects the sender with
// a reason, memory does not grow, and two other peers keep exchanging packets.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { Client } from "#src/client.ts";
import { FRAME, FrameError, FrameReader, HEADER_BYTES, MAX_CLIENT_INFO, MAX_PACKET } from "#src/tailnet/derp-frame.ts";
import { Relay } from "#src/tailnet/relay.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { getContext, seedAgent } from "#test/support/seed.ts";
import { ADMIN, startTestServer, type TestServer } from "#test/support/server.ts";
import { connectTailnet, coordinate, RelayPeer } from "./peers.ts";

const ROUNDS = 20;

// A generator with a seed, so that a failure can be reproduced.
const createRandom = (seed: number) => {
  let state = seed;
  return (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
};

const makeNonsense = (next: (below: number) => number): Uint8Array => {
  const bytes = new Uint8Array(next(400));
  for (let i = 0; i < bytes.length; i += 1) bytes[i] = next(256);
  // Most frames start correctly, because otherwise no code after the header would be tested.
  if (bytes.length >= HEADER_BYTES && next(4) > 0) {
    bytes[0] = [FRAME.send_packet, FRAME.ping, FRAME.client_info, FRAME.forward_packet, next(256)][next(5)] as number;
    new DataView(bytes.buffer).setUint32(1, next(3) === 0 ? next(2 ** 31) : next(bytes.length));
  }
  return bytes;
};

/** Checks that two peers exchange messages while `during` runs. */
const expectUndisturbed = async (server: TestServer, during: () => Promise<void>): Promise<void> => {
  await using a = await RelayPeer.join(server);
  await using b = await RelayPeer.join(server);
  let isDone = false;
  const work = during().finally(() => {
    isDone = true;
  });
  for (let i = 0; !isDone || i < 5; i += 1) {
    a.sendPacket(b, `word ${i}`);
    expect(await b.receiveText()).toEqual({ from: a.address, text: `word ${i}` });
  }
  await work;
};

test("[TL-7] invalid input to the relay closes its sender with a reason and affects no other client", async () => {
  await using server = await startTestServer();
  await expectUndisturbed(server, async () => {
    for (let seed = 1; seed <= ROUNDS; seed += 1) {
      const next = createRandom(seed);
      const peer = seed % 2 === 0 ? await RelayPeer.join(server) : new RelayPeer(server);
      if (seed % 2 === 1) await peer.readGreeting();
      for (let i = 0; i < 20; i += 1) if (peer.socket.readyState === WebSocket.OPEN) peer.send(makeNonsense(next));
      // A frame of four gigabytes ends the connection in any case.
      for (let i = 0; i < 40; i += 1)
        if (peer.socket.readyState === WebSocket.OPEN) peer.send(new Uint8Array(16_384).fill(0xff));
      const { code, reason } = await peer.closed;
      expect([seed, [1002, 1008, 1009].includes(code), reason.length > 0]).toEqual([seed, true, true]);
    }
  });
});

test("[TL-7] invalid input to a Tailnet socket closes it with a reason; other sockets continue", async () => {
  await using server = await startTestServer();
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  await using bystander = await connectTailnet(server, "/api/v2/tailnet", admin.token as string);
  const url = Object.assign(new URL("/api/v2/tailnet", server.url), { protocol: "ws:" });
  for (let seed = 1; seed <= ROUNDS; seed += 1) {
    const next = createRandom(seed);
    const socket = new WebSocket(url, { headers: { "Service-Session-Token": admin.token } } as never);
    const closed = new Promise<{ code: number; reason: string }>((resolve) => {
      socket.onclose = ({ code, reason }) => resolve({ code, reason });
    });
    await new Promise((resolve) => {
      socket.onopen = resolve;
    });
    if (seed % 10 === 0) socket.send("text");
    else {
      // The client opens a stream correctly, sends invalid data in it, and then a header with an unknown version.
      socket.send(Uint8Array.of(0, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0));
      const body = makeNonsense(next);
      const head = new Uint8Array(12);
      head[7] = 1;
      new DataView(head.buffer).setUint32(8, body.length);
      socket.send(head);
      socket.send(body);
      socket.send(new Uint8Array(12).fill(0xee));
    }
    const { code, reason } = await closed;
    expect([seed, code, reason.length > 0]).toEqual([seed, seed % 10 === 0 ? 1003 : 1002, true]);
    await bystander.tailnet.postTelemetry({});
  }
});

testInProcess("[TL-7] an invalid call affects no other call and leaves no peer in the network", async () => {
  await using server = await startTestServer();
  const seeded = await seedAgent(server);
  const path = `/api/v2/workspaceagents/${seeded.agent_id}/coordinate?version=2.0`;
  const sendInvalidRequest = async (seed: number) => {
    const next = createRandom(seed);
    await using connection = await connectTailnet(server, path, seeded.owner_token);
    const stream = await coordinate(connection.tailnet);
    const requests = [
      { addTunnel: { id: makeNonsense(next) } },
      { removeTunnel: { id: makeNonsense(next) } },
      { readyForHandshake: Array.from({ length: next(50) + 1 }, () => ({ id: makeNonsense(next) })) },
      { updateSelf: { node: { key: new Uint8Array(200_000) } } },
      { updateSelf: { node: { addresses: Array(next(200) + 1).fill("x".repeat(next(300))) } } },
    ];
    await stream.send(requests[next(requests.length)] as object);
    const message = await stream.next();
    expect([seed, typeof message, message === "end"]).toEqual([seed, "string", false]);
    expect(await stream.next()).toBe("end");
    await connection.tailnet.postTelemetry({});
  };
  for (let seed = 1; seed <= ROUNDS; seed += 1) await sendInvalidRequest(seed);
  const { coordinator } = getContext(server).tailnet;
  expect(coordinator.counts).toEqual({ peers: 0, tunnels: 0 });
});

test("[TL-2] decodes frames from chunks of any size, and refuses a frame above its limit before its payload arrives", () => {
  const frame = fc.record({ type: fc.integer({ min: 0, max: 255 }), payload: fc.uint8Array({ maxLength: 300 }) });
  const splitBytes = (bytes: Uint8Array, sizes: number[]): Uint8Array[] => {
    const pieces: Uint8Array[] = [];
    for (let position = 0, i = 0; position < bytes.length; i += 1) {
      const size = sizes.length === 0 ? bytes.length : (sizes[i % sizes.length] as number);
      pieces.push(bytes.subarray(position, position + size));
      position += size;
    }
    return pieces;
  };
  fc.assert(
    fc.property(fc.array(frame, { maxLength: 8 }), fc.array(fc.integer({ min: 1, max: 40 })), (frames, sizes) => {
      const bytes = Buffer.concat(
        frames.map(({ type, payload }) => {
          const head = Buffer.alloc(HEADER_BYTES);
          head[0] = type;
          head.writeUInt32BE(payload.length, 1);
          return Buffer.concat([head, payload]);
        }),
      );
      const reader = new FrameReader();
      const read = splitBytes(bytes, sizes).flatMap((piece) =>
        [...reader.push(piece)].map(({ type, payload }) => ({ type, payload: new Uint8Array(payload) })),
      );
      expect(read).toEqual(frames.map(({ type, payload }) => ({ type, payload: new Uint8Array(payload) })));
    }),
    { numRuns: 200 },
  );
  for (const [type, limit] of [
    [FRAME.client_info, MAX_CLIENT_INFO],
    [FRAME.send_packet, MAX_PACKET + 32],
    [0x99, MAX_PACKET + 32],
  ] as const) {
    const head = (length: number): Uint8Array => {
      const bytes = new Uint8Array(HEADER_BYTES);
      bytes[0] = type;
      new DataView(bytes.buffer).setUint32(1, length);
      return bytes;
    };
    expect([...new FrameReader().push(head(limit))]).toEqual([]);
    expect(() => [...new FrameReader().push(head(limit + 1))]).toThrow(FrameError);
  }
});

test("[TL-7] incomplete frames of disconnected clients use no memory", () => {
  const relay = new Relay(new ManualClock());
  const head = new Uint8Array(HEADER_BYTES);
  head[0] = FRAME.client_info;
  new DataView(head.buffer).setUint32(1, MAX_CLIENT_INFO);
  const part = new Uint8Array(31 * 8_192);
  const flood = (clients: number): void => {
    for (let i = 0; i < clients; i += 1) {
      const client = relay.connect({ transmit: () => 1, close: () => {} });
      client.push(head);
      client.push(part);
      client.end();
    }
  };
  flood(50);
  const before = process.memoryUsage().rss;
  flood(400);
  Bun.gc(true);
  // 100 MB were received, and each byte was buffered for a while.
  expect(process.memoryUsage().rss - before).toBeLessThan(64 * 1024 * 1024);
  expect(relay.counts).toEqual({ clients: 0, keys: 0 });
});
