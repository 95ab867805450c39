// The list of users, new users, and operations on them.
import { describe, expect, test } from "bun:test";
import { systemClock } from "#base/clock.ts";
import type { User } from "#schema/users/user.ts";
import { ApiError, Client } from "#src/client.ts";
import { serverForFile } from "#test/support/for-file.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { getContext } from "#test/support/seed.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";
import { fetchStatus, newPerson, PASSWORD } from "./people.ts";

type List = { users: User[]; count: number };

const { admin } = await serverForFile();
const userAdmin = await newPerson(admin, "keeper", ["user-admin"]);
const auditor = await newPerson(admin, "Auditor", ["auditor"]);
const mia = await newPerson(admin, "mia");
const noah = await newPerson(admin, "noah");

const listUsers = (client: Client, query = "") => client.get<List>(`/api/v2/users${query}`);
const searchNames = async (client: Client, q: string): Promise<string[]> =>
  (await listUsers(client, `?q=${encodeURIComponent(q)}`)).users.map((user) => user.username);

const rename = (client: Client, username: string): Promise<number> =>
  fetchStatus(client, "PUT", "/users/me/profile", { username, name: "" });

test("[ID-34] reserves a former username for its user for 90 days; administrators can assign it", async () => {
  await using server = await startTestServer({ clock: systemClock });
  const owner = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  const [ada, eve, deletedUser] = [
    await newPerson(owner, "ada"),
    await newPerson(owner, "eve"),
    await newPerson(owner, "gone"),
  ];
  expect(await rename(ada.client, "ada-l")).toBe(200);
  expect(await rename(eve.client, "Ada")).toBe(409);
  expect([await rename(ada.client, "ada"), await rename(ada.client, "ada-l")]).toEqual([200, 200]);
  await owner.delete(`/api/v2/users/${deletedUser.user.id}`);
  expect(await rename(eve.client, "gone")).toBe(409);
  expect(await fetchStatus(owner, "PUT", `/users/${eve.user.id}/profile`, { username: "gone", name: "" })).toBe(200);
  // Simulates that 90 days have passed.
  await getContext(server).store.commit([
    { sql: "update former_usernames set until = until - ?", rows: [[90 * 86_400_000]] },
  ]);
  expect(await rename(eve.client, "ada")).toBe(200);
});

test("[ID-34] reserves only the last three former usernames of a person", async () => {
  const clock = new ManualClock();
  await using server = await startTestServer({ clock });
  const owner = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  const [collector, otherUser] = [await newPerson(owner, "collector"), await newPerson(owner, "other")];
  for (const name of ["one", "two", "three", "four", "five"]) {
    clock.advance(1_000);
    expect(await rename(collector.client, name)).toBe(200);
  }
  const statuses = [];
  for (const name of ["two", "three", "four", "one", "collector"]) statuses.push(await rename(otherUser.client, name));
  expect(statuses).toEqual([409, 409, 409, 200, 200]);
});

