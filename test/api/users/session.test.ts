// Signing in and out, as a person with a password does it.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { User } from "#schema/user.ts";
import { Client } from "#src/client.ts";
import { ADMIN, startTestServer, type TestServer } from "#test/support/server.ts";

let server: TestServer;
let anybody: Client;
beforeAll(async () => {
  server = await startTestServer();
  anybody = new Client(server.url);
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

describe("signing in", () => {
  test("[ID-1] the first user of the settings signs in and is the owner", async () => {
    const admin = await anybody.signIn(ADMIN.email, ADMIN.password);
    const me = await admin.get<User>("/api/v2/users/me");
    expect(me).toMatchObject({ username: ADMIN.username, email: ADMIN.email, status: "active" });
    expect(me.roles.map((role) => role.name)).toEqual(["owner"]);
    expect(me.organization_ids).toHaveLength(1);
    expect(await admin.get<{ id: string }>("/api/v2/organizations/default")).toMatchObject({
      id: me.organization_ids[0] as string,
      name: "default",
    });
  });
});
