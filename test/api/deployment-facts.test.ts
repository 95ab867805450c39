// Queries of clients about a deployment before they offer a feature.
import { expect, test } from "bun:test";
import type { DeploymentConfig } from "#schema/deployment/deployment-config.ts";
import type { DeploymentStats } from "#schema/deployment/stats.ts";
import { Client } from "#src/client.ts";
import { seedUser } from "#test/support/seed.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";
import { awaitBuild, createWorkspace, seedTemplate } from "#test/support/workspaces.ts";
import { fetchStatus } from "./users/people.ts";

test("[DP-2] checks permissions by the same rules as every route", async () => {
  await using server = await startTestServer();
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  const { template_id, organization_id } = await seedTemplate(server);
  const ada = await seedUser(server, { username: "ada", organization_id });
  const bob = await seedUser(server, { username: "bob", organization_id });
  const adasWorkspace = await createWorkspace(admin.withToken(ada.token), template_id, "dev");
  await awaitBuild(admin.withToken(ada.token), adasWorkspace.id);

  const checkAccess = (client: Client, object: object, action: string): Promise<boolean | undefined> =>
    client
      .post<Record<string, boolean>>("/api/v2/authcheck", { checks: { check: { object, action } } })
      .then(({ check }) => check);
  const [asAda, asBob] = [admin.withToken(ada.token), admin.withToken(bob.token)];
  const workspace = { resource_type: "workspace", resource_id: adasWorkspace.id };
  expect(await checkAccess(asAda, workspace, "delete")).toBe(true);
  expect(await checkAccess(asBob, workspace, "read")).toBe(false);
  expect(await checkAccess(admin, workspace, "update")).toBe(true);
  // Another user's workspace and a missing one give the same response, whatever the request claims.
  const missingWorkspace = { ...workspace, resource_id: organization_id, owner_id: "me", organization_id };
  expect(await checkAccess(asBob, missingWorkspace, "read")).toBe(false);
  expect(await checkAccess(asBob, { ...missingWorkspace, resource_id: adasWorkspace.id }, "read")).toBe(false);
  expect(await checkAccess(asBob, { ...missingWorkspace, resource_id: "%" }, "read")).toBe(false);
  await asAda.patch(`/api/v2/workspaces/${adasWorkspace.id}/acl`, { user_roles: { [bob.user_id]: "use" } });
  expect(await checkAccess(asBob, workspace, "ssh")).toBe(true);
  expect(await checkAccess(asBob, workspace, "update")).toBe(false);

  expect(await checkAccess(asAda, { resource_type: "template", resource_id: template_id }, "use")).toBe(true);
  expect(await checkAccess(asAda, { resource_type: "template", organization_id }, "create")).toBe(false);
  expect(await checkAccess(asAda, { resource_type: "workspace", owner_id: "me", any_org: true }, "create")).toBe(true);
  expect(await checkAccess(asAda, { resource_type: "deployment_config" }, "read")).toBe(false);
  expect(await checkAccess(admin, { resource_type: "deployment_config" }, "read")).toBe(true);
  for (const type of ["license", "constructor", "__proto__", ""]) {
    expect(await checkAccess(admin, { resource_type: type }, "read")).toBe(false);
  }
  const { key } = await asAda.post<{ key: string }>("/api/v2/users/me/keys/tokens", { scopes: ["workspace:read"] });
  expect(await checkAccess(admin.withToken(key), workspace, "read")).toBe(true);
  expect(await checkAccess(admin.withToken(key), workspace, "delete")).toBe(false);
  const checks = Object.fromEntries(
    Array.from({ length: 201 }, (_, i) => [`c${i}`, { object: workspace, action: "read" }]),
  );
  expect(await fetchStatus(asAda, "POST", "/authcheck", { checks })).toBe(400);
  for (const name of ["\r\nX-A: b", "a\u0000", "a\u2028b", "x".repeat(201)]) {
    const oddChecks = { [name]: { object: workspace, action: "read" } };
    expect([name, await fetchStatus(asAda, "POST", "/authcheck", { checks: oddChecks })]).toEqual([name, 400]);
  }
});

