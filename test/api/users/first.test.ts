// The first minutes of a fresh install: creating its owner.
import { describe, expect, test } from "bun:test";
import type { Static } from "@sinclair/typebox";
import { listSettings } from "#db/settings.ts";
import type { AuditLogs } from "#schema/audit.ts";
import { Client } from "#src/client.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { getContext } from "#test/support/seed.ts";
import { startTestServer, type TestServer } from "#test/support/server.ts";
import { fetchStatus } from "./people.ts";

const WITHOUT_ADMIN = { SLIPWAY_ADMIN_EMAIL: "", SLIPWAY_ADMIN_USERNAME: "", SLIPWAY_ADMIN_PASSWORD: "" };
const ANN = { email: "ann@example.com", username: "ann", password: "a-long-enough-secret" };

const getSetupToken = async (server: TestServer): Promise<string> => {
  const link = await server.context?.setupUrl();
  return new URL(link ?? "").searchParams.get("token") ?? "";
};
// The process itself prints the link, so these tests need the server in this process.

describe("the setup link", () => {
  testInProcess("[ID-2] [AU-4] creates the owner once, and the audit log says so; then setup is closed", async () => {
    await using server = await startTestServer({ env: WITHOUT_ADMIN });
    const anonymous = new Client(server.url);
    expect(await fetchStatus(anonymous, "GET", "/users/first")).toBe(404);
    const setup_token = await getSetupToken(server);
    expect(setup_token).toHaveLength(43);

    const createFirstUser = (body: object) => anonymous.fetch("POST", "/api/v2/users/first", body);
    expect((await createFirstUser(ANN)).status).toBe(400);
    expect((await createFirstUser({ ...ANN, setup_token: "guess" })).status).toBe(403);
    expect((await createFirstUser({ ...ANN, setup_token, password: "short" })).status).toBe(400);
    expect((await createFirstUser({ ...ANN, setup_token, username: "login" })).status).toBe(400);
    const created = await createFirstUser({ ...ANN, setup_token });
    expect(created.status).toBe(201);
    const ids = (await created.json()) as { user_id: string; organization_id: string };

    const ann = await anonymous.signIn(ANN.email, ANN.password);
    expect(await ann.get<object>("/api/v2/users/me")).toMatchObject({
      id: ids.user_id,
      organization_ids: [ids.organization_id],
      roles: [{ name: "owner" }],
    });
    const { audit_logs } = await ann.get<Static<typeof AuditLogs>>(
      "/api/v2/audit?q=resource_type:user%20action:create&limit=10",
    );
    expect(audit_logs).toMatchObject([{ user: { username: "ann" }, additional_fields: { by: "the setup link" } }]);
    expect(await fetchStatus(anonymous, "GET", "/users/first")).toBe(200);
    expect((await createFirstUser({ ...ANN, email: "eve@example.com", username: "eve", setup_token })).status).toBe(
      409,
    );
    expect(await server.context?.setupUrl()).toBeUndefined();
  });

  testInProcess(
    "[ID-2] accepts the token in a header or the query, for clients that cannot send it in the body",
    async () => {
      for (const place of ["header", "query"] as const) {
        await using server = await startTestServer({ env: WITHOUT_ADMIN });
        const setup_token = await getSetupToken(server);
        const createFirstUser = (token: string) =>
          new Client(server.url).fetch(
            "POST",
            `/api/v2/users/first${place === "query" ? `?setup_token=${token}` : ""}`,
            { ...ANN, trial: false },
            place === "header" ? { headers: { "Service-Setup-Token": token } } : {},
          );
        expect((await createFirstUser("guess")).status).toBe(403);
        expect((await createFirstUser(setup_token)).status).toBe(201);
        expect((await createFirstUser(setup_token)).status).toBe(409);
      }
    },
  );

  testInProcess("[ID-2] creates exactly one owner for concurrent requests", async () => {
    await using server = await startTestServer({ env: WITHOUT_ADMIN });
    const setup_token = await getSetupToken(server);
    const anonymous = new Client(server.url);
    const statuses = await Promise.all(
      Array.from({ length: 8 }, (_, i) =>
        fetchStatus(anonymous, "POST", "/users/first", {
          ...ANN,
          setup_token,
          username: `ann${i}`,
          email: `ann${i}@example.com`,
        }),
      ),
    );
    expect(statuses.filter((status) => status === 201)).toHaveLength(1);
    expect(statuses.filter((status) => status === 409)).toHaveLength(7);
  });

  testInProcess("[ID-2] is valid for 30 minutes, alongside newer ones, up to the newest ten", async () => {
    const clock = new ManualClock();
    await using server = await startTestServer({ env: WITHOUT_ADMIN, clock });
    const anonymous = new Client(server.url);
    const createFirstUser = (setup_token: string, overrides = {}) =>
      fetchStatus(anonymous, "POST", "/users/first", { ...ANN, ...overrides, setup_token });
    const oldToken = await getSetupToken(server);
    clock.advance(60_000);
    const newToken = await getSetupToken(server);
    clock.advance(29 * 60_000);
    expect(await createFirstUser(oldToken)).toBe(403);
    // This request is valid except for the password.
    expect(await createFirstUser(newToken, { password: "short" })).toBe(400);
    for (let i = 0; i < 10; i++) {
      clock.advance(1000);
      await getSetupToken(server);
    }
    expect(await createFirstUser(newToken)).toBe(403);
    const listLinks = () => getContext(server).store.all(listSettings({ from: "setup_link/", to: "setup_link0" }));
    expect(await listLinks()).toHaveLength(10);
    expect(await createFirstUser(await getSetupToken(server))).toBe(201);
    expect(await listLinks()).toEqual([]);
  });
});

describe("the settings", () => {
  test("[ID-1] create the owner at the first start, after which setup is closed", async () => {
    await using server = await startTestServer();
    const anonymous = new Client(server.url);
    expect(await fetchStatus(anonymous, "GET", "/users/first")).toBe(200);
    expect(await fetchStatus(anonymous, "POST", "/users/first", { ...ANN, setup_token: "x" })).toBe(409);
  });
});
