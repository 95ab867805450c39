// Requests between nodes, over real sockets and the nodes' listeners.
import { afterEach, expect, test } from "bun:test";
import type { Socket } from "bun";
import { AppError, NotStartedError } from "#base/errors.ts";
import { getCurrentOrigin, withOrigin } from "#base/origin.ts";
import { CommitError } from "#db/engine/store.ts";
import type { NodeService } from "#src/cluster/node-answering.ts";
import { MAX_CONCURRENT_CALLS } from "#src/cluster/node-asking.ts";
import { FrameReader, KIND, toFrame } from "#src/cluster/node-frames.ts";
import { formatLinkRequest, formatLinkResponse } from "#src/cluster/node-head.ts";
import { NodeWire } from "#src/cluster/node-wire.ts";
import { makeCertificate } from "#test/cli/certificate.ts";
import { createLinkedNode, type LinkedNode, NODES_TOKEN } from "#test/support/cluster/linked-node.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { tempDirectory } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

/** Creates a node that ends with the test. */
const startNode = (...args: Parameters<typeof createLinkedNode>): LinkedNode => {
  const created = createLinkedNode(...args);
  cleanups.push(() => created[Symbol.dispose]());
  return created;
};

/** Creates a service whose calls wait for `release`. */
const createGatedService = () => {
  const [started, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<string>()];
  const serve: NodeService = () => {
    started.resolve();
    return gate.promise;
  };
  return { serve, started: started.promise, release: gate.resolve };
};

const catchError = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error) => error,
  );

/** Starts a server that passes received data to `onData`, and returns its address as a node. */
const startListener = (onData: (socket: Socket, bytes: Buffer) => void) => {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: onData } });
  cleanups.push(() => listener.stop(true));
  return { id: "other", address: `127.0.0.1:${listener.port}` };
};

test("[CP-30] calls run concurrently, start in order, and name their caller", async () => {
  const received: unknown[] = [];
  const { promise: gate, resolve: release } = Promise.withResolvers<void>();
  const b = startNode("b", {
    note: async (args, from) => {
      received.push([args, from]);
      if ((args as { n: number }).n === 0) await gate;
      return args;
    },
    nothing: async () => undefined,
  });
  const a = startNode("a b");
  const calls = Array.from({ length: 100 }, (_, n) => a.links.call(b.nodeRef, "note", { n }));
  expect(await Promise.all(calls.slice(1))).toEqual(Array.from({ length: 99 }, (_, n) => ({ n: n + 1 })));
  release();
  expect(await calls[0]).toEqual({ n: 0 });
  expect(received).toEqual(Array.from({ length: 100 }, (_, n) => [{ n }, "a b"]));
  expect(await a.links.call(b.nodeRef, "nothing", undefined)).toBeUndefined();
  // A link does not count as a forwarded request.
  expect(b.forwarder.size).toBe(0);
});

test("[CP-30] large and small messages can be sent in both directions", async () => {
  const echo: NodeService = async (args) => args;
  const [a, b] = [startNode("a", { echo }), startNode("b", { echo })];
  const big = { text: "ä\u{1f600}x\n".repeat(700_000) };
  const replies = await Promise.all([
    a.links.call(b.nodeRef, "echo", big),
    a.links.call(b.nodeRef, "echo", big),
    b.links.call(a.nodeRef, "echo", big),
    a.links.call(b.nodeRef, "echo", "small"),
  ]);
  expect(replies.slice(0, 3).every((reply) => (reply as typeof big).text === big.text)).toBe(true);
  expect(replies[3]).toBe("small");
  const tooBig = await catchError(a.links.call(b.nodeRef, "echo", "x".repeat(40_000_000)));
  expect(tooBig).toMatchObject({ kind: "too_large" });
  expect(await a.links.call(b.nodeRef, "echo", 1)).toBe(1);
});

