// TCP over a simulated network that delays, loses, duplicates and reorders packets: all bytes arrive unchanged and fast enough.
import { describe, expect, test } from "bun:test";
import { IP6_HEADER_BYTES, type Packet, parsePacket } from "#src/tailnet/packets/ip6.ts";
import { parseSegment } from "#src/tailnet/packets/segment.ts";
import type { TcpConnection } from "#src/tailnet/tcp/connection.ts";
import { LARGE_SEGMENT, MSS } from "#src/tailnet/tcp/sequence.ts";
import type { Faults } from "../simulation.ts";
import { CLIENT, makeStacks, randomBytes, readAll, SERVER, sha1 } from "./pair.ts";

type World = ReturnType<typeof makeStacks>;

const awaitAccepted = async ({ sim, accepted }: World, index = 0): Promise<TcpConnection> => {
  while (!accepted[index]) await sim.advance(1);
  return accepted[index];
};

const send = async (connection: TcpConnection, data: Uint8Array): Promise<void> => {
  for (let position = 0; position < data.byteLength; position += 65_536)
    await connection.write(data.subarray(position, position + 65_536));
  await connection.end();
};

/** Sends this many bytes and returns the speed in MB per simulated second. Throws if the received bytes differ. */
const transfer = async (world: World, size: number): Promise<number> => {
  const connection = await world.connect();
  const data = randomBytes(size, world.random);
  const startedAt = world.sim.monotonic();
  const sent = send(connection, data);
  const received = await world.sim.until(readAll(await awaitAccepted(world)));
  await world.sim.until(sent);
  expect(received).toEqual({ length: size, sha: sha1(data) });
  return size / 1e6 / ((world.sim.monotonic() - startedAt) / 1_000);
};

describe("bytes", () => {
  const faults: Faults = { delay: 2, loss: 0.03, duplicated: 0.03, reordered: 0.05 };
  for (let seed = 1; seed <= 12; seed += 1) {
    test(`[TL-23] arrive complete and in order in both directions over a faulty network (seed ${seed})`, async () => {
      const world = makeStacks({ seed, faults, hasLargeSegments: seed % 2 === 0 });
      const local = await world.connect();
      const remote = await awaitAccepted(world);
      const [localData, remoteData] = [
        randomBytes(60_000 + seed * 7_919, world.random),
        randomBytes(90_000 - seed * 1_013, world.random),
      ];
      const transfers = Promise.all([
        send(local, localData),
        send(remote, remoteData),
        readAll(local),
        readAll(remote),
      ]);
      const [, , localReceived, remoteReceived] = await world.sim.until(transfers);
      expect(remoteReceived).toEqual({ length: localData.byteLength, sha: sha1(localData) });
      expect(localReceived).toEqual({ length: remoteData.byteLength, sha: sha1(remoteData) });
      expect(await world.sim.until(Promise.all([local.closed, remote.closed]))).toEqual([undefined, undefined]);
      await world.sim.advance(10_000);
      expect([world.client.figures, world.server.figures]).toEqual([
        { connections: 0, held: 0 },
        { connections: 0, held: 0 },
      ]);
    });
  }

  test("[TL-23] still arrive after one side has ended; a reset breaks both directions", async () => {
    const world = makeStacks();
    const local = await world.connect();
    const remote = await awaitAccepted(world);
    await local.end();
    expect(await world.sim.until(remote.read())).toBeUndefined();
    await world.sim.until(remote.write(new TextEncoder().encode("still here")));
    expect(new TextDecoder().decode(await world.sim.until(local.read()))).toBe("still here");
    await expect(local.write(Uint8Array.of(1))).rejects.toThrow("has ended");
    remote.reset("enough");
    await expect(world.sim.until(local.read())).rejects.toThrow("reset");
    expect((await world.sim.until(local.closed))?.failure).toBe("reset");
  });

  test("[TL-23] wait for minutes until the reader reads", async () => {
    const world = makeStacks({ faults: { delay: 1 } });
    const local = await world.connect();
    const remote = await awaitAccepted(world);
    const data = randomBytes(3_000_000, world.random);
    const sent = send(local, data);
    await world.sim.advance(400_000);
    expect(remote.figures.held).toBeGreaterThan(900_000);
    expect(remote.figures.held).toBeLessThan(1_500_000);
    expect((await world.sim.until(readAll(remote))).sha).toBe(sha1(data));
    await world.sim.until(sent);
  });
});