describe("the list", () => {
  test("[ID-13] is sorted by username, ignoring case, without built-in accounts", async () => {
    const { users, count } = await listUsers(admin);
    expect(users.map((user) => user.username)).toEqual(["admin", "Auditor", "keeper", "mia", "noah"]);
    expect(count).toBe(5);
    expect(users[0]?.organization_ids).toHaveLength(1);
    expect(JSON.stringify(users)).not.toContain("argon2");
  });

  test("[ID-13] is paged by offset and by cursor, and counts all matches", async () => {
    const page = await listUsers(admin, "?limit=2&offset=1");
    expect(page.users.map((user) => user.username)).toEqual(["Auditor", "keeper"]);
    expect(page.count).toBe(5);
    const nextPage = await listUsers(admin, `?limit=2&after_id=${page.users[1]?.id}`);
    expect(nextPage.users.map((user) => user.username)).toEqual(["mia", "noah"]);
    expect((await listUsers(admin, "?limit=0")).users).toHaveLength(5);
    for (const invalidQuery of [
      "?limit=-1",
      "?limit=x",
      "?offset=-1",
      "?after_id=7",
      `?after_id=${crypto.randomUUID()}`,
    ]) {
      expect(await fetchStatus(admin, "GET", `/users${invalidQuery}`)).toBe(400);
    }
  });

  test.each<[string, string[]]>([
    ["mi", ["admin", "mia"]],
    ["EXAMPLE.com noah", []],
    ["noah@example", ["noah"]],
    ["role:auditor", ["Auditor"]],
    ["role:owner,user-admin", ["admin", "keeper"]],
    ["role:member o", ["admin", "Auditor", "keeper", "mia", "noah"]],
    ["status:active role:auditor", ["Auditor"]],
    ["status:suspended", []],
    ["login_type:none", []],
    ["login_type:password mia", ["mia"]],
    ["created_after:2000-01-01T00:00:00Z mia", ["mia"]],
    ['created_before:"2000-01-01T00:00:00Z"', []],
    ["last_seen_before:2999-01-01T00:00:00Z mia", ["mia"]],
    ["last_seen_after:2999-01-01T00:00:00Z", []],
    ["%", []],
    ["_", []],
    ["'; drop table users; --", []],
  ])("[ID-13] q %s finds %j", async (q, names) => {
    expect(await searchNames(admin, q)).toEqual(names);
  });

  test.each(["role:king", "status:sleepy", "colour:red", "created_after:tuesday", "status:", '"open'])(
    "[ID-13] rejects q %s with 400, and names the key",
    async (q) => {
      const error = await listUsers(admin, `?q=${encodeURIComponent(q)}`).catch((error: ApiError) => error);
      expect(error).toBeInstanceOf(ApiError);
      expect((error as ApiError).status).toBe(400);
      expect((error as ApiError).body.message).toBe("Invalid user search query.");
      expect((error as ApiError).body.validations).not.toBeEmpty();
    },
  );

  test("[ID-11] a member sees only themselves; user admins see all", async () => {
    expect(await searchNames(mia.client, "")).toEqual(["mia"]);
    expect((await listUsers(mia.client)).count).toBe(1);
    expect(await searchNames(userAdmin.client, "")).toHaveLength(5);
    expect(await searchNames(auditor.client, "")).toHaveLength(5);
    expect(await fetchStatus(mia.client, "GET", "/users/noah")).toBe(404);
    expect(await fetchStatus(mia.client, "GET", `/users/${noah.user.id}`)).toBe(404);
    expect(await fetchStatus(mia.client, "GET", "/users/unknown")).toBe(404);
    expect(await fetchStatus(auditor.client, "GET", "/users/NOAH")).toBe(200);
    expect(await fetchStatus(admin, "GET", "/users/noah@example.com")).toBe(404);
  });
});

describe("a new user", () => {
  const newUser = { email: "new@example.com", username: "new-one", password: PASSWORD };

  test.each([
    [{ ...newUser, username: "a--b" }],
    [{ ...newUser, username: "-a" }],
    [{ ...newUser, username: "x".repeat(33) }],
    [{ ...newUser, username: "" }],
    [{ ...newUser, username: "Me" }],
    [{ ...newUser, email: "nowhere" }],
    [{ ...newUser, password: "short" }],
    [{ ...newUser, password: undefined }],
    [{ ...newUser, login_type: "none" }],
    [{ ...newUser, login_type: "github" }],
    [{ ...newUser, roles: ["king"] }],
    [{ ...newUser, organization_ids: [crypto.randomUUID()] }],
    [{ ...newUser, organization_ids: ["7"] }],
    [{ ...newUser, name: "n".repeat(129) }],
    [{ username: "new-one" }],
  ])("[ID-14] %j is rejected and not created", async (body) => {
    expect(await fetchStatus(admin, "POST", "/users", body)).toBe(400);
    expect((await listUsers(admin)).count).toBe(5);
  });

  test("[ID-14] is created only once if several requests race with one name or one address", async () => {
    const [byName, byAddress] = await Promise.all([
      Promise.all(
        [1, 2, 3, 4].map((i) =>
          fetchStatus(admin, "POST", "/users", {
            ...newUser,
            username: i % 2 ? "twin" : "TWIN",
            email: `twin${i}@example.com`,
          }),
        ),
      ),
      Promise.all(
        [1, 2, 3, 4].map((i) =>
          fetchStatus(admin, "POST", "/users", {
            ...newUser,
            username: `same${i}`,
            email: i % 2 ? "s@x.org" : "S@X.org",
          }),
        ),
      ),
    ]);
    expect(byName.sort()).toEqual([201, 409, 409, 409]);
    expect(byAddress.sort()).toEqual([201, 409, 409, 409]);
    const error = (await admin.post("/api/v2/users", { ...newUser, username: "MIA" }).catch((e) => e)) as ApiError;
    expect(error.body.validations).toEqual([
      { field: "username", detail: "This value is already in use and must be unique." },
    ]);
    for (const name of ["twin", "same1", "same2", "same3", "same4"])
      await fetchStatus(admin, "DELETE", `/users/${name}`);
    expect((await listUsers(admin)).count).toBe(5);
  });

  test("[ID-11] can be created by owners and user-admins; only owners assign site roles", async () => {
    expect(await fetchStatus(mia.client, "POST", "/users", newUser)).toBe(403);
    expect(await fetchStatus(auditor.client, "POST", "/users", newUser)).toBe(403);
    expect(await fetchStatus(userAdmin.client, "POST", "/users", { ...newUser, roles: ["auditor"] })).toBe(403);
    expect(await fetchStatus(userAdmin.client, "POST", "/users", newUser)).toBe(201);
    expect(await fetchStatus(userAdmin.client, "DELETE", "/users/new-one")).toBe(200);
  });
});

