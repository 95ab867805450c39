// The outbound HTTP client: the addresses that it refuses to call, without any connection to a listener on this machine.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliCompressSync, constants, deflateSync, gzipSync } from "node:zlib";
import { systemClock } from "#base/clock.ts";
import { Outbound, OutboundError, type Resolve } from "#base/outbound.ts";
import { needs, testNeeding } from "#test/support/needs.ts";

let listener: Server;
let port = 0;
let connections = 0;
const toResponse = (text: string): string =>
  `HTTP/1.1 200 OK\r\ncontent-length: ${text.length}\r\nconnection: close\r\n\r\n${text}`;
let answer = toResponse("hello");

beforeAll(async () => {
  listener = createServer((socket) => {
    connections++;
    socket.on("error", () => {});
    socket.once("data", () => socket.end(answer));
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  port = (listener.address() as { port: number }).port;
});
afterAll(() => void listener.close());
beforeEach(() => {
  connections = 0;
  answer = toResponse("hello");
});

const names: Record<string, readonly string[]> = {
  "inside.example": ["127.0.0.1"],
  "mixed.example": ["93.184.215.14", "127.0.0.1"],
  "mapped.example": ["::ffff:127.0.0.1"],
  "metadata.example": ["169.254.169.254"],
  "lan.example": ["10.1.2.3"],
  "nowhere.example": [],
  "odd.example": ["not an address"],
};
const resolve: Resolve = async (name) => names[name] ?? ["127.0.0.1"];
const createOutbound = (allowed: string[] = [], overrides = {}) =>
  new Outbound({ clock: systemClock, allowed, resolve, ...overrides });
const fetchOutcome = (client: Outbound, url: string): Promise<string> =>
  client.fetch(new URL(url)).then(
    ({ text }) => text,
    (error: unknown) => {
      if (!(error instanceof OutboundError)) throw error;
      return error.reason;
    },
  );

describe("[EA-1] non-public addresses are not called", () => {
  test.each([
    "http://127.0.0.1:PORT/",
    "http://localhost:PORT/",
    "http://LOCALHOST.:PORT/",
    "http://[::1]:PORT/",
    "http://[::]:PORT/",
    "http://0.0.0.0:PORT/",
    "http://0:PORT/",
    "http://127.1:PORT/",
    "http://2130706433:PORT/",
    "http://0x7f000001:PORT/",
    "http://0x7f.1:PORT/",
    "http://0177.0.0.1:PORT/",
    "http://①②⑦.0.0.1:PORT/",
    "http://127。0。0。1:PORT/",
    "http://[::ffff:127.0.0.1]:PORT/",
    "http://[::ffff:7f00:1]:PORT/",
    "http://[::127.0.0.1]:PORT/",
    "http://[64:ff9b::7f00:1]:PORT/",
    "http://[2002:7f00:1::]:PORT/",
    "http://[fe80::1]:PORT/",
    "http://[fd00::1]:PORT/",
    "http://user:password@127.0.0.1:PORT/",
    "http://169.254.169.254/latest/meta-data/",
    "http://[::ffff:a9fe:a9fe]/",
    "http://100.100.100.200/",
    "http://10.0.0.1:PORT/",
    "http://172.31.255.255/",
    "http://192.168.1.1/",
    "http://inside.example:PORT/",
    "http://mixed.example:PORT/",
    "http://mapped.example:PORT/",
    "http://metadata.example/",
    "http://odd.example:PORT/",
  ])("%s", async (url) => {
    expect(await fetchOutcome(createOutbound(), url.replace("PORT", String(port)))).toBe("refused");
    expect(connections).toBe(0);
  });

  test.each([
    "file:///etc/passwd",
    "gopher://127.0.0.1:PORT/",
    "ftp://inside.example/",
    "data:text/plain,x",
    "javascript:alert(1)",
  ])("%s", async (url) => {
    expect(await fetchOutcome(createOutbound(["127.0.0.0/8"]), url.replace("PORT", String(port)))).toBe("refused");
    expect(connections).toBe(0);
  });
});

test("[EA-1] only addresses in the configured networks are called", async () => {
  expect(await fetchOutcome(createOutbound(["127.0.0.0/8"]), `http://inside.example:${port}/`)).toBe("hello");
  expect(await fetchOutcome(createOutbound(["127.0.0.1"]), `http://[::ffff:127.0.0.1]:${port}/`)).not.toBe("refused");
  expect(await fetchOutcome(createOutbound(["10.0.0.0/8", "::1"]), `http://inside.example:${port}/`)).toBe("refused");
  expect(await fetchOutcome(createOutbound(["127.0.0.0/8"]), "http://lan.example/")).toBe("refused");
  expect(await fetchOutcome(createOutbound(), "http://nowhere.example/")).toBe("failed");
});

test("[EA-1] a name that cannot be resolved is a failure that names the host, for every kind of request", async () => {
  const unknown: Resolve = () => Promise.reject(Object.assign(new Error("getaddrinfo"), { code: "ENOTFOUND" }));
  const [client, url] = [createOutbound([], { resolve: unknown }), new URL("https://unknown.example:8443/a?b=c")];
  const failure = { reason: "failed", message: "unknown.example:8443 cannot be reached (its name leads nowhere)." };
  for (const call of [client.fetch(url), client.open(url), client.resolveAddress(url)]) {
    const error = await call.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(OutboundError);
    expect(error).toMatchObject(failure);
  }
  expect(await client.findRefusal(url)).toBeUndefined();
});

test("[EA-2] a name that resolves differently after the check reaches only the checked address", async () => {
  let lookups = 0;
  // The address of the first lookup refuses connections. The address of a second lookup would be called.
  const rebinding: Resolve = async () => (lookups++ === 0 ? ["127.0.0.2"] : ["127.0.0.1"]);
  const client = createOutbound(["127.0.0.0/8"], { resolve: rebinding });
  expect(await fetchOutcome(client, `http://changing.example:${port}/`)).toBe("failed");
  expect([lookups, connections]).toEqual([1, 0]);
});

test("[EA-2] redirects are not followed, and the host's own name is sent", async () => {
  answer = `HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:${port}/elsewhere\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`;
  const { status, headers } = await createOutbound(["127.0.0.0/8"]).fetch(new URL(`http://inside.example:${port}/`));
  expect([status, headers.get("location"), connections]).toEqual([302, `http://127.0.0.1:${port}/elsewhere`, 1]);
});

test("[EA-3] responses have a maximum size and a timeout, and callers can cancel requests", async () => {
  answer = toResponse("x".repeat(2000));
  expect(await fetchOutcome(createOutbound(["127.0.0.0/8"], { max_bytes: 1999 }), `http://127.0.0.1:${port}/`)).toBe(
    "failed",
  );
  expect(
    await fetchOutcome(createOutbound(["127.0.0.0/8"], { max_bytes: 2000 }), `http://127.0.0.1:${port}/`),
  ).toHaveLength(2000);
  // Announces more than it sends, and keeps the connection open.
  const silent = createServer(
    (socket) => void socket.on("error", () => {}).write("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx"),
  );
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(silent.address() as { port: number }).port}/`;
  expect(await fetchOutcome(createOutbound(["127.0.0.0/8"], { timeout_ms: 50 }), url)).toBe("failed");
  const neverResolves: Resolve = () => new Promise(() => {});
  expect(
    await fetchOutcome(createOutbound([], { resolve: neverResolves, timeout_ms: 50 }), "http://slow.example/"),
  ).toBe("failed");
  const caller = new AbortController();
  const request = createOutbound(["127.0.0.0/8"])
    .fetch(new URL(url), { signal: caller.signal })
    .catch((error: unknown) => error);
  caller.abort();
  expect(await request).toBeInstanceOf(OutboundError);
  silent.close();
});

testNeeding(
  [needs.openssl],
  "[EA-2] over TLS the certificate must match the host name, although the connection goes to an address",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "slipway-test-"));
    using _ = { [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) };
    const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
    const subject = ["-subj", "/CN=git.example.com", "-addext", "subjectAltName=DNS:git.example.com"];
    const options = [
      "req",
      "-x509",
      "-newkey",
      "rsa:2048",
      "-nodes",
      "-days",
      "2",
      "-keyout",
      key,
      "-out",
      cert,
      ...subject,
    ];
    const created = Bun.spawn([needs.openssl.file, ...options], { stdout: "ignore", stderr: "ignore" });
    expect(await created.exited).toBe(0);
    using server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      tls: { key: Bun.file(key), cert: Bun.file(cert) },
      fetch: (request) => new Response(`hello ${request.headers.get("host")?.split(":")[0]}`),
    });
    const urls = ["git", "evil"].map((name) => `https://${name}.example.com:${server.port}/`);
    const child = Bun.spawn([process.execPath, join(import.meta.dir, "outbound-tls.ts"), ...urls], {
      env: { PATH: Bun.env.PATH ?? "", NODE_EXTRA_CA_CERTS: cert },
      stdout: "pipe",
      stderr: "inherit",
    });
    const [validHost, otherHost] = (await child.stdout.text()).split("\n");
    expect(validHost).toBe("hello git.example.com");
    expect(otherHost).toContain("ERR_TLS_CERT_ALTNAME_INVALID");
  },
);

describe("[EA-3] compressed answers", () => {
  const bomb = Buffer.alloc(512 * 1024 * 1024);
  const bodies: Record<string, Uint8Array<ArrayBuffer>> = {
    gzip: new Uint8Array(gzipSync("hello")),
    deflate: new Uint8Array(deflateSync("hello")),
    br: new Uint8Array(brotliCompressSync("hello")),
    "gzip bomb": new Uint8Array(gzipSync(bomb, { level: 1 })),
    "br bomb": new Uint8Array(brotliCompressSync(bomb, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } })),
  };
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: ({ url, headers }) => {
      const [encoding = "", status = "200"] = new URL(url).pathname.slice(1).split("/");
      if (encoding === "asked") return new Response(headers.get("accept-encoding"));
      const name = decodeURIComponent(encoding);
      return new Response(bodies[name], {
        status: Number(status),
        headers: { "content-encoding": name.split(" ")[0] as string },
      });
    },
  });
  afterAll(() => void server.stop(true));
  const client = createOutbound(["127.0.0.0/8"]);
  const urlFor = (path: string): string => `${server.url}${path}`;

  test("compression is not requested; gzip and deflate are unpacked, and other encodings fail", async () => {
    expect(await fetchOutcome(client, urlFor("asked"))).toBe("identity");
    expect(await fetchOutcome(client, urlFor("gzip"))).toBe("hello");
    expect(await fetchOutcome(client, urlFor("deflate"))).toBe("hello");
    expect(await fetchOutcome(client, urlFor("br"))).toBe("failed");
  });

  test("an answer that unpacks to half a gigabyte fails at the limit, or stays packed if it is not read", async () => {
    const before = process.memoryUsage.rss();
    for (const path of ["gzip%20bomb", "gzip%20bomb/500", "br%20bomb", "br%20bomb/500"])
      expect([path, await fetchOutcome(client, urlFor(path))]).toEqual([path, "failed"]);
    const unread = await client.open(new URL(urlFor("gzip%20bomb/500")));
    expect(unread.status).toBe(500);
    await unread.body?.cancel();
    expect(process.memoryUsage.rss() - before).toBeLessThan(200 * 1024 * 1024);
  });
});
