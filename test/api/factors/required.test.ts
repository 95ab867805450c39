// A second factor that the deployment or an administrator requires, and the reset of lost factors.
import { expect, test } from "bun:test";
import type { Factors } from "#schema/users/second-factor.ts";
import { Client } from "#src/client.ts";
import { runVerb } from "#test/cli/run-verb.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { ensureDatabase, usesPostgres } from "#test/support/postgres-server.ts";
import { ADMIN, startTestServer, tempDirectory } from "#test/support/server.ts";
import { fetchStatus, newPerson, PASSWORD } from "../users/people.ts";
import { awaitRejection, createEnrolledPerson, enrollApp, openWorld } from "./people.ts";

test("[FA-10] if everyone needs a second factor, users without one can only enroll one", async () => {
  await using world = await openWorld({ SLIPWAY_REQUIRE_SECOND_FACTOR: "everyone" });
  const { admin, clock } = world;
  const rejection = await awaitRejection(admin.get("/api/v2/workspaces"));
  expect(rejection).toMatchObject({ status: 403, fields: ["second_factor"] });
  for (const [method, path] of [
    ["GET", "/users"],
    ["POST", "/users"],
    ["POST", "/users/me/keys/tokens"],
    ["PUT", "/users/me/password"],
    ["GET", "/chats"],
    ["POST", "/users/me/factors/recovery-codes"],
  ] as const) {
    expect([path, await fetchStatus(admin, method, path, method === "GET" ? undefined : {})]).toEqual([path, 403]);
  }
  await expect(admin.socket("/api/v2/chats/watch")).rejects.toThrow();
  expect(await admin.get<Factors>("/api/v2/users/me/factors")).toMatchObject({ required: true, totp: null });
  expect(await fetchStatus(admin, "GET", "/users/me")).toBe(200);

  const { app } = await enrollApp(clock, admin);
  expect(await fetchStatus(admin, "GET", "/workspaces")).toBe(200);
  const { client } = await newPerson(admin, "ben");
  expect(await awaitRejection(client.get("/api/v2/workspaces"))).toMatchObject({ status: 403 });
  await enrollApp(clock, client);
  expect(await fetchStatus(client, "GET", "/workspaces")).toBe(200);
  // Without a factor, the user is restricted again.
  await admin.delete("/api/v2/users/me/factors/totp", { password: ADMIN.password, code: app.next() });
  expect(await fetchStatus(admin, "GET", "/workspaces")).toBe(403);
  expect(await fetchStatus(admin, "POST", "/users/logout")).toBe(200);
});

test("[FA-10] if administrators need a second factor, it applies to users with a role, not to members", async () => {
  await using world = await openWorld({ SLIPWAY_REQUIRE_SECOND_FACTOR: "administrators" });
  const { admin, clock } = world;
  expect(await fetchStatus(admin, "GET", "/workspaces")).toBe(403);
  await enrollApp(clock, admin);
  const member = await newPerson(admin, "ben");
  const auditor = await newPerson(admin, "eva", ["auditor"]);
  expect(await fetchStatus(member.client, "GET", "/workspaces")).toBe(200);
  expect(await fetchStatus(auditor.client, "GET", "/workspaces")).toBe(403);
  await admin.put("/api/v2/organizations/default/members/ben/roles", { roles: ["organization-auditor"] });
  expect(await fetchStatus(member.client, "GET", "/workspaces")).toBe(403);
});

test("[FA-11] an administrator's requirement for one user also blocks tokens and ends open connections", async () => {
  await using world = await openWorld();
  const { admin, clock } = world;
  const { client } = await newPerson(admin, "ben");
  const { key } = await client.post<{ key: string }>("/api/v2/users/me/keys/tokens", {});
  using socket = await client.socket("/api/v2/chats/watch");
  expect(await fetchStatus(client, "PUT", "/users/me/factors/required", { required: true })).toBe(403);
  expect(await fetchStatus(admin, "PUT", "/users/me/factors/required", { required: true })).toBe(400);
  const setRequired = (required: boolean) => admin.put<Factors>("/api/v2/users/ben/factors/required", { required });
  expect(await setRequired(true)).toMatchObject({ required: true, required_by_administrator: true });
  expect((await socket.closed).code).toBe(1008);
  for (const caller of [client, client.withToken(key)])
    expect(await fetchStatus(caller, "GET", "/workspaces")).toBe(403);
  await enrollApp(clock, client);
  for (const caller of [client, client.withToken(key)])
    expect(await fetchStatus(caller, "GET", "/workspaces")).toBe(200);
  expect(await setRequired(false)).toMatchObject({ required: false });
});

