// Apps without a configured wildcard host: hosts below `apps.localhost` on the user's machine, and elsewhere a page with the reason.
import { describe, expect, test } from "bun:test";
import { AppHosts, makeAppHosts } from "#domain/applications/names.ts";
import { forFile } from "#test/support/for-file.ts";
import { type Echo, startAppWorld } from "./app-world.ts";

const pageHeaders = { accept: "text/html,application/xhtml+xml", "sec-fetch-dest": "document" };
const apps = (port: number) => [
  { slug: "mine", url: `http://localhost:${port}` },
  { slug: "open", url: `http://localhost:${port}`, share: "public" as const },
];
const world = await forFile(startAppWorld({ hasWildcard: false, apps }));
const port = world.server.url.port;
const APP = `mine--dev--dev--ada.apps.localhost:${port}`;
const sessionCookie = { cookie: `service_session_token=${world.token}` };
const getAppHost = async (host: string): Promise<string> =>
  (
    (await (await world.get("/api/v2/applications/host", { token: world.token, headers: { host } })).json()) as {
      host: string;
    }
  ).host;
const parseLocation = (response: Response): URL =>
  new URL(response.headers.get("location") ?? "", "http://nowhere.invalid");
const parseCookie = (response: Response): string => response.headers.getSetCookie()[0]?.split(";")[0] ?? "";

