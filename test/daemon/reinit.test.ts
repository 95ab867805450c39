// A daemon that waits for its workspace to be claimed.
import { expect, test } from "bun:test";
import { systemClock } from "#base/clock.ts";
import { awaitClaim } from "#src/daemon/connection/reinit.ts";

/** Starts a server that responds with these statuses in order and records its requests. */
const startServer = (...statuses: number[]) => {
  const requests: string[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: (request) => {
      const { pathname, search } = new URL(request.url);
      requests.push(`${pathname}${search} ${request.headers.get("service-session-token")}`);
      return Response.json({ message: "as scripted" }, { status: statuses.shift() ?? 500 });
    },
  });
  return {
    requests,
    url: new URL(`http://127.0.0.1:${server.port}/`),
    [Symbol.dispose]: () => void server.stop(true),
  };
};
const waitForClaim = (url: URL, signal = new AbortController().signal) =>
  awaitClaim({ url, token: "secret", clock: systemClock, random: () => 0, signal });

test("[PB-11] retries while the server is unavailable, until the workspace is claimed", async () => {
  using server = startServer(503, 401, 500, 200);
  expect(await waitForClaim(server.url)).toBe(true);
  expect(server.requests).toEqual(Array(4).fill("/api/v2/workspaceagents/me/reinit?wait=true secret"));
});

test("[PB-11] does not retry after a 409 or after it was stopped", async () => {
  using server = startServer(409);
  expect(await waitForClaim(server.url)).toBe(false);
  expect(server.requests.length).toBe(1);
  const controller = new AbortController();
  const result = waitForClaim(server.url, controller.signal);
  controller.abort();
  expect(await result).toBe(false);
});
