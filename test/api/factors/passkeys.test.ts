// Passkeys: registering them, signing in with them, and responses that the server must reject.
import { expect, test } from "bun:test";
import type { Invited } from "#schema/users/invitation.ts";
import type { Passkey, PasskeyChallenge } from "#schema/users/passkey.ts";
import type { Factors, LoginRefused } from "#schema/users/second-factor.ts";
import { toRelyingParty } from "#src/authentication/webauthn.ts";
import type { Client } from "#src/client.ts";
import { forFile } from "#test/support/for-file.ts";
import { fetchStatus, newPerson, PASSWORD } from "../users/people.ts";
import { type Answer, Authenticator, type Lies } from "./authenticator.ts";
import {
  awaitRejection,
  createEnrolledPerson,
  enrollApp,
  finishLogin,
  LOGIN,
  openWorld,
  startLogin,
} from "./people.ts";

const ORIGIN = "https://slipway.example";
const PASSKEY = `${LOGIN}/passkey`;
const PASSKEYS = "/api/v2/users/me/passkeys";

const world = await forFile(openWorld({ SLIPWAY_ACCESS_URL: ORIGIN, SLIPWAY_ALLOWED_HOSTS: "127.0.0.1" }));

type NewPasskey = { passkey: Passkey; recovery_codes: string[] };

const register = async (
  client: Client,
  device: Authenticator,
  name = "laptop",
  lies: Lies = {},
): Promise<NewPasskey> => {
  const { challenge, options } = await client.post<PasskeyChallenge>(`${PASSKEYS}/start`);
  return client.post<NewPasskey>(PASSKEYS, { challenge, name, credential: device.create(options, lies) });
};

const startChallenge = (body: object = {}): Promise<PasskeyChallenge> =>
  world.anonymous.post<PasskeyChallenge>(`${PASSKEY}/start`, body);
const finishSignIn = async (challenge: string, credential: Answer): Promise<number> => {
  const response = await world.anonymous.fetch("POST", PASSKEY, { challenge, credential });
  await response.body?.cancel();
  return response.status;
};
/** Signs in with only a passkey. */
const signIn = async (device: Authenticator, lies: Lies = {}): Promise<number> => {
  const { challenge, options } = await startChallenge();
  return finishSignIn(challenge, device.get(options, lies));
};

test("[PK-1] a user registers, renames and deletes passkeys; the first comes with recovery codes", async () => {
  const { client } = await newPerson(world.admin, "pia");
  const device = new Authenticator(ORIGIN);
  const started = await client.post<PasskeyChallenge>(`${PASSKEYS}/start`);
  expect(started.options).toMatchObject({
    rp: { id: "slipway.example", name: "Slipway" },
    user: { name: "pia@example.com" },
    authenticatorSelection: { residentKey: "required", userVerification: "required" },
  });
  const first = await register(client, device);
  expect(first.recovery_codes).toHaveLength(10);
  expect(first.passkey).toMatchObject({ name: "laptop", backed_up: false });
  world.clock.advance(1);
  const second = await register(client, device, "phone");
  expect(second.recovery_codes).toEqual([]);
  const { options } = await client.post<PasskeyChallenge>(`${PASSKEYS}/start`);
  expect(options.excludeCredentials).toHaveLength(2);
  await client.patch(`${PASSKEYS}/${second.passkey.id}`, { name: "old phone" });
  expect((await client.get<Passkey[]>(PASSKEYS)).map(({ name }) => name)).toEqual(["laptop", "old phone"]);
  await client.delete(`${PASSKEYS}/${second.passkey.id}`);
  expect(await client.get<Factors>("/api/v2/users/me/factors")).toMatchObject({ passkeys: 1, recovery_codes_left: 10 });
  await client.delete(`${PASSKEYS}/${first.passkey.id}`);
  expect(await client.get<Factors>("/api/v2/users/me/factors")).toMatchObject({ passkeys: 0, recovery_codes_left: 0 });
  expect(
    await fetchStatus(world.anonymous, "POST", "/users/login", { email: "pia@example.com", password: PASSWORD }),
  ).toBe(201);
  type Entry = { action: string };
  const path = "/api/v2/audit?limit=9&q=resource_type:passkey%20resource_target:pia";
  const { audit_logs } = await world.admin.get<{ audit_logs: Entry[] }>(path);
  expect(audit_logs.map(({ action }) => action).reverse()).toEqual(["create", "create", "write", "delete", "delete"]);
});

