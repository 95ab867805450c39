// HTTP/1.1 over any two-way channel, as between server and daemons: with a real Bun server behind a real socket, and with malformed
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

const connectToServer = () => connectSocket({ hostname: "127.0.0.1", port: server.port as number }, systemClock);
const get = (path: string): HttpRequest => ({ method: "GET", path });

/** Returns the status and body that the client reads from this response, or its error message. */
const parseResponse = async (text: string, method = "GET"): Promise<string> => {
  const scriptedServer = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: { data: (socket) => void socket.end(text), open() {} },
  });
  try {
    const connection = new HttpConnection(
      await connectSocket({ hostname: "127.0.0.1", port: scriptedServer.port }, systemClock),
    );
    const response = await connection.request({ method, path: "/" });
    return `${response.status} ${await response.text(1000)}`;
  } catch (error) {
    return (error as Error).message;
  } finally {
    scriptedServer.stop(true);
  }
};

describe("an HTTP connection", () => {
  test("[TN-8] carries requests with bodies, and responses with every framing, one after the other", async () => {
    const connection = new HttpConnection(await connectToServer());
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

  test("[TN-9] is reused only after the response was read to its end, if the server keeps it open", async () => {
    const unread = new HttpConnection(await connectToServer());
    await (await unread.request(get("/chunked"))).discard();
    expect(unread.reusable).toBe(false);
    const closing = new HttpConnection(await connectToServer());
    expect(await (await closing.request(get("/close"))).text()).toBe("bye");
    expect(closing.reusable).toBe(false);

    const dial = () => {
      connections += 1;
      return connectToServer();
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
    await using webSocketServer = disposable(
      Bun.serve({
        port: 0,
        hostname: "127.0.0.1",
        fetch: (request, self) => (self.upgrade(request) ? undefined : new Response("no", { status: 400 })),
        websocket: { message: (socket, text) => void socket.send(text) },
      }),
    );
    const openConnection = async () =>
      new HttpConnection(await connectSocket({ hostname: "127.0.0.1", port: webSocketServer.port }, systemClock));
    const headers: [string, string][] = [
      ["connection", "Upgrade"],
      ["upgrade", "websocket"],
      ["sec-websocket-version", "13"],
      ["sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="],
    ];
    const upgraded = await (await openConnection()).upgrade({ ...get("/up"), headers });
    if (!("stream" in upgraded)) throw new Error("expected an upgrade");
    expect(upgraded.head.headers.get("sec-websocket-accept")).toBe("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    await upgraded.stream.write(Uint8Array.of(0x81, 0x82, 0, 0, 0, 0, 0x68, 0x69));
    expect([...((await upgraded.stream.read()) as Uint8Array)]).toEqual([0x81, 2, 0x68, 0x69]);
    upgraded.stream.reset();
    const refused = await (await openConnection()).upgrade(get("/up"));
    if (!("response" in refused)) throw new Error("expected a response");
    expect([refused.response.status, await refused.response.text()]).toEqual([400, "no"]);
  });

  // biome-ignore format: a table of cases
  const invalidResponses: [string, string, string][] = [
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
    ["endless interim responses", "HTTP/1.1 100 Continue\r\n\r\n".repeat(20), "interim"],
    ["an unrequested upgrade", "HTTP/1.1 101 Sure\r\n\r\n", "changes the protocol"],
    ["nothing", "\r\n", "early"],
  ];
  test.each(invalidResponses)("[TN-8] refuses %s", async (_, text, reason) => {
    const result = await parseResponse(text);
    expect(result).not.toMatch(/^\d{3} /);
    expect(result).toContain(reason);
  });

  test("[TN-8] accepts unusual but valid responses", async () => {
    expect(await parseResponse("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 200\r\n\r\nold")).toBe("200 old");
    const chunks = "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\ntrailer: t\r\n\r\n";
    expect(await parseResponse(chunks)).toBe("200 abc");
    expect(await parseResponse("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n", "HEAD")).toBe("200 ");
  });

  test("[TN-8] rejects a request with characters that would split it in two", async () => {
    const connection = new HttpConnection(await connectToServer());
    await expect(connection.request(get("/a b"))).rejects.toThrow("forbidden characters");
    await expect(connection.request({ ...get("/"), headers: [["a", "b\r\nc: d"]] })).rejects.toThrow("forbidden");
    connection.close();
  });

  test("[TN-9] an abort signal ends an unanswered request", async () => {
    const silentServer = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    const controller = new AbortController();
    const connection = new HttpConnection(
      await connectSocket({ hostname: "127.0.0.1", port: silentServer.port }, systemClock),
    );
    const request = connection.request({ ...get("/"), signal: controller.signal });
    controller.abort();
    await expect(request).rejects.toThrow("given up");
    expect(connection.reusable).toBe(false);
    silentServer.stop(true);
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
