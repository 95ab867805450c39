// Clients that do not read what they asked for: the memory of all of them is bounded, and other people notice nothing.
import { expect, test } from "bun:test";
import { systemClock } from "#base/clock.ts";
import { PageSlots } from "#src/api/http/answers/page-slots.ts";
import { Backlog, type SlowConnection } from "#src/api/http/backlog.ts";
import { EventStream } from "#src/api/http/event-stream.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { RawConnection } from "#test/support/net/raw.ts";
import { until } from "#test/support/until.ts";

test("[HT-51] a user can occupy half of the slots; their next reader waits for a free one, and other users can read", async () => {
  const slots = new PageSlots(systemClock, 4);
  const [first, second] = [await slots.take("eve"), await slots.take("eve")];
  let isThird = false;
  const third = slots.take("eve").then((free) => {
    isThird = true;
    return free;
  });
  const bob = await slots.take("bob");
  expect(isThird).toBe(false);
  first(1);
  // A second call frees nothing more.
  first(1);
  const free = await third;
  const [last] = [await slots.take("bob")];
  const fourth = slots.take("carol");
  bob(1);
  (await fourth)(1);
  for (const one of [second, free, last]) one(1);
  expect((await slots.take("eve"))(1)).toBeUndefined();
});

test("[HT-51] a slot is free again after ten seconds, whatever its client does, and readers wait no longer for one", async () => {
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
  const [first] = await Promise.all(["eve", "eve", "bob", "bob"].map((holder) => slots.take(holder)));
  const started: string[] = [];
  const waiting = ["eve", "carol"].map((holder) =>
    slots.take(holder).then((free) => {
      started.push(holder);
      free(1);
    }),
  );
  first?.(1);
  await Promise.all(waiting);
  expect(started).toEqual(["carol", "eve"]);
});

test("[HT-51] a reader that disconnected while it waited occupies no slot", async () => {
  const slots = new PageSlots(systemClock, 2);
  const free = await slots.take("eve");
  const leaving = new AbortController();
  const request = new Request("http://localhost/", { signal: leaving.signal });
  const waited = slots.acquireUntilAnswered(request, "eve");
  leaving.abort();
  free(1);
  await waited;
  (await slots.take("eve"))(1);
});

test("[HT-51] a slot is free when a large answer was read or its client has left, and with the last byte of a small one", async () => {
  const slots = new PageSlots(systemClock, 2);
  const answerTo = async (body: string): Promise<Response> => {
    const request = new Request("http://localhost/");
    await slots.acquireUntilAnswered(request, "eve");
    return slots.finish(request, new Response(body, { headers: { "content-type": "application/json" } }));
  };
  const large = "x".repeat(3_000_000);
  const small = await answerTo("{}");
  expect([small.headers.get("content-type"), await small.text()]).toEqual(["application/json", "{}"]);
  expect(await (await answerTo(large)).text()).toBe(large);
  await (await answerTo(large)).body?.cancel();
  const failed = new Request("http://localhost/");
  await slots.acquireUntilAnswered(failed, "eve");
  slots.drop(failed);
  await answerTo("again");
});

test("[HT-51] a client that takes a large page and leaves gives its slot back", async () => {
  const slots = new PageSlots(systemClock, 2);
  const large = "x".repeat(16_000_000);
  await using served = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (request) => {
      await slots.acquireUntilAnswered(request, "eve");
      return slots.finish(request, new Response(large));
    },
  });
  for (let i = 0; i < 3; i++) {
    using stalled = new RawConnection(served.url);
    stalled.socket.pause();
    stalled.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    await until(() => served.pendingRequests === 1);
  }
  expect((await (await fetch(served.url)).text()).length).toBe(large.length);
});

test("[SK-7] above the limit, the holder with the most waiting bytes loses its slow connections", () => {
  const cut: string[] = [];
  const makeConnection = (name: string, holder: string, waiting: number): SlowConnection & { waiting: number } => ({
    holder,
    waiting,
    terminate: () => void cut.push(name),
  });
  const backlog = new Backlog(100, 1_000);
  const eve = [1, 2, 3].map((n) => makeConnection(`eve ${n}`, "eve", 200));
  const bob = makeConnection("bob", "bob", 300);
  for (const one of [...eve, bob]) backlog.note(one);
  expect(cut).toEqual([]);
  // One client has read its bytes since, so it is not slow any more.
  for (const one of eve.slice(0, 1)) one.waiting = 50;
  backlog.note(makeConnection("bob 2", "bob", 200));
  expect(cut).toEqual([]);
  backlog.note(makeConnection("eve 4", "eve", 900));
  expect(cut).toEqual(["eve 2", "eve 3", "eve 4"]);
  backlog.note(makeConnection("carol", "carol", 400));
  expect(cut).toHaveLength(3);
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

test("[SK-7] an event that the network does not take counts as waiting, until its client has read it", async () => {
  const backlog = new Backlog(0, Number.MAX_SAFE_INTEGER);
  const streams: EventStream[] = [];
  await using served = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => {
      let stream: EventStream | undefined;
      const body = new ReadableStream<Uint8Array>(
        {
          start(controller) {
            stream = new EventStream(controller, { backlog, holder: "eve", onClosed: () => {} });
            streams.push(stream);
            stream.ping();
          },
          pull: () => stream?.onPull(),
        },
        new ByteLengthQueuingStrategy({ highWaterMark: 0 }),
      );
      return new Response(body);
    },
  });
  using reader = new RawConnection(served.url);
  reader.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  await reader.until((text) => text.includes("event: ping"));
  const [stream] = streams;
  await until(() => stream?.waiting === 0);
  reader.socket.pause();
  const event = "x".repeat(16_000_000);
  stream?.send("data", event);
  expect(stream?.waiting).toBeGreaterThan(event.length);
  reader.socket.resume();
  await until(() => stream?.waiting === 0);
});