test("[PK-1] a browser's response must be for this server, this ceremony and this user, with user verification", async () => {
  const { client } = await newPerson(world.admin, "lou");
  const device = new Authenticator(ORIGIN);
  for (const lies of [
    { origin: "https://evil.example" },
    { rp: "evil.example" },
    { verified: false },
    { challenge: Buffer.alloc(32).toString("base64url") },
  ]) {
    const rejection = await awaitRejection(register(client, device, "x", lies));
    expect([lies, rejection.status, rejection.fields]).toEqual([lies, 400, ["credential"]]);
  }
  const { challenge, options } = await client.post<PasskeyChallenge>(`${PASSKEYS}/start`);
  const otherUser = await newPerson(world.admin, "luc");
  const body = { challenge, name: "x", credential: device.create(options) };
  expect(await awaitRejection(otherUser.client.post(PASSKEYS, body))).toMatchObject({ status: 400 });
  await client.post(PASSKEYS, body);
  expect(await awaitRejection(client.post(PASSKEYS, body))).toMatchObject({ status: 400 });
  const lateChallenge = await client.post<PasskeyChallenge>(`${PASSKEYS}/start`);
  world.clock.advance(5 * 60_000);
  const credential = device.create(lateChallenge.options);
  expect(
    await awaitRejection(client.post(PASSKEYS, { challenge: lateChallenge.challenge, name: "x", credential })),
  ).toMatchObject({
    status: 400,
  });
});

test("[PK-2] a passkey alone signs in, once per challenge", async () => {
  const { client } = await newPerson(world.admin, "sol");
  const device = new Authenticator(ORIGIN);
  await register(client, device);
  const { challenge, options } = await startChallenge();
  expect(options).toMatchObject({ rpId: "slipway.example", userVerification: "required" });
  expect(options.allowCredentials ?? []).toEqual([]);
  const credential = device.get(options);
  const response = await world.anonymous.fetch("POST", PASSKEY, { challenge, credential });
  expect(response.status).toBe(201);
  expect(response.headers.get("set-cookie")).toEndWith("; Secure");
  const { session_token } = (await response.json()) as { session_token: string };
  const session = world.anonymous.withToken(session_token);
  expect(await session.get<{ username: string }>("/api/v2/users/me")).toMatchObject({ username: "sol" });
  // The session is fully verified, so changes to sign-in methods are allowed.
  await session.post("/api/v2/users/me/factors/recovery-codes");
  expect(await finishSignIn(challenge, credential)).toBe(401);
  const secondChallenge = await startChallenge();
  const secondCredential = device.get(secondChallenge.options);
  const statuses = await Promise.all([1, 2, 3].map(() => finishSignIn(secondChallenge.challenge, secondCredential)));
  expect(statuses.sort()).toEqual([201, 401, 401]);
});

test("[PK-3] rejects responses that are old, forged, unverified, from another origin or from a cloned key", async () => {
  const { client } = await newPerson(world.admin, "ike");
  const device = new Authenticator(ORIGIN);
  await register(client, device);
  expect(await signIn(device, { origin: "https://evil.example" })).toBe(401);
  expect(await signIn(device, { rp: "evil.example" })).toBe(401);
  expect(await signIn(device, { verified: false })).toBe(401);
  expect(await signIn(device)).toBe(201);
  // A cloned key has its own counter, which falls behind.
  expect(await signIn(device, { counter: 2 })).toBe(401);
  const { challenge, options } = await startChallenge();
  world.clock.advance(5 * 60_000);
  expect(await finishSignIn(challenge, device.get(options))).toBe(401);
  const freshChallenge = await startChallenge();
  const forged = device.get(freshChallenge.options, { counter: 50 });
  const tampered = { ...forged, response: { ...forged.response, signature: forged.id } };
  expect(await finishSignIn(freshChallenge.challenge, tampered)).toBe(401);
  expect(await finishSignIn("made-up", forged)).toBe(401);
  const unregistered = new Authenticator(ORIGIN);
  unregistered.create({ rp: { id: "slipway.example" }, user: { id: "eA" }, challenge: "x" });
  expect(await signIn(unregistered)).toBe(401);
  await world.admin.put("/api/v2/users/ike/status/suspend");
  expect(await signIn(device, { counter: 90 })).toBe(401);
});

test("[PK-4] a passkey is a second factor for its own user's password sign-in", async () => {
  const { anonymous, admin } = world;
  const [una, eve] = [await newPerson(admin, "una"), await newPerson(admin, "bad")];
  const [device, otherDevice] = [new Authenticator(ORIGIN), new Authenticator(ORIGIN)];
  const { recovery_codes } = await register(una.client, device);
  await register(eve.client, otherDevice);
  const loginResponse = await anonymous.fetch("POST", LOGIN, { email: "una@example.com", password: PASSWORD });
  const { second_factor } = (await loginResponse.json()) as LoginRefused;
  expect(second_factor?.methods).toEqual(["passkey", "recovery_code"]);
  const { challenge, options } = await startChallenge({ second_factor: second_factor?.challenge });
  expect(options.allowCredentials).toHaveLength(1);
  expect(await finishSignIn(challenge, otherDevice.get({ ...options, allowCredentials: [] }))).toBe(401);
  const secondChallenge = await startChallenge({ second_factor: second_factor?.challenge });
  expect(await finishSignIn(secondChallenge.challenge, device.get(secondChallenge.options))).toBe(201);
  expect(await awaitRejection(startChallenge({ second_factor: second_factor?.challenge }))).toMatchObject({
    status: 401,
  });
  expect(await finishLogin(anonymous, await startLogin(anonymous, "una@example.com"), recovery_codes[0] ?? "")).toBe(
    201,
  );
});

