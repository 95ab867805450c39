// Our WireGuard and TCP against other implementations: the Go modules that genuine clients and agents use.
import { expect } from "bun:test";
import { systemClock } from "#base/clock.ts";
import { pause } from "#base/retry.ts";
import { createKeyPair } from "#src/tailnet/box.ts";
import type { TcpConnection } from "#src/tailnet/tcp/connection.ts";
import { initiate } from "#src/tailnet/wireguard/handshake.ts";
import { MacKeys } from "#src/tailnet/wireguard/macs.ts";
import { INITIATION, TYPE } from "#src/tailnet/wireguard/messages.ts";
import { generateIndex, Tai64n } from "#src/tailnet/wireguard/stamps.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { randomFrom } from "#test/support/random.ts";
import { until } from "#test/support/until.ts";
import type { Faults } from "../simulation.ts";
import { randomBytes, readAll, sha1 } from "../tcp/pair.ts";
import { listMessageTypes } from "../wireguard/tunnels.ts";
import { type CounterpartOptions, PORT, startCounterpart } from "./counterpart.ts";

const wanted = [needs.counterpart];
const start = (options: CounterpartOptions = {}) => startCounterpart(needs.counterpart.file, options);
type Counterpart = Awaited<ReturnType<typeof start>>;

const text = (bytes: Uint8Array | undefined): string => new TextDecoder().decode(bytes);
const bytes = (words: string): Uint8Array => new TextEncoder().encode(words);
const count = (messages: readonly Uint8Array[], type: number): number =>
  listMessageTypes(messages).filter((one) => one === type).length;

const expectEcho = async (connection: TcpConnection, words: string): Promise<void> => {
  await connection.write(bytes(words));
  let got = "";
  while (got.length < words.length) got += text(await connection.read());
  expect(got).toBe(words);
};

/** Returns true for an initiation with its second MAC, which requires a cookie. */
const hasCookie = (message: Uint8Array): boolean =>
  message[0] === TYPE.initiation && message.subarray(INITIATION.mac1 + 16).some((byte) => byte !== 0);

/** Sends this much and returns what the other side reports to have received. */
const upload = async (counterpart: Counterpart, length: number, wait = 0): Promise<void> => {
  const data = randomBytes(length, randomFrom(3));
  const connection = await counterpart.dial(PORT.count);
  await connection.write(bytes(`${wait}\n`));
  await connection.write(data);
  await connection.end();
  let summary = "";
  for await (const chunk of connection) summary += text(chunk);
  expect(summary).toBe(`${length} ${sha1(data)}`);
};

const download = async (counterpart: Counterpart, length: number, shut_ms = 0): Promise<string> => {
  const connection = await counterpart.dial(PORT.produce);
  await connection.write(bytes(`${length}\n`));
  await pause(systemClock, shut_ms);
  const got = await readAll(connection);
  expect(got.length).toBe(length);
  return got.sha;
};

/** Echoes on connections that the Go side dials. */
const echoing: CounterpartOptions["accept"] = (connection) => {
  connection.accept();
  void (async () => {
    for await (const chunk of connection) await connection.write(chunk);
    await connection.end();
  })().catch(() => {});
};

testNeeding(wanted, "[TL-31] either side can start; bytes arrive complete in both directions", async () => {
  await using ours = await start({ accept: echoing });
  await expectEcho(await ours.dial(PORT.echo), "from our side");
  expect(count(ours.passed.there, TYPE.initiation)).toBe(1);
  await expect(ours.dial(4_444)).rejects.toMatchObject({ failure: "refused" });
  await using theirs = await start({ accept: echoing });
  const { sent, got, error } = await theirs.exchange(80, 300_000);
  expect([error, got]).toEqual([undefined, sent]);
  expect(count(theirs.passed.back, TYPE.initiation)).toBe(1);
  expect(count(theirs.passed.there, TYPE.initiation)).toBe(0);
});

testNeeding(wanted, "[TL-31] keys are renewed during a connection, before and after they expire", async () => {
  await using counterpart = await start();
  const connection = await counterpart.dial(PORT.echo);
  await expectEcho(connection, "first keys");
  counterpart.clock.move(121_000);
  await expectEcho(connection, "still the first, and new ones on the way");
  await until(() => counterpart.remote.tunnel.handshakes === 2);
  await expectEcho(connection, "second keys");
  counterpart.clock.move(181_000);
  await expectEcho(connection, "third keys");
  expect(counterpart.remote.tunnel.handshakes).toBe(3);
});

