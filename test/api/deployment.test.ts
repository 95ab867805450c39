// The basic facts that clients query at startup.
import { expect, test } from "bun:test";
import { Client } from "#src/client.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";
import { fetchStatus } from "./users/people.ts";

test("[DP-1] clients get the server's appearance, URL and hostname suffix", async () => {
  await using server = await startTestServer();
  const anonymous = new Client(server.url);
  expect(await anonymous.get<object>("/api/v2/appearance")).toMatchObject({
    application_name: "Slipway",
    announcement_banners: [],
  });
  for (const path of ["/deployment/ssh", "/experiments", "/experiments/available", "/regions"]) {
    expect(await fetchStatus(anonymous, "GET", path)).toBe(401);
  }
  const admin = await anonymous.signIn(ADMIN.email, ADMIN.password);
  expect(await admin.get<object>("/api/v2/deployment/ssh")).toEqual({
    hostname_prefix: "slipway.",
    hostname_suffix: "coder",
    ssh_config_options: {},
  });
  expect(await admin.get<string[]>("/api/v2/experiments")).toEqual([]);
  const { deployment_id } = await admin.get<{ deployment_id: string }>("/api/v2/buildinfo");
  const { regions } = await admin.get<{ regions: object[] }>("/api/v2/regions");
  expect(regions).toMatchObject([{ id: deployment_id, healthy: true, path_app_url: server.url.origin }]);
});
