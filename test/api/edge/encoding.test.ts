// Assets for browsers: compressed in a supported encoding, with ETags and cache lifetimes.
import { expect, test } from "bun:test";
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from "node:zlib";
import { serverForFile } from "#test/support/for-file.ts";

const { server, admin } = await serverForFile();

/** Returns the raw response, without decompression. */
const get = (path: string, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(new URL(path, server.url), { headers, decompress: false });

const DECODERS: Record<string, (bytes: Uint8Array) => Uint8Array> = {
  br: brotliDecompressSync,
  gzip: gunzipSync,
  zstd: zstdDecompressSync,
};

const findScript = (html: string): string => html.match(/src="(\/assets\/main[^"]+)"/)?.[1] ?? "";

test.each(["/", "/swagger", "/swagger/ui.js", "/swagger/json", "/settings/tokens"])(
  "[WB-1] %s is sent in br, gzip and plain, each with its own ETag",
  async (path) => {
    const plain = await get(path, { "accept-encoding": "identity" });
    expect(plain.headers.get("content-encoding")).toBeNull();
    const body = await plain.bytes();
    const tags = [plain.headers.get("etag")];
    for (const [accepted, encoding] of [
      ["gzip", "gzip"],
      ["gzip, deflate, br, zstd", "br"],
      ["br;q=0.2, gzip;q=0.7", "gzip"],
      ["br;q=0, *;q=0.5", "gzip"],
    ] as const) {
      const response = await get(path, { "accept-encoding": accepted });
      expect(response.headers.get("content-encoding")).toBe(encoding);
      expect(response.headers.get("vary")).toContain("accept-encoding");
      const bytes = await response.bytes();
      expect(bytes.length).toBeLessThan(body.length);
      expect(Buffer.compare(DECODERS[encoding]?.(bytes) ?? bytes, body)).toBe(0);
      tags.push(response.headers.get("etag"));
      const cached = await get(path, { "accept-encoding": accepted, "if-none-match": tags.at(-1) ?? "" });
      expect(cached.status).toBe(304);
      expect((await cached.bytes()).length).toBe(0);
    }
    expect(new Set(tags).size).toBe(3);
    expect((await get(path, { "if-none-match": '"another"' })).status).toBe(200);
  },
);

test("[WB-3] [PG-1] clients cache a script forever and revalidate its page every time", async () => {
  const page = await get("/");
  expect(page.headers.get("cache-control")).toBe("no-cache");
  const script = await get(findScript(await page.text()));
  expect(script.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
  expect(script.headers.get("content-type")).toStartWith("text/javascript");
  expect((await get("/assets/main-00000000.js")).status).toBe(404);
});

test("[WB-4] the policy allows only the page's own inline script, by its hash", async () => {
  const policy = (await get("/")).headers.get("content-security-policy") ?? "";
  expect(policy).toContain("require-trusted-types-for 'script'");
  expect(policy).toEndWith("trusted-types slipway-worker");
  expect((await get("/cli-auth")).headers.get("content-security-policy")).toEndWith("trusted-types 'none'");
  expect(policy).toMatch(/script-src 'self' 'sha256-[\w+/=]+';/);
  expect(policy).toContain("style-src 'self';");
  expect(policy).not.toContain("unsafe");
});

test("[WB-2] compresses long JSON responses on request, but not short ones and streams", async () => {
  const authentication = { "Service-Session-Token": admin.token ?? "" };
  for (let i = 0; i < 40; i++) await admin.post("/api/v2/users/me/keys/tokens", { token_name: `token-${i}` });
  const path = "/api/v2/users/me/keys/tokens";
  const plain = await (await get(path, authentication)).bytes();
  for (const coding of ["zstd", "gzip", "br"]) {
    const response = await get(path, { ...authentication, "accept-encoding": coding });
    expect(response.headers.get("content-encoding")).toBe(coding);
    expect(response.headers.get("cache-control")).toBe("no-store");
    const bytes = await response.bytes();
    expect(bytes.length * 3).toBeLessThan(plain.length);
    expect(Buffer.compare(DECODERS[coding]?.(bytes) ?? bytes, plain)).toBe(0);
  }
  const short = await get("/api/v2/users/me", { ...authentication, "accept-encoding": "gzip" });
  expect(short.headers.get("content-encoding")).toBeNull();
  const abort = new AbortController();
  const stream = await fetch(new URL("/api/v2/workspaces/watch", server.url), {
    headers: { ...authentication, "accept-encoding": "br, gzip, zstd" },
    decompress: false,
    signal: abort.signal,
  });
  expect(stream.headers.get("content-encoding")).toBeNull();
  abort.abort();
});
