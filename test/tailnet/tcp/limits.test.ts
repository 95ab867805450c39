// Limits on one peer's resources: connections, half-open connections, and unread bytes. Also the response of a port without a listener.
import { expect, test } from "bun:test";
import { createPacket, type Packet, PROTOCOL, parsePacket } from "#src/tailnet/packets/ip6.ts";
import { encodeSegment, FLAG, parseSegment } from "#src/tailnet/packets/segment.ts";
import { MAX_CONNECTIONS, MAX_HELD_BYTES, MAX_OPENING } from "#src/tailnet/tcp/stack.ts";
import { CLIENT, makeStacks, SERVER } from "./pair.ts";

const makeSegment = (port: number, flags: number = FLAG.syn, data?: Uint8Array): Packet => {
  const ends = { source: CLIENT, target: SERVER, sourcePort: port, targetPort: 80 };
  const options = flags & FLAG.syn ? { mss: 1_220, scale: 6, isSackPermitted: true } : undefined;
  return parsePacket(encodeSegment(ends, { seq: 7, ack: 9, flags, window: 1_000, syn: options, data })) as Packet;
};
const listFlags = (world: ReturnType<typeof makeStacks>) =>
  world.packets.map((bytes) => parseSegment((parsePacket(bytes) as Packet).payload)?.flags);

test("[TL-26] a refused connection gets a reset", async () => {
  const world = makeStacks({ accept: (connection) => connection.reset("nothing listens there") });
  await expect(world.connect()).rejects.toMatchObject({ failure: "refused" });
  expect(world.server.figures.connections).toBe(0);
});

test("[TL-26] a connection that is not accepted is refused after 30 seconds", async () => {
  const world = makeStacks({ accept: () => {} });
  const connecting = world.client.connect({ source: CLIENT, target: SERVER }, 80);
  await expect(world.sim.until(connecting)).rejects.toThrow();
  expect(world.sim.monotonic()).toBeGreaterThan(29_000);
  await world.sim.advance(2_000);
  expect([world.client.figures.connections, world.server.figures.connections]).toEqual([0, 0]);
});

test("[TL-26] limits the number of half-open connections, which expire", async () => {
  const world = makeStacks();
  world.setFaults({ loss: 1 });
  for (let port = 1_000; port < 21_000; port += 1) world.server.push(makeSegment(port));
  expect(world.server.figures.connections).toBe(MAX_OPENING);
  await world.sim.advance(60_000);
  expect(world.server.figures.connections).toBe(0);
});

test("[TL-26] refuses connections beyond the limit, and answers segments of unknown connections with a reset", async () => {
  const world = makeStacks();
  for (let i = 0; i < MAX_CONNECTIONS; i += 1) await world.connect();
  expect(world.accepted).toHaveLength(MAX_CONNECTIONS);
  await expect(world.connect()).rejects.toMatchObject({ failure: "too_large" });
  await world.sim.advance(100);
  world.packets.length = 0;
  world.server.push(makeSegment(5));
  world.server.push(makeSegment(6, FLAG.ack));
  world.server.push(makeSegment(7, FLAG.rst));
  await world.sim.advance(5);
  expect(listFlags(world)).toEqual([FLAG.rst | FLAG.ack, FLAG.rst]);
  world.server.close("gone");
  expect(world.server.figures.connections).toBe(0);
});

test("[TL-26] limits unread data across all connections, even if it arrives in tiny segments", async () => {
  const world = makeStacks({ faults: { delay: 0.1 } });
  for (let i = 0; i < 40; i += 1) {
    const connection = await world.connect();
    connection.write(new Uint8Array(2_000_000)).catch(() => {});
  }
  await world.sim.advance(300);
  expect(world.server.figures.held).toBeLessThan(MAX_HELD_BYTES * 1.3);
  expect(world.server.figures.held).toBeGreaterThan(MAX_HELD_BYTES / 2);
  world.server.close("gone");
  expect(world.server.figures.held).toBe(0);
  const tinySegments = makeStacks({ faults: { delay: 0.1 } });
  const connection = await tinySegments.connect();
  for (let i = 0; i < 30_000; i += 1) connection.write(Uint8Array.of(i)).catch(() => {});
  await tinySegments.sim.advance(2_000);
  expect(tinySegments.server.figures.held).toBeLessThan(2_000_000);
});

test("[TL-26] a packet that is not a segment is dropped", () => {
  const world = makeStacks();
  world.server.push(parsePacket(createPacket(PROTOCOL.tcp, { source: CLIENT, target: SERVER }, 12)) as Packet);
  expect(world.server.figures.connections).toBe(0);
});
