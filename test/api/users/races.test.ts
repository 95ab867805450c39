// Access that is revoked while a password is compared or a key is created must not exist afterwards.
import { expect, spyOn } from "bun:test";
import { Client } from "#src/client.ts";
import { serverForFile } from "#test/support/for-file.ts";
import { testInProcess as test } from "#test/support/in-process.ts";
import { getContext } from "#test/support/seed.ts";
import { fetchStatus, newPerson, PASSWORD } from "./people.ts";

const NEW_PASSWORD = "quite-another-secret";

const { server, admin } = await serverForFile();

/** Makes the next password comparison succeed, but only once `open` is called. */
const holdComparison = () => {
  const { passwords } = getContext(server).accounts;
  const compared = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  const spy = spyOn(passwords, "verify").mockImplementationOnce(async () => {
    compared.resolve();
    await gate.promise;
    return true;
  });
  return { compared: compared.promise, open: gate.resolve, [Symbol.dispose]: () => spy.mockRestore() };
};

test("[ID-7] a sign-in with the old password during a password change fails", async () => {
  await newPerson(admin, "slow");
  using heldComparison = holdComparison();
  const signIn = fetchStatus(new Client(server.url), "POST", "/users/login", {
    email: "slow@example.com",
    password: PASSWORD,
  });
  await heldComparison.compared;
  await admin.put("/api/v2/users/slow/password", { password: NEW_PASSWORD });
  heldComparison.open();
  expect(await signIn).toBe(401);
  await new Client(server.url).signIn("slow@example.com", NEW_PASSWORD);
});

test("[ID-10] a sign-in during a suspension leaves no session for later", async () => {
  const { user } = await newPerson(admin, "late");
  using heldComparison = holdComparison();
  const signIn = fetchStatus(new Client(server.url), "POST", "/users/login", {
    email: "late@example.com",
    password: PASSWORD,
  });
  await heldComparison.compared;
  await admin.put(`/api/v2/users/${user.id}/status/suspend`);
  heldComparison.open();
  expect(await signIn).toBe(401);
  await admin.put(`/api/v2/users/${user.id}/status/activate`);
  const lateClient = await new Client(server.url).signIn("late@example.com", PASSWORD);
  expect(await lateClient.get<unknown[]>("/api/v2/users/me/sessions")).toHaveLength(1);
});

test("[ID-7] rejects the later of two concurrent password changes", async () => {
  const { client } = await newPerson(admin, "both");
  using heldComparison = holdComparison();
  const change = fetchStatus(client, "PUT", "/users/me/password", {
    old_password: PASSWORD,
    password: "the-thief-knows-this",
  });
  await heldComparison.compared;
  await admin.put("/api/v2/users/both/password", { password: NEW_PASSWORD });
  heldComparison.open();
  expect(await change).toBe(409);
  await new Client(server.url).signIn("both@example.com", NEW_PASSWORD);
});

test("[ID-10] a key that is revoked while it creates another creates none", async () => {
  const { client, user } = await newPerson(admin, "rita");
  const { store } = getContext(server);
  const commit = store.commit.bind(store);
  using commitSpy = Object.assign(spyOn(store, "commit"), { [Symbol.dispose]: () => commitSpy.mockRestore() });
  let isRevoked = false;
  // Other writes happen in parallel, such as a key's last use.
  commitSpy.mockImplementation(async (batch) => {
    if (!isRevoked && batch.some(({ sql }) => /^insert into "api_keys"/.test(sql))) {
      isRevoked = true;
      await admin.put(`/api/v2/users/${user.id}/password`, { password: NEW_PASSWORD });
    }
    await commit(batch);
  });
  expect(await fetchStatus(client, "POST", "/users/me/keys/tokens", {})).toBe(409);
  expect(await admin.get<unknown[]>(`/api/v2/users/${user.id}/keys/tokens`)).toEqual([]);
});

test.each([
  ["of the site", "PUT", "/api/v2/users/NAME/roles"],
  ["of the organization", "PUT", "/api/v2/organizations/default/members/NAME/roles"],
])(
  "[ID-11] a role %s that is assigned during a password reset by a user-admin stops the reset",
  async (kind, method, path) => {
    const name = `rising-${kind.replaceAll(" ", "-")}`;
    const { client: userAdmin } = await newPerson(admin, `keeper-${name}`.slice(0, 32), ["user-admin"]);
    await newPerson(admin, name);
    const { passwords } = getContext(server).accounts;
    const hashing = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    const hash = passwords.hash.bind(passwords);
    using spy = spyOn(passwords, "hash").mockImplementationOnce(async (password) => {
      hashing.resolve();
      await gate.promise;
      return hash(password);
    });
    const reset = fetchStatus(userAdmin, "PUT", `/users/${name}/password`, { password: NEW_PASSWORD });
    await hashing.promise;
    expect(spy).toHaveBeenCalledTimes(1);
    const roles = [path.includes("organizations") ? "organization-admin" : "auditor"];
    const assignment = await admin.fetch(method, path.replace("NAME", name), { roles });
    expect(assignment.status).toBe(200);
    gate.resolve();
    expect(await reset).toBe(409);
    await new Client(server.url).signIn(`${name}@example.com`, PASSWORD);
  },
);
