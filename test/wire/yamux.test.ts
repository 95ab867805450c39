import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Duplex } from "#src/wire/duplex.ts";
import { encodeHeader, FLAG, FRAME, INITIAL_WINDOW } from "#src/wire/yamux-frame.ts";
import { hex, makePattern, nextTurn, openBarePeer, readAll, sessionPair } from "./support.ts";

const decodeText = (bytes: Uint8Array | undefined): string => new TextDecoder().decode(bytes);
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

/** Opens a stream: `local` is the client's end, `remote` the server's. */
const openStreamPair = async ({
  client,
  server,
}: ReturnType<typeof sessionPair>): Promise<{ local: Duplex; remote: Duplex }> => {
  const local = await client.open();
  const remote = await server.accept();
  if (!remote) throw new Error("The session ended.");
  return { local, remote };
};

describe("a yamux session", () => {
  test("[WI-4] opens with SYN on odd ids, answers with ACK, ends each half with FIN", async () => {
    const pair = sessionPair();
    const { local, remote } = await openStreamPair(pair);
    await local.write(bytes("ping"));
    expect(decodeText(await remote.read())).toBe("ping");
    await local.end();
    expect(await remote.read()).toBeUndefined();
    await remote.write(bytes("pong"));
    await remote.end();
    expect(decodeText(await readAll(local))).toBe("pong");
    expect(await local.closed).toBeUndefined();
    expect(await remote.closed).toBeUndefined();
    expect(pair.client.streams + pair.server.streams).toBe(0);
    expect(Buffer.concat(pair.a.sent)).toEqual(
      Buffer.concat([
        hex("00 01 0001 00000001 00000000"),
        hex("00 00 0000 00000001 00000004"),
        bytes("ping"),
        hex("00 01 0004 00000001 00000000"),
      ]),
    );
    expect(Buffer.concat(pair.b.sent).subarray(0, 12)).toEqual(Buffer.from(hex("00 01 0002 00000001 00000000")));
    expect(pair.clock.timers).toBe(0);
  });

  test("[WI-4] the server also opens streams, with even IDs", async () => {
    const { client, server, b } = sessionPair();
    const stream = await server.open();
    const accepted = await client.accept();
    expect(b.sent[0]).toEqual(hex("00 01 0001 00000002 00000000"));
    await stream.write(bytes("hello"));
    expect(decodeText(await accepted?.read())).toBe("hello");
  });

  test("[WI-5] a writer stops at 256 KiB until the reader has read, and then continues", async () => {
    const pair = sessionPair();
    const { local, remote } = await openStreamPair(pair);
    const data = makePattern(INITIAL_WINDOW + 1000);
    let isWritten = false;
    const written = local.write(data).then(() => {
      isWritten = true;
    });
    await nextTurn();
    const countPayloadBytes = (): number =>
      pair.a.sent.reduce((sum, message) => sum + (message[1] === FRAME.data ? message.byteLength - 12 : 0), 0);
    expect(countPayloadBytes()).toBe(INITIAL_WINDOW);
    expect(isWritten).toBe(false);
    const first = await remote.read();
    await written;
    expect(countPayloadBytes()).toBe(data.byteLength);
    await local.end();
    const rest = await readAll(remote);
    expect(Buffer.concat([first!, rest])).toEqual(Buffer.from(data));
  });

  test("[WI-5] doubles the window once for a reader that keeps up for 1 MiB", async () => {
    const { session, peer, end } = openBarePeer();
    peer.send(encodeHeader(FRAME.window, FLAG.syn, 1, 0));
    const stream = await session.accept();
    end.sent.length = 0;
    const half = INITIAL_WINDOW / 2;
    const granted: number[] = [];
    const readGrants = (): number[] => {
      for (const message of end.sent.splice(0))
        granted.push(new DataView(message.buffer, message.byteOffset).getUint32(8));
      return granted;
    };
    const feedBytes = async (bytes: number): Promise<void> => {
      peer.send(Buffer.concat([encodeHeader(FRAME.data, 0, 1, bytes), new Uint8Array(bytes)]));
      await nextTurn();
    };
    for (let i = 0; i < 8; i += 1) {
      await feedBytes(half);
      await stream!.read();
    }
    expect(readGrants()).toEqual([...Array.from({ length: 7 }, () => half), half + INITIAL_WINDOW]);
    // From now on, updates are sent at half of the new window, which does not change.
    for (let i = 0; i < 4; i += 1) {
      await feedBytes(half);
      await stream!.read();
    }
    expect(readGrants().slice(8)).toEqual([INITIAL_WINDOW, INITIAL_WINDOW]);
  });

  test("[WI-6] a single writing stream sends large chunks; several alternate after 64 KiB", async () => {
    const pair = sessionPair();
    const { local } = await openStreamPair(pair);
    const secondStream = await pair.client.open();
    pair.a.sent.length = 0;
    const listSizes = (): number[] =>
      pair.a.sent.filter((message) => message[1] === FRAME.data).map(({ byteLength }) => byteLength - 12);
    await local.write(makePattern(INITIAL_WINDOW / 2));
    expect(listSizes()).toEqual([INITIAL_WINDOW / 2]);
    const waiting = secondStream.write(makePattern(INITIAL_WINDOW + 1)).catch(() => {});
    await nextTurn();
    pair.a.sent.length = 0;
    await local.write(makePattern(INITIAL_WINDOW / 2));
    expect(listSizes()).toEqual([64 * 1024, 64 * 1024]);
    pair.client.close();
    await waiting;
  });

  test("[WI-5] window updates are sent at half a window, not for every read", async () => {
    const { session, peer, end } = openBarePeer();
    peer.send(encodeHeader(FRAME.window, FLAG.syn, 1, 0));
    const stream = await session.accept();
    end.sent.length = 0;
    const quarter = INITIAL_WINDOW / 4;
    peer.send(Buffer.concat([encodeHeader(FRAME.data, 0, 1, quarter), new Uint8Array(quarter)]));
    await stream?.read();
    expect(end.sent).toEqual([]);
    peer.send(Buffer.concat([encodeHeader(FRAME.data, 0, 1, quarter), new Uint8Array(quarter)]));
    await stream?.read();
    expect(end.sent).toEqual([encodeHeader(FRAME.window, 0, 1, INITIAL_WINDOW / 2)]);
  });

  test("[WI-20] a session with too many unread bytes resets the fullest stream; the others continue", async () => {
    const limit = 4 * INITIAL_WINDOW;
    const pair = sessionPair({ max_unread: limit });
    const streams = [];
    for (let i = 0; i < 5; i += 1) streams.push(await openStreamPair(pair));
    const [full, ...others] = streams;
    await full!.local.write(makePattern(INITIAL_WINDOW));
    for (const { local } of others) await local.write(makePattern(INITIAL_WINDOW - 1));
    await nextTurn();
    expect((await full!.remote.closed)?.message).toBe("The connection holds too many bytes that were not read.");
    expect((await full!.local.closed)?.failure).toBe("reset");
    for (const { local, remote } of others) {
      await local.end();
      expect(await readAll(remote)).toEqual(Buffer.from(makePattern(INITIAL_WINDOW - 1)));
    }
    // Bytes that were read or dropped no longer count, so the whole limit is available again.
    const { local, remote } = await openStreamPair(pair);
    const sent = local.write(makePattern(2 * limit)).then(() => local.end());
    expect((await readAll(remote)).byteLength).toBe(2 * limit);
    await sent;
  });

  test("[WI-20] windows shrink to a quarter while a session holds many unread bytes", async () => {
    const pair = sessionPair({ max_unread: 4 * INITIAL_WINDOW });
    const { local, remote } = await openStreamPair(pair);
    const stalled = await openStreamPair(pair);
    await stalled.local.write(makePattern(INITIAL_WINDOW));
    const another = await openStreamPair(pair);
    await another.local.write(makePattern(1_000));
    const total = { sent: 0, read: 0 };
    const data = makePattern(64 * 1024);
    const writing = (async () => {
      for (let i = 0; i < 64; i += 1) {
        await local.write(data);
        total.sent += data.byteLength;
      }
      await local.end();
    })();
    const readSome = async (bytes: number): Promise<void> => {
      for (let remaining = bytes; remaining > 0; ) {
        const chunk = await remote.read();
        total.read += chunk!.byteLength;
        remaining -= chunk!.byteLength;
      }
      await nextTurn();
    };
    await nextTurn();
    expect(total.sent - total.read).toBe(INITIAL_WINDOW);
    await readSome(INITIAL_WINDOW);
    expect(total.sent - total.read).toBe(INITIAL_WINDOW / 4);
    for (let i = 0; i < 4; i += 1) {
      await readSome(INITIAL_WINDOW / 4);
      expect(total.sent - total.read).toBe(INITIAL_WINDOW / 4);
    }
    expect((await stalled.remote.read())?.byteLength).toBeGreaterThan(0);
    await readSome(INITIAL_WINDOW / 4);
    expect(total.sent - total.read).toBeGreaterThan(INITIAL_WINDOW / 2);
    const rest = await readAll(remote);
    await writing;
    expect(total.read + rest.byteLength).toBe(64 * data.byteLength);
  });

  test("[WI-6] a stalled stream does not stall others", async () => {
    const pair = sessionPair();
    const { local: stalled } = await openStreamPair(pair);
    void stalled.write(makePattern(2 * INITIAL_WINDOW)).catch(() => {});
    const { local, remote } = await openStreamPair(pair);
    const data = makePattern(4 * INITIAL_WINDOW, 2);
    const sent = local.write(data).then(() => local.end());
    expect(Buffer.from(await readAll(remote)).equals(data)).toBe(true);
    await sent;
    stalled.reset();
  });

  test("[WI-6] hundreds of parallel streams echo their bytes, and the session removes ended ones", async () => {
    const { client, server, clock } = sessionPair();
    const echo = async (): Promise<void> => {
      for (;;) {
        const stream = await server.accept();
        if (!stream) return;
        void (async () => {
          for await (const chunk of stream) await stream.write(chunk);
          await stream.end();
        })();
      }
    };
    void echo();
    const results = await Promise.all(
      Array.from({ length: 400 }, async (_, i) => {
        const stream = await client.open();
        const data = makePattern(1 + ((i * 997) % 20_000), i);
        const [echoed] = await Promise.all([readAll(stream), stream.write(data).then(() => stream.end())]);
        return Buffer.from(echoed).equals(data);
      }),
    );
    expect(results.every(Boolean)).toBe(true);
    expect(client.streams + server.streams).toBe(0);
    expect(clock.timers).toBe(0);
  });

  test("[WI-6] a full socket blocks writers and loses nothing", async () => {
    const pair = sessionPair();
    const { local, remote } = await openStreamPair(pair);
    pair.a.block();
    const data = makePattern(200_000);
    const written = local.write(data).then(() => local.end());
    await nextTurn();
    expect(pair.a.queued.length).toBe(1);
    pair.a.unblock();
    await written;
    expect(Buffer.from(await readAll(remote)).equals(data)).toBe(true);
  });

  test("[WI-7] RST breaks both directions immediately and wakes reader and writer", async () => {
    const pair = sessionPair();
    const { local, remote } = await openStreamPair(pair);
    const reading = local.read();
    const writing = local.write(makePattern(2 * INITIAL_WINDOW));
    const ended = local.end();
    remote.reset("enough");
    await expect(reading).rejects.toMatchObject({ failure: "reset" });
    await expect(writing).rejects.toMatchObject({ failure: "reset" });
    await ended;
    expect(await local.closed).toMatchObject({ failure: "reset" });
    expect(await remote.closed).toMatchObject({ failure: "reset", message: "enough" });
    await expect(remote.read()).rejects.toMatchObject({ failure: "reset" });
    expect(pair.client.streams + pair.server.streams).toBe(0);
    // Frames that were in flight when the ID was forgotten are skipped.
    const { local: next, remote: nextRemote } = await openStreamPair(pair);
    await next.write(bytes("still here"));
    expect(decodeText(await nextRemote.read())).toBe("still here");
  });

  test("[WI-7] a stream can be half closed, and is reset after five silent minutes", async () => {
    const pair = sessionPair();
    const { local, remote } = await openStreamPair(pair);
    await local.end();
    await expect(local.write(bytes("more"))).rejects.toMatchObject({ failure: "closed" });
    await pair.clock.advance(299_000);
    await remote.write(bytes("late"));
    expect(decodeText(await local.read())).toBe("late");
    await pair.clock.advance(299_000);
    expect(pair.client.streams).toBe(1);
    await pair.clock.advance(1_000);
    expect(await local.closed).toMatchObject({ failure: "reset" });
    expect(await remote.closed).toMatchObject({ failure: "reset" });
  });

  test("[WI-8] after go-away no new stream opens, and open ones continue", async () => {
    const pair = sessionPair();
    const { local, remote } = await openStreamPair(pair);
    pair.server.sendGoAway();
    await nextTurn();
    await expect(pair.client.open()).rejects.toMatchObject({ failure: "refused" });
    await expect(pair.server.open()).rejects.toMatchObject({ failure: "refused" });
    await local.write(bytes("on"));
    expect(decodeText(await remote.read())).toBe("on");
    pair.server.close();
    expect(await pair.client.closed).toBeUndefined();
    await expect(local.read()).rejects.toMatchObject({ failure: "closed" });
    expect(await pair.client.accept()).toBeUndefined();
    expect(pair.clock.timers).toBe(0);
  });

  test("[WI-8] a go-away with an error code ends the session", async () => {
    const { session, peer } = openBarePeer();
    peer.send(encodeHeader(FRAME.go_away, 0, 0, 2));
    expect(await session.closed).toMatchObject({ failure: "closed" });
  });

  test("[WI-8] a lost connection leaves received data readable", async () => {
    const { client, server, a } = sessionPair();
    const local = await client.open();
    await local.write(bytes("last words"));
    const remote = await server.accept();
    await nextTurn();
    a.stream.close();
    expect(await server.closed).toBeUndefined();
    expect(decodeText(await remote?.read())).toBe("last words");
    await expect(remote?.read()).rejects.toMatchObject({ failure: "closed" });
  });

  test("[WI-9] pings are answered both ways, with their round trip time", async () => {
    const { client, server } = sessionPair();
    expect(await client.ping()).toBe(0);
    expect(await server.ping()).toBe(0);
    const { peer, end } = openBarePeer();
    peer.send(encodeHeader(FRAME.ping, FLAG.syn, 0, 77));
    await nextTurn();
    expect(end.sent).toEqual([encodeHeader(FRAME.ping, FLAG.ack, 0, 77)]);
  });

  test("[WI-9] a session pings at its interval, reports each answer, and ends when an answer is missing", async () => {
    const roundTrips: number[] = [];
    const { session, peer, end, clock } = openBarePeer({
      ping_interval_ms: 15_000,
      ping_timeout_ms: 30_000,
      alive: (roundTripMs) => roundTrips.push(roundTripMs),
    });
    await clock.advance(15_000);
    expect(end.sent).toEqual([encodeHeader(FRAME.ping, FLAG.syn, 0, 1)]);
    await clock.advance(200);
    peer.send(encodeHeader(FRAME.ping, FLAG.ack, 0, 1));
    await nextTurn();
    expect(roundTrips).toEqual([200]);
    await clock.advance(14_800);
    await clock.advance(29_999);
    expect(session.streams).toBe(0);
    expect(end.closed).toBeUndefined();
    await clock.advance(1);
    expect(await session.closed).toMatchObject({ failure: "timeout" });
    expect(await session.ping()).toBeUndefined();
    expect(clock.timers).toBe(0);
  });

  test("[WI-10] a stream that is not acknowledged for 75 s ends the session", async () => {
    const { client, clock } = sessionPair();
    const stream = await client.open();
    await clock.advance(74_999);
    expect(client.streams).toBe(1);
    await clock.advance(1);
    expect(await client.closed).toMatchObject({ failure: "timeout" });
    expect(await stream.closed).toMatchObject({ failure: "timeout" });
  });

  test("[WI-10] resets streams beyond the accept backlog or the maximum, and continues the session", async () => {
    const { session, peer, end } = openBarePeer({ accept_backlog: 2, max_streams: 3 });
    const open = (id: number): void => peer.send(encodeHeader(FRAME.window, FLAG.syn, id, 0));
    open(1);
    open(3);
    open(5);
    await nextTurn();
    expect(end.sent).toEqual([encodeHeader(FRAME.window, FLAG.rst, 5, 0)]);
    await session.accept();
    await session.accept();
    end.sent.length = 0;
    open(7);
    open(9);
    await nextTurn();
    expect(end.sent).toEqual([encodeHeader(FRAME.window, FLAG.rst, 9, 0)]);
    expect(session.streams).toBe(3);
    await expect(session.open()).rejects.toMatchObject({ failure: "refused" });
  });

  test("[WI-10] an opener waits while too many of its streams are unacknowledged", async () => {
    const { client, server } = sessionPair({ accept_backlog: 2 });
    await client.open();
    await client.open();
    let isOpened = false;
    const third = client.open().then(() => {
      isOpened = true;
    });
    await nextTurn();
    expect(isOpened).toBe(false);
    await server.accept();
    await third;
  });

  test("[WI-10] never delivers a stream that the peer reset before it was accepted", async () => {
    const { session, peer } = openBarePeer();
    peer.send(encodeHeader(FRAME.window, FLAG.syn, 1, 0));
    peer.send(encodeHeader(FRAME.window, FLAG.rst, 1, 0));
    peer.send(encodeHeader(FRAME.window, FLAG.syn, 3, 0));
    await nextTurn();
    expect((await session.accept())?.id).toBe(3);
  });

  const open = hex("00 01 0001 00000001 00000000");
  test.each([
    ["an unknown version", [hex("07 00 0000 00000001 00000000")]],
    ["an unknown type", [hex("00 09 0000 00000001 00000000")]],
    ["a stream with an ID of the receiving side", [hex("00 01 0001 00000002 00000000")]],
    ["stream 0", [hex("00 01 0001 00000000 00000000")]],
    ["a stream opened twice", [open, open]],
    ["more data than the window", [open, hex("00 00 0000 00000001 00040001")]],
    ["data after FIN", [open, hex("00 01 0004 00000001 00000000"), hex("00 00 0000 00000001 00000001 aa")]],
    ["a window beyond 32 bits", [open, hex("00 01 0000 00000001 ffffffff")]],
  ])("[WI-4] a protocol error closes the session with a reason: %s", async (_error, frames) => {
    const { session, peer, end } = openBarePeer();
    for (const frame of frames) peer.send(frame);
    const failure = await session.closed;
    expect(failure).toMatchObject({ failure: "protocol" });
    expect(end.sent.at(-1)).toEqual(encodeHeader(FRAME.go_away, 0, 0, 1));
    expect(end.closed).toEqual({ code: 1002, reason: failure?.message });
  });

  test("[WI-4] random data does not throw, and at most ends the session", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 100 }), { maxLength: 20 }), async (chunks) => {
        const { session, peer, end, clock } = openBarePeer();
        peer.send(encodeHeader(FRAME.window, FLAG.syn, 1, 0));
        for (const chunk of chunks) if (chunk.byteLength > 0) peer.send(chunk);
        await nextTurn();
        peer.close();
        await session.closed;
        expect(session.streams).toBe(0);
        expect(clock.timers).toBe(0);
        expect(end.sent.length).toBeLessThan(2 + chunks.length * 10);
      }),
      { numRuns: 200 },
    );
  });

  test("[WI-4] a connection that ends inside a frame is an error", async () => {
    const { session, peer } = openBarePeer();
    peer.send(hex("00 00 0000 00"));
    await nextTurn();
    peer.close();
    expect(await session.closed).toMatchObject({ failure: "closed" });
  });
});
