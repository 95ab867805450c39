// The relay sends the frames of one turn of the event loop as one message. [TL-17]
import { describe, expect, test } from "bun:test";
import { createKeyPair, deriveSharedKey, seal } from "#src/tailnet/box.ts";
import { encodeFrame, FRAME, FrameReader } from "#src/tailnet/derp-frame.ts";
import { FLUSH_BYTES, FrameBatch } from "#src/tailnet/frame-batch.ts";
import { Relay } from "#src/tailnet/relay.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { ManualClock } from "#test/support/manual-clock.ts";

const encodeText = (message: string): Uint8Array => new TextEncoder().encode(message);
const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const parseFrames = (messages: Uint8Array[]) => [...new FrameReader().push(Buffer.concat(messages))];

/** Connects a client to a relay without a server. Records the messages that were sent to it. */
const connectClient = (relay: Relay) => {
  const pair = createKeyPair();
  const sent: Uint8Array[] = [];
  const closed: string[] = [];
  const client = relay.connect({
    transmit: (bytes) => sent.push(bytes.slice()),
    close: (code, reason) => closed.push(`${code} ${reason}`),
  });
  const shared = deriveSharedKey(pair.secret, relay.key.public) as Uint8Array;
  client.push(encodeFrame(FRAME.client_info, pair.public, seal(shared, encodeText('{"version":2}'))));
  sent.length = 0;
  return { client, key: pair.public, sent, closed };
};

describe("frames of one turn", () => {
  testInProcess("[TL-17] are sent as one message, in order, and count as queued until then", async () => {
    const relay = new Relay(new ManualClock());
    const [a, b] = [connectClient(relay), connectClient(relay)];
    for (const word of ["one", "two", "three"]) a.client.push(encodeFrame(FRAME.send_packet, b.key, encodeText(word)));
    expect(b.sent).toEqual([]);
    expect(b.client.waiting.bytes).toBe(3 * (5 + 32) + "onetwothree".length);
    await nextTurn();
    expect(b.sent).toHaveLength(1);
    const words = parseFrames(b.sent).map(({ payload }) => new TextDecoder().decode(payload.subarray(32)));
    expect(words).toEqual(["one", "two", "three"]);
    expect(b.client.waiting.bytes).toBe(0);
  });

  testInProcess("[TL-17] are sent earlier when they reach 64 KiB", () => {
    const relay = new Relay(new ManualClock());
    const [a, b] = [connectClient(relay), connectClient(relay)];
    for (let i = 0; i < 100; i += 1) a.client.push(encodeFrame(FRAME.send_packet, b.key, new Uint8Array(1_310)));
    expect(b.sent).toHaveLength(2);
    for (const message of b.sent) expect(message.byteLength).toBeLessThan(FLUSH_BYTES + 1_400);
    expect(b.client.waiting.bytes).toBeGreaterThan(0);
  });

  testInProcess(
    "[TL-17] are sent before the relay disconnects a client for a violation, but not after a client has left",
    async () => {
      const relay = new Relay(new ManualClock());
      const [a, b] = [connectClient(relay), connectClient(relay)];
      a.client.push(encodeFrame(FRAME.send_packet, b.key, encodeText("last words")));
      b.client.push(encodeFrame(FRAME.watch_connections));
      expect(parseFrames(b.sent)).toHaveLength(1);
      expect(b.closed).toEqual(["1008 this relay has no mesh"]);
      b.client.push(encodeFrame(FRAME.ping, encodeText("12345678")));
      a.client.push(encodeFrame(FRAME.ping, encodeText("12345678")));
      a.client.end();
      await nextTurn();
      expect(b.sent).toHaveLength(1);
      expect(a.sent).toEqual([]);
    },
  );

  test("[TL-17] a batch sends once at the end of its turn, even after an earlier flush", () => {
    const turns: (() => void)[] = [];
    const sent: string[] = [];
    const batch = new FrameBatch({
      send: (bytes) => sent.push(new TextDecoder().decode(bytes)),
      endOfTurn: (run) => turns.push(run),
    });
    batch.add(encodeText("a"));
    batch.add(encodeText("b"));
    batch.flush();
    batch.add(encodeText("c"));
    for (const run of turns) run();
    batch.add(encodeText("d"));
    batch.clear();
    for (const run of turns) run();
    expect(sent).toEqual(["ab", "c"]);
  });
});
