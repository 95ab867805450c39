// Apps without configuration: hosts below `apps.localhost` on one's own machine, and elsewhere a page that explains what is missing.
import { describe, expect, test } from "bun:test";
import { AppHosts, makeAppHosts } from "#domain/applications/names.ts";
import { forFile } from "#test/support/for-file.ts";
import { type Echo, startAppWorld } from "./app-world.ts";

const page = { accept: "text/html,application/xhtml+xml", "sec-fetch-dest": "document" };
const apps = (port: number) => [
  { slug: "mine", url: `http://localhost:${port}` },
  { slug: "open", url: `http://localhost:${port}`, share: "public" as const },
];
const world = await forFile(startAppWorld({ hasWildcard: false, apps }));
const port = world.server.url.port;
const APP = `mine--dev--dev--ada.apps.localhost:${port}`;
const session = { cookie: `service_session_token=${world.token}` };
const getAppHost = async (host: string): Promise<string> =>
  (
    (await (await world.get("/api/v2/applications/host", { token: world.token, headers: { host } })).json()) as {
      host: string;
    }
  ).host;
const parseLocation = (answer: Response): URL =>
  new URL(answer.headers.get("location") ?? "", "http://nowhere.invalid");
const parseCookie = (answer: Response): string => answer.headers.getSetCookie()[0]?.split(";")[0] ?? "";

describe("on the user's own machine", () => {
  test("[AX-21] apps and ports have hosts below apps.localhost, which pages, agents and programs get", async () => {
    expect(await getAppHost(`127.0.0.1:${port}`)).toBe(`*.apps.localhost:${port}`);
    const echo = (await (await world.get("/x?y", { token: world.token, headers: { host: APP } })).json()) as Echo;
    expect([echo.path, echo.headers.host]).toEqual(["/x?y", APP]);
    const byPort = `${world.app.port}--dev--dev--ada.apps.localhost:${port}`;
    expect((await world.get("/", { token: world.token, headers: { host: byPort } })).status).toBe(200);
    expect((await world.get("/", { token: world.token, headers: { host: `x.apps.localhost:${port}` } })).status).toBe(
      421,
    );
  });

  test("[AX-21] a page below the access URL redirects to the app's host and is signed in there; a program does not", async () => {
    const first = await world.get(world.path("mine", "/deep?a=1&&b=%20"), { headers: { ...page, ...session } });
    const appUrl = parseLocation(first);
    expect([first.status, appUrl.host, appUrl.pathname]).toEqual([307, APP, "/deep"]);
    const second = await world.get(`${appUrl.pathname}${appUrl.search}`, { headers: { ...page, host: APP } });
    expect([second.status, second.headers.get("location")]).toEqual([307, "/deep?a=1&&b=%20"]);
    const third = await world.get("/deep?a=1", { headers: { ...page, host: APP, cookie: parseCookie(second) } });
    expect(third.status).toBe(200);
    expect(third.headers.get("content-security-policy")).toBeNull();
    expect((await world.get(world.path("mine", "/deep"), { token: world.token })).status).toBe(200);
    const outsider = await world.get(world.path("open", "/x"), { headers: page });
    expect([outsider.status, parseLocation(outsider).host]).toEqual([307, APP.replace("mine", "open")]);
    expect(parseLocation(outsider).search).toBe("");
  });

  test("[AX-21] the session at localhost and at 127.0.0.1 is checked before a person must sign in", async () => {
    const first = parseLocation(await world.get("/deep?x=1", { headers: { ...page, host: APP } }));
    expect([first.origin, first.pathname]).toEqual([`http://localhost:${port}`, "/api/v2/applications/auth-redirect"]);
    const getUrl = (url: URL, headers: Record<string, string>) =>
      world.get(`${url.pathname}${url.search}`, { headers: { ...page, host: url.host, ...headers } });
    // After signing in there, it redirects back to the app with a key.
    expect(parseLocation(await getUrl(first, session)).host).toBe(APP);
    const second = parseLocation(await getUrl(first, {}));
    expect(second.host).toBe(`127.0.0.1:${port}`);
    expect(parseLocation(await getUrl(second, session)).host).toBe(APP);
    expect(parseLocation(await getUrl(second, {})).pathname).toBe("/login");
  });

  test("[AX-21] a forwarded port is the port of the hosts, and no other gets a key", async () => {
    expect(await getAppHost("localhost:9999")).toBe("*.apps.localhost:9999");
    const redirect = (target: string, host: string) =>
      world.get(`/api/v2/applications/auth-redirect?${new URLSearchParams({ redirect_uri: `http://${target}/` })}`, {
        token: world.token,
        headers: { host },
      });
    const withPort = (number: string): string => APP.replace(port, number);
    expect((await redirect(withPort("9999"), "localhost:9999")).status).toBe(307);
    expect((await redirect(withPort("9999"), `localhost:${port}`)).status).toBe(400);
    expect((await redirect(withPort(port), "localhost:9999")).status).toBe(400);
  });

  test("[AX-4] a page of another program on this machine writes to no app, whatever its name", async () => {
    const first = await world.get(world.path("mine"), { headers: { ...page, ...session } });
    const appUrl = parseLocation(first);
    const second = await world.get(`${appUrl.pathname}${appUrl.search}`, { headers: { ...page, host: APP } });
    const write = async (origin: string): Promise<number> =>
      (await world.get("/x", { method: "POST", headers: { host: APP, cookie: parseCookie(second), origin } })).status;
    expect(await write(`http://${APP}`)).toBe(200);
    expect(await write(`http://${world.app.port}--dev--dev--ada.apps.localhost:${port}`)).toBe(200);
    for (const foreign of [
      `http://other--dev--dev--ada.apps.localhost:${Number(port) + 1}`,
      `http://other--dev--dev--ada.apps.localhost`,
      `https://other--dev--dev--ada.apps.localhost:${port}`,
      `http://other--dev--dev--bob.apps.localhost:${port}`,
      `http://${world.app.port}--dev--tried--ada.apps.localhost:${port}`,
      `http://localhost:${port}`,
      `http://localhost:3000`,
    ]) {
      expect([foreign, await write(foreign)]).toEqual([foreign, 403]);
    }
    // Nor may an app write to the server's API.
    const api = await world.get("/api/v2/users/me/keys", {
      method: "POST",
      headers: { ...session, origin: `http://${APP}` },
    });
    expect(api.status).toBe(403);
  });
});

