// Headers of every response, successful or not.
import { expect, test } from "bun:test";
import { forFile } from "#test/support/for-file.ts";
import { startTestServer } from "#test/support/server.ts";
import { call, formatHead } from "./raw-http.ts";

const server = await forFile(startTestServer());

const LOGIN = "/api/v2/users/login";
const kinds: [string, number, string, string][] = [
  ["a successful request", 200, "GET", "/api/v2/buildinfo"],
  ["a health check", 200, "GET", "/healthz"],
  ["an anonymous caller", 401, "GET", "/api/v2/users/me"],
  ["an unknown route", 404, "GET", "/api/v2/nothing"],
  ["an unsupported method", 405, "PUT", "/api/v2/buildinfo"],
  ["a body of the wrong type", 415, "POST", LOGIN],
];

test.each(kinds)(
  "[HT-11] the response to %s (%i) cannot be interpreted as another type or cached",
  async (_name, status, method, path) => {
    const body = method === "POST" ? "{}" : "";
    const answer = await call(
      server.url,
      formatHead(method, path, body ? { "Content-Length": body.length } : {}) + body,
    );
    expect(answer?.status).toBe(status);
    expect(answer?.headers.get("x-content-type-options")).toBe("nosniff");
    expect(answer?.headers.get("cache-control")).toBe("no-store");
    expect(answer?.headers.get("x-coder-build-version")).toMatch(/^v0\.0\.0-devel\+slipway\.\d+\.\d+\.\d+$/);
    const type = path === "/healthz" ? "text/plain" : "application/json";
    expect(answer?.headers.get("content-type")).toStartWith(type);
  },
);

test("[HT-11] responses to a refused Host, a cross-site page and an oversized body also have the security headers", async () => {
  const answers = await Promise.all([
    call(server.url, formatHead("GET", "/healthz", { Host: "evil.example" })),
    call(server.url, formatHead("POST", "/api/v2/users/logout", { Cookie: "service_session_token=x", Origin: "null" })),
    call(server.url, formatHead("POST", LOGIN, { "Content-Type": "application/json", "Content-Length": 1e9 })),
  ]);
  expect(answers.map((answer) => answer?.status)).toEqual([421, 403, 413]);
  for (const answer of answers) {
    expect(answer?.headers.get("x-content-type-options")).toBe("nosniff");
    expect(answer?.headers.get("cache-control")).toBe("no-store");
  }
});

test("[HT-11] 401 and 403 name the scheme, 405 the methods", async () => {
  expect((await call(server.url, formatHead("GET", "/api/v2/users/me")))?.headers.get("www-authenticate")).toBe(
    "Bearer",
  );
  expect((await call(server.url, formatHead("PUT", "/api/v2/buildinfo")))?.headers.get("allow")).toBe("GET");
});

test("[HT-11] the documentation page allows only our script and no frame around it", async () => {
  for (const path of ["/swagger", "/swagger/ui.js", "/swagger/json"]) {
    const answer = await fetch(new URL(path, server.url));
    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
    const policy = answer.headers.get("content-security-policy") as string;
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("script-src 'self';");
    expect(policy).toContain("frame-ancestors 'none'");
  }
});

test("[HT-12] a request's own ID is returned if it is well-formed, and dropped otherwise", async () => {
  const getRequestId = async (id: string) =>
    (await call(server.url, formatHead("GET", "/healthz", { "X-Request-Id": id })))?.headers.get("x-request-id");
  expect(await getRequestId("0123-abc.DEF/7:=")).toBe("0123-abc.DEF/7:=");
  expect(await getRequestId("a b")).toBeNull();
  expect(await getRequestId("<script>")).toBeNull();
  expect(await getRequestId("x".repeat(200))).toBeNull();
  const refused = await call(server.url, formatHead("GET", "/api/v2/users/me", { "X-Request-Id": "r-1" }));
  expect(refused?.headers.get("x-request-id")).toBe("r-1");
});