test("[CP-30] errors are returned with their type, unknown ones as an internal error", async () => {
  const app = new AppError("conflict", "No.", {
    detail: "why",
    validations: [{ field: "name", detail: "taken" }],
    retry_after: 7,
    reason: "word",
    members: { more: [1] },
  });
  const thrown: unknown[] = [
    app,
    new AppError("invalid", "Wrong."),
    new CommitError("constraint", "two of them", { constraint: "users_username" }),
    new NotStartedError("not here"),
    new TypeError("a secret of node b"),
  ];
  const fail: NodeService = (args) => Promise.reject(thrown[args as number]);
  const [a, b] = [startNode("a"), startNode("b", { fail })];
  const errors = await Promise.all(thrown.map((_, n) => catchError(a.links.call(b.nodeRef, "fail", n))));
  expect(errors.slice(0, 4)).toEqual(thrown.slice(0, 4));
  expect(errors.slice(0, 4).map((error) => (error as Error).constructor)).toEqual([
    AppError,
    AppError,
    CommitError,
    NotStartedError,
  ]);
  expect(errors[0]).toMatchObject({ ...app });
  expect(errors[2]).toMatchObject({ reason: "constraint", constraint: "users_username" });
  expect(errors[4]).toEqual(new Error("node b failed; see its log"));
  expect(await catchError(a.links.call(b.nodeRef, "unknown", 0))).toBeInstanceOf(NotStartedError);
});

test("[CP-30] a call on behalf of a user keeps that user on the other node", async () => {
  const [a, b] = [startNode("a"), startNode("b", { origin: async () => getCurrentOrigin()?.() })];
  const origin = { user_id: "someone", ip: "192.0.2.7", user_agent: "agent", request_id: "request", note: { a: "b" } };
  expect(
    await withOrigin(
      () => origin,
      () => a.links.call(b.nodeRef, "origin", {}),
    ),
  ).toEqual(origin);
  expect(await a.links.call(b.nodeRef, "origin", {})).toBeUndefined();
});

test("[CP-30] a link cannot be opened without the nodes' token", async () => {
  const requests: unknown[] = [];
  const b = startNode("b", { note: async (args) => void requests.push(args) });
  const outsider = startNode("stranger", {}, { token: "another-token" });
  expect(await catchError(outsider.links.call(b.nodeRef, "note", 1))).toBeInstanceOf(NotStartedError);
  const head = { "x-slipway-node": "another-token node=stranger" };
  const plain = await fetch(`http://${b.nodeRef.address}/.slipway/nodes`, { headers: head });
  expect(plain.status).toBe(503);
  expect(requests).toEqual([]);
});

test("[CP-30] if nodes use TLS, links do too, and they reject other certificates", async () => {
  using folder = tempDirectory();
  const own = await makeCertificate(folder.path, "own", "DNS:slipway.example.com");
  const other = await makeCertificate(folder.path, "other", "DNS:slipway.example.com");
  const loadTls = async ({ cert, key }: { cert: string; key: string }) => ({
    cert: await Bun.file(cert).text(),
    key: await Bun.file(key).text(),
  });
  const echo: NodeService = async (args) => args;
  const a = startNode("a", {}, { tls: await loadTls(own) });
  const b = startNode("b", { echo }, { tls: await loadTls(own) });
  const c = startNode("c", { echo }, { tls: await loadTls(other) });
  const big = "x".repeat(4 * 1024 * 1024);
  expect(await a.links.call(b.nodeRef, "echo", big)).toBe(big);
  expect(await catchError(a.links.call(c.nodeRef, "echo", big))).toBeInstanceOf(NotStartedError);
});

test("[CP-31] a call to an unreachable node is reported as not started; calls succeed again after the node restarts", async () => {
  const a = startNode("a");
  const b = startNode("b", { echo: async (args) => args });
  expect(await catchError(a.links.call({ id: "gone", address: "127.0.0.1:1" }, "echo", 1))).toBeInstanceOf(
    NotStartedError,
  );
  expect(await catchError(a.links.call({ id: "odd", address: "nowhere" }, "echo", 1))).toBeInstanceOf(NotStartedError);
  expect(await a.links.call(b.nodeRef, "echo", 1)).toBe(1);
  b[Symbol.dispose]();
  startNode("b", { echo: async (args) => args }, { port: b.forwarder.port });
  await until(async () => (await a.links.call(b.nodeRef, "echo", 2).catch(() => undefined)) === 2);
});

test("[CP-31] the outcome of calls in progress when a connection breaks is unknown", async () => {
  const { serve: slow, started } = createGatedService();
  const [a, b] = [startNode("a"), startNode("b", { slow })];
  const call = catchError(a.links.call(b.nodeRef, "slow", {}));
  await started;
  b.links.close();
  expect(await call).toMatchObject({ name: "CommitError", reason: "unknown" });
});

