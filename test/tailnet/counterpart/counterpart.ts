// Starts this folder's Go program as the counterpart of a Slipway peer. A test can set the faults of the network between them.
import type { Clock, Timer } from "#base/clock.ts";
import { systemClock } from "#base/clock.ts";
import { createKeyPair } from "#src/tailnet/box.ts";
import { formatIp6, parseAddress } from "#src/tailnet/packets/ip6.ts";
import { type AcceptFrom, Remote } from "#src/tailnet/peer/remote.ts";
import { HandshakeLoad } from "#src/tailnet/wireguard/load.ts";
import { CookieIssuer, MacKeys } from "#src/tailnet/wireguard/macs.ts";
import { Tai64n } from "#src/tailnet/wireguard/stamps.ts";
import { randomFrom } from "#test/support/random.ts";
import { type Faults, link } from "../simulation.ts";

export const PORT = { echo: 7, count: 9_000, produce: 9_001 } as const;
const OWN_ADDRESS = parseAddress("fd7a:115c:a1e0::1");
const COUNTERPART_ADDRESS = parseAddress("fd7a:115c:a1e0::2");
const HEAD_BYTES = 3;

/** The system clock with an offset that a test can increase. */
export class OffsetClock implements Clock {
  #offsetMs = 0;
  now(): number {
    return systemClock.now() + this.#offsetMs;
  }
  monotonic(): number {
    return systemClock.monotonic() + this.#offsetMs;
  }
  after(ms: number, run: () => void): Timer {
    return systemClock.after(ms, run);
  }
  every(ms: number, run: () => void): Timer {
    return systemClock.every(ms, run);
  }
  move(ms: number): void {
    this.#offsetMs += ms;
  }
}

export type Exchange = { sent: string; got: string; bytes: number; error?: string };

export type CounterpartOptions = {
  faults?: Faults;
  accept?: AcceptFrom;
  datagram?: (data: Uint8Array) => void;
};

export const startCounterpart = async (program: string, options: CounterpartOptions = {}) => {
  const clock = new OffsetClock();
  const random = randomFrom(7);
  const [own, other] = [createKeyPair(), createKeyPair()];
  const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
  const child = Bun.spawn(
    [program, hex(other.secret), hex(own.public), formatIp6(COUNTERPART_ADDRESS), formatIp6(OWN_ADDRESS)],
    {
      stdio: ["pipe", "pipe", "inherit"],
    },
  );
  let faults = options.faults ?? {};
  let isLoaded = false;
  const load = new HandshakeLoad(clock);
  const packets = { sent: [] as Uint8Array[], received: [] as Uint8Array[] };
  /** After the test, the process has ended, so packets that this side sends while it closes are dropped. */
  let hasEnded = false;
  void child.exited.then((code) => {
    if (!hasEnded) throw new Error(`the counterpart exited unexpectedly: ${child.signalCode ?? code}`);
  });
  const writeFrame = (type: number, body: Uint8Array): void => {
    if (hasEnded) return;
    child.stdin.write(Uint8Array.of(body.byteLength & 255, body.byteLength >> 8, type));
    child.stdin.write(body);
    void Promise.resolve(child.stdin.flush()).catch((error: unknown) => {
      if (!hasEnded) throw error;
    });
  };
  const sendRaw = (message: Uint8Array): void => writeFrame(0, message);
  const receiveRaw = (message: Uint8Array): void => remote.tunnel.push(message);
  const toCounterpart = link(clock, random, () => faults, sendRaw);
  const fromCounterpart = link(clock, random, () => faults, receiveRaw);
  const remote = new Remote(
    "the counterpart",
    { key: other.public, disco: undefined, addresses: [COUNTERPART_ADDRESS] },
    {
      clock,
      random,
      disco: createKeyPair(),
      endOfTurn: (run) => void setImmediate(run),
      tunnels: {
        clock,
        random,
        key: own,
        stamps: new Tai64n(clock),
        cookies: new CookieIssuer(clock, new MacKeys(own.public)),
        isUnderLoad: () => load.countInitiation() || isLoaded,
      },
      transmit: (_, message) => {
        packets.sent.push(message.slice());
        toCounterpart(message);
      },
      isOwn: () => true,
      accept: options.accept ?? ((connection) => connection.reset("nothing listens")),
      datagram: (_from, { data }) => options.datagram?.(data.slice()),
    },
  );
  const ticker = clock.every(250, () => remote.tunnel.tick());
  const pendingExchanges = new Map<number, (answer: Exchange) => void>();
  const started = Promise.withResolvers<void>();
  const handleFrame = (type: number, body: Uint8Array): void => {
    if (type === 0) {
      packets.received.push(body);
      fromCounterpart(body);
      return;
    }
    const { id, ...answer } = JSON.parse(new TextDecoder().decode(body)) as Exchange & { id: number };
    if (id === 0) started.resolve();
    pendingExchanges.get(id)?.(answer);
  };
  void (async () => {
    let unread = Buffer.alloc(0);
    for await (const chunk of child.stdout) {
      unread = unread.byteLength === 0 ? Buffer.from(chunk) : Buffer.concat([unread, chunk]);
      while (unread.byteLength >= HEAD_BYTES && unread.byteLength >= HEAD_BYTES + unread.readUInt16LE(0)) {
        const end = HEAD_BYTES + unread.readUInt16LE(0);
        handleFrame(unread[2] as number, unread.slice(HEAD_BYTES, end));
        unread = unread.subarray(end);
      }
    }
  })();
  await started.promise;
  const ends = { source: OWN_ADDRESS, target: COUNTERPART_ADDRESS };
  let exchangeCount = 0;
  return {
    clock,
    remote,
    packets,
    own,
    other,
    sendRaw,
    receiveRaw,
    ends,
    dial: (port: number) => remote.tcp.connect(ends, port),
    /** Lets the counterpart dial this side, send this many bytes, wait before it reads, and report the received bytes. */
    exchange(port: number, bytes: number, wait = 0): Promise<Exchange> {
      exchangeCount += 1;
      const id = exchangeCount;
      return new Promise((resolve) => {
        pendingExchanges.set(id, resolve);
        writeFrame(1, new TextEncoder().encode(JSON.stringify({ id, port, bytes, wait })));
      });
    },
    setFaults(next: Faults): void {
      faults = next;
    },
    /** Sets whether this side is under load and requires cookies. */
    setLoad(isUnderLoad: boolean): void {
      isLoaded = isUnderLoad;
    },
    async [Symbol.asyncDispose](): Promise<void> {
      hasEnded = true;
      ticker.cancel();
      remote.close("the test is over");
      child.kill();
      await child.exited;
    },
  };
};
