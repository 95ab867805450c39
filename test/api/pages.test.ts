// The pages as any client gets them: headers and assets, without inline code. test/browser tests their behavior.
import { describe, expect, test } from "bun:test";
import { forFile } from "#test/support/for-file.ts";
import { startTestServer } from "#test/support/server.ts";

const server = await forFile(startTestServer());

describe.each([
  "/",
  "/login",
  "/setup",
  "/settings/tokens",
  "/settings/external-auth",
  "/external-auth/x",
  "/external-auth/x/callback",
  "/cli-auth",
  "/open-app",
  "/oauth2/authorize",
])("the page %s", (path) => {
  test("[PG-1] forbids other origins, inline code except by its hash, framing and referrers", async () => {
    const response = await fetch(new URL(path, server.url));
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
    const policy = response.headers.get("content-security-policy") ?? "";
    expect(policy).toStartWith("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain("unsafe");
    expect(response.headers.get("x-content-type-options")).toBe("nosniff");
    expect(response.headers.get("referrer-policy")).toBe("no-referrer");
    // Cached, but revalidated each time: it contains no personal data.
    expect(response.headers.get("cache-control")).toBe("no-cache");
    const html = await response.text();
    for (const [, script = ""] of html.matchAll(/<script>(.*?)<\/script>/gs)) {
      expect(policy).toContain(`'sha256-${new Bun.CryptoHasher("sha256").update(script).digest("base64")}'`);
    }
    const htmlWithoutScripts = html.replace(/<script>.*?<\/script>/gs, "");
    expect(htmlWithoutScripts).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon[a-z]+=/i);
    expect(html).not.toMatch(/(src|href)="(https?:)?\/\//);
    expect(html).toContain("<html lang=");
  });

  test("[PG-1] loads its script and style from this server, under names that change with the content", async () => {
    const html = await (await fetch(new URL(path, server.url))).text();
    // The page names some assets twice: for preloading and for use.
    const assets = [...new Set([...html.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, asset = ""]) => asset))];
    const kinds = assets.map((asset) => asset.split(".").at(-1));
    expect(kinds.filter((kind) => kind === "css" || kind === "js").sort()).toEqual(["css", "js"]);
    for (const asset of assets) {
      const response = await fetch(new URL(asset, server.url));
      expect(response.status).toBe(200);
      // The images are icons of the installed app.
      expect(response.headers.get("content-type")).toMatch(/^(text\/(css|javascript); charset=utf-8|image\/.+)$/);
      expect(response.headers.get("cache-control")).toContain("immutable");
      expect((await response.text()).length).toBeGreaterThan(200);
    }
  });
});

test("[PG-1] returns 404 for other files", async () => {
  for (const path of [
    "/assets/none.js",
    "/assets/..%2fhome.html",
    "/assets/%2e%2e%2f%2e%2e%2fpackage.json",
    "/assets/",
  ]) {
    expect((await fetch(new URL(path, server.url))).status).toBe(404);
  }
});

test("[PG-6] an unknown path gives browsers an error page, and programs and API callers the generic body", async () => {
  const getPage = (path: string, headers: Record<string, string>) => fetch(new URL(path, server.url), { headers });
  const browserHeaders = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };
  const page = await getPage("/settings/nothing<b>", browserHeaders);
  expect(page.status).toBe(404);
  expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
  expect(page.headers.get("content-security-policy")).toStartWith("default-src 'none'");
  const html = await page.text();
  expect(html).toContain("<h1>Page not found</h1>");
  expect(html).not.toContain("nothing");
  const otherHost = await getPage("/", { ...browserHeaders, host: "slipway.example" });
  expect(otherHost.status).toBe(421);
  expect(await otherHost.text()).toContain("allowed_hosts");
  for (const [path, headers] of [
    ["/settings/nothing", {}],
    ["/api/v2/nothing", browserHeaders],
  ] as const) {
    const body = await getPage(path, headers);
    expect(body.status).toBe(404);
    expect(await body.json()).toEqual({ message: "Route not found." });
  }
});
