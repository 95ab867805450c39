// Signing in to an app on its own host, and redirect targets that the server rejects (facts/platform 8.4).
import { describe, expect, test } from "bun:test";
import { AppHosts } from "#domain/applications/names.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { Client } from "#src/client.ts";
import { forFile } from "#test/support/for-file.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";
import { type Echo, SUFFIX, startAppWorld } from "./app-world.ts";

const browserHeaders = { accept: "text/html" };
const world = await forFile(
  startAppWorld({
    apps: (port) => [
      { slug: "mine", url: `http://localhost:${port}`, subdomain: true },
      { slug: "other", url: `http://localhost:${port}`, subdomain: true },
      { slug: "plain", url: `http://localhost:${port}` },
      { slug: "open", url: `http://localhost:${port}`, share: "public" },
    ],
  }),
);

const toAppUrl = (app: string, path = "/"): string => `http://${world.host(app)}:${world.server.url.port}${path}`;
const requestAuthRedirect = (
  redirect_uri: string,
  options: { token?: string | undefined; headers?: Record<string, string> } = {},
) => world.get(`/api/v2/applications/auth-redirect?${new URLSearchParams({ redirect_uri })}`, options);
/** Returns the path and query on the app's host to which the server redirects the caller. */
const getAppRedirect = async (app: string, path = "/", token: string | undefined = world.token): Promise<string> => {
  const response = await requestAuthRedirect(toAppUrl(app, path), { token });
  expect(response.status).toBe(307);
  const url = new URL(response.headers.get("location") ?? "");
  expect(url.host).toBe(new URL(toAppUrl(app)).host);
  return url.pathname + url.search;
};
const parseCookie = (response: Response): string => response.headers.getSetCookie()[0]?.split(";")[0] ?? "";

