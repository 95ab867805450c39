// A small HTTP and WebSocket server that tests use as an app, from a workspace's terminal or as a separate process. Prints its port. Uses
// TLS if the arguments contain a certificate and a key.
import { readFileSync } from "node:fs";

const [, , port = "0", cert, key] = process.argv;
const BODY_CHUNK = new Uint8Array(64 * 1024).fill(120);

const respondWithBytes = (count: number): Response => {
  let remainingBytes = count;
  return new Response(
    new ReadableStream({
      pull(controller) {
        const chunk = BODY_CHUNK.subarray(0, Math.min(remainingBytes, BODY_CHUNK.byteLength));
        remainingBytes -= chunk.byteLength;
        controller.enqueue(chunk.slice());
        if (remainingBytes === 0) controller.close();
      },
    }),
    { headers: { "content-length": String(count), "content-type": "application/octet-stream" } },
  );
};

const hashBody = async (request: Request): Promise<{ size: number; digest: string; length: string | null }> => {
  const hasher = new Bun.CryptoHasher("sha256");
  let size = 0;
  for await (const chunk of (request.body ?? []) as AsyncIterable<Uint8Array>) {
    hasher.update(chunk);
    size += chunk.byteLength;
  }
  return { size, digest: hasher.digest("hex"), length: request.headers.get("content-length") };
};

const server = Bun.serve({
  port: Number(port),
  hostname: "127.0.0.1",
  idleTimeout: 0,
  maxRequestBodySize: Number.MAX_SAFE_INTEGER,
  ...(cert && key ? { tls: { cert: readFileSync(cert), key: readFileSync(key) } } : {}),
  async fetch(request, self) {
    const url = new URL(request.url);
    const { searchParams: query } = url;
    const path = url.pathname.replace(/^\/base(?=\/)/, "");
    if (request.headers.get("upgrade") === "websocket") {
      if (path === "/refuse") return new Response("no sockets here", { status: 418 });
      const protocol = request.headers.get("sec-websocket-protocol")?.split(",")[0];
      const headers = protocol ? { "sec-websocket-protocol": protocol } : undefined;
      const data = { path: url.pathname + url.search, headers: Object.fromEntries(request.headers) };
      return self.upgrade(request, { data: data as never, headers }) ? undefined : new Response("?", { status: 400 });
    }
    if (path === "/bytes" && request.method === "HEAD") {
      return new Response(null, { headers: { "content-length": query.get("n") ?? "" } });
    }
    if (path === "/bytes") return respondWithBytes(Number(query.get("n")));
    if (path === "/stall") return new Promise<Response>(() => {});
    if (path === "/digest") return Response.json(await hashBody(request));
    if (path === "/redirect") return new Response(null, { status: 302, headers: { location: query.get("to") ?? "/" } });
    if (path === "/status") return new Response("as requested", { status: Number(query.get("code")) });
    if (path === "/headers") {
      const headers = new Headers();
      for (const pair of query.getAll("h"))
        headers.append(pair.slice(0, pair.indexOf(":")), pair.slice(pair.indexOf(":") + 1));
      return new Response("headers", { headers });
    }
    if (path === "/events") {
      return new Response(
        new ReadableStream({
          start(controller) {
            controller.enqueue(new TextEncoder().encode("data: first\n\n"));
          },
        }),
        { headers: { "content-type": "text/event-stream" } },
      );
    }
    return Response.json({
      method: request.method,
      path: url.pathname + url.search,
      headers: Object.fromEntries(request.headers),
    });
  },
  websocket: {
    maxPayloadLength: 16 * 1024 * 1024,
    backpressureLimit: 1024 * 1024 * 1024,
    idleTimeout: 0,
    open(socket) {
      socket.send(JSON.stringify(socket.data));
    },
    message(socket, message) {
      if (message === "leave") socket.close(4001, "as you wish");
      else if (message === "vanish") process.exit(0);
      else if (message === "ping") socket.ping("are you there");
      else if (typeof message === "string" && message.startsWith("send ")) {
        const [, count, size] = message.split(" ").map(Number);
        const chunk = new Uint8Array(size ?? 0).fill(7);
        for (let i = 0; i < (count ?? 0); i += 1) socket.send(chunk);
      } else socket.send(message);
    },
    pong(socket, data) {
      socket.send(`pong ${data}`);
    },
  },
});
await Bun.write(Bun.stdout, `listening on ${server.port}\n`);