test("[FA-11] only an owner lifts the requirement for a user with roles", async () => {
  await using world = await openWorld();
  const { admin } = world;
  const userAdmin = await newPerson(admin, "boss", ["user-admin"]);
  await newPerson(admin, "eve", ["auditor"]);
  await newPerson(admin, "ben");
  await newPerson(admin, "kim");
  await admin.put("/api/v2/organizations/default/members/kim/roles", { roles: ["organization-admin"] });
  const setRequired = (client: Client, name: string, required: boolean) =>
    fetchStatus(client, "PUT", `/users/${name}/factors/required`, { required });
  for (const name of ["eve", "kim"]) {
    expect([name, await setRequired(userAdmin.client, name, true)]).toEqual([name, 200]);
    expect([name, await setRequired(userAdmin.client, name, false)]).toEqual([name, 403]);
    expect(await admin.get(`/api/v2/users/${name}/factors`)).toMatchObject({ required_by_administrator: true });
    expect([name, await setRequired(admin, name, false)]).toEqual([name, 200]);
  }
  for (const required of [true, false]) expect(await setRequired(userAdmin.client, "ben", required)).toBe(200);
});

test("[FA-11] an administrator who may set the password resets lost factors, after confirming their identity", async () => {
  await using world = await openWorld();
  const { admin, anonymous, clock } = world;
  const lockedOut = await createEnrolledPerson(world, "lost");
  const userAdmin = await newPerson(admin, "boss", ["user-admin"]);
  const eve = await createEnrolledPerson(world, "eve", ["auditor"]);
  expect(await fetchStatus(eve.client, "DELETE", "/users/lost/factors")).toBe(403);
  expect(await fetchStatus(lockedOut.client, "DELETE", "/users/me/factors")).toBe(403);
  expect(await fetchStatus(userAdmin.client, "DELETE", "/users/eve/factors")).toBe(403);
  clock.advance(15 * 60_000);
  const unconfirmed = await awaitRejection(userAdmin.client.delete("/api/v2/users/lost/factors"));
  expect(unconfirmed).toMatchObject({ status: 403, fields: ["confirmation"] });
  await userAdmin.client.post("/api/v2/users/me/confirm", { password: PASSWORD });
  await userAdmin.client.delete("/api/v2/users/lost/factors");
  expect(await fetchStatus(anonymous, "POST", "/users/login", { email: lockedOut.email, password: PASSWORD })).toBe(
    201,
  );
  expect(await fetchStatus(userAdmin.client, "DELETE", "/users/lost/factors")).toBe(409);
  type Entry = { action: string; additional_fields: object; user: { username: string } | null };
  const path = "/api/v2/audit?limit=1&q=resource_type:second_factor%20resource_target:lost";
  const [entry] = (await admin.get<{ audit_logs: Entry[] }>(path)).audit_logs;
  expect(entry).toMatchObject({
    action: "delete",
    additional_fields: { reset: "by another" },
    user: { username: "boss" },
  });
});

test("[FA-12] the command line resets second factors while no server runs", async () => {
  using directory = tempDirectory();
  const options = { directory: directory.path, clock: new ManualClock() };
  {
    await using server = await startTestServer(options);
    const anonymous = new Client(server.url);
    await enrollApp(options.clock, await anonymous.signIn(ADMIN.email, ADMIN.password));
    expect(await fetchStatus(anonymous, "POST", "/users/login", ADMIN)).toBe(401);
  }
  const resetCommand = ["offline", "users", "reset-factors", "admin", "--data-dir", directory.path];
  const database = usesPostgres ? ["--database-url", await ensureDatabase(directory.path)] : [];
  const { code, printed, errors } = await runVerb([...resetCommand, ...database]);
  expect([code, printed, errors]).toEqual([0, "admin can now sign in with only the password.\n", ""]);
  await using restarted = await startTestServer(options);
  const owner = await new Client(restarted.url).signIn(ADMIN.email, ADMIN.password);
  expect(await owner.get<Factors>("/api/v2/users/me/factors")).toMatchObject({ totp: null, recovery_codes_left: 0 });
});
