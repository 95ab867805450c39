// Requests to apps and ports of a workspace, with a real server, a real daemon process and a real program.
import { describe, expect, test } from "bun:test";
import { forFile } from "#test/support/for-file.ts";
import { type Echo, startAppWorld } from "./app-world.ts";

const world = await forFile(
  startAppWorld({
    apps: (port) => [
      { slug: "mine", url: `http://localhost:${port}` },
      { slug: "based", url: `http://127.0.0.1:${port}/base/?folder=/home`, share: "authenticated" },
      { slug: "open", url: `http://localhost:${port}/`, share: "public", subdomain: true },
      { slug: "shell", command: "htop" },
      { slug: "far", url: "http://192.0.2.1:80/" },
    ],
  }),
);

const getSecurityPolicy = (response: Response) => response.headers.get("content-security-policy") ?? "";

const readEcho = async (response: Response): Promise<Echo> => {
  expect(response.status).toBe(200);
  return (await response.json()) as Echo;
};

describe("an app", () => {
  test("[AX-1] is reached below the access URL and on its own host, with the path, the query and its configured base", async () => {
    const { token } = world;
    const byPath = await readEcho(await world.get(world.path("mine", "/a%20b/c?x=1&y=%26"), { token }));
    expect(byPath).toMatchObject({ method: "GET", path: "/a%20b/c?x=1&y=%26" });
    expect(byPath.headers["x-forwarded-prefix"]).toBe("/@ada/dev.dev/apps/mine");
    const onHost = await readEcho(await world.at("mine", "/c?z", { token }));
    expect(onHost.path).toBe("/c?z");
    expect(onHost.headers.host).toBe(world.host("mine"));
    expect((await readEcho(await world.get(world.path("based", "/x?q=2"), { token }))).path).toBe("/base/x?q=2");
    // The name of a workspace's only agent can be omitted, and `me` is the caller's name.
    expect((await readEcho(await world.get("/@me/DEV/apps/mine/who", { token }))).path).toBe("/who");
  });

  test("[AX-1] redirects to its path with a slash, and to its configured query", async () => {
    const { token } = world;
    const withoutSlash = await world.get(world.path("mine", "?a=1"), { token });
    expect([withoutSlash.status, withoutSlash.headers.get("location")]).toEqual([307, `${world.path("mine")}?a=1`]);
    const withQuery = await world.get(world.path("based"), { token });
    expect([withQuery.status, withQuery.headers.get("location")]).toEqual([307, `${world.path("based")}?folder=/home`]);
  });

  test("[AX-20] that leads back to the server is rejected with 508 after a few hops", async () => {
    const { port } = world.server.url;
    const portShare = { agent_name: "dev", port: Number(port), protocol: "http", share_level: "public" };
    await world.owner.post(`${world.shared.path}/port-share`, portShare);
    const streamsBefore = world.server.context?.streams.size;
    const response = await world.at(port, "/x");
    expect([response.status, ((await response.json()) as { message: string }).message]).toEqual([
      508,
      "Redirect loop.",
    ]);
    expect(world.server.context?.streams.size).toBe(streamsBefore);
    // A client cannot extend the limit with a header.
    expect((await world.at(port, "/x", { headers: { "slipway-hops": "-1" } })).status).toBe(508);
  });

  test("[AX-3] that is a command, on another machine, or unknown returns 404, and so do other paths", async () => {
    const { token } = world;
    for (const name of ["shell", "far", "none", "8", "65536"]) {
      const response = await world.get(world.path(name), { token });
      expect([name, response.status]).toEqual([name, 404]);
      expect(((await response.json()) as { message: string }).message).toMatch(/^\S.*\.$/);
    }
    for (const path of [
      "/@ada",
      "/@ada/dev/apps/",
      "/@ada/dev.dev.dev/apps/mine/",
      "/@ada/dev/apps/mi%2fne/",
      "/@/x/apps/y/",
    ]) {
      expect([path, (await world.get(path, { token })).status]).toEqual([path, 404]);
    }
  });

  test("[AX-6] gets every method and body, with its length or in chunks, and returns any status", async () => {
    const { token } = world;
    const body = new Uint8Array(3_000_000).map((_, i) => i % 251);
    const digest = new Bun.CryptoHasher("sha256").update(body).digest("hex");
    const fixedLengthResponse = await world.get(world.path("mine", "/digest"), { token, method: "POST", body });
    expect(await fixedLengthResponse.json()).toEqual({ size: body.length, digest, length: String(body.length) });
    const stream = new ReadableStream({
      async start(controller) {
        for (let offset = 0; offset < body.length; offset += 100_000)
          controller.enqueue(body.slice(offset, offset + 100_000));
        controller.close();
      },
    });
    const chunkedResponse = await world.at("mine", "/digest", { token, method: "PUT", body: stream });
    expect(await chunkedResponse.json()).toEqual({ size: body.length, digest, length: null });
    for (const method of ["DELETE", "PATCH", "OPTIONS", "POST"]) {
      expect((await readEcho(await world.get(world.path("mine", "/m"), { token, method }))).method).toBe(method);
    }
    const headResponse = await world.get(world.path("mine", "/bytes?n=1234"), { token, method: "HEAD" });
    expect([headResponse.status, headResponse.headers.get("content-length"), await headResponse.text()]).toEqual([
      200,
      "1234",
      "",
    ]);
    for (const code of [201, 204, 304, 404, 418, 500]) {
      expect((await world.get(world.path("mine", `/status?code=${code}`), { token })).status).toBe(code);
    }
  });

  test("[AX-6] can redirect, and streams its events live", async () => {
    const { token } = world;
    const redirect = await world.get(world.path("mine", "/redirect?to=/elsewhere"), { token });
    expect([redirect.status, redirect.headers.get("location")]).toEqual([302, "/elsewhere"]);
    const events = await world.get(world.path("mine", "/events"), { token });
    const reader = events.body?.getReader();
    expect(new TextDecoder().decode((await reader?.read())?.value)).toBe("data: first\n\n");
    await reader?.cancel();
  });

  test("[AX-7] never gets its user's credentials, only its own cookies, tokens and queries", async () => {
    const { token } = world;
    const cookies = `a=1; service_session_token=${token}; coder_session_token=x; service_app_session=y; b=2`;
    const path = `/q?service_session_token=${token}&keep=1&coder_session_token=${token}&access_token=${token}&access_token=own`;
    const received = await readEcho(
      await world.get(world.path("mine", path), {
        headers: {
          cookie: cookies,
          "service-session-token": token,
          "coder-session-token": token,
          authorization: `Bearer ${token}`,
          connection: "keep-alive, x-private",
          "x-private": "1",
          te: "trailers",
          "x-forwarded-for": "6.6.6.6",
          "x-forwarded-host": "evil",
          forwarded: "for=6.6.6.6",
          "x-mine": "kept",
        },
      }),
    );
    expect(JSON.stringify(received)).not.toContain(token);
    expect(received.path).toBe("/q?keep=1&access_token=own");
    expect(received.headers).toMatchObject({ cookie: "a=1; b=2", "x-mine": "kept", "x-forwarded-for": "127.0.0.1" });
    expect(received.headers["x-forwarded-host"]).toBe(world.server.url.host);
    expect(received.headers["x-forwarded-proto"]).toBe("http");
    for (const name of ["authorization", "service-session-token", "forwarded", "te"])
      expect(received.headers[name]).toBeUndefined();
    const ownEcho = await readEcho(
      await world.get(world.path("open"), { headers: { authorization: "Bearer of-the-app" } }),
    );
    expect(ownEcho.headers.authorization).toBe("Bearer of-the-app");
  });

  test("[AX-8] can set cookies only for its own host and path, and nothing for the whole origin", async () => {
    const { token } = world;
    const toHeadersPath = (...headers: string[]) =>
      `/headers?${headers.map((header) => `h=${encodeURIComponent(header)}`).join("&")}`;
    const path = toHeadersPath(
      "set-cookie:a=1; Path=/; HttpOnly",
      "set-cookie:b=2; Domain=example.test; SameSite=Lax",
      "set-cookie:service_session_token=stolen; Path=/",
      "set-cookie:=service_session_token=stolen; Path=/",
      "set-cookie:service_app_session; Path=/",
      "clear-site-data:*",
      "strict-transport-security:max-age=1",
      "service-worker-allowed:/",
      'alt-svc:h2="evil:443"',
      "x-slipway-node:sign",
      "x-slipway-part:7",
      "x-accel-redirect:/internal/key",
      "x-sendfile:/etc/shadow",
      "x-lighttpd-send-tempfile:/etc/shadow",
      "x-reproxy-url:http://127.0.0.1/key",
      "x-backend-redirect:/internal/key",
      "x-own:yes",
    );
    const byPath = await world.get(world.path("mine", path), { token });
    expect(byPath.headers.getSetCookie()).toEqual([
      "a=1; HttpOnly; Path=/@ada/dev.dev/apps/mine/",
      "b=2; SameSite=Lax; Path=/@ada/dev.dev/apps/mine/",
    ]);
    const headerNames = ["clear-site-data", "strict-transport-security", "service-worker-allowed", "alt-svc", "x-own"];
    // A service worker's scope is limited to the app.
    expect(headerNames.map((name) => byPath.headers.get(name))).toEqual([
      null,
      null,
      "/@ada/dev.dev/apps/mine/",
      null,
      "yes",
    ]);
    // Apps cannot set the headers that nodes use among themselves.
    expect(["x-slipway-node", "x-slipway-part"].map((name) => byPath.headers.get(name))).toEqual([null, null]);
    // Apps cannot send instructions to a proxy in front of the server either.
    const instructions = [...byPath.headers.keys()].filter((name) => /accel|send|reproxy|backend/.test(name));
    expect(instructions).toEqual([]);
    const onHost = await world.at("mine", path, { token });
    expect(onHost.headers.getSetCookie()).toEqual(["a=1; Path=/; HttpOnly", "b=2; SameSite=Lax"]);
    expect(headerNames.map((name) => onHost.headers.get(name))).toEqual([null, "max-age=1", "/", null, "yes"]);
  });

  test("[AX-8] has an opaque origin below the access URL, and its own origin on its host", async () => {
    const memberToken = world.shared.clients.member.token;
    for (const token of [world.token, memberToken, undefined]) {
      const response = await world.get(world.path("open"), token === undefined ? {} : { token });
      expect(getSecurityPolicy(response)).toMatch(/^sandbox (?!.*allow-same-origin)/);
    }
    expect(getSecurityPolicy(await world.get(world.path("mine"), { token: world.token }))).toMatch(/^sandbox /);
    expect(getSecurityPolicy(await world.at("open", "/"))).toBe("");
  });

  test("[AX-17] is not stored by shared caches for a signed-in user, whatever headers the app sends", async () => {
    const { token } = world;
    const toHeadersPath = (value: string) => `/headers?h=${encodeURIComponent(`cache-control:${value}`)}`;
    const getCacheHeaders = async (response: Response | Promise<Response>): Promise<(string | null)[]> => {
      const { headers } = await response;
      return [headers.get("cache-control"), headers.get("vary")];
    };
    const publicPath = toHeadersPath("public, max-age=3600, s-maxage=7200");
    expect(await getCacheHeaders(world.get(world.path("mine", publicPath), { token }))).toEqual([
      "private, max-age=3600",
      "Cookie",
    ]);
    expect(await getCacheHeaders(world.at("mine", publicPath, { token }))).toEqual(["private, max-age=3600", "Cookie"]);
    expect(await getCacheHeaders(world.get(world.path("mine", toHeadersPath("no-store")), { token }))).toEqual([
      "private, no-store",
      "Cookie",
    ]);
    // Shared caches may store public content, separately from the content for signed-in users.
    expect(await getCacheHeaders(world.get(world.path("open", publicPath)))).toEqual([
      "public, max-age=3600, s-maxage=7200",
      "Cookie",
    ]);
  });
});

