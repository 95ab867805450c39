// Headers of every response, successful or not.
import { expect, test } from "bun:test";
import { forFile } from "#test/support/for-file.ts";
import { startTestServer } from "#test/support/server.ts";
import { call, formatHead } from "./raw-http.ts";

const server = await forFile(startTestServer());

const LOGIN = "/api/v2/users/login";
const REQUESTS: [string, number, string, string][] = [
  ["a successful request", 200, "GET", "/api/v2/buildinfo"],
  ["a health check", 200, "GET", "/healthz"],
  ["an anonymous caller", 401, "GET", "/api/v2/users/me"],
  ["an unknown route", 404, "GET", "/api/v2/nothing"],
  ["an unsupported method", 405, "PUT", "/api/v2/buildinfo"],
  ["a body of the wrong type", 415, "POST", LOGIN],
];

test.each(REQUESTS)(
  "[HT-11] clients cannot cache the response to %s (%i) or interpret it as another type",
  async (_name, status, method, path) => {
    const body = method === "POST" ? "{}" : "";
    const response = await call(
      server.url,
      formatHead(method, path, body ? { "Content-Length": body.length } : {}) + body,
    );
    expect(response?.status).toBe(status);
    expect(response?.headers.get("x-content-type-options")).toBe("nosniff");
    expect(response?.headers.get("cache-control")).toBe("no-store");
    expect(response?.headers.get("x-coder-build-version")).toMatch(/^v0\.0\.0-devel\+slipway\.\d+\.\d+\.\d+$/);
    const type = path === "/healthz" ? "text/plain" : "application/json";
    expect(response?.headers.get("content-type")).toStartWith(type);
  },
);

test("[HT-11] responses to a rejected Host, a cross-site page and an oversized body have the security headers", async () => {
  const responses = await Promise.all([
    call(server.url, formatHead("GET", "/healthz", { Host: "evil.example" })),
    call(server.url, formatHead("POST", "/api/v2/users/logout", { Cookie: "service_session_token=x", Origin: "null" })),
    call(server.url, formatHead("POST", LOGIN, { "Content-Type": "application/json", "Content-Length": 1e9 })),
  ]);
  expect(responses.map((response) => response?.status)).toEqual([421, 403, 413]);
  for (const response of responses) {
    expect(response?.headers.get("x-content-type-options")).toBe("nosniff");
    expect(response?.headers.get("cache-control")).toBe("no-store");
  }
});

test("[HT-11] 401 and 403 name the scheme, 405 the methods", async () => {
  expect((await call(server.url, formatHead("GET", "/api/v2/users/me")))?.headers.get("www-authenticate")).toBe(
    "Bearer",
  );
  expect((await call(server.url, formatHead("PUT", "/api/v2/buildinfo")))?.headers.get("allow")).toBe("GET");
});

test("[HT-11] the documentation page allows only the server's own script and no framing", async () => {
  for (const path of ["/swagger", "/swagger/ui.js", "/swagger/json"]) {
    const response = await fetch(new URL(path, server.url));
    expect(response.status).toBe(200);
    expect(response.headers.get("x-content-type-options")).toBe("nosniff");
    const policy = response.headers.get("content-security-policy") as string;
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("script-src 'self';");
    expect(policy).toContain("frame-ancestors 'none'");
  }
});

test("[HT-12] returns a well-formed request ID, and drops others", async () => {
  const getRequestId = async (id: string) =>
    (await call(server.url, formatHead("GET", "/healthz", { "X-Request-Id": id })))?.headers.get("x-request-id");
  expect(await getRequestId("0123-abc.DEF/7:=")).toBe("0123-abc.DEF/7:=");
  expect(await getRequestId("a b")).toBeNull();
  expect(await getRequestId("<script>")).toBeNull();
  expect(await getRequestId("x".repeat(200))).toBeNull();
  const rejected = await call(server.url, formatHead("GET", "/api/v2/users/me", { "X-Request-Id": "r-1" }));
  expect(rejected?.headers.get("x-request-id")).toBe("r-1");
});
