// HTTP/1.1 over any two-way channel, as between server and daemons: against a real Bun server behind a real socket, and against malformed
// responses.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { systemClock } from "#base/clock.ts";
import { connectSocket } from "#src/daemon/connection/tunnel-socket.ts";
import { AgentHttp } from "#src/wire/agent-http.ts";
import { HttpConnection, type HttpRequest } from "#src/wire/http-connection.ts";

const BIG = new Uint8Array(3_000_000).map((_, i) => i * 31);
let server: ReturnType<typeof Bun.serve>;
let connections = 0;

beforeAll(() => {
  server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    routes: {
      "/echo": async (request) => new Response(await request.bytes(), { headers: { "x-method": request.method } }),
      "/chunked": () =>
        new Response(
          (async function* () {
            yield "one ";
            yield "two ";
            yield new Uint8Array(200_000).fill(120);
          })() as never,
        ),
      "/nothing": () => new Response(null, { status: 204 }),
      "/close": () => new Response("bye", { headers: { connection: "close" } }),
    },
  });
});
afterAll(() => server.stop(true));

const toServer = () => connectSocket({ hostname: "127.0.0.1", port: server.port as number }, systemClock);
const get = (path: string): HttpRequest => ({ method: "GET", path });

/** Returns how the client interprets these bytes. */
const parseAnswer = async (text: string, method = "GET"): Promise<string> => {
  const fake = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: { data: (socket) => void socket.end(text), open() {} },
  });
  try {
    const connection = new HttpConnection(await connectSocket({ hostname: "127.0.0.1", port: fake.port }, systemClock));
    const response = await connection.request({ method, path: "/" });
    return `${response.status} ${await response.text(1000)}`;
  } catch (error) {
    return (error as Error).message;
  } finally {
    fake.stop(true);
  }
};

