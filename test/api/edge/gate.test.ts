// Requests that are rejected before routing.
import { describe, expect, test } from "bun:test";
import { forFile } from "#test/support/for-file.ts";
import { RawConnection, rawRequest } from "#test/support/net/raw.ts";
import { startTestServer } from "#test/support/server.ts";

const server = await forFile(
  startTestServer({ env: { SLIPWAY_ALLOWED_HOSTS: "localhost,127.0.0.1,[::1],slipway.example,nas,a" } }),
);

const get = (host: string, path = "/api/v2/buildinfo", extra = "") =>
  rawRequest(server.url, `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${extra}Connection: close\r\n\r\n`);

describe("the Host header", () => {
  test.each([
    "localhost",
    "127.0.0.1",
    "127.0.0.1:80",
    "[::1]",
    "[::1]:7080",
    "slipway.example",
    "SLIPWAY.example:443",
    "nas",
    "a",
  ])("[HT-1] accepts %s", async (host) => {
    expect((await get(host)).status).toBe(200);
  });

  test.each(["x", "xy", "evil.example", "slipway.example.evil", "127.0.0.1.evil", "localhost.", "[::2]"])(
    "[HT-1] rejects %s before routing",
    async (host) => {
      const { status, body } = await get(host);
      expect(status).toBe(421);
      expect(JSON.parse(body)).toHaveProperty("message");
    },
  );

  test.each(["", "a b", "user@localhost", "localhost:port", "localhost/", "[::1"])(
    "[HT-1] rejects %j as malformed",
    async (host) => {
      expect((await get(host)).status).toBe(400);
    },
  );

  test("[HT-1] a short Host cannot shift the path to another route", async () => {
    expect((await get("x", "/pub/api/v2/buildinfo")).status).toBe(421);
    expect((await get("xy", "/ab/healthz")).status).toBe(421);
    // The same holds for a short name that is allowed.
    expect((await get("nas", "/pu/api/v2/buildinfo")).status).toBe(404);
    expect((await get("a", "/pub/healthz")).status).toBe(404);
  });

  test("[HT-1] rejects two Host headers", async () => {
    expect((await get("localhost", "/healthz", "Host: evil.example\r\n")).status).toBe(400);
  });
});

describe("malformed HTTP requests", () => {
  const cases: [string, string][] = [
    ["no Host at all", "GET /healthz HTTP/1.1\r\n\r\n"],
    [
      "two different lengths",
      "POST /api/v2/users/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    ],
    [
      "a length and chunks",
      "POST /api/v2/users/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
    ["a header of 64 KB", `GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: ${"x".repeat(65_536)}\r\n\r\n`],
  ];
  test.each(cases)("[HT-2] rejects %s, and keeps responding", async (_name, request) => {
    using connection = new RawConnection(server.url);
    connection.send(request);
    const received = await connection.until((text) => text.includes("\r\n\r\n"));
    expect(received).toMatch(/^(HTTP\/1\.1 (4\d\d|505)|$)/);
    expect((await get("localhost", "/healthz")).status).toBe(200);
  });
});

describe("paths", () => {
  test.each([
    ["/api/v2/../../healthz", 200],
    ["//healthz", 404],
    ["/HEALTHZ", 404],
    ["/api/v2/organizations/%2e%2e%2fhealthz", 401],
    ["/api/v2/organizations/%zz", 401],
    ["/nothing/here", 404],
  ])("[HT-3] %s returns %i", async (path, status) => {
    expect((await get("localhost", path)).status).toBe(status);
  });

  test("[HT-3] returns 404 for an unknown route, and 405 with the right methods for a wrong method", async () => {
    const unknown = await get("localhost", "/api/v2/nothing");
    expect(unknown.status).toBe(404);
    expect(JSON.parse(unknown.body)).toEqual({ message: "Route not found." });
    const wrongMethod = await fetch(new URL("/api/v2/buildinfo", server.url), { method: "DELETE" });
    expect(wrongMethod.status).toBe(405);
    expect(await wrongMethod.json()).toEqual({ message: "Method not allowed.", detail: "This route takes GET." });
  });
});
