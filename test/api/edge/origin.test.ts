// Rejects requests from pages of other sites that carry the signed-in user's cookie, as a browser would send them.
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
const cookieHeader = () => ({ Cookie: `service_session_token=${token}` });

/** PORT stands for the server's port, HOST for host and port. */
const fillIn = (origin: string): string => origin.replace("HOST", host).replace("PORT", server.url.port);

/** Signs out with an invalid cookie: 401 shows that the request passed the check. */
const signOut = (origin: Record<string, string>) =>
  call(
    server.url,
    formatHead("POST", "/api/v2/users/logout", {
      Host: host,
      Cookie: "service_session_token=aaaaaaaaaa-bbbbbbbbbbbbbbbbbbbbbb",
      ...origin,
    }),
  );

const connect = (headers: Record<string, string>) => call(server.url, handshake(SOCKET, { Host: host, ...headers }));

const OWN_ORIGINS = ["http://HOST", "HTTP://HOST", "https://slipway.example"];
const FOREIGN_ORIGINS = [
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
  test.each(OWN_ORIGINS)("[HT-4] are accepted from a page of this server (%s)", async (origin) => {
    expect((await signOut({ Origin: fillIn(origin) }))?.status).toBe(401);
  });

  test.each(FOREIGN_ORIGINS)("[HT-4] from %p are forbidden", async (origin) => {
    const response = await signOut({ Origin: fillIn(origin) });
    expect(response?.status).toBe(403);
    expect(JSON.parse(response?.text as string)).toHaveProperty("message", "Forbidden.");
  });

  test("[HT-4] without an Origin, Sec-Fetch-Site must be same-origin", async () => {
    expect((await signOut({}))?.status).toBe(401);
    expect((await signOut({ "Sec-Fetch-Site": "same-origin" }))?.status).toBe(401);
    expect((await signOut({ "Sec-Fetch-Site": "cross-site" }))?.status).toBe(403);
    expect((await signOut({ "Sec-Fetch-Site": "same-site" }))?.status).toBe(403);
  });

  test("[HT-4] the Origin does not matter for a token in the header, and for reads", async () => {
    const headersWithToken = { Host: host, "Service-Session-Token": token };
    const get = (headers: Record<string, string>) => call(server.url, formatHead("GET", "/api/v2/users/me", headers));
    expect((await get(headersWithToken))?.status).toBe(200);
    expect((await get({ ...headersWithToken, Origin: "https://evil.example" }))?.status).toBe(200);
    expect((await get({ Host: host, ...cookieHeader(), Origin: "https://evil.example" }))?.status).toBe(200);
    const secondSession = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
    const headers = {
      Host: host,
      "Service-Session-Token": secondSession.token as string,
      Origin: "https://evil.example",
    };
    expect((await call(server.url, formatHead("POST", "/api/v2/users/logout", headers)))?.status).toBe(200);
  });

  test("[HT-4] a cookie alongside the header is still checked", async () => {
    const headers = { Host: host, ...cookieHeader(), "Service-Session-Token": token, Origin: "https://evil.example" };
    expect((await call(server.url, formatHead("POST", "/api/v2/users/logout", headers)))?.status).toBe(403);
  });

  test("[HT-4] never sends a CORS header", async () => {
    const response = await call(
      server.url,
      formatHead("GET", "/api/v2/buildinfo", { Host: host, Origin: "https://evil.example" }),
    );
    expect(response?.headers.get("access-control-allow-origin")).toBeNull();
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
  // 404 shows that the request passed the check: the agent does not exist.
  test.each(OWN_ORIGINS)("[HT-4] are accepted from a page of this server (%s)", async (origin) => {
    expect((await connect({ ...cookieHeader(), Origin: fillIn(origin) }))?.status).toBe(404);
  });

  test.each(FOREIGN_ORIGINS)("[HT-4] from %p are forbidden, with a cookie or a header", async (origin) => {
    expect((await connect({ ...cookieHeader(), Origin: fillIn(origin) }))?.status).toBe(403);
    expect((await connect({ "Service-Session-Token": token, Origin: fillIn(origin) }))?.status).toBe(403);
  });

  test("[HT-4] are accepted from programs, which send no Origin", async () => {
    expect((await connect({ "Service-Session-Token": token }))?.status).toBe(404);
  });
});

describe("behind a proxy that terminates TLS", () => {
  const signOutThroughProxy = (origin: string, hostname: string) =>
    call(
      proxiedServer.url,
      formatHead("POST", "/api/v2/users/logout", {
        Host: hostname,
        Origin: origin,
        Cookie: "__Host-service_session_token=x",
      }),
    );

  test("[HT-4] accepts the access URL's origin only with its scheme, whether or not the proxy keeps Host", async () => {
    expect((await signOutThroughProxy("https://slipway.example", "slipway.example"))?.status).toBe(401);
    expect((await signOutThroughProxy("https://slipway.example", "127.0.0.1"))?.status).toBe(401);
    expect((await signOutThroughProxy("http://slipway.example", "slipway.example"))?.status).toBe(403);
    expect((await signOutThroughProxy("http://slipway.example", "127.0.0.1"))?.status).toBe(403);
  });
});