test("[PK-4] disabling the app of a user with a passkey keeps the recovery codes; a reset removes everything", async () => {
  const { admin, clock } = world;
  const { client } = await newPerson(admin, "amy");
  const device = new Authenticator(ORIGIN);
  await register(client, device);
  const { app } = await enrollApp(clock, client);
  await client.delete("/api/v2/users/me/factors/totp", { password: PASSWORD, code: app.next() });
  expect(await client.get<Factors>("/api/v2/users/me/factors")).toMatchObject({
    totp: null,
    passkeys: 1,
    recovery_codes_left: 10,
  });
  await admin.post("/api/v2/users/me/confirm", { password: "correct-horse-battery" });
  await admin.delete("/api/v2/users/amy/factors");
  expect(await signIn(device)).toBe(401);
});

test("[PK-5] a passkey confirms the identity of its own session's user", async () => {
  const { admin, clock } = world;
  const { client } = await newPerson(admin, "con");
  const device = new Authenticator(ORIGIN);
  await register(client, device);
  const ned = await createEnrolledPerson(world, "ned2");
  clock.advance(15 * 60_000);
  expect(await awaitRejection(client.post(`${PASSKEYS}/start`))).toMatchObject({
    status: 403,
    fields: ["confirmation"],
  });
  const confirm = "/api/v2/users/me/confirm/passkey";
  const challenge = await client.post<PasskeyChallenge>(`${confirm}/start`);
  const credential = device.get(challenge.options);
  expect(await awaitRejection(ned.client.post(confirm, { challenge: challenge.challenge, credential }))).toMatchObject({
    status: 400,
  });
  const ownChallenge = await client.post<PasskeyChallenge>(`${confirm}/start`);
  await client.post(confirm, { challenge: ownChallenge.challenge, credential: device.get(ownChallenge.options) });
  await client.post(`${PASSKEYS}/start`);
});

test("[PK-6] passkeys require a host name with TLS, or localhost", async () => {
  const toRelyingPartyId = (url: string) => toRelyingParty(new URL(url))?.id;
  expect(toRelyingPartyId("https://slipway.example/")).toBe("slipway.example");
  expect(toRelyingPartyId("http://localhost:7080/")).toBe("localhost");
  for (const url of ["http://slipway.example/", "https://10.0.0.1/", "http://127.0.0.1:7080/", "https://[::1]/"]) {
    expect(toRelyingPartyId(url)).toBeUndefined();
  }
  await using plainWorld = await openWorld();
  expect(await awaitRejection(plainWorld.admin.post(`${PASSKEYS}/start`))).toMatchObject({ status: 400 });
  const getAuthMethods = (client: Client) => client.get<{ passkey: object }>("/api/v2/users/authmethods");
  expect([
    (await getAuthMethods(plainWorld.anonymous)).passkey,
    (await getAuthMethods(world.anonymous)).passkey,
  ]).toEqual([{ enabled: false }, { enabled: true }]);
});

test("[IV-4] an invited person signs up with a passkey and no password, and gets recovery codes", async () => {
  const people = [{ email: "key@example.com", name: "Key Holder" }];
  const created = await world.admin.post<Invited>("/api/v2/invitations", { people });
  const token = new URL(created.invitations[0]?.link ?? "").hash.slice(1);
  const device = new Authenticator(ORIGIN);
  const started = { token, username: "key-holder" };
  const { challenge, options } = await world.anonymous.post<PasskeyChallenge>(
    "/api/v2/invitations/accept/passkey/start",
    started,
  );
  const passkey = { challenge, name: "laptop", credential: device.create(options) };
  const accept = (body: object) => world.anonymous.fetch("POST", "/api/v2/invitations/accept", { ...started, ...body });
  expect((await accept({ passkey, password: PASSWORD })).status).toBe(400);
  expect((await accept({ passkey: { ...passkey, challenge: "made-up" } })).status).toBe(400);
  const accepted = await accept({ passkey });
  expect(accepted.status).toBe(201);
  const { session_token, recovery_codes } = (await accepted.json()) as {
    session_token: string;
    recovery_codes: string[];
  };
  expect(recovery_codes).toHaveLength(10);
  expect(await world.anonymous.withToken(session_token).get<Factors>("/api/v2/users/me/factors")).toMatchObject({
    passkeys: 1,
  });
  expect(await signIn(device)).toBe(201);
  expect((await accept({ passkey })).status).toBe(404);
  expect(await fetchStatus(world.anonymous, "POST", "/users/login", { email: "key@example.com", password: "" })).toBe(
    401,
  );
});