testNeeding(wanted, "[TL-31] retransmitted packets are accepted once, by either side", async () => {
  let echoed = 0;
  await using counterpart = await start({
    datagram: () => {
      echoed += 1;
    },
  });
  const datagram = (word: string): void =>
    counterpart.remote.send(counterpart.ends, { sourcePort: 5_000, targetPort: PORT.echo, data: bytes(word) });
  for (const word of ["a", "b", "c"]) datagram(word);
  await until(() => echoed === 3);
  const { there, back } = counterpart.passed;
  for (const message of [...there]) counterpart.say(message);
  for (const message of [...back]) counterpart.hear(message.slice());
  datagram("d");
  await until(() => echoed >= 4);
  await expectEcho(await counterpart.dial(PORT.echo), "in order after all that");
  expect(echoed).toBe(4);
  expect(counterpart.remote.tunnel.handshakes).toBe(1);
});

testNeeding(wanted, "[TL-20][TL-31] our cookies are accepted, and theirs are returned", async () => {
  // We are under load: their handshake is repeated with our cookie.
  await using requested = await start({ accept: echoing });
  requested.load(true);
  const exchange = requested.exchange(80, 10);
  await until(() => count(requested.passed.there, TYPE.cookie) > 0);
  const { sent, got } = await exchange;
  expect(got).toBe(sent);
  expect(requested.passed.back.some(hasCookie)).toBe(true);
  // They are under load: thousands of unknown peers start a handshake at the same time.
  await using loaded = await start();
  const outsider = createKeyPair();
  const keys = new MacKeys(loaded.other.public);
  const stamps = new Tai64n(loaded.clock);
  const flood = Array.from({ length: 1_500 }, () => {
    const macs = { keys, cookie: undefined };
    return initiate(outsider, loaded.other.public, { local: generateIndex(), stamp: stamps.next(), macs })?.message;
  });
  const outsiders = setInterval(() => {
    for (const message of flood) if (message) loaded.say(message);
  }, 100);
  try {
    await until(() => count(loaded.passed.back, TYPE.cookie) > 0);
    await expectEcho(await loaded.dial(PORT.echo), "in spite of them");
    expect(loaded.passed.there.some(hasCookie)).toBe(true);
  } finally {
    clearInterval(outsiders);
  }
});

const SPOILT: Record<string, Faults> = {
  loss: { delay: 5, loss: 0.02 },
  "another order": { delay: 5, reordered: 0.05 },
  doubles: { delay: 5, doubled: 0.1 },
  everything: { delay: 5, loss: 0.01, reordered: 0.05, doubled: 0.05 },
};
for (const [name, faults] of Object.entries(SPOILT)) {
  testNeeding(wanted, `[TL-23][TL-31] a path with ${name} delivers everything once, in both directions`, async () => {
    await using counterpart = await start({ accept: echoing });
    const clear = await download(counterpart, 1_000_000);
    counterpart.setFaults(faults);
    expect(await download(counterpart, 1_000_000)).toBe(clear);
    await upload(counterpart, 1_000_000);
    const { sent, got } = await counterpart.exchange(80, 300_000);
    expect(got).toBe(sent);
  });
}

testNeeding(wanted, "[TL-23][TL-31] a temporarily closed window loses nothing, on either side", async () => {
  await using counterpart = await start();
  await upload(counterpart, 8_000_000, 1_500);
  const whole = await download(counterpart, 8_000_000);
  expect(await download(counterpart, 8_000_000, 1_500)).toBe(whole);
});

/** Number of damaged packets; many in the long form of this test (test/README.md). */
const DAMAGED = Number(process.env.SLIPWAY_TEST_DAMAGED ?? 20_000);
testNeeding(
  wanted,
  "[TL-29][TL-31] thousands of damaged packets affect neither a connection nor our memory",
  async () => {
    await using counterpart = await start();
    const connection = await counterpart.dial(PORT.echo);
    await expectEcho(connection, "before");
    const random = randomFrom(11);
    const known = [...counterpart.passed.back];
    const makeDamaged = (): Uint8Array => {
      const message = (known[Math.floor(random() * known.length)] as Uint8Array).slice();
      for (let i = 0; i < 1 + random() * 4; i += 1) message[Math.floor(random() * message.byteLength)] = random() * 256;
      return random() < 0.2 ? message.subarray(0, random() * message.byteLength) : message;
    };
    const spoil = async (times: number): Promise<void> => {
      for (let i = 0; i < times; i += 1) {
        counterpart.hear(makeDamaged());
        if (i % 10 === 0) counterpart.say(makeDamaged());
        if (i % 2_000 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
      counterpart.passed.there.length = 0;
    };
    await spoil(DAMAGED / 4);
    Bun.gc(true);
    const before = process.memoryUsage().rss;
    await spoil(DAMAGED);
    Bun.gc(true);
    const grown = (process.memoryUsage().rss - before) / 1e6;
    if (process.env.SLIPWAY_TEST_DAMAGED)
      process.stderr.write(`${DAMAGED} damaged packets, memory grew by ${grown.toFixed(1)} MB\n`);
    expect(grown).toBeLessThan(40);
    await expectEcho(connection, "after");
  },
  scaleTimeout(600_000),
);
