// Invalid data for every parser of a peer: random bytes, and real packets with flipped bits. The parsers do not throw, memory does not
// grow, and existing connections continue. SLIPWAY_TEST_PACKETS sets the number of packets; long runs use a million.
import { describe, expect, test } from "bun:test";
import { createKeyPair } from "#src/tailnet/box.ts";
import { parsePacket } from "#src/tailnet/packets/ip6.ts";
import { encodePong, parsePongId } from "#src/tailnet/packets/pings.ts";
import { parseSegment } from "#src/tailnet/packets/segment.ts";
import { parseDatagram } from "#src/tailnet/packets/udp.ts";
import { Discovery, findDiscoverySender } from "#src/tailnet/peer/disco.ts";
import { toPeer } from "#src/tailnet/peer/node.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { randomFrom } from "#test/support/random.ts";
import { makeStacks } from "./tcp/pair.ts";
import { makeTunnels } from "./wireguard/tunnels.ts";

const PACKET_COUNT = Number(process.env.SLIPWAY_TEST_PACKETS ?? 20_000);
const SEED = Number(process.env.SLIPWAY_TEST_SEED ?? 4_711);
const TIMEOUT_MS = 60_000 + PACKET_COUNT / 5;
const MiB = 1024 * 1024;

const random = randomFrom(SEED);
const randomBytes = (length: number): Uint8Array => Uint8Array.from({ length }, () => random() * 256);
const randomLength = (): number => Math.floor(random() * (random() < 0.5 ? 80 : 1_400));
/** Flips some bits, and sometimes truncates the packet. */
const damagePacket = (packet: Uint8Array): Uint8Array => {
  const copy = packet.slice(0, random() < 0.1 ? Math.floor(random() * packet.byteLength) : undefined);
  for (let remaining = 1 + Math.floor(random() * 4); remaining > 0 && copy.byteLength > 0; remaining -= 1) {
    const position = Math.floor(random() * Math.min(copy.byteLength, 100));
    copy[position] = (copy[position] as number) ^ (1 << Math.floor(random() * 8));
  }
  return copy;
};

const measureMemory = (): number => {
  Bun.gc(true);
  return process.memoryUsage().rss;
};

describe(`with seed ${SEED}`, () => {
  test(
    "[TL-29] the parsers ignore invalid input",
    () => {
      const discovery = new Discovery(createKeyPair(), createKeyPair().public);
      for (let i = 0; i < PACKET_COUNT; i += 1) {
        const bytes = randomBytes(randomLength());
        parseSegment(bytes);
        if (random() < 0.5) bytes[0] = 0x60;
        if (random() < 0.5 && bytes.byteLength >= 40) new DataView(bytes.buffer).setUint16(4, bytes.byteLength - 40);
        const packet = parsePacket(bytes);
        if (packet) {
          encodePong(packet);
          parsePongId(packet);
          parseDatagram(packet);
        }
        if (i % 16 === 0) {
          bytes.set([0x54, 0x53, 0xf0, 0x9f, 0x92, 0xac].slice(0, bytes.byteLength));
          expect(discovery.answer(bytes, 999)).toBeUndefined();
          findDiscoverySender(bytes);
        }
      }
      const node = {
        key: randomBytes(34),
        disco: "discokey:zz",
        preferredDerp: 999,
        allowedIps: ["", "::/0", "x/128", "1.2.3.4/128"],
      };
      expect(toPeer(node as never)).toBeUndefined();
      node.key.set([0x6e, 0x70]);
      expect(toPeer(node as never)?.addresses).toEqual([]);
    },
    scaleTimeout(TIMEOUT_MS),
  );

  test(
    "[TL-29] damaged messages neither affect a tunnel nor use memory",
    async () => {
      const { sim, send, sent, received, tunnels } = makeTunnels();
      send("a", "one");
      await sim.advance(10);
      const before = measureMemory();
      const samples = [...sent.a, ...sent.b];
      for (let i = 0; i < PACKET_COUNT; i += 1) {
        const sample = samples[Math.floor(random() * samples.length)] as Uint8Array;
        tunnels.b.push(random() < 0.3 ? randomBytes(randomLength()) : damagePacket(sample));
        // Sent packets are dropped, so that they do not count as the product's memory.
        if (i % 1_000 === 0) {
          sent.b.length = 0;
          await sim.advance(1);
        }
      }
      send("a", "two");
      send("b", "three");
      await sim.advance(100);
      expect([received.a, received.b]).toEqual([["three"], ["one", "two"]]);
      // The limit is far above a run's actual use, because the process does not immediately free the memory of other tests.
      expect(measureMemory() - before).toBeLessThan(128 * MiB);
    },
    scaleTimeout(TIMEOUT_MS),
  );

  test(
    "[TL-29] damaged segments use no more memory than a peer may use",
    async () => {
      const world = makeStacks({ seed: SEED });
      const connection = await world.connect();
      await connection.write(randomBytes(3_000));
      await world.sim.advance(10);
      const samples = world.packets.slice();
      const before = measureMemory();
      for (let i = 0; i < PACKET_COUNT; i += 1) {
        const sample = samples[Math.floor(random() * samples.length)] as Uint8Array;
        const packet = parsePacket(damagePacket(sample));
        if (packet) world.server.push(packet);
        if (i % 500 === 0) {
          await world.sim.advance(1_000);
          world.packets.length = 0;
          world.accepted.length = 0;
        }
      }
      expect(measureMemory() - before).toBeLessThan(128 * MiB);
      world.server.close("enough");
      expect(world.server.figures).toEqual({ connections: 0, held: 0 });
    },
    scaleTimeout(TIMEOUT_MS),
  );
});