describe("one user", () => {
  test("[ID-14] can rename themselves, but not to a taken or reserved name", async () => {
    const putUsername = (username: string) =>
      fetchStatus(mia.client, "PUT", "/users/me/profile", { username, name: "Mia M." });
    expect(await putUsername("noah")).toBe(409);
    expect(await putUsername("first")).toBe(400);
    expect(await putUsername("MIA")).toBe(200);
    expect((await mia.client.get<User>("/api/v2/users/me")).username).toBe("MIA");
    expect(await putUsername("mia")).toBe(200);
    expect(await fetchStatus(mia.client, "PUT", "/users/noah/profile", { username: "n" })).toBe(404);
    expect(await fetchStatus(auditor.client, "PUT", "/users/noah/profile", { username: "n" })).toBe(403);
  });

  test("[ID-11] a user-admin cannot change owners, or the passwords of users with roles", async () => {
    for (const [method, path, body] of [
      ["PUT", "/users/admin/status/suspend", undefined],
      ["DELETE", "/users/admin", undefined],
      ["PUT", "/users/admin/profile", { username: "boss" }],
      ["PUT", "/users/admin/password", { password: "taken-over-now" }],
      ["PUT", "/users/Auditor/password", { password: "taken-over-now" }],
      ["PUT", "/users/noah/roles", { roles: ["owner"] }],
      ["PUT", "/users/keeper/roles", { roles: ["owner"] }],
    ] as const) {
      expect([path, await fetchStatus(userAdmin.client, method, path, body)]).toEqual([path, 403]);
    }
    expect(await fetchStatus(userAdmin.client, "PUT", "/users/noah/password", { password: PASSWORD })).toBe(204);
    noah.client = await admin.withToken(undefined).signIn("noah@example.com", PASSWORD);
  });

  test("[ID-11] users cannot suspend, delete or promote themselves, and owners cannot be suspended", async () => {
    expect(await fetchStatus(userAdmin.client, "PUT", "/users/me/status/suspend")).toBe(400);
    expect(await fetchStatus(admin, "DELETE", "/users/me")).toBe(403);
    expect(await fetchStatus(admin, "PUT", "/users/me/roles", { roles: [] })).toBe(400);
    const { user } = await newPerson(admin, "second", ["owner"]);
    expect(await fetchStatus(admin, "PUT", `/users/${user.id}/status/suspend`)).toBe(400);
    expect(await fetchStatus(admin, "DELETE", `/users/${user.id}`)).toBe(200);
  });

  test("[ID-11] two owners who concurrently remove each other's role do not both succeed", async () => {
    const { client: second } = await newPerson(admin, "rival", ["owner"]);
    const statuses = await Promise.all([
      fetchStatus(admin, "PUT", "/users/rival/roles", { roles: [] }),
      fetchStatus(second, "PUT", "/users/admin/roles", { roles: [] }),
    ]);
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    const owners = await searchNames(statuses[0] === 200 ? admin : second, "role:owner");
    expect(owners).toHaveLength(1);
    if (statuses[0] !== 200) await second.put("/api/v2/users/admin/roles", { roles: ["owner"] });
    await fetchStatus(admin, "DELETE", "/users/rival");
  });

  test("[ID-12] with a new role can use it from the next request on", async () => {
    expect(await fetchStatus(noah.client, "GET", "/users/mia")).toBe(404);
    await admin.put("/api/v2/users/noah/roles", { roles: ["auditor", "auditor", "member"] });
    expect(await admin.get<object>("/api/v2/users/noah/roles")).toMatchObject({ roles: ["auditor"] });
    expect(await fetchStatus(noah.client, "GET", "/users/mia")).toBe(200);
    await admin.put("/api/v2/users/noah/roles", { roles: [] });
    expect(await fetchStatus(noah.client, "GET", "/users/mia")).toBe(404);
    expect(await fetchStatus(admin, "PUT", "/users/noah/roles", { roles: ["king"] })).toBe(400);
  });

  test("[ID-12] who is deleted has no valid keys, is not found, and frees their name", async () => {
    const { client, user } = await newPerson(admin, "leaver");
    expect(await fetchStatus(admin, "DELETE", "/users/leaver")).toBe(200);
    expect(await fetchStatus(client, "GET", "/users/me")).toBe(401);
    expect(await fetchStatus(admin, "GET", `/users/${user.id}`)).toBe(404);
    expect(await fetchStatus(admin, "DELETE", "/users/leaver")).toBe(404);
    const namesake = await newPerson(admin, "leaver");
    expect(namesake.user.id).not.toBe(user.id);
    await fetchStatus(admin, "DELETE", "/users/leaver");
  });

  test("[ID-11] the account of prebuilt workspaces can be neither changed nor used", async () => {
    const path = "/users/prebuilds";
    expect(await admin.get<User>(`/api/v2${path}`)).toMatchObject({
      id: "c42fdf75-3097-471c-8c33-fb52454d81c0",
      login_type: "none",
    });
    expect(await fetchStatus(admin, "DELETE", path)).toBe(403);
    expect(await fetchStatus(admin, "PUT", `${path}/profile`, { username: "p" })).toBe(403);
    expect(await fetchStatus(admin, "PUT", `${path}/roles`, { roles: ["owner"] })).toBe(403);
    expect(await fetchStatus(admin, "POST", `${path}/keys`)).toBe(403);
    expect(await fetchStatus(admin, "POST", `${path}/keys/tokens`, {})).toBe(403);
    expect(await fetchStatus(admin, "PUT", `${path}/password`, { password: PASSWORD })).toBe(400);
  });

  test("[ID-15] lists the user's organizations", async () => {
    const ownOrganizations = await mia.client.get<{ name: string }[]>("/api/v2/users/me/organizations");
    expect(ownOrganizations.map((organization) => organization.name)).toEqual(["default"]);
    expect(await fetchStatus(mia.client, "GET", "/users/me/organizations/default")).toBe(200);
    expect(await fetchStatus(mia.client, "GET", "/users/me/organizations/other")).toBe(404);
  });
});

