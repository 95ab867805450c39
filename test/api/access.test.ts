// The access table: checks every action for every role as pure functions, and checks through the API that each caller gets its role.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Client } from "#src/client.ts";
import { ADMIN, startTestServer, type TestServer } from "#test/support/server.ts";
import { ACTIONS, PEOPLE, ROLE_NAMES } from "./access-table.ts";
import { fetchStatus, newPerson } from "./users/people.ts";

describe("the table", () => {
  test.each(ACTIONS)("[RO-1] %s", (_action, isAllowed, expected) => {
    const allowed = ROLE_NAMES.filter((name) => isAllowed(PEOPLE[name]));
    expect(allowed.sort()).toEqual([...new Set(expected)].sort());
  });
});

describe("through the API", () => {
  let server: TestServer;
  const clients = new Map<string, Client>();
  beforeAll(async () => {
    server = await startTestServer();
    const anonymous = new Client(server.url);
    const admin = await anonymous.signIn(ADMIN.email, ADMIN.password);
    await newPerson(admin, "target");
    clients.set("owner", admin);
    clients.set("anonymous", anonymous);
    clients.set("garbage", anonymous.withToken("not-a-token"));
    clients.set("wrong secret", anonymous.withToken(`${(admin.token as string).slice(0, 11)}${"x".repeat(22)}`));
    clients.set("agent token", anonymous.withToken(crypto.randomUUID()));
    for (const role of ["auditor", "user-admin", "template-admin"]) {
      clients.set(role, (await newPerson(admin, role, [role])).client);
    }
    clients.set("member", (await newPerson(admin, "member")).client);
    const revoked = await anonymous.signIn(ADMIN.email, ADMIN.password);
    await revoked.post("/api/v2/users/logout");
    clients.set("revoked", revoked);
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
  });

  const UNAUTHENTICATED = ["anonymous", "garbage", "wrong secret", "agent token", "revoked"];
  const COLUMNS = ["owner", "user-admin", "template-admin", "auditor", "member"];
  const INVALID_USER = { email: "x@example.com", username: "a--b" };
  const PROFILE = { username: "target" };
  // 400 means "allowed, but this body is invalid", so that nothing changes during the test.
  // biome-ignore format: a table
  const ROUTES: [string, string, unknown, number[]][] = [
    ["GET", "/users", undefined, [200, 200, 200, 200, 200]],
    ["POST", "/users", INVALID_USER, [400, 400, 400, 400, 400]],
    ["GET", "/users/me", undefined, [200, 200, 200, 200, 200]],
    ["GET", "/users/target", undefined, [200, 200, 200, 200, 404]],
    ["DELETE", "/users/prebuilds", undefined, [403, 403, 403, 403, 404]],
    ["PUT", "/users/target/profile", PROFILE, [200, 200, 403, 403, 404]],
    ["PUT", "/users/target/password", { password: "x" }, [400, 400, 403, 403, 404]],
    ["PUT", "/users/target/status/activate", undefined, [200, 200, 403, 403, 404]],
    ["PUT", "/users/target/status/sleep", undefined, [400, 400, 400, 400, 400]],
    ["GET", "/users/target/roles", undefined, [200, 200, 200, 200, 404]],
    ["PUT", "/users/target/roles", { roles: [] }, [200, 403, 403, 403, 404]],
    ["GET", "/users/target/organizations", undefined, [200, 200, 200, 200, 404]],
    ["POST", "/users/target/keys", undefined, [201, 403, 403, 403, 404]],
    ["GET", "/users/target/keys/tokens", undefined, [200, 403, 403, 403, 404]],
    ["POST", "/users/target/keys/tokens", {}, [201, 403, 403, 403, 404]],
    ["GET", "/users/target/keys/tokens/tokenconfig", undefined, [200, 403, 403, 403, 404]],
    ["GET", "/users/target/keys/tokens/none", undefined, [404, 403, 403, 403, 404]],
    ["GET", "/users/target/keys/0123456789", undefined, [404, 403, 403, 403, 404]],
    ["DELETE", "/users/target/keys/0123456789", undefined, [404, 403, 403, 403, 404]],
    ["PUT", "/users/target/keys/0123456789/expire", undefined, [404, 403, 403, 403, 404]],
    ["GET", "/users/roles", undefined, [200, 200, 200, 200, 200]],
    ["GET", "/organizations", undefined, [200, 200, 200, 200, 200]],
    ["POST", "/organizations", { name: "default" }, [400, 403, 403, 403, 403]],
    ["GET", "/organizations/default", undefined, [200, 200, 200, 200, 200]],
    ["PATCH", "/organizations/default", {}, [200, 403, 403, 403, 403]],
    ["DELETE", "/organizations/default", undefined, [400, 403, 403, 403, 403]],
    ["GET", "/organizations/default/members", undefined, [200, 200, 200, 200, 200]],
    ["GET", "/organizations/default/paginated-members", undefined, [200, 200, 200, 200, 200]],
    ["GET", "/organizations/default/members/roles", undefined, [200, 200, 200, 200, 200]],
    ["GET", "/organizations/default/members/target", undefined, [200, 200, 200, 200, 404]],
    ["POST", "/organizations/default/members/target", undefined, [409, 409, 403, 403, 403]],
    ["DELETE", "/organizations/default/members/me", undefined, [400, 400, 403, 403, 403]],
    ["PUT", "/organizations/default/members/target/roles", { roles: [] }, [200, 403, 403, 403, 404]],
    ["POST", "/users/logout?stay", "not json", [415, 415, 415, 415, 415]],
  ];

  test.each(ROUTES)("[RO-2] %s %s", async (method, path, body, expected) => {
    const statuses: number[] = [];
    for (const name of COLUMNS) statuses.push(await fetchStatus(clients.get(name) as Client, method, path, body));
    expect(statuses).toEqual(expected);
    for (const name of UNAUTHENTICATED) {
      expect([name, await fetchStatus(clients.get(name) as Client, method, path, body)]).toEqual([name, 401]);
    }
  });
});
