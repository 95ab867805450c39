// Connects two TCP stacks with a simulated network.
import { parsePacket } from "#src/tailnet/packets/ip6.ts";
import type { TcpConnection } from "#src/tailnet/tcp/connection.ts";
import { type Accept, TcpStack } from "#src/tailnet/tcp/stack.ts";
import { randomFrom } from "#test/support/random.ts";
import { type Faults, link, Simulation } from "../simulation.ts";

export const CLIENT = new Uint8Array(16).fill(1);
export const SERVER = new Uint8Array(16).fill(2);

export type StacksOptions = {
  seed?: number;
  faults?: Faults;
  accept?: Accept;
  /** If false, the server behaves like another implementation, which has no large segments. */
  hasLargeSegments?: boolean;
};

export const makeStacks = (options: StacksOptions = {}) => {
  const sim = new Simulation();
  const random = randomFrom(options.seed ?? 1);
  let faults = options.faults ?? {};
  const accepted: TcpConnection[] = [];
  const packets: Uint8Array[] = [];
  const accept: Accept =
    options.accept ??
    ((connection) => {
      accepted.push(connection);
      connection.accept();
    });
  const shared = { clock: sim, random, endOfTurn: sim.endOfTurn };
  const client: TcpStack = new TcpStack({
    ...shared,
    sendPacket: (packet) => toServer(packet),
    accept: (connection) => connection.reset(),
  });
  const { hasLargeSegments = true } = options;
  const server: TcpStack = new TcpStack({
    ...shared,
    sendPacket: (packet) => toClient(packet),
    accept,
    hasLargeSegments,
  });
  const deliverTo = (stack: () => TcpStack) => (bytes: Uint8Array) => {
    const packet = parsePacket(bytes);
    if (!packet) throw new Error("not an IPv6 packet");
    packets.push(bytes);
    stack().push(packet);
  };
  const toServer = link(
    sim,
    random,
    () => faults,
    deliverTo(() => server),
  );
  const toClient = link(
    sim,
    random,
    () => faults,
    deliverTo(() => client),
  );
  return {
    sim,
    random,
    client,
    server,
    accepted,
    packets,
    /** Replaces the faults of both links. */
    setFaults(next: Faults): void {
      faults = next;
    },
    connect: (port = 80) => sim.until(client.connect({ source: CLIENT, target: SERVER }, port)),
  };
};

export const randomBytes = (length: number, random: () => number): Uint8Array => {
  const bytes = new Uint8Array(length);
  for (let i = 0; i < length; i += 1) bytes[i] = random() * 256;
  return bytes;
};

/** Reads until the other side ends. Returns the hash and length of its bytes. */
export const readAll = async (connection: TcpConnection): Promise<{ length: number; sha: string }> => {
  const hasher = new Bun.CryptoHasher("sha1");
  let length = 0;
  for await (const chunk of connection) {
    hasher.update(chunk);
    length += chunk.byteLength;
  }
  return { length, sha: hasher.digest("hex") };
};

export const sha1 = (bytes: Uint8Array): string => new Bun.CryptoHasher("sha1").update(bytes).digest("hex");
