// Cookies: under load, a host responds only to peers that can receive messages at their address. Also the window of packet counters.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { MAX_HANDSHAKES_PER_SECOND } from "#src/tailnet/wireguard/load.ts";
import { REPLAY_WINDOW, ReplayWindow } from "#src/tailnet/wireguard/session.ts";
import { Simulation } from "../simulation.ts";
import { listMessageTypes, makeTunnels } from "./tunnels.ts";

test("[TL-20] a host under load answers with a cookie, and completes the handshake of a peer that returns it", async () => {
  const { sim, hosts, sent, send, received, tunnels } = makeTunnels();
  for (let i = 0; i <= MAX_HANDSHAKES_PER_SECOND; i += 1) hosts.b.isUnderLoad();
  // Keeps the host under load.
  const load = sim.every(100, () => {
    for (let i = 0; i <= MAX_HANDSHAKES_PER_SECOND; i += 1) hosts.b.isUnderLoad();
  });
  send("a", "patience");
  await sim.advance(1_000);
  expect(listMessageTypes(sent.b)).toEqual([3]);
  expect(sent.b[0]?.byteLength).toBe(64);
  await sim.advance(6_000);
  expect(received.b).toEqual(["patience"]);
  expect([tunnels.a.handshakes, tunnels.b.handshakes]).toEqual([1, 1]);
  load.cancel();
});

test("[TL-20] a cookie is valid for one address and two minutes, and is rejected if altered", async () => {
  const { sim, hosts, sent, send } = makeTunnels();
  send("a", "one");
  const [initiation] = sent.a as [Uint8Array];
  const { cookies } = hosts.b;
  const [own, other] = [hosts.a.key.public, hosts.b.key.public];
  expect(cookies.hasMac2(initiation, 116, own)).toBe(false);
  const { CookieJar, MacKeys, writeMacs } = await import("#src/tailnet/wireguard/macs.ts");
  const keys = new MacKeys(hosts.b.key.public);
  const jar = new CookieJar(sim, keys);
  const reply = cookies.reply(initiation, 116, own);
  const altered = reply.slice();
  altered[40] = (altered[40] as number) ^ 1;
  const mac1 = initiation.slice(116, 132);
  expect([jar.consumeReply(altered, mac1), jar.fresh]).toEqual([false, undefined]);
  expect(jar.consumeReply(reply, mac1)).toBe(true);
  writeMacs(initiation, 116, keys, jar.fresh);
  expect([cookies.hasMac2(initiation, 116, own), cookies.hasMac2(initiation, 116, other)]).toEqual([true, false]);
  await sim.advance(121_000);
  expect([jar.fresh, cookies.hasMac2(initiation, 116, own)]).toEqual([undefined, false]);
});

test("[TL-19] the window accepts counters in any order, but none twice and none that is too old", () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.nat(200), fc.nat(20_000), fc.nat(2 ** 40)), { maxLength: 400 }), (counters) => {
      const window = new ReplayWindow();
      const counted = new Set<number>();
      let highest = -1;
      for (const counter of counters) {
        const isFresh = !counted.has(counter) && (counter > highest || highest - counter < REPLAY_WINDOW);
        if (window.isFresh(counter) !== isFresh) return false;
        if (isFresh) window.mark(counter);
        counted.add(counter);
        highest = Math.max(highest, counter);
      }
      return true;
    }),
  );
});

test("[TL-20] the load ends shortly after the last flood", async () => {
  const sim = new Simulation();
  const { HandshakeLoad } = await import("#src/tailnet/wireguard/load.ts");
  const load = new HandshakeLoad(sim);
  for (let i = 0; i < MAX_HANDSHAKES_PER_SECOND; i += 1) expect(load.countInitiation()).toBe(false);
  expect(load.countInitiation()).toBe(true);
  await sim.advance(2_100);
  expect(load.countInitiation()).toBe(false);
});