describe("an administrator", () => {
  test("[AX-8] can give users' own apps the server's origin, but not apps of other users", async () => {
    await using sameOriginWorld = await startAppWorld({
      apps: (port) => [{ slug: "open", url: `http://localhost:${port}/`, share: "public" }],
      env: { SLIPWAY_PATH_APPS_SAME_ORIGIN: "true" },
    });
    expect(
      getSecurityPolicy(await sameOriginWorld.get(sameOriginWorld.path("open"), { token: sameOriginWorld.token })),
    ).toBe("");
    const memberToken = sameOriginWorld.shared.clients.member.token;
    expect(getSecurityPolicy(await sameOriginWorld.get(sameOriginWorld.path("open"), { token: memberToken }))).toMatch(
      /^sandbox /,
    );
    expect(getSecurityPolicy(await sameOriginWorld.get(sameOriginWorld.path("open")))).toMatch(/^sandbox /);
  });

  test("[AX-16] can disable apps below the access URL", async () => {
    await using hostOnlyWorld = await startAppWorld({
      apps: (port) => [{ slug: "open", url: `http://localhost:${port}/`, share: "public", subdomain: true }],
      env: { SLIPWAY_DISABLE_PATH_APPS: "true" },
    });
    const response = await hostOnlyWorld.get(hostOnlyWorld.path("open"), { token: hostOnlyWorld.token });
    expect(response.status).toBe(403);
    expect(((await response.json()) as { detail: string }).detail).toContain("their own host names");
    expect((await hostOnlyWorld.at("open", "/", { token: hostOnlyWorld.token })).status).toBe(200);
  });
});
