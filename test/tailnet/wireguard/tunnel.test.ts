// WireGuard between two ends on a controlled clock: keys are created, used, renewed and discarded as in the whitepaper.
import { describe, expect, test } from "bun:test";
import { listMessageTypes, makeTunnels } from "./tunnels.ts";

describe("a handshake", () => {
  test("[TL-19] starts with the first packet, which waits for it; the responder sends no data before the initiator has", async () => {
    const { sim, say, got, sent, ends } = makeTunnels();
    say("a", "one");
    say("a", "two");
    await sim.advance(10);
    expect(got.b).toEqual(["one", "two"]);
    expect(listMessageTypes(sent.a)).toEqual([1, 4, 4]);
    expect(listMessageTypes(sent.b)).toEqual([2]);
    say("b", "and back");
    await sim.advance(10);
    expect(got.a).toEqual(["and back"]);
    expect([ends.a.handshakes, ends.b.handshakes]).toEqual([1, 1]);
  });

  test("[TL-19] works when both sides start at the same time, and over a network that loses, duplicates and reorders", async () => {
    for (let seed = 1; seed <= 20; seed += 1) {
      const world = makeTunnels({ seed, faults: { delay: 3, loss: 0.2, doubled: 0.2, reordered: 0.3 } });
      world.say("a", "hello");
      world.say("b", "hello");
      await world.sim.advance(60_000);
      world.setFaults({ delay: 3 });
      for (const [from, to] of [
        ["a", "b"],
        ["b", "a"],
      ] as const) {
        world.say(from, `from ${from}`);
        await world.sim.advance(20_000);
        expect(world.got[to].at(-1)).toBe(`from ${from}`);
      }
      // Duplicates were delivered once.
      for (const side of ["a", "b"] as const)
        expect(world.got[side].filter((text) => text === "hello").length).toBeLessThan(2);
    }
  });

  test("[TL-19] is not answered if it is from an unknown peer, replayed or altered", async () => {
    const world = makeTunnels();
    const other = makeTunnels({ seed: 9 });
    world.say("a", "one");
    await world.sim.advance(10);
    const [initiation] = world.sent.a as [Uint8Array];
    world.sent.b.length = 0;
    // Replayed: its timestamp is not later than the last one.
    await world.sim.advance(1_000);
    world.ends.b.push(initiation);
    for (let at = 0; at < initiation.byteLength; at += 1) {
      const altered = initiation.slice();
      altered[at] = (altered[at] as number) ^ 1;
      world.ends.b.push(altered);
      world.sim.advance(30);
    }
    // From an unknown peer that knows the receiver's key.
    other.ends.a.send(Uint8Array.of(1));
    world.ends.a.push(other.sent.a[0] as Uint8Array);
    await world.sim.advance(10);
    expect(listMessageTypes(world.sent.b).filter((type) => type === 2)).toEqual([]);
    expect(world.ends.b.handshakes).toBe(1);
  });

  test("[TL-21] is retried every five seconds for ninety seconds; waiting packets are then dropped", async () => {
    const { sim, say, sent, got, setFaults } = makeTunnels({ faults: { loss: 1 } });
    say("a", "lost");
    await sim.advance(200_000);
    const attempts = listMessageTypes(sent.a).length;
    expect(attempts).toBeGreaterThan(13);
    expect(attempts).toBeLessThan(19);
    setFaults({});
    say("a", "found");
    await sim.advance(10);
    expect(got.b).toEqual(["found"]);
  });
});

describe("data", () => {
  test("[TL-19] is delivered once; replayed, altered and forged packets are not delivered", async () => {
    const { sim, say, sent, got, ends } = makeTunnels();
    say("a", "one");
    await sim.advance(10);
    const packet = sent.a.at(-1) as Uint8Array;
    for (let at = 4; at < packet.byteLength; at += 1) {
      const altered = packet.slice();
      altered[at] = (altered[at] as number) ^ 0x80;
      ends.b.push(altered);
    }
    for (let i = 0; i < 5; i += 1) ends.b.push(packet);
    expect(got.b).toEqual(["one"]);
  });
});

describe("keys", () => {
  test("[TL-21] are renewed by the initiator after 120 s of use, and refused after 180 s", async () => {
    const { sim, say, ends, got } = makeTunnels();
    say("a", "0 s");
    await sim.advance(100_000);
    say("a", "100 s");
    await sim.advance(10);
    expect(ends.a.handshakes).toBe(1);
    await sim.advance(25_000);
    say("a", "125 s");
    await sim.advance(10);
    expect([ends.a.handshakes, ends.b.handshakes]).toEqual([2, 2]);
    await sim.advance(400_000);
    say("b", "525 s");
    await sim.advance(10);
    expect(got.a).toEqual(["525 s"]);
    expect(got.b).toEqual(["0 s", "100 s", "125 s"]);
    expect([ends.a.handshakes, ends.b.handshakes]).toEqual([3, 3]);
  });

  test("[TL-21] of a busy session are renewed for an hour without losing a packet", async () => {
    const { sim, say, ends, got } = makeTunnels({ faults: { delay: 20 } });
    for (let i = 0; i < 3_600; i += 1) {
      say(i % 2 ? "a" : "b", String(i));
      await sim.advance(1_000);
    }
    expect(got.a.length + got.b.length).toBe(3_600);
    expect(ends.a.handshakes).toBeGreaterThan(20);
    expect(ends.a.handshakes).toBeLessThan(40);
  });

  test("[TL-21] that the peer has lost are replaced after fifteen seconds without an answer", async () => {
    const { sim, say, ends, got, setFaults } = makeTunnels();
    say("a", "one");
    await sim.advance(1_000);
    setFaults({ loss: 1 });
    say("a", "unheard");
    await sim.advance(14_000);
    setFaults({});
    await sim.advance(5_000);
    expect(ends.a.handshakes).toBe(2);
    say("a", "heard");
    await sim.advance(10);
    expect(got.b.at(-1)).toBe("heard");
  });

  test("[TL-21] a peer that only receives sends a keepalive after ten seconds", async () => {
    const { sim, say, sent } = makeTunnels();
    say("a", "one");
    await sim.advance(9_000);
    expect(listMessageTypes(sent.b)).toEqual([2]);
    await sim.advance(3_000);
    expect(listMessageTypes(sent.b)).toEqual([2, 4]);
    expect(sent.b.at(-1)?.byteLength).toBe(32);
  });
});
