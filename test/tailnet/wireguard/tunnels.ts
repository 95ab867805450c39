// Connects two WireGuard tunnels with a simulated network.
import { createKeyPair } from "#src/tailnet/box.ts";
import { HandshakeLoad } from "#src/tailnet/wireguard/load.ts";
import { CookieIssuer, MacKeys } from "#src/tailnet/wireguard/macs.ts";
import { Tai64n } from "#src/tailnet/wireguard/stamps.ts";
import { Tunnel, type TunnelHost } from "#src/tailnet/wireguard/tunnel.ts";
import { randomFrom } from "#test/support/random.ts";
import { type Faults, link, Simulation } from "../simulation.ts";

export const makeHost = (clock: Simulation, seed: number): TunnelHost => {
  const key = createKeyPair(Uint8Array.from({ length: 32 }, (_, i) => (seed * 37 + i * 11) % 256));
  const load = new HandshakeLoad(clock);
  return {
    key,
    clock,
    random: randomFrom(seed),
    stamps: new Tai64n(clock),
    cookies: new CookieIssuer(clock, new MacKeys(key.public)),
    isUnderLoad: () => load.countInitiation(),
  };
};

/** Connects two tunnels, `a` and `b`, which tick every second. Records the packets that each sends and receives. */
export const makeTunnels = (options: { faults?: Faults; seed?: number } = {}) => {
  const sim = new Simulation();
  const random = randomFrom(options.seed ?? 1);
  let faults = options.faults ?? {};
  const hosts = { a: makeHost(sim, 1), b: makeHost(sim, 2) };
  const received = { a: [] as string[], b: [] as string[] };
  const sent = { a: [] as Uint8Array[], b: [] as Uint8Array[] };
  const makeTunnel = (own: "a" | "b", other: "a" | "b"): Tunnel => {
    const transmit = link(
      sim,
      random,
      () => faults,
      (message) => tunnels[other].push(message),
    );
    return new Tunnel({
      host: hosts[own],
      peer: hosts[other].key.public,
      transmit: (message) => {
        sent[own].push(message.slice());
        transmit(message);
      },
      receive: (packet) => received[own].push(new TextDecoder().decode(packet).replaceAll("\0", "")),
    });
  };
  const tunnels: Record<"a" | "b", Tunnel> = { a: undefined as never, b: undefined as never };
  tunnels.a = makeTunnel("a", "b");
  tunnels.b = makeTunnel("b", "a");
  sim.every(1_000, () => {
    tunnels.a.tick();
    tunnels.b.tick();
  });
  const send = (from: "a" | "b", text: string): void => tunnels[from].send(new TextEncoder().encode(text));
  return {
    sim,
    hosts,
    received,
    sent,
    tunnels,
    send,
    setFaults(next: Faults): void {
      faults = next;
    },
  };
};

/** Returns the types of messages, from their first byte. */
export const listMessageTypes = (messages: readonly Uint8Array[]): number[] =>
  messages.map((message) => message[0] as number);