describe("segments", () => {
  const largest = ({ packets }: World): number =>
    Math.max(...packets.map(({ byteLength }) => byteLength - IP6_HEADER_BYTES - 20));
  const fast: Faults = { delay: 0.5, rate: 40_000, queue: 4_000_000 };

  test("[TL-32] between two Slipway peers are large on a fast path and have the standard size on a slow one", async () => {
    const world = makeStacks({ faults: fast });
    await transfer(world, 20_000_000);
    expect(largest(world)).toBe(LARGE_SEGMENT);
    expect(world.packets.length).toBeLessThan(20_000_000 / MSS / 2);
    const slow = makeStacks({ faults: { delay: 1, rate: 500, queue: 200_000 } });
    await transfer(slow, 500_000);
    expect(largest(slow)).toBeLessThan(5 * MSS);
  });

  test("[TL-32] to a peer that does not announce large segments have the standard size, whichever side dials", async () => {
    const dialed = makeStacks({ faults: fast, hasLargeSegments: false });
    await transfer(dialed, 5_000_000);
    expect(largest(dialed)).toBe(MSS);
    const world = makeStacks({ faults: fast, hasLargeSegments: false });
    const connecting = world.server.connect({ source: SERVER, target: CLIENT }, 80);
    await expect(world.sim.until(connecting)).rejects.toThrow();
    const flags = world.packets.map((bytes) => parseSegment((parsePacket(bytes) as Packet).payload)?.largeMss);
    expect(flags).toEqual([undefined, undefined]);
  });
});

