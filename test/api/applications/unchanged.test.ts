// Data that passes unchanged between a browser and an app: headers, queries, responses without a type, and preflights between apps.
import { expect, test } from "bun:test";
import { forFile } from "#test/support/for-file.ts";
import { RawConnection } from "#test/support/net/raw.ts";
import { until } from "#test/support/until.ts";
import { SUFFIX, startAppWorld } from "./app-world.ts";

const world = await forFile(startAppWorld());

/** A program that records request heads and answers each with these bytes. */
const startRaw = (answer: string) => {
  const heads: string[] = [];
  const server = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      data(socket, chunk) {
        heads.push(chunk.toString("latin1"));
        socket.write(answer);
      },
    },
  });
  return { heads, port: String(server.port), [Symbol.dispose]: () => server.stop(true) };
};
const SHORT_RESPONSE = "HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n<h1>hello</h1>";

test("[AX-23] a response without a content type stays without one, and keeps its length", async () => {
  using app = startRaw(SHORT_RESPONSE);
  const answer = await world.at(app.port, "/", { token: world.token });
  expect([answer.headers.get("content-type"), answer.headers.get("content-length")]).toEqual([null, "14"]);
  expect(await answer.text()).toBe("<h1>hello</h1>");
  using empty = startRaw("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
  const nothing = await world.at(empty.port, "/", { token: world.token });
  expect([nothing.status, nothing.headers.get("content-type"), await nothing.text()]).toEqual([404, null, ""]);
});

test("[AX-23] bytes of request headers and the query reach the app as sent", async () => {
  using app = startRaw(SHORT_RESPONSE);
  using connection = new RawConnection(world.server.url);
  const head = [
    "GET /x?a=1&&b=%20&c=?&d& HTTP/1.1",
    `Host: ${app.port}--dev--dev--ada.${SUFFIX}`,
    `Service-Session-Token: ${world.token}`,
    "Cookie: n=\xc3\xa9; m=\xe9; k=\xe6\x97\xa5",
    "X-File-Name: \xe6\x97\xa5.txt",
  ];
  connection.send(Buffer.from(`${head.join("\r\n")}\r\n\r\n`, "latin1"));
  await connection.until((text) => text.includes("hello"));
  expect(app.heads[0]).toStartWith("GET /x?a=1&&b=%20&c=?&d& HTTP/1.1\r\n");
  expect(app.heads[0]).toContain("cookie: n=\xc3\xa9; m=\xe9; k=\xe6\x97\xa5\r\n");
  expect(app.heads[0]).toContain("x-file-name: \xe6\x97\xa5.txt\r\n");
});

test("[AX-24] the preflight of another app of the same workspace reaches the app without a session; nothing else does", async () => {
  using app = startRaw("HTTP/1.1 204 No Content\r\nAccess-Control-Allow-Methods: PUT\r\n\r\n");
  const sendTo = async (method: string, headers: Record<string, string>): Promise<number> =>
    (await world.at(app.port, "/x", { method, headers })).status;
  const wanted = { "access-control-request-method": "PUT" };
  const own = `http://3000--dev--dev--ada.${SUFFIX}:${world.server.url.port}`;
  expect(await sendTo("OPTIONS", { origin: own, ...wanted })).toBe(204);
  expect(app.heads).toHaveLength(1);
  expect(await sendTo("OPTIONS", { origin: own })).toBe(401);
  expect(await sendTo("PUT", { origin: own, ...wanted })).toBe(401);
  for (const origin of [
    "https://evil.example",
    own.replace("--ada", "--bob"),
    own.replace("--dev--ada", "--tried--ada"),
    own.replace(`:${world.server.url.port}`, ":1"),
    own.replace("http:", "https:"),
    "null",
  ]) {
    expect([origin, await sendTo("OPTIONS", { origin, ...wanted })]).toEqual([origin, 401]);
  }
  const below = await world.get(world.path(app.port, "/x"), { method: "OPTIONS", headers: { origin: own, ...wanted } });
  expect([below.status, app.heads.length]).toEqual([401, 1]);
});

test("[AX-25] a GET with a body is refused with advice on what to do instead; QUERY passes its body", async () => {
  using app = startRaw(SHORT_RESPONSE);
  const sendTo = async (method: string): Promise<string> => {
    using connection = new RawConnection(world.server.url);
    const lines = [
      `${method} /_search HTTP/1.1`,
      `Host: ${app.port}--dev--dev--ada.${SUFFIX}`,
      `Service-Session-Token: ${world.token}`,
      "Content-Length: 12",
    ];
    connection.send(`${lines.join("\r\n")}\r\n\r\n{"query":{}}`);
    return await connection.until((text) => text.includes("hello") || text.includes("}"));
  };
  const refused = await sendTo("GET");
  expect(refused).toStartWith("HTTP/1.1 400 ");
  expect(refused).toContain("Send the request with POST or QUERY");
  expect(app.heads).toHaveLength(0);
  expect(await sendTo("QUERY")).toStartWith("HTTP/1.1 200 ");
  await until(() => app.heads.join("").endsWith('{"query":{}}'));
});
