// Slipway's WireGuard and TCP tested against another implementation: the Go modules that official clients and agents use.
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

const decodeText = (bytes: Uint8Array | undefined): string => new TextDecoder().decode(bytes);
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const countMessages = (messages: readonly Uint8Array[], type: number): number =>
  listMessageTypes(messages).filter((messageType) => messageType === type).length;

const expectEcho = async (connection: TcpConnection, text: string): Promise<void> => {
  await connection.write(bytes(text));
  let received = "";
  while (received.length < text.length) received += decodeText(await connection.read());
  expect(received).toBe(text);
};

/** Returns true for an initiation with a second MAC, which requires a cookie. */
const hasCookie = (message: Uint8Array): boolean =>
  message[0] === TYPE.initiation && message.subarray(INITIATION.mac1 + 16).some((byte) => byte !== 0);

/** Sends this many bytes and checks the counterpart's report of the received bytes. */
const upload = async (counterpart: Counterpart, length: number, waitMs = 0): Promise<void> => {
  const data = randomBytes(length, randomFrom(3));
  const connection = await counterpart.dial(PORT.count);
  await connection.write(bytes(`${waitMs}\n`));
  await connection.write(data);
  await connection.end();
  let summary = "";
  for await (const chunk of connection) summary += decodeText(chunk);
  expect(summary).toBe(`${length} ${sha1(data)}`);
};

const download = async (counterpart: Counterpart, length: number, pauseMs = 0): Promise<string> => {
  const connection = await counterpart.dial(PORT.produce);
  await connection.write(bytes(`${length}\n`));
  await pause(systemClock, pauseMs);
  const received = await readAll(connection);
  expect(received.length).toBe(length);
  return received.sha;
};

/** Echoes on connections that the Go side dials. */
const acceptEcho: CounterpartOptions["accept"] = (connection) => {
  connection.accept();
  void (async () => {
    for await (const chunk of connection) await connection.write(chunk);
    await connection.end();
  })().catch(() => {});
};

testNeeding(
  required,
  "[TL-31] either side can open a connection, and all bytes arrive in both directions",
  async () => {
    await using dialing = await start({ accept: acceptEcho });
    await expectEcho(await dialing.dial(PORT.echo), "from our side");
    expect(countMessages(dialing.packets.sent, TYPE.initiation)).toBe(1);
    await expect(dialing.dial(4_444)).rejects.toMatchObject({ failure: "refused" });
    await using accepting = await start({ accept: acceptEcho });
    const { sent, got, error } = await accepting.exchange(80, 300_000);
    expect([error, got]).toEqual([undefined, sent]);
    expect(countMessages(accepting.packets.received, TYPE.initiation)).toBe(1);
    expect(countMessages(accepting.packets.sent, TYPE.initiation)).toBe(0);
  },
);

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

testNeeding(required, "[TL-31] both sides ignore repeated packets", async () => {
  let echoCount = 0;
  await using counterpart = await start({
    datagram: () => {
      echoCount += 1;
    },
  });
  const sendDatagram = (word: string): void =>
    counterpart.remote.send(counterpart.ends, { sourcePort: 5_000, targetPort: PORT.echo, data: bytes(word) });
  for (const word of ["a", "b", "c"]) sendDatagram(word);
  await until(() => echoCount === 3);
  const { sent, received } = counterpart.packets;
  for (const message of [...sent]) counterpart.sendRaw(message);
  for (const message of [...received]) counterpart.receiveRaw(message.slice());
  sendDatagram("d");
  await until(() => echoCount >= 4);
  await expectEcho(await counterpart.dial(PORT.echo), "in order after all that");
  expect(echoCount).toBe(4);
  expect(counterpart.remote.tunnel.handshakes).toBe(1);
});

testNeeding(
  required,
  "[TL-20][TL-31] the counterpart uses Slipway's cookies, and Slipway uses the counterpart's",
  async () => {
    // When this side is under load, the counterpart repeats its handshake with this side's cookie.
    await using requested = await start({ accept: acceptEcho });
    requested.setLoad(true);
    const exchange = requested.exchange(80, 10);
    await until(() => countMessages(requested.packets.sent, TYPE.cookie) > 0);
    const { sent, got } = await exchange;
    expect(got).toBe(sent);
    expect(requested.packets.received.some(hasCookie)).toBe(true);
    // The counterpart is under load when many unknown peers start a handshake at the same time.
    await using loaded = await start();
    const outsider = createKeyPair();
    const keys = new MacKeys(loaded.other.public);
    const stamps = new Tai64n(loaded.clock);
    const flood = Array.from({ length: 1_500 }, () => {
      const macs = { keys, cookie: undefined };
      return initiate(outsider, loaded.other.public, { local: generateIndex(), stamp: stamps.next(), macs })?.message;
    });
    const floodTimer = setInterval(() => {
      for (const message of flood) if (message) loaded.sendRaw(message);
    }, 100);
    try {
      await until(() => countMessages(loaded.packets.received, TYPE.cookie) > 0);
      await expectEcho(await loaded.dial(PORT.echo), "in spite of them");
      expect(loaded.packets.sent.some(hasCookie)).toBe(true);
    } finally {
      clearInterval(floodTimer);
    }
  },
);

const FAULTS: Record<string, Faults> = {
  loss: { delay: 5, loss: 0.02 },
  "another order": { delay: 5, reordered: 0.05 },
  duplicates: { delay: 5, duplicated: 0.1 },
  "all of these faults": { delay: 5, loss: 0.01, reordered: 0.05, duplicated: 0.05 },
};
for (const [name, faults] of Object.entries(FAULTS)) {
  testNeeding(required, `[TL-23][TL-31] a path with ${name} delivers all data once, in both directions`, async () => {
    await using counterpart = await start({ accept: acceptEcho });
    const expectedHash = await download(counterpart, 1_000_000);
    counterpart.setFaults(faults);
    expect(await download(counterpart, 1_000_000)).toBe(expectedHash);
    await upload(counterpart, 1_000_000);
    const { sent, got } = await counterpart.exchange(80, 300_000);
    expect(got).toBe(sent);
  });
}

testNeeding(required, "[TL-23][TL-31] no data is lost while the window of either side is closed", async () => {
  await using counterpart = await start();
  await upload(counterpart, 8_000_000, 1_500);
  const expectedHash = await download(counterpart, 8_000_000);
  expect(await download(counterpart, 8_000_000, 1_500)).toBe(expectedHash);
});

/** The number of damaged packets, which is larger in the long form of this test (test/README.md). */
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