describe("a network that", () => {
  test("[TL-24] is idle is fully used, with a queue of about five milliseconds", async () => {
    const world = makeStacks({ faults: { delay: 0.5, rate: 40_000, queue: 4_000_000 } });
    expect(await transfer(world, 20_000_000)).toBeGreaterThan(35);
    expect((await world.connect()).figures.rtt).toBeLessThan(12);
  });

  test("[TL-25] loses 2 % in each direction still carries more than 10 MB/s", async () => {
    const world = makeStacks({ faults: { delay: 0.5, loss: 0.02, rate: 40_000, queue: 4_000_000 } });
    expect(await transfer(world, 10_000_000)).toBeGreaterThan(10);
  });

  test("[TL-24] has a long delay is fully used", async () => {
    expect(
      await transfer(makeStacks({ faults: { delay: 40, rate: 10_000, queue: 1_000_000 } }), 20_000_000),
    ).toBeGreaterThan(7);
  });

  test("[TL-25] has a short queue loses few packets", async () => {
    const world = makeStacks({ faults: { delay: 1, rate: 5_000, queue: 20_000 } });
    expect(await transfer(world, 5_000_000)).toBeGreaterThan(4);
    expect(world.packets.length).toBeLessThan((5_000_000 / 1_220) * 2.2);
  });

  test("[TL-24] carries a bulk transfer delays an echo by only a few milliseconds and is fully used", async () => {
    const world = makeStacks({ faults: { delay: 0.5, rate: 20_000, queue: 4_000_000 } });
    const bulk = await world.connect();
    const sink = await awaitAccepted(world);
    let [hasEnded, drained] = [false, 0];
    const sending = (async () => {
      while (!hasEnded) await bulk.write(new Uint8Array(65_536));
      await bulk.end();
    })();
    const draining = (async () => {
      for await (const chunk of sink) drained += chunk.byteLength;
    })();
    await world.sim.advance(1_000);
    const rttBefore = bulk.figures.rtt;
    const local = await world.connect();
    const remote = await awaitAccepted(world, 1);
    const times: number[] = [];
    const [startedAt, drainedBefore] = [world.sim.monotonic(), drained];
    for (let i = 0; i < 200; i += 1) {
      const startedAt = world.sim.monotonic();
      await local.write(Uint8Array.of(i));
      const key = await world.sim.until(remote.read());
      await remote.write(key as Uint8Array);
      await world.sim.until(local.read());
      times.push(world.sim.monotonic() - startedAt);
    }
    expect((drained - drainedBefore) / 1e3 / (world.sim.monotonic() - startedAt)).toBeGreaterThan(17);
    const rttWhileTyping = bulk.figures.rtt;
    times.sort((a, b) => a - b);
    expect(times[100]).toBeLessThan(5);
    expect(times[198]).toBeLessThan(12);
    await world.sim.advance(3_000);
    const rttAfter = bulk.figures.rtt;
    expect(rttBefore).toBeGreaterThan(4);
    expect(rttWhileTyping).toBeLessThan(rttBefore - 1);
    expect(rttAfter).toBeGreaterThan(rttWhileTyping + 1);
    hasEnded = true;
    await world.sim.until(Promise.all([sending, draining]));
  });

  test("[TL-24] another connection already uses is fully used by a bulk transfer", async () => {
    const world = makeStacks({ faults: { delay: 0.5, rate: 20_000, queue: 4_000_000 } });
    const first = await world.connect();
    const drained = readAll(await awaitAccepted(world));
    await first.write(Uint8Array.of(1));
    await world.sim.until(first.write(new Uint8Array(200_000)));
    await world.sim.advance(50);
    const second = await world.connect();
    const secondReceived = readAll(await awaitAccepted(world, 1));
    const sent = send(second, new Uint8Array(12_000_000));
    await world.sim.advance(300);
    expect(second.figures.rtt).toBeGreaterThan(4);
    await world.sim.until(Promise.all([sent, secondReceived, first.end(), drained]));
  });

  test("[TL-24] has a long delay is fully used while users type on hundreds of connections", async () => {
    const world = makeStacks({ faults: { delay: 40, rate: 10_000, queue: 1_000_000 } });
    const typingConnections: TcpConnection[] = [];
    for (let i = 0; i < 900; i += 1) typingConnections.push(await world.connect());
    const typing = world.sim.every(200, () => {
      for (const connection of typingConnections) void connection.write(Uint8Array.of(1)).catch(() => {});
    });
    const bulk = await world.connect();
    const sink = await awaitAccepted(world, 900);
    const startedAt = world.sim.monotonic();
    const sent = send(bulk, new Uint8Array(20_000_000));
    await world.sim.until(readAll(sink));
    await world.sim.until(sent);
    typing.cancel();
    expect(20_000 / (world.sim.monotonic() - startedAt)).toBeGreaterThan(6);
  });

  test("[TL-25] loses the last packet gets it again quickly", async () => {
    const world = makeStacks({ faults: { delay: 1 } });
    const local = await world.connect();
    const remote = await awaitAccepted(world);
    await local.write(Uint8Array.of(1));
    await world.sim.until(remote.read());
    await world.sim.advance(100);
    world.setFaults({ delay: 1, loss: 1 });
    const startedAt = world.sim.monotonic();
    await local.write(Uint8Array.of(2));
    await world.sim.advance(5);
    world.setFaults({ delay: 1 });
    await world.sim.until(remote.read());
    expect(world.sim.monotonic() - startedAt).toBeLessThan(60);
  });

  test("[TL-33] was interrupted is used again immediately, whichever side sends", async () => {
    const world = makeStacks({ faults: { delay: 1 } });
    const local = await world.connect();
    const remote = await awaitAccepted(world);
    for (const [sender, receiver] of [
      [local, remote],
      [remote, local],
    ] as const) {
      world.setFaults({ loss: 1 });
      for (let i = 0; i < 5; i += 1) await sender.write(Uint8Array.of(i));
      await world.sim.advance(20_000);
      world.setFaults({ delay: 1 });
      world.client.resume();
      const startedAt = world.sim.monotonic();
      for (let received = 0; received < 5; )
        received += ((await world.sim.until(receiver.read())) as Uint8Array).byteLength;
      expect(world.sim.monotonic() - startedAt).toBeLessThan(10);
    }
  });

  test("[TL-23] disappears breaks waiting connections after some minutes", async () => {
    const world = makeStacks({ faults: { delay: 1 } });
    const local = await world.connect();
    await awaitAccepted(world);
    world.setFaults({ loss: 1 });
    await local.write(Uint8Array.of(1));
    await world.sim.advance(120_000);
    expect(world.client.figures.connections).toBe(1);
    expect((await world.sim.until(local.closed))?.message).toContain("does not answer");
  });
});

test("[TL-25] retransmits quickly to a peer without selective acknowledgments", async () => {
  const { FLAG, encodeSegment } = await import("#src/tailnet/packets/segment.ts");
  // Removes the SACK-permitted option from both SYNs in transit.
  const world = makeStacks({ faults: { delay: 1, loss: 0.01, rate: 20_000, queue: 1_000_000 } });
  const push = world.server.push.bind(world.server);
  world.server.push = (packet) => {
    const segment = parseSegment(packet.payload);
    if (segment && segment.flags & FLAG.syn) {
      const ends = {
        source: packet.source,
        target: packet.target,
        sourcePort: segment.sourcePort,
        targetPort: segment.targetPort,
      };
      const syn = { mss: segment.mss ?? 536, scale: segment.scale, isSackPermitted: false };
      const plain = encodeSegment(ends, {
        seq: segment.seq,
        ack: segment.ack,
        flags: segment.flags,
        window: segment.window,
        syn,
      });
      push(parsePacket(plain.slice()) as Packet);
    } else push(packet);
  };
  expect(await transfer(world, 2_000_000)).toBeGreaterThan(1);
});
