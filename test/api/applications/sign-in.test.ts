// Signing in to an app on its own host, and the redirects that are rejected (facts/platform 8.4).
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
const authRedirect = (
  redirect_uri: string,
  options: { token?: string | undefined; headers?: Record<string, string> } = {},
) => world.get(`/api/v2/applications/auth-redirect?${new URLSearchParams({ redirect_uri })}`, options);
/** Returns where the server redirects the caller, as path and query of the app's host. */
const getAppRedirect = async (app: string, path = "/", token: string | undefined = world.token): Promise<string> => {
  const answer = await authRedirect(toAppUrl(app, path), { token });
  expect(answer.status).toBe(307);
  const url = new URL(answer.headers.get("location") ?? "");
  expect(url.host).toBe(new URL(toAppUrl(app)).host);
  return url.pathname + url.search;
};
const parseCookie = (response: Response): string => response.headers.getSetCookie()[0]?.split(";")[0] ?? "";

describe("signing in to an app", () => {
  test("[AX-13] redirects from the app through the server back to the app, with a cookie for this host alone", async () => {
    const first = await world.at("mine", "/deep?x=1", { headers: browserHeaders });
    const server = new URL(first.headers.get("location") ?? "");
    const session = { cookie: `service_session_token=${world.token}`, ...browserHeaders };
    const second = await world.get(server.pathname + server.search, { headers: session });
    const back = new URL(second.headers.get("location") ?? "");
    expect([second.status, back.host, back.pathname]).toEqual([307, new URL(toAppUrl("mine")).host, "/deep"]);
    expect(second.headers.get("referrer-policy")).toBe("no-referrer");
    const third = await world.at("mine", back.pathname + back.search, { headers: browserHeaders });
    expect([third.status, third.headers.get("location")]).toEqual([307, "/deep?x=1"]);
    expect(third.headers.getSetCookie()).toEqual([
      expect.stringMatching(/^service_app_session=\S+; Path=\/; HttpOnly; SameSite=Lax; Max-Age=\d+$/),
    ]);
    const cookie = parseCookie(third);
    const fourth = await world.at("mine", "/deep?x=1", { headers: { ...browserHeaders, cookie: `${cookie}; own=1` } });
    const echo = (await fourth.json()) as Echo;
    expect([echo.path, echo.headers.cookie]).toEqual(["/deep?x=1", "own=1"]);
    expect((await world.at("other", "/", { headers: { cookie } })).status).toBe(401);
    const write = async (origin: string): Promise<number> =>
      (await world.at("mine", "/", { method: "POST", headers: { cookie, origin } })).status;
    const sibling = new URL(toAppUrl("other")).origin;
    expect(await write(sibling)).toBe(200);
    // Another workspace of the owner may run programs of other people.
    expect(await write(sibling.replace("--dev--ada", "--tried--ada"))).toBe(403);
    expect((await world.get(world.path("mine"), { headers: { cookie } })).status).toBe(401);
    expect((await world.get("/api/v2/users/me", { headers: { cookie } })).status).toBe(401);
  });

  test("[AX-26] pages of other workspaces' apps load no script, image or data of the app with the cookie", async () => {
    const cookie = parseCookie(await world.at("mine", await getAppRedirect("mine")));
    const siblingPage = toAppUrl("other", "/page");
    const foreignPage = siblingPage.replace("--dev--ada", "--tried--ada");
    const load = (from: string | undefined, headers: Record<string, string>, path = "/main.js") =>
      world.at("mine", path, { headers: { cookie, ...(from === undefined ? {} : { referer: from }), ...headers } });
    const script = { "sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "script" };
    const statuses = async (from: string | undefined, headers = script) => (await load(from, headers)).status;
    expect(await statuses(foreignPage)).toBe(403);
    // A page can hide where it is from.
    expect(await statuses(undefined)).toBe(403);
    expect(await statuses("https://evil.example/", { ...script, "sec-fetch-site": "cross-site" })).toBe(403);
    const fetched = { "sec-fetch-site": "same-site", "sec-fetch-mode": "cors", "sec-fetch-dest": "empty" };
    expect((await load(undefined, { ...fetched, origin: new URL(foreignPage).origin })).status).toBe(403);
    expect((await load(undefined, { ...fetched, origin: new URL(siblingPage).origin })).status).toBe(200);
    // Any page may link to the app or show it in a frame. Programs send no such headers and have access too.
    const link = { "sec-fetch-site": "same-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe" };
    expect(await statuses(foreignPage, link)).toBe(200);
    expect((await load(foreignPage, {})).status).toBe(200);
    const policyOf = async (from: string, headers: Record<string, string>) => {
      const { status, headers: got } = await load(from, headers);
      const names = ["cross-origin-resource-policy", "cache-control", "vary"];
      return [status, ...names.map((name) => got.get(name))];
    };
    // Response headers keep other workspaces' pages from loading it from the browser's cache, which sends no request.
    const sameOrigin = { ...script, "sec-fetch-site": "same-origin" };
    expect(await policyOf(toAppUrl("mine"), sameOrigin)).toEqual([
      200,
      "same-origin",
      "private",
      "Cookie, Sec-Fetch-Site",
    ]);
    expect(await policyOf(siblingPage, script)).toEqual([200, "same-site", "no-store", "Cookie, Sec-Fetch-Site"]);
  });

  test("[AX-26] parts of an app below the access URL, with the session, are loaded only by pages of that origin", async () => {
    const cookie = `service_session_token=${world.token}`;
    const load = (app: string, site: string) =>
      world.get(world.path(app, "/main.js"), {
        headers: { cookie, "sec-fetch-site": site, "sec-fetch-mode": "no-cors", referer: toAppUrl("mine") },
      });
    expect((await load("plain", "same-site")).status).toBe(403);
    expect((await load("plain", "same-origin")).headers.get("cross-origin-resource-policy")).toBe("same-origin");
    const open = await load("open", "same-site");
    expect([open.status, open.headers.get("cross-origin-resource-policy")]).toEqual([200, null]);
  });

  test("[AX-13] accepts a key once, on its own host, unaltered, and not the cookie of the server's host", async () => {
    const path = await getAppRedirect("mine");
    expect((await world.at("other", path)).status).toBe(400);
    expect((await world.at("mine", `${path.slice(0, -2)}xx`)).status).toBe(400);
    // Only one of several concurrent requests succeeds.
    const responses = await Promise.all(Array.from({ length: 8 }, () => world.at("mine", path)));
    expect(responses.map(({ status }) => status).sort()).toEqual([307, 400, 400, 400, 400, 400, 400, 400]);
    const again = await world.at("mine", path, { headers: browserHeaders });
    expect([again.status, again.headers.get("location")]).toEqual([400, null]);
    expect(await again.text()).toContain("Link already used");
    const wrong = await world.at("mine", "/", { headers: { cookie: `service_session_token=${world.token}` } });
    expect(wrong.status).toBe(401);
  });

  test("[AX-13] an app's cookie and its unused key end with the session that issued them", async () => {
    const admin = await new Client(world.server.url).signIn(ADMIN.email, ADMIN.password);
    const cookie = parseCookie(await world.at("mine", await getAppRedirect("mine", "/", admin.token)));
    expect((await world.at("mine", "/", { headers: { cookie } })).status).toBe(200);
    const unused = await getAppRedirect("mine", "/", admin.token);
    await admin.post("/api/v2/users/logout");
    expect((await world.at("mine", "/", { headers: { cookie } })).status).toBe(401);
    expect((await world.at("mine", unused)).status).toBe(400);
  });

  test("[AX-13] redirects a person without a session to the sign-in page first; a program gets 401", async () => {
    const answer = await authRedirect(toAppUrl("mine"), { headers: browserHeaders });
    const requested = `/api/v2/applications/auth-redirect?${new URLSearchParams({ redirect_uri: toAppUrl("mine") })}`;
    const expected = `/login?${new URLSearchParams({ redirect: requested })}`;
    expect([answer.status, answer.headers.get("location")]).toEqual([307, expected]);
    expect((await authRedirect(toAppUrl("mine"))).status).toBe(401);
  });

  test("[AX-12] never sends a key to anything but an app's host", async () => {
    const host = new URL(toAppUrl("mine")).host;
    const problems = [
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
    for (const uri of problems) {
      const answer = await authRedirect(uri, { token: world.token });
      expect([uri, answer.status, answer.headers.get("location")]).toEqual([uri, 400, null]);
    }
    const mixed = await authRedirect(`HTTP://${host.toUpperCase()}/A`, { token: world.token });
    expect(new URL(mixed.headers.get("location") ?? "").host).toBe(host);
    for (const query of ["", "?redirect_uri="]) {
      const home = await world.get(`/api/v2/applications/auth-redirect${query}`, { token: world.token });
      expect([home.status, home.headers.get("location")]).toEqual([307, world.server.url.href]);
    }
  });

  test("[AX-11] returns the wildcard host, and shows names of apps below it; both are empty without the setting", async () => {
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
    await using bare = await startTestServer({
      env: { SLIPWAY_ACCESS_URL: "http://slipway.example.test", SLIPWAY_ALLOWED_HOSTS: "127.0.0.1" },
    });
    const admin = await new Client(bare.url).signIn(ADMIN.email, ADMIN.password);
    expect(await admin.get("/api/v2/applications/host")).toMatchObject({ host: "" });
    const uri = new URLSearchParams({ redirect_uri: toAppUrl("mine") });
    expect((await admin.fetch("GET", `/api/v2/applications/auth-redirect?${uri}`)).status).toBe(400);
    expect((await fetch(new URL("/", bare.url), { headers: { host: world.host("mine") } })).status).toBe(421);
  });

  test("[AX-2][AX-12] parses names and hosts the same way with and without a port in the setting", () => {
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

describe("with TLS and over time", () => {
  const clock = new ManualClock();

  test("[AX-13] the cookie is Secure and has a name no other host can set; the key expires after a minute", async () => {
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
      const answer = await fetch(new URL(`/api/v2/applications/auth-redirect?${uri}`, server.url), {
        redirect: "manual",
        headers: { "Service-Session-Token": admin.token ?? "" },
      });
      return new URL(answer.headers.get("location") ?? "").search;
    };
    const exchange = async (search: string) =>
      fetch(new URL(`/${search}`, server.url), { redirect: "manual", headers: { host } });
    const good = await exchange(await requestKey());
    expect(good.headers.getSetCookie()).toEqual([
      expect.stringMatching(/^__Host-service_app_session=\S+; Path=\/; HttpOnly; SameSite=Lax; Max-Age=\d+; Secure$/),
    ]);
    const old = await requestKey();
    clock.advance(60_000);
    expect((await exchange(old)).status).toBe(400);
  });
});
