// Which addresses a base URL may reach. A listener on this machine represents a server that must not be reached.
import { describe, expect, test } from "bun:test";
import { createServer } from "node:net";
import { classifyAddress } from "#base/network/address-place.ts";
import { createGuardedFetch, type ReachableAddresses, type Resolve } from "#src/llm/fetch.ts";
import { ModelError } from "#src/llm/model.ts";

const NO_PRIVATE_HOSTS: ReachableAddresses = { private: false, hosts: [] };

/** Counts connections and answers every request. */
const openListener = async (answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok") => {
  const requests: string[] = [];
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", (bytes) => {
      requests.push(bytes.toString());
      socket.end(answer);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  return { requests, port, [Symbol.dispose]: () => void server.close() };
};

const catchError = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error) => error,
  );

describe("an address", () => {
  test.each([
    ["127.0.0.1", "private"],
    ["127.8.8.8", "private"],
    ["10.1.2.3", "private"],
    ["172.31.0.1", "private"],
    ["192.168.1.1", "private"],
    ["100.100.100.100", "private"],
    ["::1", "private"],
    ["fd12::1", "private"],
    ["::ffff:127.0.0.1", "private"],
    ["169.254.169.254", "never"],
    ["::ffff:169.254.169.254", "never"],
    ["::ffff:a9fe:a9fe", "never"],
    ["fe80::1", "never"],
    ["fd00:ec2::254", "never"],
    ["64:ff9b::a9fe:a9fe", "never"],
    ["2002:a9fe:a9fe::", "never"],
    ["2002:7f00:1::", "private"],
    ["::ffff:0:169.254.169.254", "never"],
    ["::ffff:0:7f00:1", "private"],
    ["::169.254.169.254", "never"],
    ["fe80::5efe:a9fe:a9fe", "never"],
    ["2a00:1450::5efe:7f00:1", "private"],
    ["0:0:0:0:0:ffff:a9fe:a9fe", "never"],
    ["64:ff9b:1::a9fe:a9fe", "never"],
    ["2001:0:7f00:1::", "never"],
    ["0.0.0.0", "never"],
    ["::", "never"],
    ["224.0.0.1", "never"],
    ["255.255.255.255", "never"],
    ["localhost", "never"],
    ["93.184.216.34", "public"],
    ["2606:4700::1111", "public"],
  ])("[MO-20] %s is %s", (address, kind) => {
    expect(classifyAddress(address)).toBe(kind as "public");
  });
});

describe("a base URL", () => {
  test.each([
    "http://127.0.0.1:PORT/",
    "http://2130706433:PORT/",
    "http://0x7f000001:PORT/",
    "http://0177.0.0.1:PORT/",
    "http://[::ffff:127.0.0.1]:PORT/",
    "http://localhost:PORT/",
    "http://internal.example:PORT/",
    "ftp://127.0.0.1:PORT/",
    "file:///etc/hostname",
  ])("[MO-20] %s reaches no local server unless it is allowed", async (pattern) => {
    using listener = await openListener();
    const guardedFetch = createGuardedFetch(NO_PRIVATE_HOSTS, async () => ["127.0.0.1"]);
    const failure = await catchError(guardedFetch(pattern.replace("PORT", String(listener.port))));
    expect(failure).toBeInstanceOf(ModelError);
    expect((failure as ModelError).kind).toBe("config");
    expect(listener.requests).toEqual([]);
  });

  test("[MO-20] a name with one forbidden address is refused", async () => {
    using listener = await openListener();
    const guardedFetch = createGuardedFetch(NO_PRIVATE_HOSTS, async () => ["93.184.216.34", "127.0.0.1"]);
    expect(await catchError(guardedFetch(`http://mixed.example:${listener.port}/`))).toBeInstanceOf(ModelError);
    expect(listener.requests).toEqual([]);
  });

  test("[MO-20] settings can allow private networks and single hosts by name; the metadata address needs its name", async () => {
    using listener = await openListener();
    const resolveLocal: Resolve = async () => ["127.0.0.1"];
    const fetchPrivate = createGuardedFetch({ private: true, hosts: [] }, resolveLocal);
    expect(await (await fetchPrivate(`http://localhost:${listener.port}/`)).text()).toBe("ok");
    const fetchNamed = createGuardedFetch({ private: false, hosts: ["Ollama"] }, resolveLocal);
    expect(await (await fetchNamed(`http://ollama:${listener.port}/`)).text()).toBe("ok");
    const fetchMetadata = createGuardedFetch({ private: true, hosts: [] }, async () => ["169.254.169.254"]);
    expect(await catchError(fetchMetadata("http://metadata.example/"))).toBeInstanceOf(ModelError);
  });

  test("[MO-21] a name is resolved once, and the connection goes to the checked address", async () => {
    using listener = await openListener();
    let lookupCount = 0;
    const resolveChanging: Resolve = async () => {
      lookupCount += 1;
      return lookupCount === 1 ? ["127.0.0.1"] : ["169.254.169.254"];
    };
    const guardedFetch = createGuardedFetch({ private: true, hosts: [] }, resolveChanging);
    const response = await guardedFetch(`http://models.example:${listener.port}/v1`, { headers: { "x-own": "kept" } });
    expect(await response.text()).toBe("ok");
    expect(lookupCount).toBe(1);
    expect(listener.requests[0]?.toLowerCase()).toContain(`host: models.example:${listener.port}`);
    expect(listener.requests[0]?.toLowerCase()).toContain("x-own: kept");
  });

  test("[MO-22] no redirect is followed", async () => {
    using target = await openListener();
    const answer = `HTTP/1.1 307 Elsewhere\r\nlocation: http://127.0.0.1:${target.port}/\r\ncontent-length: 0\r\n\r\n`;
    using listener = await openListener(answer);
    const guardedFetch = createGuardedFetch({ private: true, hosts: [] });
    expect((await guardedFetch(`http://127.0.0.1:${listener.port}/`)).status).toBe(307);
    expect(target.requests).toEqual([]);
  });
});

test("[GW-9] a large body arrives complete with its length, and is not kept in memory while its answer is read", async () => {
  const SIZE = 60_000_000;
  const answers: ReadableStreamDefaultController<Uint8Array>[] = [];
  await using server = Bun.serve({
    port: 0,
    maxRequestBodySize: 2 * SIZE,
    fetch: async (request) => {
      const { headers } = request;
      const bytes = await request.bytes();
      const requestFacts = [
        headers.get("content-length"),
        headers.get("transfer-encoding"),
        bytes.length,
        bytes.at(-1),
      ];
      const body = new ReadableStream<Uint8Array>({ start: (controller) => void answers.push(controller) });
      answers.at(-1)?.enqueue(Buffer.from(JSON.stringify(requestFacts)));
      return new Response(body);
    },
  });
  const guardedFetch = createGuardedFetch({ private: true, hosts: [] });
  const sendBody = async (body: string | Uint8Array<ArrayBuffer>) => {
    const reader = (await guardedFetch(server.url, { method: "POST", body })).body?.getReader();
    const { value } = (await reader?.read()) ?? {};
    expect(JSON.parse(Buffer.from(value ?? []).toString())).toEqual([String(SIZE), null, SIZE, 97]);
  };
  await sendBody("a".repeat(SIZE));
  Bun.gc(true);
  const before = process.memoryUsage.rss();
  for (let i = 0; i < 6; i++) await sendBody(new Uint8Array(SIZE).fill(97));
  Bun.gc(true);
  expect(process.memoryUsage.rss() - before).toBeLessThan(3 * SIZE);
  for (const answer of answers) answer.close();
});
