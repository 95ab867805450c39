// WireGuard between two tunnels on a controlled clock: keys are created, used, renewed and discarded as the whitepaper specifies.
import { describe, expect, test } from "bun:test";
import { listMessageTypes, makeTunnels } from "./tunnels.ts";

describe("a handshake", () => {
  test("[TL-19] starts with the first packet, which waits for it; the responder sends data only after the initiator", async () => {
    const { sim, send, received, sent, tunnels } = makeTunnels();
    send("a", "one");
    send("a", "two");
    await sim.advance(10);
    expect(received.b).toEqual(["one", "two"]);
    expect(listMessageTypes(sent.a)).toEqual([1, 4, 4]);
    expect(listMessageTypes(sent.b)).toEqual([2]);
    send("b", "and back");
    await sim.advance(10);
    expect(received.a).toEqual(["and back"]);
    expect([tunnels.a.handshakes, tunnels.b.handshakes]).toEqual([1, 1]);
  });

  test("[TL-19] works when both sides start at the same time, over a faulty network", async () => {
    for (let seed = 1; seed <= 20; seed += 1) {
      const world = makeTunnels({ seed, faults: { delay: 3, loss: 0.2, duplicated: 0.2, reordered: 0.3 } });
      world.send("a", "hello");
      world.send("b", "hello");
      await world.sim.advance(60_000);
      world.setFaults({ delay: 3 });
      for (const [from, to] of [
        ["a", "b"],
        ["b", "a"],
      ] as const) {
        world.send(from, `from ${from}`);
        await world.sim.advance(20_000);
        expect(world.received[to].at(-1)).toBe(`from ${from}`);
      }
      // Duplicates were delivered once.
      for (const side of ["a", "b"] as const)
        expect(world.received[side].filter((text) => text === "hello").length).toBeLessThan(2);
    }
  });

  test("[TL-19] gets no response if it comes from an unknown peer or is replayed or altered", async () => {
    const world = makeTunnels();
    const otherWorld = makeTunnels({ seed: 9 });
    world.send("a", "one");
    await world.sim.advance(10);
    const [initiation] = world.sent.a as [Uint8Array];
    world.sent.b.length = 0;
    // The replayed initiation's timestamp is not later than the last one.
    await world.sim.advance(1_000);
    world.tunnels.b.push(initiation);
    for (let position = 0; position < initiation.byteLength; position += 1) {
      const altered = initiation.slice();
      altered[position] = (altered[position] as number) ^ 1;
      world.tunnels.b.push(altered);
      world.sim.advance(30);
    }
    // An unknown peer that knows the receiver's key sends an initiation.
    otherWorld.tunnels.a.send(Uint8Array.of(1));
    world.tunnels.a.push(otherWorld.sent.a[0] as Uint8Array);
    await world.sim.advance(10);
    expect(listMessageTypes(world.sent.b).filter((type) => type === 2)).toEqual([]);
    expect(world.tunnels.b.handshakes).toBe(1);
  });

  test("[TL-21] is retried every five seconds for ninety seconds, then waiting packets are dropped", async () => {
    const { sim, send, sent, received, setFaults } = makeTunnels({ faults: { loss: 1 } });
    send("a", "lost");
    await sim.advance(200_000);
    const attempts = listMessageTypes(sent.a).length;
    expect(attempts).toBeGreaterThan(13);
    expect(attempts).toBeLessThan(19);
    setFaults({});
    send("a", "found");
    await sim.advance(10);
    expect(received.b).toEqual(["found"]);
  });
});

describe("data", () => {
  test("[TL-19] is delivered once; replayed, altered and forged packets are not delivered", async () => {
    const { sim, send, sent, received, tunnels } = makeTunnels();
    send("a", "one");
    await sim.advance(10);
    const packet = sent.a.at(-1) as Uint8Array;
    for (let position = 4; position < packet.byteLength; position += 1) {
      const altered = packet.slice();
      altered[position] = (altered[position] as number) ^ 0x80;
      tunnels.b.push(altered);
    }
    for (let i = 0; i < 5; i += 1) tunnels.b.push(packet);
    expect(received.b).toEqual(["one"]);
  });
});

describe("keys", () => {
  test("[TL-21] are renewed by the initiator after 120 s of use, and refused after 180 s", async () => {
    const { sim, send, tunnels, received } = makeTunnels();
    send("a", "0 s");
    await sim.advance(100_000);
    send("a", "100 s");
    await sim.advance(10);
    expect(tunnels.a.handshakes).toBe(1);
    await sim.advance(25_000);
    send("a", "125 s");
    await sim.advance(10);
    expect([tunnels.a.handshakes, tunnels.b.handshakes]).toEqual([2, 2]);
    await sim.advance(400_000);
    send("b", "525 s");
    await sim.advance(10);
    expect(received.a).toEqual(["525 s"]);
    expect(received.b).toEqual(["0 s", "100 s", "125 s"]);
    expect([tunnels.a.handshakes, tunnels.b.handshakes]).toEqual([3, 3]);
  });

  test("[TL-21] of a busy session are renewed for an hour without losing a packet", async () => {
    const { sim, send, tunnels, received } = makeTunnels({ faults: { delay: 20 } });
    for (let i = 0; i < 3_600; i += 1) {
      send(i % 2 ? "a" : "b", String(i));
      await sim.advance(1_000);
    }
    expect(received.a.length + received.b.length).toBe(3_600);
    expect(tunnels.a.handshakes).toBeGreaterThan(20);
    expect(tunnels.a.handshakes).toBeLessThan(40);
  });

  test("[TL-21] that the peer has lost are replaced after fifteen seconds without a response", async () => {
    const { sim, send, tunnels, received, setFaults } = makeTunnels();
    send("a", "one");
    await sim.advance(1_000);
    setFaults({ loss: 1 });
    send("a", "unheard");
    await sim.advance(14_000);
    setFaults({});
    await sim.advance(5_000);
    expect(tunnels.a.handshakes).toBe(2);
    send("a", "heard");
    await sim.advance(10);
    expect(received.b.at(-1)).toBe("heard");
  });

  test("[TL-21] a peer that only receives sends a keepalive after ten seconds", async () => {
    const { sim, send, sent } = makeTunnels();
    send("a", "one");
    await sim.advance(9_000);
    expect(listMessageTypes(sent.b)).toEqual([2]);
    await sim.advance(3_000);
    expect(listMessageTypes(sent.b)).toEqual([2, 4]);
    expect(sent.b.at(-1)?.byteLength).toBe(32);
  });
});
