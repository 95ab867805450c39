// Requests from pages of other sites with the signed-in user's cookie, as a browser would send them, are rejected.
import { describe, expect, test } from "bun:test";
import { Client } from "#src/client.ts";
import { forFile } from "#test/support/for-file.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";
import { call, formatHead, handshake } from "./raw-http.ts";

const server = await forFile(
  startTestServer({ env: { SLIPWAY_ALLOWED_HOSTS: "localhost,127.0.0.1,slipway.example" } }),
);
const proxiedServer = await forFile(
  startTestServer({
    env: {
      SLIPWAY_ACCESS_URL: "https://slipway.example",
      SLIPWAY_ALLOWED_HOSTS: "localhost,127.0.0.1,slipway.example",
    },
  }),
);
const token = (await new Client(server.url).signIn(ADMIN.email, ADMIN.password)).token as string;
const host = server.url.host;

const SOCKET = "/api/v2/workspaceagents/6ba7b810-9dad-41d1-80b4-00c04fd430c8/logs?follow=true";
const cookie = () => ({ Cookie: `service_session_token=${token}` });

/** PORT stands for the server's port, HOST for host and port. */
const fillIn = (origin: string): string => origin.replace("HOST", host).replace("PORT", server.url.port);

/** Signs out with an invalid cookie: 401 shows that the request passed the check. */
const write = (origin: Record<string, string>) =>
  call(
    server.url,
    formatHead("POST", "/api/v2/users/logout", {
      Host: host,
      Cookie: "service_session_token=aaaaaaaaaa-bbbbbbbbbbbbbbbbbbbbbb",
      ...origin,
    }),
  );

const connect = (headers: Record<string, string>) => call(server.url, handshake(SOCKET, { Host: host, ...headers }));

const OURS = ["http://HOST", "HTTP://HOST", "https://slipway.example"];
const FOREIGN = [
  "https://evil.example",
  "null",
  "",
  "http://HOST.evil.example",
  "http://evilHOST",
  "http://evil.example#HOST",
  "http://evil.example/HOST",
  "http://HOST@evil.example",
  "http://127.0.0.1:1",
  "http://localhost",
  "http://127.0.0.1",
  "https://slipway.example.evil",
  "https://notslipway.example",
  "https://slipway.example:8443",
  "file://HOST",
  "chrome-extension://HOST",
  "http://HOST, https://evil.example",
  "https://HOST",
];

describe("writes authenticated by cookie", () => {
  test.each(OURS)("[HT-4] from a page of ours (%s) pass", async (origin) => {
    expect((await write({ Origin: fillIn(origin) }))?.status).toBe(401);
  });

  test.each(FOREIGN)("[HT-4] from %p are forbidden", async (origin) => {
    const answer = await write({ Origin: fillIn(origin) });
    expect(answer?.status).toBe(403);
    expect(JSON.parse(answer?.text as string)).toHaveProperty("message", "Forbidden.");
  });

  test("[HT-4] without Origin the browser's other header decides: same site only", async () => {
    expect((await write({}))?.status).toBe(401);
    expect((await write({ "Sec-Fetch-Site": "same-origin" }))?.status).toBe(401);
    expect((await write({ "Sec-Fetch-Site": "cross-site" }))?.status).toBe(403);
    expect((await write({ "Sec-Fetch-Site": "same-site" }))?.status).toBe(403);
  });

  test("[HT-4] a token in the header requires no Origin and ignores it, and reads are unrestricted", async () => {
    const asHeader = { Host: host, "Service-Session-Token": token };
    const get = (headers: Record<string, string>) => call(server.url, formatHead("GET", "/api/v2/users/me", headers));
    expect((await get(asHeader))?.status).toBe(200);
    expect((await get({ ...asHeader, Origin: "https://evil.example" }))?.status).toBe(200);
    expect((await get({ Host: host, ...cookie(), Origin: "https://evil.example" }))?.status).toBe(200);
    const other = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
    const headers = { Host: host, "Service-Session-Token": other.token as string, Origin: "https://evil.example" };
    expect((await call(server.url, formatHead("POST", "/api/v2/users/logout", headers)))?.status).toBe(200);
  });

  test("[HT-4] a cookie alongside the header is still a cookie", async () => {
    const headers = { Host: host, ...cookie(), "Service-Session-Token": token, Origin: "https://evil.example" };
    expect((await call(server.url, formatHead("POST", "/api/v2/users/logout", headers)))?.status).toBe(403);
  });

  test("[HT-4] nothing is shared with other sites: no CORS header is ever sent", async () => {
    const answer = await call(
      server.url,
      formatHead("GET", "/api/v2/buildinfo", { Host: host, Origin: "https://evil.example" }),
    );
    expect(answer?.headers.get("access-control-allow-origin")).toBeNull();
    const preflight = await call(
      server.url,
      formatHead("OPTIONS", "/api/v2/users/logout", {
        Origin: "https://evil.example",
        "Access-Control-Request-Method": "POST",
      }),
    );
    expect(preflight?.status).toBe(405);
  });
});

describe("WebSockets", () => {
  // After the check, the agent does not exist: 404.
  test.each(OURS)("[HT-4] opened by a page of ours (%s) pass the gate", async (origin) => {
    expect((await connect({ ...cookie(), Origin: fillIn(origin) }))?.status).toBe(404);
  });

  test.each(FOREIGN)("[HT-4] opened by %p are forbidden, whatever carries the token", async (origin) => {
    expect((await connect({ ...cookie(), Origin: fillIn(origin) }))?.status).toBe(403);
    expect((await connect({ "Service-Session-Token": token, Origin: fillIn(origin) }))?.status).toBe(403);
  });

  test("[HT-4] programs send no Origin and pass", async () => {
    expect((await connect({ "Service-Session-Token": token }))?.status).toBe(404);
  });
});

describe("behind a proxy that ends TLS", () => {
  const post = (origin: string, name: string) =>
    call(
      proxiedServer.url,
      formatHead("POST", "/api/v2/users/logout", {
        Host: name,
        Origin: origin,
        Cookie: "__Host-service_session_token=x",
      }),
    );

  test("[HT-4] the access URL is ours only with its own scheme, whether the proxy keeps Host or not", async () => {
    expect((await post("https://slipway.example", "slipway.example"))?.status).toBe(401);
    expect((await post("https://slipway.example", "127.0.0.1"))?.status).toBe(401);
    expect((await post("http://slipway.example", "slipway.example"))?.status).toBe(403);
    expect((await post("http://slipway.example", "127.0.0.1"))?.status).toBe(403);
  });
});
