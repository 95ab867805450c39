// `slipway health`, as a container image, a script or another machine calls it.
import { expect, test } from "bun:test";
import { startTestServer } from "#test/support/server.ts";
import { runVerb } from "./run-verb.ts";

test("[OP-19] `health` queries a remote server, reports that it is not ready, and accepts no other settings", async () => {
  await using server = await startTestServer();
  const url = server.url.origin;
  expect(await runVerb(["health", "--url", url])).toMatchObject({ code: 0, printed: "ready\n" });
  expect(JSON.parse((await runVerb(["health", `--url=${url}`, "--json"])).printed)).toEqual({
    ready: true,
    url: `${url}/readyz`,
    detail: "ready",
  });
  await using notReadyServer = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => new Response("no", { status: 503 }),
  });
  const notReady = await runVerb(["health", "--url", notReadyServer.url.origin]);
  expect(notReady).toMatchObject({
    code: 1,
    printed: "",
    errors: `not ready: ${notReadyServer.url}readyz answered 503\n`,
  });
  const unreachable = await runVerb(["health", "--url", "http://127.0.0.1:1"]);
  const errors = "not ready: http://127.0.0.1:1/readyz does not answer (nothing listens there)\n";
  expect(unreachable).toMatchObject({ code: 1, errors });
  const unknown = await runVerb(["health", "--url", "http://nowhere.invalid"]);
  expect(unknown.errors).toMatch(/does not answer \(its name (leads nowhere|cannot be looked up now)\)/);
  for (const args of [["--url", "nowhere"], ["--url", url, "--data-dir", "x"], ["now"]]) {
    expect((await runVerb(["health", ...args])).code).toBe(2);
  }
});