describe("signing in to an app", () => {
  test("[AX-13] redirects to the server and back to the app, which sets a cookie only for its host", async () => {
    const first = await world.at("mine", "/deep?x=1", { headers: browserHeaders });
    const serverUrl = new URL(first.headers.get("location") ?? "");
    const sessionHeaders = { cookie: `service_session_token=${world.token}`, ...browserHeaders };
    const second = await world.get(serverUrl.pathname + serverUrl.search, { headers: sessionHeaders });
    const appUrl = new URL(second.headers.get("location") ?? "");
    expect([second.status, appUrl.host, appUrl.pathname]).toEqual([307, new URL(toAppUrl("mine")).host, "/deep"]);
    expect(second.headers.get("referrer-policy")).toBe("no-referrer");
    const third = await world.at("mine", appUrl.pathname + appUrl.search, { headers: browserHeaders });
    expect([third.status, third.headers.get("location")]).toEqual([307, "/deep?x=1"]);
    expect(third.headers.getSetCookie()).toEqual([
      expect.stringMatching(/^service_app_session=\S+; Path=\/; HttpOnly; SameSite=Lax; Max-Age=\d+$/),
    ]);
    const cookie = parseCookie(third);
    const fourth = await world.at("mine", "/deep?x=1", { headers: { ...browserHeaders, cookie: `${cookie}; own=1` } });
    const echo = (await fourth.json()) as Echo;
    expect([echo.path, echo.headers.cookie]).toEqual(["/deep?x=1", "own=1"]);
    expect((await world.at("other", "/", { headers: { cookie } })).status).toBe(401);
    const writeFrom = async (origin: string): Promise<number> =>
      (await world.at("mine", "/", { method: "POST", headers: { cookie, origin } })).status;
    const siblingOrigin = new URL(toAppUrl("other")).origin;
    expect(await writeFrom(siblingOrigin)).toBe(200);
    // Another workspace of the owner may run programs of other people.
    expect(await writeFrom(siblingOrigin.replace("--dev--ada", "--tried--ada"))).toBe(403);
    expect((await world.get(world.path("mine"), { headers: { cookie } })).status).toBe(401);
    expect((await world.get("/api/v2/users/me", { headers: { cookie } })).status).toBe(401);
  });

  test("[AX-26] does not let pages of other workspaces' apps load scripts, images or data with the cookie", async () => {
    const cookie = parseCookie(await world.at("mine", await getAppRedirect("mine")));
    const siblingPage = toAppUrl("other", "/page");
    const foreignPage = siblingPage.replace("--dev--ada", "--tried--ada");
    const load = (referrer: string | undefined, headers: Record<string, string>, path = "/main.js") =>
      world.at("mine", path, {
        headers: { cookie, ...(referrer === undefined ? {} : { referer: referrer }), ...headers },
      });
    const script = { "sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "script" };
    const fetchStatus = async (referrer: string | undefined, headers = script) =>
      (await load(referrer, headers)).status;
    expect(await fetchStatus(foreignPage)).toBe(403);
    // A page can omit the referrer.
    expect(await fetchStatus(undefined)).toBe(403);
    expect(await fetchStatus("https://evil.example/", { ...script, "sec-fetch-site": "cross-site" })).toBe(403);
    const corsFetch = { "sec-fetch-site": "same-site", "sec-fetch-mode": "cors", "sec-fetch-dest": "empty" };
    expect((await load(undefined, { ...corsFetch, origin: new URL(foreignPage).origin })).status).toBe(403);
    expect((await load(undefined, { ...corsFetch, origin: new URL(siblingPage).origin })).status).toBe(200);
    // Any page may link to the app or show it in a frame. Programs, which do not send these headers, also have access.
    const link = { "sec-fetch-site": "same-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe" };
    expect(await fetchStatus(foreignPage, link)).toBe(200);
    expect((await load(foreignPage, {})).status).toBe(200);
    const fetchPolicy = async (referrer: string, headers: Record<string, string>) => {
      const { status, headers: responseHeaders } = await load(referrer, headers);
      const names = ["cross-origin-resource-policy", "cache-control", "vary"];
      return [status, ...names.map((name) => responseHeaders.get(name))];
    };
    // Response headers prevent other workspaces' pages from loading it from the browser's cache.
    const sameOrigin = { ...script, "sec-fetch-site": "same-origin" };
    expect(await fetchPolicy(toAppUrl("mine"), sameOrigin)).toEqual([
      200,
      "same-origin",
      "private",
      "Cookie, Sec-Fetch-Site",
    ]);
    expect(await fetchPolicy(siblingPage, script)).toEqual([200, "same-site", "no-store", "Cookie, Sec-Fetch-Site"]);
  });

  test("[AX-26] lets only pages of the server's origin load parts of an app below the access URL", async () => {
    const cookie = `service_session_token=${world.token}`;
    const load = (app: string, fetchSite: string) =>
      world.get(world.path(app, "/main.js"), {
        headers: { cookie, "sec-fetch-site": fetchSite, "sec-fetch-mode": "no-cors", referer: toAppUrl("mine") },
      });
    expect((await load("plain", "same-site")).status).toBe(403);
    expect((await load("plain", "same-origin")).headers.get("cross-origin-resource-policy")).toBe("same-origin");
    const publicResponse = await load("open", "same-site");
    expect([publicResponse.status, publicResponse.headers.get("cross-origin-resource-policy")]).toEqual([200, null]);
  });

  test("[AX-13] accepts an unaltered key once, on its own host, and not the cookie of the server's host", async () => {
    const path = await getAppRedirect("mine");
    expect((await world.at("other", path)).status).toBe(400);
    expect((await world.at("mine", `${path.slice(0, -2)}xx`)).status).toBe(400);
    // Only one of several concurrent requests succeeds.
    const responses = await Promise.all(Array.from({ length: 8 }, () => world.at("mine", path)));
    expect(responses.map(({ status }) => status).sort()).toEqual([307, 400, 400, 400, 400, 400, 400, 400]);
    const reuseResponse = await world.at("mine", path, { headers: browserHeaders });
    expect([reuseResponse.status, reuseResponse.headers.get("location")]).toEqual([400, null]);
    expect(await reuseResponse.text()).toContain("Link already used");
    const sessionResponse = await world.at("mine", "/", {
      headers: { cookie: `service_session_token=${world.token}` },
    });
    expect(sessionResponse.status).toBe(401);
  });

  test("[AX-13] ends with the session that issued the cookie or the unused key", async () => {
    const admin = await new Client(world.server.url).signIn(ADMIN.email, ADMIN.password);
    const cookie = parseCookie(await world.at("mine", await getAppRedirect("mine", "/", admin.token)));
    expect((await world.at("mine", "/", { headers: { cookie } })).status).toBe(200);
    const unusedKeyPath = await getAppRedirect("mine", "/", admin.token);
    await admin.post("/api/v2/users/logout");
    expect((await world.at("mine", "/", { headers: { cookie } })).status).toBe(401);
    expect((await world.at("mine", unusedKeyPath)).status).toBe(400);
  });

  test("[AX-13] redirects a person without a session to the sign-in page, and returns 401 to a program", async () => {
    const response = await requestAuthRedirect(toAppUrl("mine"), { headers: browserHeaders });
    const redirectPath = `/api/v2/applications/auth-redirect?${new URLSearchParams({ redirect_uri: toAppUrl("mine") })}`;
    const expected = `/login?${new URLSearchParams({ redirect: redirectPath })}`;
    expect([response.status, response.headers.get("location")]).toEqual([307, expected]);
    expect((await requestAuthRedirect(toAppUrl("mine"))).status).toBe(401);
  });

  test("[AX-12] sends a key only to the host of an app", async () => {
    const host = new URL(toAppUrl("mine")).host;
    const invalidUris = [
      ...["/", "//evil.example", "https:evil.example", "\\\\evil.example", "/\\evil.example", "javascript:alert(1)"],
      ...[
        `https://${host}@evil.example/`,
        `http://${host}@evil.example/`,
        `http://user@${host}/`,
        `http://u:p@${host}/`,
      ],
      ...[
        `http://${host}.evil.example/`,
        `http://evil${host}x/`,
        `https://${host}/`,
        `http://${world.host("mine")}:1/`,
      ],
      ...[
        `http://${world.host("mine")}/`,
        `http://${host}%0d%0aset-cookie:x=1/`,
        `http://${host}/\r\nx: y`,
        `http://${host}\\@evil/`,
      ],
      ...[
        `http:\\\\${host}/`,
        `http:/${host}/`,
        `http:${host}/`,
        ` http://${host}/`,
        `http://${host}\t/`,
        `ftp://${host}/`,
      ],
      ...[
        `http://${host.replace("mine", "m\u0131ne")}/`,
        `http://${host.replace("apps", "\uff41pps")}/`,
        `http://${host}%2eevil.example/`,
      ],
      ...[
        `http://${SUFFIX}/`,
        `http://${SUFFIX}:${world.server.url.port}/`,
        `http://x.${SUFFIX}:${world.server.url.port}/`,
      ],
      ...[`http://${host}:80/`, `${world.server.url.origin}/`, `data:text/html,${host}`, `http://[::1]/`],
    ];
    for (const uri of invalidUris) {
      const response = await requestAuthRedirect(uri, { token: world.token });
      expect([uri, response.status, response.headers.get("location")]).toEqual([uri, 400, null]);
    }
    const mixedCase = await requestAuthRedirect(`HTTP://${host.toUpperCase()}/A`, { token: world.token });
    expect(new URL(mixedCase.headers.get("location") ?? "").host).toBe(host);
    for (const query of ["", "?redirect_uri="]) {
      const homeRedirect = await world.get(`/api/v2/applications/auth-redirect${query}`, { token: world.token });
      expect([homeRedirect.status, homeRedirect.headers.get("location")]).toEqual([307, world.server.url.href]);
    }
  });

  test("[AX-11] applications/host and apps show their host names, which are empty without the setting", async () => {
    const { owner, server } = world;
    const port = server.url.port;
    expect(await owner.get("/api/v2/applications/host")).toMatchObject({ host: `*.${SUFFIX}:${port}` });
    const listAppNames = ({ latest_build }: Workspace) =>
      latest_build.resources[0]?.agents[0]?.apps.map(({ slug, subdomain_name }) => [slug, subdomain_name]).sort();
    const names = [
      ["mine", "mine--dev--dev--ada"],
      ["open", ""],
      ["other", "other--dev--dev--ada"],
      ["plain", ""],
    ];
    const workspace = await owner.get<Workspace>(world.shared.path);
    expect(listAppNames(workspace)).toEqual(names);
    const { apps } = await owner.get<{ apps: { slug: string; subdomain_name: string }[] }>(
      `/api/v2/workspaceagents/${world.agent_id}`,
    );
    expect(apps.map(({ slug, subdomain_name }) => [slug, subdomain_name]).sort()).toEqual(names);
    await using serverWithoutHost = await startTestServer({
      env: { SLIPWAY_ACCESS_URL: "http://slipway.example.test", SLIPWAY_ALLOWED_HOSTS: "127.0.0.1" },
    });
    const admin = await new Client(serverWithoutHost.url).signIn(ADMIN.email, ADMIN.password);
    expect(await admin.get("/api/v2/applications/host")).toMatchObject({ host: "" });
    const uri = new URLSearchParams({ redirect_uri: toAppUrl("mine") });
    expect((await admin.fetch("GET", `/api/v2/applications/auth-redirect?${uri}`)).status).toBe(400);
    expect((await fetch(new URL("/", serverWithoutHost.url), { headers: { host: world.host("mine") } })).status).toBe(
      421,
    );
  });

  test("[AX-2][AX-12] parses hosts in the same way with and without a port in the setting", () => {
    const withoutPort = new AppHosts("*.apps.example.com", new URL("https://slipway.example.com"));
    expect(withoutPort.wildcard).toBe("*.apps.example.com");
    const name = { app: "8080", agent: "main", workspace: "dev", user: "ann" };
    expect(withoutPort.parseName("8080--main--dev--ann.apps.example.com:443")).toEqual(name);
    expect(withoutPort.parseTarget("https://8080--main--dev--ann.apps.example.com/x")?.name).toEqual(name);
    expect(withoutPort.parseTarget("https://8080--main--dev--ann.apps.example.com:8443/x")).toBeUndefined();
    expect(withoutPort.parseTarget("http://8080--main--dev--ann.apps.example.com/x")).toBeUndefined();
    const withPort = new AppHosts("*.apps.example.com:8443", new URL("https://slipway.example.com"));
    expect(withPort.parseTarget("https://8080--main--dev--ann.apps.example.com:8443/x")?.name).toEqual(name);
    expect(withPort.toOrigin("x")).toBe("https://x.apps.example.com:8443");
  });
});

describe("signing in to an app with TLS", () => {
  const clock = new ManualClock();

  test("[AX-13] sets a Secure cookie that no other host can set; the key expires after a minute", async () => {
    await using server = await startTestServer({
      clock,
      env: {
        SLIPWAY_WILDCARD_ACCESS_URL: `*.${SUFFIX}`,
        SLIPWAY_ACCESS_URL: "https://slipway.example.test",
        SLIPWAY_ALLOWED_HOSTS: "127.0.0.1",
      },
    });
    const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
    const host = `mine--dev--dev--ada.${SUFFIX}`;
    const requestKey = async (): Promise<string> => {
      const uri = new URLSearchParams({ redirect_uri: `https://${host}/` });
      const response = await fetch(new URL(`/api/v2/applications/auth-redirect?${uri}`, server.url), {
        redirect: "manual",
        headers: { "Service-Session-Token": admin.token ?? "" },
      });
      return new URL(response.headers.get("location") ?? "").search;
    };
    const exchange = async (search: string) =>
      fetch(new URL(`/${search}`, server.url), { redirect: "manual", headers: { host } });
    const signedIn = await exchange(await requestKey());
    expect(signedIn.headers.getSetCookie()).toEqual([
      expect.stringMatching(/^__Host-service_app_session=\S+; Path=\/; HttpOnly; SameSite=Lax; Max-Age=\d+; Secure$/),
    ]);
    const oldKey = await requestKey();
    clock.advance(60_000);
    expect((await exchange(oldKey)).status).toBe(400);
  });
});