test("[ID-24] a service account has no email address, cannot sign in, and uses tokens from an owner", async () => {
  const createUser = (body: object) => admin.fetch("POST", "/api/v2/users", body);
  const created = await createUser({ username: "deployer", service_account: true });
  expect(created.status).toBe(201);
  const bot = (await created.json()) as User;
  expect(bot).toMatchObject({ email: "", login_type: "none", is_service_account: true, status: "dormant" });
  expect((await createUser({ username: "deployer2", service_account: true })).status).toBe(201);
  expect((await createUser({ username: "deployer3", login_type: "none", email: "" })).status).toBe(201);
  for (const invalidUser of [
    { username: "wrong", service_account: true, email: "bot@example.com" },
    { username: "wrong", service_account: true, password: PASSWORD },
    { username: "wrong", service_account: true, login_type: "password", password: PASSWORD },
    { username: "wrong", password: PASSWORD },
    { username: "wrong", password: PASSWORD, email: "" },
  ]) {
    expect((await createUser(invalidUser)).status).toBe(400);
  }
  const { users } = await admin.get<{ users: User[] }>("/api/v2/users?q=login_type:none");
  expect(users.map(({ username }) => username)).toEqual(expect.arrayContaining(["deployer", "deployer2", "deployer3"]));
  const login = (email: string) =>
    fetchStatus(admin.withToken(undefined), "POST", "/users/login", { email, password: "" });
  expect(await login("")).toBe(401);
  expect(await login("deployer")).toBe(401);
  expect(await fetchStatus(admin, "PUT", "/users/deployer/password", { password: PASSWORD })).toBe(400);
  const { key } = await admin.post<{ key: string }>("/api/v2/users/deployer/keys/tokens", {
    scopes: ["workspace:read"],
  });
  const program = admin.withToken(key);
  expect(await program.get<User>("/api/v2/users/me")).toMatchObject({ username: "deployer" });
  expect(await fetchStatus(program, "GET", "/workspaces")).toBe(200);
  expect(await fetchStatus(program, "GET", "/users")).toBe(403);
  await admin.put("/api/v2/users/deployer/status/suspend");
  expect(await fetchStatus(program, "GET", "/workspaces")).toBe(401);
});
