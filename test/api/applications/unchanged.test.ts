// Data that the server forwards unchanged between a browser and an app: headers, queries, responses without a type, and preflights.
import { expect, test } from "bun:test";
import { forFile } from "#test/support/for-file.ts";
import { RawConnection } from "#test/support/net/raw.ts";
import { until } from "#test/support/until.ts";
import { SUFFIX, startAppWorld } from "./app-world.ts";

const world = await forFile(startAppWorld());

/** Starts a server that records request heads and responds to each with these bytes. */
const startRawServer = (response: string) => {
  const heads: string[] = [];
  const server = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      data(socket, chunk) {
        heads.push(chunk.toString("latin1"));
        socket.write(response);
      },
    },
  });
  return { heads, port: String(server.port), [Symbol.dispose]: () => server.stop(true) };
};
const SHORT_RESPONSE = "HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n<h1>hello</h1>";

test("[AX-23] a response without a content type keeps its length and gets no type", async () => {
  using app = startRawServer(SHORT_RESPONSE);
  const response = await world.at(app.port, "/", { token: world.token });
  expect([response.headers.get("content-type"), response.headers.get("content-length")]).toEqual([null, "14"]);
  expect(await response.text()).toBe("<h1>hello</h1>");
  using emptyApp = startRawServer("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
  const emptyResponse = await world.at(emptyApp.port, "/", { token: world.token });
  expect([emptyResponse.status, emptyResponse.headers.get("content-type"), await emptyResponse.text()]).toEqual([
    404,
    null,
    "",
  ]);
});

test("[AX-23] the app gets the bytes of request headers and the query as sent", async () => {
  using app = startRawServer(SHORT_RESPONSE);
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

test("[AX-24] without a session, only a preflight from another app of the same workspace reaches the app", async () => {
  using app = startRawServer("HTTP/1.1 204 No Content\r\nAccess-Control-Allow-Methods: PUT\r\n\r\n");
  const sendTo = async (method: string, headers: Record<string, string>): Promise<number> =>
    (await world.at(app.port, "/x", { method, headers })).status;
  const preflightHeaders = { "access-control-request-method": "PUT" };
  const siblingOrigin = `http://3000--dev--dev--ada.${SUFFIX}:${world.server.url.port}`;
  expect(await sendTo("OPTIONS", { origin: siblingOrigin, ...preflightHeaders })).toBe(204);
  expect(app.heads).toHaveLength(1);
  expect(await sendTo("OPTIONS", { origin: siblingOrigin })).toBe(401);
  expect(await sendTo("PUT", { origin: siblingOrigin, ...preflightHeaders })).toBe(401);
  for (const origin of [
    "https://evil.example",
    siblingOrigin.replace("--ada", "--bob"),
    siblingOrigin.replace("--dev--ada", "--tried--ada"),
    siblingOrigin.replace(`:${world.server.url.port}`, ":1"),
    siblingOrigin.replace("http:", "https:"),
    "null",
  ]) {
    expect([origin, await sendTo("OPTIONS", { origin, ...preflightHeaders })]).toEqual([origin, 401]);
  }
  const byPath = await world.get(world.path(app.port, "/x"), {
    method: "OPTIONS",
    headers: { origin: siblingOrigin, ...preflightHeaders },
  });
  expect([byPath.status, app.heads.length]).toEqual([401, 1]);
});

test("[AX-25] a GET with a body is rejected with advice; QUERY passes its body", async () => {
  using app = startRawServer(SHORT_RESPONSE);
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
  const rejection = await sendTo("GET");
  expect(rejection).toStartWith("HTTP/1.1 400 ");
  expect(rejection).toContain("Send the request with POST or QUERY");
  expect(app.heads).toHaveLength(0);
  expect(await sendTo("QUERY")).toStartWith("HTTP/1.1 200 ");
  await until(() => app.heads.join("").endsWith('{"query":{}}'));
});
