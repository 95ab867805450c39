// The messages for people who want a workspace on a server without templates.
import { expect, test } from "bun:test";
import { Client } from "#src/client.ts";
import { ADMIN } from "#test/support/server.ts";
import { openClientWorld } from "./client-world.ts";

test("[CV-6][TP-29] without templates, `create` explains how to get one, and `doctor` shows the engine's error", async () => {
  await using world = await openClientWorld({ env: { SLIPWAY_ADDRESS: "0.0.0.0:0" } });
  const url = `http://127.0.0.1:${world.server.url.port}`;
  const { token = "" } = await new Client(url).signIn(ADMIN.email, ADMIN.password);
  const env = { SLIPWAY_URL: url, SLIPWAY_TOKEN: token };
  const created = await world.run(["workspaces", "create", "dev"], { env });
  expect(created.code).toBe(1);
  expect(created.err).toMatch(/there are no templates yet.*docker_host.*slipway doctor.*slipway templates push FOLDER/);
  const SLIPWAY_DOCKER_HOST = "unix:///nowhere/docker.sock";
  const doctor = await world.run(["doctor"], { env: { SLIPWAY_DOCKER_HOST } });
  expect(doctor.out).toMatch(
    /docker.*Docker workspaces are not available: .*\/nowhere\/docker\.sock: there is no such socket/,
  );
});
