// Clients of a spare that ask for a WebSocket and then send something else. The active node must see no request that arrives as the spare's.
import { afterEach, expect, test } from "bun:test";
import { systemClock } from "#base/clock.ts";
import { Forwarder } from "#src/cluster/forwarder.ts";
import { RawConnection } from "#test/support/net/raw.ts";
import { until } from "#test/support/until.ts";

const opened: { stop(): void }[] = [];
afterEach(() => {
  for (const resource of opened.splice(0)) resource.stop();
});

const HOST = "Host: slipway.test\r\n";
const PLAIN = `GET /api/v2/users/me HTTP/1.1\r\n${HOST}\r\n`;

/** Starts an active node and its spare. `requests` are the paths that reached the active node, or the spare's own reads. */
const openStory = (options: { readsHere?: boolean } = {}) => {
  const requests: string[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request, own) {
      requests.push(new URL(request.url).pathname);
      if (request.url.endsWith("/socket") && own.upgrade(request, { data: undefined })) return;
      return new Response("answer");
    },
    websocket: { message: (socket, text) => void socket.send(text) },
  });
  const address = { hostname: "127.0.0.1", port: server.port as number };
  const forwarder = new Forwarder({
    hostname: "127.0.0.1",
    port: 0,
    clock: systemClock,
    max_connections: 100,
    token: "the-token-of-the-nodes",
    isOurs: () => true,
    leader: () => `127.0.0.1:${server.port}`,
    own: () => "",
    reads: () => (options.readsHere ? address : undefined),
    state: () => ({ node: "spare", lease: "elsewhere", database: "answers", standby: "connected" }),
  });
  opened.push({ stop: () => forwarder.end() }, { stop: () => void server.stop(true) });
  return { requests, url: new URL(`http://127.0.0.1:${forwarder.port}`) };
};

const upgradeTo = (path: string, headers: string): string => `GET ${path} HTTP/1.1\r\n${HOST}${headers}\r\n`;
const WEBSOCKET =
  "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

for (const readsHere of [false, true]) {
  const where = readsHere ? "read here" : "read on the active node";

  test(`[CL-4] after a refused request for a WebSocket, the connection carries no second request (${where})`, async () => {
    const { requests, url } = openStory({ readsHere });
    using client = new RawConnection(url);
    client.send(upgradeTo("/refused", WEBSOCKET));
    await client.until((text) => text.endsWith("answer"));
    client.send(PLAIN);
    await client.closed;
    expect(client.received.match(/HTTP\/1\.1/g)).toHaveLength(1);
    expect(client.received).toContain("\r\nconnection: close\r\n");
    expect(new Set(requests)).toEqual(new Set(["/refused"]));
  });

  test(`[CL-4] a request that follows one for a WebSocket before its answer is not forwarded (${where})`, async () => {
    const { requests, url } = openStory({ readsHere });
    using together = new RawConnection(url);
    together.send(upgradeTo("/refused", WEBSOCKET) + PLAIN);
    await together.closed;
    expect(together.received).toStartWith("HTTP/1.1 400 ");
    expect(requests).toEqual([]);
  });

  test(`[CL-4] a request for another protocol, or with a body, is forwarded as an ordinary one (${where})`, async () => {
    const { requests, url } = openStory({ readsHere });
    const body = "Content-Length: 2\r\n";
    for (const headers of ["Upgrade: h2c\r\nConnection: Upgrade\r\n", "Upgrade: foo\r\n", `${WEBSOCKET}${body}`]) {
      using client = new RawConnection(url);
      client.send(`${upgradeTo("/ordinary", headers)}${headers.includes(body) ? "{}" : ""}`);
      await client.until((text) => text.endsWith("answer"));
      client.send(PLAIN);
      await client.closed;
      expect(client.received).toStartWith("HTTP/1.1 200 ");
    }
    expect(new Set(requests)).toEqual(new Set(["/ordinary"]));
  });

  test(`[CL-4] frames of an open WebSocket pass in both directions (${where})`, async () => {
    const { url } = openStory({ readsHere });
    const socket = new WebSocket(`ws://${url.host}/socket`);
    const answers: unknown[] = [];
    socket.onmessage = ({ data }) => void answers.push(data);
    socket.onopen = () => socket.send("one");
    await until(() => answers.length === 1);
    socket.send("two");
    await until(() => answers.length === 2);
    expect(answers).toEqual(["one", "two"]);
    socket.close();
  });
}
