// Clients that do not read their responses: their memory is bounded, and other users are not affected.
import { expect, test } from "bun:test";
import { type Clock, systemClock } from "#base/clock.ts";
import { PageSlots } from "#src/api/http/answers/page-slots.ts";
import { Backlog, type SlowConnection } from "#src/api/http/backlog.ts";
import { EventStream } from "#src/api/http/event-stream.ts";
import { Requests } from "#src/api/http/requests.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { RawConnection } from "#test/support/net/raw.ts";
import { until } from "#test/support/until.ts";

test("[HT-51] a user can occupy half of the slots; their next reader waits while other users can read", async () => {
  const slots = new PageSlots(systemClock, 4);
  const [releaseFirst, releaseSecond] = [await slots.take("eve"), await slots.take("eve")];
  let hasThird = false;
  const third = slots.take("eve").then((release) => {
    hasThird = true;
    return release;
  });
  const releaseBobs = await slots.take("bob");
  expect(hasThird).toBe(false);
  releaseFirst(1);
  // A second call frees nothing more.
  releaseFirst(1);
  const releaseThird = await third;
  const releaseFourth = await slots.take("bob");
  const fifth = slots.take("carol");
  releaseBobs(1);
  (await fifth)(1);
  for (const release of [releaseSecond, releaseThird, releaseFourth]) release(1);
  expect((await slots.take("eve"))(1)).toBeUndefined();
});

test("[HT-51] a slot is free again after ten seconds, and readers wait no longer than that", async () => {
  const clock = new ManualClock();
  const slots = new PageSlots(clock, 2);
  await Promise.all([slots.take("eve"), slots.take("bob")]);
  clock.advance(5_000);
  const waiting = Promise.allSettled(["carol", "dave", "fay", "gus"].map((holder) => slots.take(holder)));
  clock.advance(5_000);
  clock.advance(5_000);
  const rejected = { status: "rejected", reason: expect.objectContaining({ kind: "overloaded" }) };
  const fulfilled = { status: "fulfilled", value: expect.any(Function) };
  expect(await waiting).toEqual([fulfilled, fulfilled, rejected, rejected] as never);
});

test("[HT-51] the waiting person with the fewest slots comes first", async () => {
  const slots = new PageSlots(systemClock, 4);
  const [releaseFirst] = await Promise.all(["eve", "eve", "bob", "bob"].map((holder) => slots.take(holder)));
  const started: string[] = [];
  const waiting = ["eve", "carol"].map((holder) =>
    slots.take(holder).then((release) => {
      started.push(holder);
      release(1);
    }),
  );
  releaseFirst?.(1);
  await Promise.all(waiting);
  expect(started).toEqual(["carol", "eve"]);
});

test("[HT-51] a reader that disconnects while it waits occupies no slot", async () => {
  const slots = new PageSlots(systemClock, 2);
  const release = await slots.take("eve");
  const abort = new AbortController();
  const request = new Request("http://localhost/", { signal: abort.signal });
  const waiting = slots.acquireUntilAnswered(request, "eve");
  abort.abort();
  release(1);
  await waiting;
  (await slots.take("eve"))(1);
});

test("[HT-51] a slot is free once the client has read a large response, disconnects, or receives a small one", async () => {
  const slots = new PageSlots(systemClock, 2);
  const respondWith = async (body: string): Promise<Response> => {
    const request = new Request("http://localhost/");
    await slots.acquireUntilAnswered(request, "eve");
    return slots.finish(request, new Response(body, { headers: { "content-type": "application/json" } }));
  };
  const large = "x".repeat(3_000_000);
  const small = await respondWith("{}");
  expect([small.headers.get("content-type"), await small.text()]).toEqual(["application/json", "{}"]);
  expect(await (await respondWith(large)).text()).toBe(large);
  await (await respondWith(large)).body?.cancel();
  const failed = new Request("http://localhost/");
  await slots.acquireUntilAnswered(failed, "eve");
  slots.drop(failed);
  await respondWith("again");
});

test("[HT-51] a client that disconnects from a large page frees its slot", async () => {
  const slots = new PageSlots(systemClock, 2);
  const large = "x".repeat(16_000_000);
  await using bunServer = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (request) => {
      await slots.acquireUntilAnswered(request, "eve");
      return slots.finish(request, new Response(large));
    },
  });
  for (let i = 0; i < 3; i++) {
    using stalled = new RawConnection(bunServer.url);
    stalled.socket.pause();
    stalled.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    await until(() => bunServer.pendingRequests === 1);
  }
  expect((await (await fetch(bunServer.url)).text()).length).toBe(large.length);
});

test("[SK-7] above the limit, closes the slow connections of the holder with the most waiting bytes", () => {
  const terminated: string[] = [];
  const createConnection = (name: string, holder: string, waiting: number): SlowConnection & { waiting: number } => ({
    holder,
    waiting,
    terminate: () => void terminated.push(name),
  });
  const backlog = new Backlog(100, 1_000);
  const eve = [1, 2, 3].map((n) => createConnection(`eve ${n}`, "eve", 200));
  const bob = createConnection("bob", "bob", 300);
  for (const connection of [...eve, bob]) backlog.note(connection);
  expect(terminated).toEqual([]);
  // This client has read its bytes since, so it is no longer slow.
  for (const connection of eve.slice(0, 1)) connection.waiting = 50;
  backlog.note(createConnection("bob 2", "bob", 200));
  expect(terminated).toEqual([]);
  backlog.note(createConnection("eve 4", "eve", 900));
  expect(terminated).toEqual(["eve 2", "eve 3", "eve 4"]);
  backlog.note(createConnection("carol", "carol", 400));
  expect(terminated).toHaveLength(3);
});

