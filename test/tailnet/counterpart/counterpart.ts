// The Go program of this folder as the other end of our tunnel, and the network in between, which this file can disturb.
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
const OURS = parseAddress("fd7a:115c:a1e0::1");
const THEIRS = parseAddress("fd7a:115c:a1e0::2");
const HEAD_BYTES = 3;

/** The machine's clock, which a test may advance. */
export class OffsetClock implements Clock {
  #moved = 0;
  now(): number {
    return systemClock.now() + this.#moved;
  }
  monotonic(): number {
    return systemClock.monotonic() + this.#moved;
  }
  after(ms: number, run: () => void): Timer {
    return systemClock.after(ms, run);
  }
  every(ms: number, run: () => void): Timer {
    return systemClock.every(ms, run);
  }
  move(ms: number): void {
    this.#moved += ms;
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
  const process_ = Bun.spawn([program, hex(other.secret), hex(own.public), formatIp6(THEIRS), formatIp6(OURS)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  let faults = options.faults ?? {};
  let isLoaded = false;
  const load = new HandshakeLoad(clock);
  const passed = { there: [] as Uint8Array[], back: [] as Uint8Array[] };
  /** The test is over and the process has ended: nothing receives what our side sends while closing. */
  let isOver = false;
  void process_.exited.then((code) => {
    if (!isOver) throw new Error(`the counterpart exited unexpectedly: ${process_.signalCode ?? code}`);
  });
  const frame = (type: number, body: Uint8Array): void => {
    if (isOver) return;
    process_.stdin.write(Uint8Array.of(body.byteLength & 255, body.byteLength >> 8, type));
    process_.stdin.write(body);
    void Promise.resolve(process_.stdin.flush()).catch((error: unknown) => {
      if (!isOver) throw error;
    });
  };
  const say = (message: Uint8Array): void => frame(0, message);
  const hear = (message: Uint8Array): void => remote.tunnel.push(message);
  const there = link(clock, random, () => faults, say);
  const back = link(clock, random, () => faults, hear);
  const remote = new Remote(
    "the counterpart",
    { key: other.public, disco: undefined, addresses: [THEIRS] },
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
        passed.there.push(message.slice());
        there(message);
      },
      isOwn: () => true,
      accept: options.accept ?? ((connection) => connection.reset("nothing listens")),
      datagram: (_from, { data }) => options.datagram?.(data.slice()),
    },
  );
  const ticking = clock.every(250, () => remote.tunnel.tick());
  const requested = new Map<number, (answer: Exchange) => void>();
  const started = Promise.withResolvers<void>();
  const handleFrame = (type: number, body: Uint8Array): void => {
    if (type === 0) {
      passed.back.push(body);
      back(body);
      return;
    }
    const { id, ...answer } = JSON.parse(new TextDecoder().decode(body)) as Exchange & { id: number };
    if (id === 0) started.resolve();
    requested.get(id)?.(answer);
  };
  void (async () => {
    let rest = Buffer.alloc(0);
    for await (const chunk of process_.stdout) {
      rest = rest.byteLength === 0 ? Buffer.from(chunk) : Buffer.concat([rest, chunk]);
      while (rest.byteLength >= HEAD_BYTES && rest.byteLength >= HEAD_BYTES + rest.readUInt16LE(0)) {
        const end = HEAD_BYTES + rest.readUInt16LE(0);
        handleFrame(rest[2] as number, rest.slice(HEAD_BYTES, end));
        rest = rest.subarray(end);
      }
    }
  })();
  await started.promise;
  const ends = { source: OURS, target: THEIRS };
  let requests = 0;
  return {
    clock,
    remote,
    passed,
    own,
    other,
    say,
    hear,
    ends,
    dial: (port: number) => remote.tcp.connect(ends, port),
    /** Has it dial us, send this much, wait before it reads, and report what it received. */
    exchange(port: number, bytes: number, wait = 0): Promise<Exchange> {
      requests += 1;
      const id = requests;
      return new Promise((resolve) => {
        requested.set(id, resolve);
        frame(1, new TextEncoder().encode(JSON.stringify({ id, port, bytes, wait })));
      });
    },
    setFaults(next: Faults): void {
      faults = next;
    },
    /** Makes us require cookies. */
    load(loaded: boolean): void {
      isLoaded = loaded;
    },
    async [Symbol.asyncDispose](): Promise<void> {
      isOver = true;
      ticking.cancel();
      remote.close("the test is over");
      process_.kill();
      await process_.exited;
    },
  };
};
