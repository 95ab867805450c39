// Slipway's WireGuard and TCP with another implementation: the Go modules that official clients and agents use.
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

const required = [needs.counterpart];
const start = (options: CounterpartOptions = {}) => startCounterpart(needs.counterpart.file, options);
type Counterpart = Awaited<ReturnType<typeof start>>;

const text = (bytes: Uint8Array | undefined): string => new TextDecoder().decode(bytes);
const bytes = (words: string): Uint8Array => new TextEncoder().encode(words);
const count = (messages: readonly Uint8Array[], type: number): number =>
  listMessageTypes(messages).filter((messageType) => messageType === type).length;

const expectEcho = async (connection: TcpConnection, words: string): Promise<void> => {
  await connection.write(bytes(words));
  let got = "";
  while (got.length < words.length) got += text(await connection.read());
  expect(got).toBe(words);
};

/** Returns true for an initiation with its second MAC, which requires a cookie. */
const hasCookie = (message: Uint8Array): boolean =>
  message[0] === TYPE.initiation && message.subarray(INITIATION.mac1 + 16).some((byte) => byte !== 0);

/** Sends this many bytes, and checks the counterpart's report of what it received. */
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

testNeeding(required, "[TL-31] either side can start; bytes arrive complete in both directions", async () => {
  await using ours = await start({ accept: echoing });
  await expectEcho(await ours.dial(PORT.echo), "from our side");
  expect(count(ours.packets.sent, TYPE.initiation)).toBe(1);
  await expect(ours.dial(4_444)).rejects.toMatchObject({ failure: "refused" });
  await using theirs = await start({ accept: echoing });
  const { sent, got, error } = await theirs.exchange(80, 300_000);
  expect([error, got]).toEqual([undefined, sent]);
  expect(count(theirs.packets.received, TYPE.initiation)).toBe(1);
  expect(count(theirs.packets.sent, TYPE.initiation)).toBe(0);
});

testNeeding(required, "[TL-31] keys are renewed during a connection, before and after they expire", async () => {
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

testNeeding(required, "[TL-31] retransmitted packets are accepted once, by either side", async () => {
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
  const { sent, received } = counterpart.packets;
  for (const message of [...sent]) counterpart.sendRaw(message);
  for (const message of [...received]) counterpart.receiveRaw(message.slice());
  datagram("d");
  await until(() => echoed >= 4);
  await expectEcho(await counterpart.dial(PORT.echo), "in order after all that");
  expect(echoed).toBe(4);
  expect(counterpart.remote.tunnel.handshakes).toBe(1);
});

testNeeding(
  required,
  "[TL-20][TL-31] the counterpart uses Slipway's cookies, and Slipway uses the counterpart's",
  async () => {
    // This side is under load: the counterpart repeats its handshake with this side's cookie.
    await using requested = await start({ accept: echoing });
    requested.setLoad(true);
    const exchange = requested.exchange(80, 10);
    await until(() => count(requested.packets.sent, TYPE.cookie) > 0);
    const { sent, got } = await exchange;
    expect(got).toBe(sent);
    expect(requested.packets.received.some(hasCookie)).toBe(true);
    // The counterpart is under load: thousands of unknown peers start a handshake at the same time.
    await using loaded = await start();
    const outsider = createKeyPair();
    const keys = new MacKeys(loaded.other.public);
    const stamps = new Tai64n(loaded.clock);
    const flood = Array.from({ length: 1_500 }, () => {
      const macs = { keys, cookie: undefined };
      return initiate(outsider, loaded.other.public, { local: generateIndex(), stamp: stamps.next(), macs })?.message;
    });
    const outsiders = setInterval(() => {
      for (const message of flood) if (message) loaded.sendRaw(message);
    }, 100);
    try {
      await until(() => count(loaded.packets.received, TYPE.cookie) > 0);
      await expectEcho(await loaded.dial(PORT.echo), "in spite of them");
      expect(loaded.packets.sent.some(hasCookie)).toBe(true);
    } finally {
      clearInterval(outsiders);
    }
  },
);

const FAULTS: Record<string, Faults> = {
  loss: { delay: 5, loss: 0.02 },
  "another order": { delay: 5, reordered: 0.05 },
  duplicates: { delay: 5, doubled: 0.1 },
  "all of these faults": { delay: 5, loss: 0.01, reordered: 0.05, doubled: 0.05 },
};
for (const [name, faults] of Object.entries(FAULTS)) {
  testNeeding(required, `[TL-23][TL-31] a path with ${name} delivers everything once, in both directions`, async () => {
    await using counterpart = await start({ accept: echoing });
    const clear = await download(counterpart, 1_000_000);
    counterpart.setFaults(faults);
    expect(await download(counterpart, 1_000_000)).toBe(clear);
    await upload(counterpart, 1_000_000);
    const { sent, got } = await counterpart.exchange(80, 300_000);
    expect(got).toBe(sent);
  });
}

testNeeding(required, "[TL-23][TL-31] no data is lost while the window of either side is closed", async () => {
  await using counterpart = await start();
  await upload(counterpart, 8_000_000, 1_500);
  const whole = await download(counterpart, 8_000_000);
  expect(await download(counterpart, 8_000_000, 1_500)).toBe(whole);
});

/** Number of damaged packets; many in the long form of this test (test/README.md). */
const DAMAGED_PACKETS = Number(process.env.SLIPWAY_TEST_DAMAGED ?? 20_000);
testNeeding(
  required,
  "[TL-29][TL-31] thousands of damaged packets do not affect a connection or use memory",
  async () => {
    await using counterpart = await start();
    const connection = await counterpart.dial(PORT.echo);
    await expectEcho(connection, "before");
    const random = randomFrom(11);
    const samples = [...counterpart.packets.received];
    const makeDamaged = (): Uint8Array => {
      const message = (samples[Math.floor(random() * samples.length)] as Uint8Array).slice();
      for (let i = 0; i < 1 + random() * 4; i += 1) message[Math.floor(random() * message.byteLength)] = random() * 256;
      return random() < 0.2 ? message.subarray(0, random() * message.byteLength) : message;
    };
    const sendDamaged = async (times: number): Promise<void> => {
      for (let i = 0; i < times; i += 1) {
        counterpart.receiveRaw(makeDamaged());
        if (i % 10 === 0) counterpart.sendRaw(makeDamaged());
        if (i % 2_000 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
      counterpart.packets.sent.length = 0;
    };
    await sendDamaged(DAMAGED_PACKETS / 4);
    Bun.gc(true);
    const before = process.memoryUsage().rss;
    await sendDamaged(DAMAGED_PACKETS);
    Bun.gc(true);
    const grownMb = (process.memoryUsage().rss - before) / 1e6;
    if (process.env.SLIPWAY_TEST_DAMAGED)
      process.stderr.write(`${DAMAGED_PACKETS} damaged packets, memory grew by ${grownMb.toFixed(1)} MB\n`);
    expect(grownMb).toBeLessThan(40);
    await expectEcho(connection, "after");
  },
  scaleTimeout(600_000),
);
