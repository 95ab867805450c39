// Streams whose shard moved while the request was being processed: they would never receive anything.
import { expect, test } from "bun:test";
import { systemClock } from "#base/clock.ts";
import { OpenStreams } from "#src/api/http/open-streams.ts";
import { ownRequests } from "#src/api/http/placement/own-requests.ts";
import { Requests } from "#src/api/http/requests.ts";
import { type Socket, Sockets } from "#src/api/http/socket.ts";
import { MovableShards } from "#test/support/cluster/movable-shards.ts";
import { until } from "#test/support/until.ts";

const SHARD = 7;

/** Handles a request of shard 0 with `handle`; a declined request returns 503. */
const handleRequest = (
  shards: MovableShards,
  streams: OpenStreams,
  handle: (request: Request) => Promise<Response>,
): Promise<Response> =>
  ownRequests(
    {
      shards,
      sockets: new Sockets(systemClock),
      streams,
      requests: new Requests(systemClock, 10),
      config: {},
    } as never,
    {
      placement: { shardOf: () => 0 },
      takeForwardedAddress: () => "127.0.0.1",
      isProbe: () => false,
      isClosed: () => false,
      handle,
      decline: async (_, shard) => new Response(`of part ${shard}`, { status: 503 }),
    },
  )(new Request("http://node.test/api/v2/whatever"));

test("[CP-55] a socket that opens after its shard has moved is closed immediately, others stay open", async () => {
  const shards = new MovableShards();
  const sockets = new Sockets(systemClock, 10, shards.isHere);
  const opened: Socket[] = [];
  const server = Bun.serve({
    port: 0,
    websocket: sockets.websocket as never,
    fetch: (request) => {
      sockets.assign(request, request.url.endsWith("any") ? "here" : SHARD);
      if (request.url.endsWith("late")) {
        // All open streams are closed before this request is checked.
        shards.drop([SHARD]);
        sockets.release((shard) => shard === SHARD);
      }
      return sockets.upgrade(request, { open: (socket) => opened.push(socket) });
    },
  });
  sockets.attach(server as never);
  const open = (name: string) => {
    const socket = new WebSocket(new URL(name, server.url));
    const closed = new Promise<number>((resolve) => {
      socket.onclose = ({ code }) => resolve(code);
    });
    const ready = new Promise<void>((resolve) => {
      socket.onopen = () => resolve();
    });
    return { closed, ready };
  };
  try {
    const before = open("before");
    const unassigned = open("any");
    await Promise.all([before.ready, unassigned.ready]);
    const lateSocket = open("late");
    expect(await Promise.all([before.closed, lateSocket.closed])).toEqual([1001, 1001]);
    expect(opened.filter(({ closing }) => !closing).map(({ destination }) => destination)).toEqual(["here"]);
  } finally {
    await server.stop(true);
  }
});

test("[CP-55] an event stream that opens after its shard has moved is opened on the new owner", async () => {
  const shards = new MovableShards();
  let cancelCount = 0;
  const stream = () =>
    new Response(new ReadableStream({ cancel: () => void cancelCount++ }), {
      headers: { "content-type": "text/event-stream" },
    });
  const startRequest = async (shouldDropShard: boolean): Promise<Response> => {
    return handleRequest(shards, new OpenStreams(systemClock), async () => {
      if (shouldDropShard) shards.drop([0]);
      return stream();
    });
  };
  expect([(await startRequest(false)).status, cancelCount]).toEqual([200, 0]);
  const late = await startRequest(true);
  expect([late.status, await late.text(), cancelCount]).toEqual([503, "of part 0", 1]);
});

test("[CP-55] a long poll continues at its shard's new owner, even if it starts after the move; other polls are unaffected", async () => {
  const shards = new MovableShards();
  const streams = new OpenStreams(systemClock, 10, shards.isHere);
  const waiting: string[] = [];
  const poll = (isLate: boolean) =>
    handleRequest(shards, streams, (request) => {
      if (isLate) shards.drop([0]);
      const { promise, resolve } = Promise.withResolvers<Response>();
      streams.add(
        { end: () => resolve(new Response("it has ended", { status: 503 })), ping: () => {}, isPoll: true },
        {},
        request,
      );
      waiting.push(request.url);
      return promise;
    });
  const otherStream = { ended: false };
  const anotherRequest = new Request("http://node.test/api/v2/another");
  streams.assign(anotherRequest, SHARD);
  const end = (): void => {
    otherStream.ended = true;
  };
  streams.add({ end, ping: () => {} }, {}, anotherRequest);
  const early = poll(false);
  await until(() => waiting.length === 1);
  shards.drop([0]);
  streams.release((shard) => shard === 0);
  expect(await (await early).text()).toBe("of part 0");
  shards.add([0]);
  expect(await (await poll(true)).text()).toBe("of part 0");
  expect(otherStream.ended).toBe(false);
});