describe("on the user's own machine", () => {
  test("[AX-21] apps and ports have hosts below apps.localhost, which pages, agents and programs get", async () => {
    expect(await getAppHost(`127.0.0.1:${port}`)).toBe(`*.apps.localhost:${port}`);
    const echo = (await (await world.get("/x?y", { token: world.token, headers: { host: APP } })).json()) as Echo;
    expect([echo.path, echo.headers.host]).toEqual(["/x?y", APP]);
    const portHost = `${world.app.port}--dev--dev--ada.apps.localhost:${port}`;
    expect((await world.get("/", { token: world.token, headers: { host: portHost } })).status).toBe(200);
    expect((await world.get("/", { token: world.token, headers: { host: `x.apps.localhost:${port}` } })).status).toBe(
      421,
    );
  });

  test("[AX-21] a page below the access URL redirects to the app's host and signs in there; a program is not redirected", async () => {
    const first = await world.get(world.path("mine", "/deep?a=1&&b=%20"), {
      headers: { ...pageHeaders, ...sessionCookie },
    });
    const appUrl = parseLocation(first);
    expect([first.status, appUrl.host, appUrl.pathname]).toEqual([307, APP, "/deep"]);
    const second = await world.get(`${appUrl.pathname}${appUrl.search}`, { headers: { ...pageHeaders, host: APP } });
    expect([second.status, second.headers.get("location")]).toEqual([307, "/deep?a=1&&b=%20"]);
    const third = await world.get("/deep?a=1", { headers: { ...pageHeaders, host: APP, cookie: parseCookie(second) } });
    expect(third.status).toBe(200);
    expect(third.headers.get("content-security-policy")).toBeNull();
    expect((await world.get(world.path("mine", "/deep"), { token: world.token })).status).toBe(200);
    const anonymous = await world.get(world.path("open", "/x"), { headers: pageHeaders });
    expect([anonymous.status, parseLocation(anonymous).host]).toEqual([307, APP.replace("mine", "open")]);
    expect(parseLocation(anonymous).search).toBe("");
  });

  test("[AX-21] before a person must sign in, the server looks for a session at localhost and at 127.0.0.1", async () => {
    const localhostUrl = parseLocation(await world.get("/deep?x=1", { headers: { ...pageHeaders, host: APP } }));
    expect([localhostUrl.origin, localhostUrl.pathname]).toEqual([
      `http://localhost:${port}`,
      "/api/v2/applications/auth-redirect",
    ]);
    const openUrl = (url: URL, headers: Record<string, string>) =>
      world.get(`${url.pathname}${url.search}`, { headers: { ...pageHeaders, host: url.host, ...headers } });
    // With a session, it redirects back to the app with a key.
    expect(parseLocation(await openUrl(localhostUrl, sessionCookie)).host).toBe(APP);
    const loopbackUrl = parseLocation(await openUrl(localhostUrl, {}));
    expect(loopbackUrl.host).toBe(`127.0.0.1:${port}`);
    expect(parseLocation(await openUrl(loopbackUrl, sessionCookie)).host).toBe(APP);
    expect(parseLocation(await openUrl(loopbackUrl, {})).pathname).toBe("/login");
  });

  test("[AX-21] app hosts have the port of the request, and no other port gets a key", async () => {
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

  test("[AX-4] pages of other programs on this machine cannot write to an app, whatever their origin", async () => {
    const first = await world.get(world.path("mine"), { headers: { ...pageHeaders, ...sessionCookie } });
    const appUrl = parseLocation(first);
    const second = await world.get(`${appUrl.pathname}${appUrl.search}`, { headers: { ...pageHeaders, host: APP } });
    const writeFrom = async (origin: string): Promise<number> =>
      (await world.get("/x", { method: "POST", headers: { host: APP, cookie: parseCookie(second), origin } })).status;
    expect(await writeFrom(`http://${APP}`)).toBe(200);
    expect(await writeFrom(`http://${world.app.port}--dev--dev--ada.apps.localhost:${port}`)).toBe(200);
    for (const foreignOrigin of [
      `http://other--dev--dev--ada.apps.localhost:${Number(port) + 1}`,
      `http://other--dev--dev--ada.apps.localhost`,
      `https://other--dev--dev--ada.apps.localhost:${port}`,
      `http://other--dev--dev--bob.apps.localhost:${port}`,
      `http://${world.app.port}--dev--tried--ada.apps.localhost:${port}`,
      `http://localhost:${port}`,
      `http://localhost:3000`,
    ]) {
      expect([foreignOrigin, await writeFrom(foreignOrigin)]).toEqual([foreignOrigin, 403]);
    }
    // An app cannot write to the server's API either.
    const api = await world.get("/api/v2/users/me/keys", {
      method: "POST",
      headers: { ...sessionCookie, origin: `http://${APP}` },
    });
    expect(api.status).toBe(403);
  });
});

test("[AX-21] only a loopback access URL without TLS has these hosts, and only for requests to a loopback name", () => {
  const getWildcard = (accessUrl: string, host?: string): string =>
    makeAppHosts({ config: {}, accessUrl: new URL(accessUrl) }, host).wildcard;
  expect(getWildcard("http://localhost")).toBe("*.apps.localhost");
  expect(getWildcard("http://[::1]:7080")).toBe("*.apps.localhost:7080");
  expect(getWildcard("https://localhost:7080")).toBe("");
  expect(getWildcard("http://10.0.0.5:7080")).toBe("");
  expect(getWildcard("http://127.0.0.1:7080", "slipway.example.com")).toBe("");
  expect(getWildcard("http://127.0.0.1:7080", "host.docker.internal:7080")).toBe("");
  const settings = {
    config: { wildcard_access_url: "*.apps.example.com" },
    accessUrl: new URL("http://127.0.0.1:7080"),
  };
  expect(makeAppHosts(settings, "x").wildcard).toBe(new AppHosts("*.apps.example.com", settings.accessUrl).wildcard);
});

describe("on a server without hosts for apps", () => {
  test("[AX-22] a person gets a page that explains the missing setting, and can open the app anyway", async () => {
    await using remote = await startAppWorld({
      hasWildcard: false,
      apps,
      env: { SLIPWAY_ACCESS_URL: "http://slipway.example.test", SLIPWAY_ALLOWED_HOSTS: "127.0.0.1" },
    });
    const cookie = `service_session_token=${remote.token}`;
    const getPage = (suffix: string, headers: Record<string, string> = {}) =>
      remote.get(remote.path("mine", suffix), { headers: { ...pageHeaders, cookie, ...headers } });
    const explanation = await getPage("/deep?a=1");
    const html = await explanation.text();
    expect([explanation.status, html]).toEqual([403, expect.stringContaining("This app needs its own host name")]);
    expect(html).toContain("wildcard_access_url");
    const href = /<a href="([^"]+)">Open anyway/.exec(html)?.[1]?.replaceAll("&amp;", "&") ?? "";
    const confirmation = await remote.get(href, { headers: { ...pageHeaders, cookie } });
    expect([confirmation.status, confirmation.headers.get("location")]).toEqual([
      307,
      remote.path("mine", "/deep?a=1"),
    ]);
    expect(confirmation.headers.getSetCookie()).toEqual([
      `service_app_by_path=1; Path=/@ada/dev.dev/apps/mine/; HttpOnly; SameSite=Lax`,
    ]);
    const appResponse = await getPage("/deep?a=1", { cookie: `${cookie}; service_app_by_path=1; own=2` });
    const echo = (await appResponse.json()) as Echo;
    expect([echo.path, echo.headers.cookie]).toEqual(["/deep?a=1", "own=2"]);
    expect(appResponse.headers.get("content-security-policy")).toContain("sandbox");
    // Subresources, programs, and public apps are not affected.
    expect((await getPage("/x", { "sec-fetch-dest": "script" })).status).toBe(200);
    expect((await remote.get(remote.path("mine", "/x"), { token: remote.token })).status).toBe(200);
    expect((await remote.get(remote.path("open", "/x"), { headers: pageHeaders })).status).toBe(200);
  });
});
