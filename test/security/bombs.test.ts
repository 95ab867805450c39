// Request heads that are small to send and might be expensive to parse: they are rejected or answered immediately, without delaying other
// requests. Bodies like that are in test/api/edge/cost.test.ts, archives in test/provisioners/archive.test.ts, frames in
// test/api/edge/sockets.test.ts.
import { expect, test } from "bun:test";
import { Client } from "#src/client.ts";
import { call, formatHead } from "#test/api/edge/raw-http.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";

/** Generous for a busy machine. Parsing such a head without limits would take much longer. */
const MAX_RESPONSE_MS = 5_000;

const repeat = (count: number, toText: (i: number) => string, separator = ""): string =>
  Array.from({ length: count }, (_, i) => toText(i)).join(separator);
const numberedHeaders = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`X-${i}`, "a"]));
const week = "start_time=2025-01-06T00:00:00Z&end_time=2025-01-13T00:00:00Z";

// Name, path, headers, and the status of the response.
const BOMBS: [string, string, Record<string, string>, number][] = [
  ["5,000 headers", "users/me", numberedHeaders(5_000), 431],
  ["250 headers", "users/me", numberedHeaders(250), 431],
  ["a header of 15 KB", "users/me", { "X-Long": "x".repeat(15_000) }, 200],
  ["a header of 100 KB", "users/me", { "X-Long": "x".repeat(100_000) }, 431],
  ["15,000 empty cookies", "users/me", { Cookie: ";".repeat(15_000) }, 200],
  ["3,000 cookies", "users/me", { Cookie: repeat(3_000, (i) => `c${i}=1`, "; ") }, 431],
  ["a chain of 1,800 proxies", "users/me", { "X-Forwarded-For": "1.1.1.1,".repeat(1_800) }, 200],
  ["a path of 1 MB", `users/${"a".repeat(1_000_000)}`, {}, 431],
  ["a query of 1 MB", `users/me?${"a".repeat(1_000_000)}`, {}, 431],
  ["7,000 parameters", `users?${"a&".repeat(7_000)}`, {}, 200],
  ["one parameter 1,500 times", `users?${"limit=1&".repeat(1_500)}`, {}, 200],
  ["14,000 opening brackets in a search", `workspaces?q=${"(".repeat(14_000)}`, {}, 400],
  ["3,000 terms in a search", `workspaces?q=${"a:b+".repeat(3_000)}`, {}, 400],
  ["4,500 quotes in a search", `workspaces?q=${"%22".repeat(4_500)}`, {}, 400],
  ["1,500 operators in a search of chats", `chats?q=${"a*+NEAR(".repeat(1_500)}`, {}, 400],
  ["5,000 escapes in a path", `users/${"%25".repeat(5_000)}`, {}, 404],
  ["400 ids", `insights/user-activity?${week}&template_ids=${repeat(400, () => crypto.randomUUID(), ",")}`, {}, 404],
];

test("[HT-22] oversized heads are rejected or answered immediately, with an explanation, and the server continues", async () => {
  await using server = await startTestServer();
  const { token } = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  for (const [name, path, headers, status] of BOMBS) {
    const startedAt = performance.now();
    const request = formatHead("GET", `/api/v2/${path}`, { "Service-Session-Token": token as string, ...headers });
    const response = await call(server.url, request);
    expect([name, response?.status]).toEqual([name, status]);
    if (status === 400 || status === 404) expect(JSON.parse(response?.text as string)).toHaveProperty("message");
    expect((await call(server.url, formatHead("GET", "/healthz")))?.status).toBe(200);
    expect(performance.now() - startedAt).toBeLessThan(MAX_RESPONSE_MS);
  }
});