test("[AX-21] only a loopback access URL without TLS has such hosts, and only for requests that name the machine so", () => {
  const hosts = (access: string, host?: string): string =>
    makeAppHosts({ config: {}, accessUrl: new URL(access) }, host).wildcard;
  expect(hosts("http://localhost")).toBe("*.apps.localhost");
  expect(hosts("http://[::1]:7080")).toBe("*.apps.localhost:7080");
  expect(hosts("https://localhost:7080")).toBe("");
  expect(hosts("http://10.0.0.5:7080")).toBe("");
  expect(hosts("http://127.0.0.1:7080", "slipway.example.com")).toBe("");
  expect(hosts("http://127.0.0.1:7080", "host.docker.internal:7080")).toBe("");
  const set = { config: { wildcard_access_url: "*.apps.example.com" }, accessUrl: new URL("http://127.0.0.1:7080") };
  expect(makeAppHosts(set, "x").wildcard).toBe(new AppHosts("*.apps.example.com", set.accessUrl).wildcard);
});

describe("where apps have no hosts", () => {
  test("[AX-22] a person gets a page that says what is missing, and the app anyway on request", async () => {
    await using remote = await startAppWorld({
      hasWildcard: false,
      apps,
      env: { SLIPWAY_ACCESS_URL: "http://slipway.example.test", SLIPWAY_ALLOWED_HOSTS: "127.0.0.1" },
    });
    const cookie = `service_session_token=${remote.token}`;
    const getPage = (rest: string, headers: Record<string, string> = {}) =>
      remote.get(remote.path("mine", rest), { headers: { ...page, cookie, ...headers } });
    const requested = await getPage("/deep?a=1");
    const text = await requested.text();
    expect([requested.status, text]).toEqual([403, expect.stringContaining("This app needs its own host name")]);
    expect(text).toContain("wildcard_access_url");
    const href = /<a href="([^"]+)">Open anyway/.exec(text)?.[1]?.replaceAll("&amp;", "&") ?? "";
    const chosen = await remote.get(href, { headers: { ...page, cookie } });
    expect([chosen.status, chosen.headers.get("location")]).toEqual([307, remote.path("mine", "/deep?a=1")]);
    expect(chosen.headers.getSetCookie()).toEqual([
      `service_app_by_path=1; Path=/@ada/dev.dev/apps/mine/; HttpOnly; SameSite=Lax`,
    ]);
    const shown = await getPage("/deep?a=1", { cookie: `${cookie}; service_app_by_path=1; own=2` });
    const echo = (await shown.json()) as Echo;
    expect([echo.path, echo.headers.cookie]).toEqual(["/deep?a=1", "own=2"]);
    expect(shown.headers.get("content-security-policy")).toContain("sandbox");
    // Subresources, programs, and public apps are not affected.
    expect((await getPage("/x", { "sec-fetch-dest": "script" })).status).toBe(200);
    expect((await remote.get(remote.path("mine", "/x"), { token: remote.token })).status).toBe(200);
    expect((await remote.get(remote.path("open", "/x"), { headers: page })).status).toBe(200);
  });
});
