// Revocation while a password is compared or a key is created: afterwards, the revoked access must be gone.
import { expect, spyOn } from "bun:test";
import { Client } from "#src/client.ts";
import { serverForFile } from "#test/support/for-file.ts";
import { testInside as test } from "#test/support/inside.ts";
import { getContext } from "#test/support/seed.ts";
import { fetchStatus, newPerson, PASSWORD } from "./people.ts";

const FRESH = "quite-another-secret";

const { server, admin } = await serverForFile();

/** The next password comparison succeeds, but its result arrives only when the gate opens. */
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
  using held = holdComparison();
  const signIn = fetchStatus(new Client(server.url), "POST", "/users/login", {
    email: "slow@example.com",
    password: PASSWORD,
  });
  await held.compared;
  await admin.put("/api/v2/users/slow/password", { password: FRESH });
  held.open();
  expect(await signIn).toBe(401);
  await new Client(server.url).signIn("slow@example.com", FRESH);
});

test("[ID-10] a sign-in during a suspension leaves no session for later", async () => {
  const { user } = await newPerson(admin, "late");
  using held = holdComparison();
  const signIn = fetchStatus(new Client(server.url), "POST", "/users/login", {
    email: "late@example.com",
    password: PASSWORD,
  });
  await held.compared;
  await admin.put(`/api/v2/users/${user.id}/status/suspend`);
  held.open();
  expect(await signIn).toBe(401);
  await admin.put(`/api/v2/users/${user.id}/status/activate`);
  const lateClient = await new Client(server.url).signIn("late@example.com", PASSWORD);
  expect(await lateClient.get<unknown[]>("/api/v2/users/me/sessions")).toHaveLength(1);
});

test("[ID-7] of two concurrent password changes the later one is refused, and the first one applies", async () => {
  const { client } = await newPerson(admin, "both");
  using held = holdComparison();
  const change = fetchStatus(client, "PUT", "/users/me/password", {
    old_password: PASSWORD,
    password: "the-thief-knows-this",
  });
  await held.compared;
  await admin.put("/api/v2/users/both/password", { password: FRESH });
  held.open();
  expect(await change).toBe(409);
  await new Client(server.url).signIn("both@example.com", FRESH);
});

test("[ID-10] a key that is revoked while it creates another leaves none behind", async () => {
  const { client, user } = await newPerson(admin, "rita");
  const { store } = getContext(server);
  const commit = store.commit.bind(store);
  using held = Object.assign(spyOn(store, "commit"), { [Symbol.dispose]: () => held.mockRestore() });
  let isHeld = false;
  // Other writes happen in parallel, such as a key's last use.
  held.mockImplementation(async (batch) => {
    if (!isHeld && batch.some(({ sql }) => /^insert into "api_keys"/.test(sql))) {
      isHeld = true;
      await admin.put(`/api/v2/users/${user.id}/password`, { password: FRESH });
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
  "[ID-11] a role %s that is given while a user-admin's new password is hashed stops it",
  async (kind, method, path) => {
    const name = `rising-${kind.replaceAll(" ", "-")}`;
    const { client: keeper } = await newPerson(admin, `keeper-${name}`.slice(0, 32), ["user-admin"]);
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
    const reset = fetchStatus(keeper, "PUT", `/users/${name}/password`, { password: FRESH });
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
