// `slipway health`, as called from an image, a script or remotely.
import { expect, test } from "bun:test";
import { startTestServer } from "#test/support/server.ts";
import { runVerb } from "./run-verb.ts";

test("[OP-19] health queries a remote server, reports when it is not ready, and accepts no other settings", async () => {
  await using server = await startTestServer();
  const url = server.url.origin;
  expect(await runVerb(["health", "--url", url])).toMatchObject({ code: 0, printed: "ready\n" });
  expect(JSON.parse((await runVerb(["health", `--url=${url}`, "--json"])).printed)).toEqual({
    ready: true,
    url: `${url}/readyz`,
    detail: "ready",
  });
  await using other = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("no", { status: 503 }) });
  const busy = await runVerb(["health", "--url", other.url.origin]);
  expect(busy).toMatchObject({ code: 1, printed: "", errors: `not ready: ${other.url}readyz answered 503\n` });
  const away = await runVerb(["health", "--url", "http://127.0.0.1:1"]);
  const unreachable = "not ready: http://127.0.0.1:1/readyz does not answer (nothing listens there)\n";
  expect(away).toMatchObject({ code: 1, errors: unreachable });
  const unknown = await runVerb(["health", "--url", "http://nowhere.invalid"]);
  expect(unknown.errors).toMatch(/does not answer \(its name (leads nowhere|cannot be looked up now)\)/);
  for (const wrong of [["--url", "nowhere"], ["--url", url, "--data-dir", "x"], ["now"]]) {
    expect((await runVerb(["health", ...wrong])).code).toBe(2);
  }
});