test("[DP-3] shows the source of each setting, and hides secrets", async () => {
  await using server = await startTestServer({
    env: {
      SLIPWAY_LOG_LEVEL: "warn",
      SLIPWAY_HOOK_URL: "https://hooks.invalid/x",
      SLIPWAY_HOOK_SECRET: "canary-canary-canary-canary-canary",
    },
  });
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  const text = await (await admin.fetch("GET", "/api/v2/deployment/config")).text();
  const { options, config } = JSON.parse(text) as DeploymentConfig;
  const findOption = (name: string) => options.find((option) => option.name === name);
  expect(findOption("log_level")).toMatchObject({
    value_source: "env",
    value_origin: "SLIPWAY_LOG_LEVEL",
    flag: "--log-level",
  });
  expect(findOption("shutdown_timeout")).toMatchObject({ value_source: "default", hidden: false });
  expect(findOption("admin_password")).toMatchObject({ hidden: true, value: "(hidden)" });
  expect(config.data_dir).toStartWith(server.directory);
  for (const secret of ["canary-canary", ADMIN.password]) expect(text).not.toContain(secret);
  const member = await seedMember(server);
  expect(await fetchStatus(member, "GET", "/deployment/config")).toBe(403);
});

test("[DP-4] counts workspaces by state", async () => {
  await using server = await startTestServer();
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  const { template_id } = await seedTemplate(server);
  for (const name of ["one", "two"]) await awaitBuild(admin, (await createWorkspace(admin, template_id, name)).id);
  const stats = await admin.get<DeploymentStats>("/api/v2/deployment/stats");
  expect(stats.workspaces).toMatchObject({ running: 2, stopped: 0, failed: 0, connection_latency_ms: { P50: -1 } });
  expect(Date.parse(stats.next_update_at)).toBeGreaterThan(Date.parse(stats.collected_at));
});

test("[DP-8] requires no license, and contacts no server for updates", async () => {
  await using server = await startTestServer();
  const anonymous = new Client(server.url);
  const admin = await anonymous.signIn(ADMIN.email, ADMIN.password);
  expect(await admin.get<unknown[]>("/api/v2/licenses")).toEqual([]);
  const { features, has_license } = await admin.get<{ features: Record<string, object>; has_license: boolean }>(
    "/api/v2/entitlements",
  );
  expect(features.audit_log).toEqual({ entitlement: "entitled", enabled: true });
  expect(features.scim).toEqual({ entitlement: "not_entitled", enabled: false });
  expect(has_license).toBe(false);
  const { version } = await anonymous.get<{ version: string }>("/api/v2/buildinfo");
  const updateCheck = await anonymous.get<{ current: boolean; version: string }>("/api/v2/updatecheck");
  expect(updateCheck.current).toBe(true);
  expect(version).toContain(updateCheck.version);
});

test("[DP-9] returns 404 with the generic body to everyone for endpoints that are out of scope", async () => {
  await using server = await startTestServer();
  const anonymous = new Client(server.url);
  const admin = await anonymous.signIn(ADMIN.email, ADMIN.password);
  const unsupportedEndpoints = [
    ["GET", "/api/v2/organizations/default/settings/idpsync/groups"],
    ["PATCH", "/api/v2/organizations/default/settings/idpsync/roles"],
    ["GET", "/api/v2/settings/idpsync/organization"],
    ["GET", "/api/v2/settings/idpsync/available-fields"],
    ["POST", "/api/v2/licenses/refresh-entitlements"],
    ["DELETE", "/api/v2/licenses/1"],
    ["GET", "/api/v2/workspaceproxies"],
    ["POST", "/api/v2/workspaceproxies"],
    ["GET", "/api/v2/workspaceproxies/me/coordinate"],
    ["GET", "/scim/v2/Users"],
    ["POST", "/scim/v2/Users"],
  ] as const;
  for (const client of [anonymous, admin]) {
    for (const [method, path] of unsupportedEndpoints) {
      const response = await client.fetch(method, path, method === "GET" || method === "DELETE" ? undefined : {});
      expect([path, response.status, response.headers.get("content-type")]).toEqual([
        ...[path, 404, "application/json; charset=utf-8"],
      ]);
      expect(Object.keys((await response.json()) as object)).toEqual(["message"]);
    }
  }
  // The list of licenses exists, but nothing can be added to it.
  expect(await fetchStatus(admin, "POST", "/licenses", { license: "x" })).toBe(405);
});

const seedMember = async (server: Parameters<typeof seedUser>[0]): Promise<Client> =>
  new Client(server.url, (await seedUser(server, { username: "mia" })).token);