describe("an HTTP connection", () => {
  test("[TN-8] carries requests with bodies and responses of every framing, one after the other", async () => {
    const connection = new HttpConnection(await toServer());
    const echoed = await connection.request({ method: "POST", path: "/echo", body: BIG });
    expect(echoed.headers.get("x-method")).toBe("POST");
    expect(connection.reusable).toBe(false);
    expect(Bun.hash(await new Response(echoed.body as never).bytes())).toBe(Bun.hash(BIG));
    expect(connection.reusable).toBe(true);
    const parts = (async function* () {
      yield new TextEncoder().encode("a stream ");
      yield new TextEncoder().encode("of parts");
    })();
    expect(await (await connection.request({ method: "PUT", path: "/echo", body: parts })).text()).toBe(
      "a stream of parts",
    );
    const chunked = await (await connection.request(get("/chunked"))).text();
    expect(chunked).toStartWith("one two xxx");
    expect(chunked).toHaveLength(200_008);
    expect((await connection.request(get("/nothing"))).status).toBe(204);
    expect(connection.reusable).toBe(true);
    connection.close();
  });

  test("[TN-9] is reused only if the response was read to its end and the other side keeps it open", async () => {
    const unread = new HttpConnection(await toServer());
    await (await unread.request(get("/chunked"))).discard();
    expect(unread.reusable).toBe(false);
    const closing = new HttpConnection(await toServer());
    expect(await (await closing.request(get("/close"))).text()).toBe("bye");
    expect(closing.reusable).toBe(false);

    const dial = () => {
      connections += 1;
      return toServer();
    };
    const http = new AgentHttp({ dial, isDaemon: () => true }, systemClock);
    for (let i = 0; i < 5; i += 1) expect((await http.request("a", get("/nothing"))).status).toBe(204);
    expect(connections).toBe(1);
    await Promise.all(
      Array.from({ length: 3 }, async () =>
        (await http.request("a", { method: "POST", path: "/echo", json: { x: 1 } })).json(),
      ),
    );
    expect(connections).toBe(3);
    await server.stop(true);
    server = Bun.serve({ port: server.port, hostname: "127.0.0.1", fetch: () => new Response("again") });
    expect(await (await http.request("a", get("/"))).text()).toBe("again");
  });

  test("[TN-8] an upgrade returns the raw channel; anything else is a response", async () => {
    await using other = disposable(
      Bun.serve({
        port: 0,
        hostname: "127.0.0.1",
        fetch: (request, on) => (on.upgrade(request) ? undefined : new Response("no", { status: 400 })),
        websocket: { message: (socket, text) => void socket.send(text) },
      }),
    );
    const open = async () =>
      new HttpConnection(await connectSocket({ hostname: "127.0.0.1", port: other.port }, systemClock));
    const headers: [string, string][] = [
      ["connection", "Upgrade"],
      ["upgrade", "websocket"],
      ["sec-websocket-version", "13"],
      ["sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="],
    ];
    const upgraded = await (await open()).upgrade({ ...get("/up"), headers });
    if (!("stream" in upgraded)) throw new Error("no upgrade");
    expect(upgraded.head.headers.get("sec-websocket-accept")).toBe("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    await upgraded.stream.write(Uint8Array.of(0x81, 0x82, 0, 0, 0, 0, 0x68, 0x69));
    expect([...((await upgraded.stream.read()) as Uint8Array)]).toEqual([0x81, 2, 0x68, 0x69]);
    upgraded.stream.reset();
    const refused = await (await open()).upgrade(get("/up"));
    if (!("response" in refused)) throw new Error("an upgrade");
    expect([refused.response.status, await refused.response.text()]).toEqual([400, "no"]);
  });

  // biome-ignore format: a table of cases
  const strange: [string, string, string][] = [
    ["no HTTP", "SSH-2.0-x\r\n\r\n", "does not begin as HTTP"],
    ["a header without name", "HTTP/1.1 200 OK\r\n: x\r\n\r\n", "malformed header"],
    ["a folded header", "HTTP/1.1 200 OK\r\na: b\r\n c\r\n\r\n", "malformed header"],
    ["two lengths", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx", "malformed"],
    ["length and chunks", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\nx", "ambiguous"],
    ["an unknown coding", "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\nx", "ambiguous"],
    ["a negative length", "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n", "malformed"],
    ["a body cut short", "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc", "cut short"],
    ["a bad chunk", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", "chunked encoding is malformed"],
    ["a chunk without end", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nabc", ""],
    ["a head without end", `HTTP/1.1 200 OK\r\n${"a: b\r\n".repeat(20_000)}`, "too long"],
    ["a body without bound", `HTTP/1.1 200 OK\r\n\r\n${"x".repeat(5_000)}`, "too large"],
    ["interim answers for ever", "HTTP/1.1 100 Continue\r\n\r\n".repeat(20), "interim"],
    ["an unrequested upgrade", "HTTP/1.1 101 Sure\r\n\r\n", "changes the protocol"],
    ["nothing", "\r\n", "early"],
  ];
  test.each(strange)("[TN-8] refuses %s", async (_, text, reason) => {
    const found = await parseAnswer(text);
    expect(found).not.toMatch(/^\d{3} /);
    expect(found).toContain(reason);
  });

  test("[TN-8] accepts unusual but valid responses", async () => {
    expect(await parseAnswer("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 200\r\n\r\nold")).toBe("200 old");
    const chunks = "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\ntrailer: t\r\n\r\n";
    expect(await parseAnswer(chunks)).toBe("200 abc");
    expect(await parseAnswer("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n", "HEAD")).toBe("200 ");
  });

  test("[TN-8] never sends a request that would be split in two", async () => {
    const connection = new HttpConnection(await toServer());
    await expect(connection.request(get("/a b"))).rejects.toThrow("forbidden characters");
    await expect(connection.request({ ...get("/"), headers: [["a", "b\r\nc: d"]] })).rejects.toThrow("forbidden");
    connection.close();
  });

  test("[TN-9] an abort signal ends an unanswered request", async () => {
    const silent = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    const controller = new AbortController();
    const connection = new HttpConnection(
      await connectSocket({ hostname: "127.0.0.1", port: silent.port }, systemClock),
    );
    const requested = connection.request({ ...get("/"), signal: controller.signal });
    controller.abort();
    await expect(requested).rejects.toThrow("given up");
    expect(connection.reusable).toBe(false);
    silent.stop(true);
  });
});

function disposable<T extends { stop(force: boolean): unknown; port?: number }>(
  server: T,
): { port: number } & AsyncDisposable {
  return {
    port: server.port as number,
    async [Symbol.asyncDispose]() {
      await server.stop(true);
    },
  };
}