test("[SK-7] thousands of connections for which little waits are counted, and closed ones no longer", () => {
  const cut: SlowConnection[] = [];
  const backlog = new Backlog(100, 10_000);
  const open = (holder: string): SlowConnection => {
    const connection = { holder, waiting: 200, terminate: () => void cut.push(connection) };
    backlog.note(connection);
    return connection;
  };
  for (let i = 0; i < 100; i++) backlog.forget(open("eve"));
  const alice = open("alice");
  for (let i = 0; i < 49; i++) open("eve");
  expect(cut).toEqual([]);
  for (let i = 0; i < 5; i++) open("eve");
  expect(cut.length).toBeGreaterThan(49);
  expect(cut).not.toContain(alice);
});

test("[SK-7] of a hundred holders, as many lose their connections as exceed the limit", () => {
  let cutCount = 0;
  const backlog = new Backlog(100, 10_000);
  for (let i = 0; i < 100; i++)
    backlog.note({
      holder: `user ${i}`,
      waiting: 500,
      terminate: () => {
        cutCount += 1;
      },
    });
  // 20 of them fit, and the sum is measured again when it is a sixteenth larger.
  expect(cutCount).toBeGreaterThanOrEqual(100 - 21);
});

type ServedStream = { readonly stream: EventStream; readonly steps: string[] };

/** Serves event streams. `steps` lists how each has ended. */
const serveStreams = (clock: Clock, backlog: Backlog) => {
  const streams: ServedStream[] = [];
  const requests = new Requests(clock, 10);
  const served = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: (request) => {
      requests.exempt(request);
      let stream: EventStream | undefined;
      const steps: string[] = [];
      const body = new ReadableStream<Uint8Array>(
        {
          start(controller) {
            stream = new EventStream(controller, {
              clock,
              backlog,
              holder: "eve",
              onEnded: () => void steps.push("ended"),
              onClosed: () => void steps.push("closed"),
              cut: () => requests.cut(request),
            });
            streams.push({ stream, steps });
            stream.ping();
          },
          pull: () => stream?.onPull(),
          cancel: () => stream?.onDisconnect(),
        },
        new ByteLengthQueuingStrategy({ highWaterMark: 0 }),
      );
      return new Response(body);
    },
  });
  requests.attach(served);
  return {
    served,
    /** Opens a stream whose client stops reading, and sends it an event. */
    async openUnread(event: string) {
      const reader = new RawConnection(served.url);
      reader.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
      await reader.until((text) => text.includes("event: ping"));
      const { stream, steps } = streams.at(-1) as ServedStream;
      await until(() => stream.waiting === 0);
      reader.socket.pause();
      stream.send("data", event);
      return { reader, stream, steps };
    },
    [Symbol.asyncDispose]: () => served.stop(true),
  };
};

const LARGE_EVENT = "x".repeat(16_000_000);

test("[SK-7] an event that the network does not take counts as waiting, until its client has read it", async () => {
  await using server = serveStreams(systemClock, new Backlog(0, Number.MAX_SAFE_INTEGER));
  const { reader, stream } = await server.openUnread(LARGE_EVENT);
  expect(stream.waiting).toBeGreaterThan(LARGE_EVENT.length);
  let hasRoom = false;
  const room = stream.waitForRoom(0).then((isOpen) => {
    hasRoom = isOpen;
  });
  await new Promise<void>((resolve) => setImmediate(resolve));
  expect(hasRoom).toBe(false);
  reader.socket.resume();
  await room;
  expect([hasRoom, stream.waiting]).toEqual([true, 0]);
  reader[Symbol.dispose]();
});

test("[EV-5] what waits when the server ends a stream counts until its client has read it", async () => {
  await using server = serveStreams(systemClock, new Backlog(0, Number.MAX_SAFE_INTEGER));
  const { reader, stream, steps } = await server.openUnread(LARGE_EVENT);
  stream.end();
  expect([steps, stream.send("data", "late"), await stream.waitForRoom(0)]).toEqual([["ended"], false, false]);
  expect(stream.waiting).toBeGreaterThan(LARGE_EVENT.length);
  reader.socket.resume();
  const text = await reader.until((received) => received.endsWith("\r\n0\r\n\r\n"));
  expect(text.length).toBeGreaterThan(LARGE_EVENT.length);
  expect([steps, stream.waiting]).toEqual([["ended", "closed"], 0]);
  reader[Symbol.dispose]();
});

test("[EV-5] [SK-7] a client that does not read an ended stream is cut off after two minutes, or when too much waits", async () => {
  const clock = new ManualClock();
  await using server = serveStreams(clock, new Backlog(0, 2.5 * LARGE_EVENT.length));
  const first = await server.openUnread(LARGE_EVENT);
  first.stream.end();
  clock.advance(119_999);
  expect(first.steps).toEqual(["ended"]);
  clock.advance(1);
  expect([first.steps, first.stream.waiting]).toEqual([["ended", "closed"], 0]);
  const others = [await server.openUnread(LARGE_EVENT), await server.openUnread(LARGE_EVENT)];
  for (const { stream } of others) stream.end();
  const last = await server.openUnread(LARGE_EVENT);
  for (const { steps } of [...others, last]) expect(steps).toEqual(["ended", "closed"]);
  await until(() => server.served.pendingRequests === 0);
  for (const { reader } of [first, ...others, last]) reader[Symbol.dispose]();
});
