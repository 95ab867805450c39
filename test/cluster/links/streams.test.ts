// Byte streams between nodes, over real sockets.
import { afterEach, expect, test } from "bun:test";
import { AppError, NotStartedError } from "#base/errors.ts";
import { type Duplex, pipe } from "#src/wire/duplex.ts";
import { WireError } from "#src/wire/wire-error.ts";
import { makeCertificate } from "#test/cli/certificate.ts";
import { createLinkedNode, type LinkedNode } from "#test/support/cluster/linked-node.ts";
import { tempDirectory } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";

const openNodes: LinkedNode[] = [];
afterEach(() => {
  for (const startNode of openNodes.splice(0)) startNode[Symbol.dispose]();
});

const node = (...args: Parameters<typeof createLinkedNode>): LinkedNode => {
  const created = createLinkedNode(...args);
  openNodes.push(created);
  return created;
};

const readAll = async (stream: Duplex): Promise<Buffer> => {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
};

const catchError = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error) => error,
  );

/** Echoes its input, and ends with the other side. */
const echo = async (stream: Duplex): Promise<void> => {
  for await (const chunk of stream) await stream.write(chunk);
  await stream.end();
};

const BIG = Buffer.alloc(8 * 1024 * 1024, "0123456789abcdefghijklmnopqrstu");

test("[CP-35] a stream carries bytes both ways, each side closes separately, with TLS or without", async () => {
  using folder = tempDirectory();
  const { cert, key } = await makeCertificate(folder.path, "own", "DNS:slipway.example.com");
  const tls = { cert: await Bun.file(cert).text(), key: await Bun.file(key).text() };
  for (const options of [{}, { tls }]) {
    const opened: unknown[] = [];
    const [a, b] = [node("a", {}, options), node("b", {}, options)];
    b.links.serveStreams("echo", async (args, stream, from) => {
      opened.push([args, from]);
      void echo(stream);
    });
    const stream = await a.links.open(b.nodeRef, "echo", { n: 1 });
    const writing = (async () => {
      await stream.write(BIG);
      await stream.end();
    })();
    expect((await readAll(stream)).equals(BIG)).toBe(true);
    await writing;
    expect(await stream.closed).toBeUndefined();
    expect(opened).toEqual([[{ n: 1 }, "a"]]);
  }
});

test("[CP-35] a side that does not read applies backpressure to the other, and nothing is lost", async () => {
  let written = 0;
  const [a, b] = [node("a"), node("b")];
  b.links.serveStreams("pump", async (_, stream) => {
    void (async () => {
      for (; written < 2000; written++) await stream.write(BIG.subarray(0, 64 * 1024));
      await stream.end();
    })();
  });
  const stream = await a.links.open(b.nodeRef, "pump", {});
  let previousCount = -1;
  await until(() => {
    const isStalled = written > 0 && written === previousCount;
    previousCount = written;
    return isStalled;
  });
  expect(written).toBeLessThan(1500);
  // Calls use a separate connection.
  b.links.serve("echo", async (args) => args);
  expect(await a.links.call(b.nodeRef, "echo", 1)).toBe(1);
  expect((await readAll(stream)).length).toBe(2000 * 64 * 1024);
});

test("[CP-35] an error that prevents a stream's opening is passed on unchanged", async () => {
  const [a, b] = [node("a"), node("b")];
  const thrown = [
    new WireError("refused", "Nothing listens there."),
    new AppError("invalid", "No."),
    new Error("secret"),
  ];
  b.links.serveStreams("fail", (args) => Promise.reject(thrown[args as number]));
  const errors = await Promise.all([0, 1, 2].map((n) => catchError(a.links.open(b.nodeRef, "fail", n))));
  expect(errors[0]).toMatchObject({ failure: "refused", message: "Nothing listens there." });
  expect(errors[0]).toBeInstanceOf(WireError);
  expect(errors[1]).toMatchObject({ kind: "invalid", message: "No." });
  expect(errors[2]).toMatchObject({ message: "node b failed; see its log" });
  expect(await catchError(a.links.open(b.nodeRef, "unknown", 0))).toBeInstanceOf(NotStartedError);
  expect(await catchError(a.links.open({ id: "gone", address: "127.0.0.1:1" }, "fail", 0))).toBeInstanceOf(
    NotStartedError,
  );
});

test("[CP-35] when one side fails or its node no longer exists, the other side is notified", async () => {
  const [a, b] = [node("a"), node("b")];
  const remoteStreams: Duplex[] = [];
  b.links.serveStreams("hold", async (_, stream) => void remoteStreams.push(stream));
  const [first, second, third] = await Promise.all([1, 2, 3].map(() => a.links.open(b.nodeRef, "hold", {})));
  const reading = catchError((first as Duplex).read());
  remoteStreams[0]?.reset();
  const firstError = await Promise.race([first, second, third].map((stream) => (stream as Duplex).closed));
  expect(firstError).toBeInstanceOf(WireError);
  b.links.close();
  for (const stream of [first, second, third] as Duplex[]) expect(await stream.closed).toBeInstanceOf(WireError);
  expect(await reading).toBeInstanceOf(WireError);
  expect(await catchError((third as Duplex).write(BIG))).toBeInstanceOf(WireError);
});

test("[CP-35] a stream can be forwarded to another stream", async () => {
  const [a, b, c] = [node("a"), node("b"), node("c")];
  c.links.serveStreams("echo", async (_, stream) => void echo(stream));
  b.links.serveStreams("pass", async (_, stream) => void pipe(stream, await b.links.open(c.nodeRef, "echo", {})));
  const stream = await a.links.open(b.nodeRef, "pass", {});
  const writing = stream.write(BIG).then(() => stream.end());
  expect((await readAll(stream)).equals(BIG)).toBe(true);
  await writing;
});