test("[CP-31] a connection is closed when the other node is silent for three seconds", () => {
  const clock = new ManualClock();
  const wires = { silent: 0, living: 0 };
  const socket = { write: (bytes: Buffer) => bytes.length, pause() {}, resume() {}, end() {}, terminate() {} };
  const openWire = (name: keyof typeof wires) =>
    new NodeWire(clock, socket as never, {
      answers: false,
      frame() {},
      over() {
        wires[name] += 1;
      },
    });
  openWire("silent");
  const living = openWire("living");
  for (let second = 1; second <= 10; second++) {
    clock.advance(1_000);
    expect(wires.silent).toBe(second > 3 ? 1 : 0);
    if (second % 3 === 0) living.data(toFrame(KIND.alive, 0));
  }
  expect(wires.living).toBe(0);
  // Silence while this process was paused does not count.
  clock.leap(60_000);
  expect(wires.living).toBe(0);
});

test("[CP-31] a stopping node answers the calls it has started and starts no others", async () => {
  const { serve: slow, started, release } = createGatedService();
  const [a, b] = [startNode("a"), startNode("b", { slow })];
  const call = a.links.call(b.nodeRef, "slow", {});
  await started;
  const drained = b.links.drain();
  const lateCall = catchError(a.links.call(b.nodeRef, "slow", {}));
  expect(await lateCall).toBeInstanceOf(NotStartedError);
  release("done");
  expect(await call).toBe("done");
  await drained;
  await a.links.drain();
  expect(await catchError(a.links.call(b.nodeRef, "slow", {}))).toBeInstanceOf(NotStartedError);
});

test("[CP-32] calls beyond the limit are rejected, and so are calls to a node that does not read", async () => {
  const { promise: gate, resolve: release } = Promise.withResolvers<void>();
  const [a, b] = [startNode("a"), startNode("b", { slow: () => gate })];
  const calls = Array.from({ length: MAX_CONCURRENT_CALLS }, () => a.links.call(b.nodeRef, "slow", {}));
  expect(await catchError(a.links.call(b.nodeRef, "slow", {}))).toMatchObject({ kind: "overloaded" });
  release();
  await Promise.all(calls);

  const stuck = startListener((socket) => {
    socket.write(formatLinkResponse());
    socket.pause();
  });
  const sentCalls: Promise<unknown>[] = [];
  let refused: unknown;
  const text = "x".repeat(1024 * 1024);
  await until(() => {
    const call = catchError(a.links.call(stuck, "any", text));
    sentCalls.push(call);
    void call.then((error) => {
      refused ??= error;
    });
    return refused !== undefined;
  });
  expect(refused).toMatchObject({ kind: "overloaded" });
  expect(refused).not.toBeInstanceOf(NotStartedError);
  expect(sentCalls.length).toBeLessThan(40);
  a.links.close();
  const [first, ...others] = await Promise.all(sentCalls);
  expect(first).toMatchObject({ reason: "unknown" });
  // Requests that were not sent completely cannot have been started.
  expect(others.filter((error) => error instanceof NotStartedError).length).toBeGreaterThan(10);
});

test("[CP-32] a node that does not read its responses gets no more calls, and gets all responses when it reads again", async () => {
  const text = "x".repeat(256 * 1024);
  let handledCalls = 0;
  const b = startNode("b", {
    big: async () => {
      handledCalls += 1;
      return text;
    },
  });
  const { port } = b.forwarder;
  const reader = new FrameReader();
  let receivedReplies = 0;
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      data: (_, bytes) => {
        const headEnd = receivedReplies === 0 && bytes.indexOf("\r\n\r\n") >= 0 ? bytes.indexOf("\r\n\r\n") + 4 : 0;
        const frames = reader.readFrames(bytes.subarray(headEnd));
        if (frames !== "wrong") receivedReplies += frames.filter(({ kind }) => kind === KIND.answer).length;
      },
    },
  });
  cleanups.push(() => socket.end());
  socket.write(formatLinkRequest(b.nodeRef.address, NODES_TOKEN, "a"));
  socket.pause();
  for (let id = 1; id <= 200; id++) socket.write(toFrame(KIND.call, id, JSON.stringify({ service: "big" })));
  let previousCount = -1;
  await until(() => {
    const isStable = handledCalls > 0 && handledCalls === previousCount;
    previousCount = handledCalls;
    return isStable;
  });
  expect(handledCalls).toBeLessThanOrEqual(200);
  socket.resume();
  await until(() => receivedReplies === 200);
});
