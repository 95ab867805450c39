// Authenticator apps: enrolling, signing in with codes and recovery codes, and disabling.
import { expect, test } from "bun:test";
import type { Factors, LoginRefused, TotpEnrolment } from "#schema/users/second-factor.ts";
import { computeCode, encodeBase32, findStep, formatOtpauthUri, fromBase32 } from "#src/authentication/totp.ts";
import { ApiError } from "#src/client.ts";
import { forFile } from "#test/support/for-file.ts";
import { readStoredTexts } from "#test/support/stored.ts";
import { fetchStatus, newPerson, PASSWORD } from "../users/people.ts";
import {
  App,
  awaitRejection,
  createEnrolledPerson,
  enrollApp,
  finishLogin,
  LOGIN,
  openWorld,
  SECOND_FACTOR_PATH,
  STEP,
  startLogin,
} from "./people.ts";

const world = await forFile(openWorld());

const getFactors = (user: string) => world.admin.get<Factors>(`/api/v2/users/${user}/factors`);

test("[FA-1] codes are those of RFC 6238", () => {
  const secret = encodeBase32(Buffer.from("12345678901234567890"));
  expect(secret).toBe("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
  expect(Buffer.from(fromBase32(secret)).toString()).toBe("12345678901234567890");
  // The last six digits of appendix B.
  const vectors: [number, string][] = [
    [59, "287082"],
    [1_111_111_109, "081804"],
    [1_111_111_111, "050471"],
    [1_234_567_890, "005924"],
    [2_000_000_000, "279037"],
    [20_000_000_000, "353130"],
  ];
  for (const [seconds, code] of vectors) expect(computeCode(secret, Math.floor(seconds / 30))).toBe(code);
  const now = 1_111_111_111_000;
  const step = Math.floor(now / STEP);
  expect([-2, -1, 0, 1, 2].map((offset) => findStep(secret, computeCode(secret, step + offset), now))).toEqual([
    ...[undefined, step - 1, step, step + 1, undefined],
  ]);
  expect(findStep(secret, "", now)).toBeUndefined();
  expect(formatOtpauthUri("ABC", { issuer: "Slipway (x)", account: "a@b.c" })).toBe(
    "otpauth://totp/Slipway%20(x):a%40b.c?secret=ABC&issuer=Slipway%20(x)&algorithm=SHA1&digits=6&period=30",
  );
});

test("[FA-2] an enrollment changes nothing until the user enters a first code", async () => {
  const { admin, anonymous, clock } = world;
  const { client } = await newPerson(admin, "tess");
  const started = await client.post<TotpEnrolment>("/api/v2/users/me/factors/totp");
  expect(started.secret).toMatch(/^[A-Z2-7]{32}$/);
  expect(started.uri).toStartWith(`otpauth://totp/Slipway%20(127.0.0.1):tess%40example.com?secret=${started.secret}&`);
  expect(started.qr_svg).toStartWith("<svg");
  expect(await fetchStatus(anonymous, "POST", "/users/login", { email: "tess@example.com", password: PASSWORD })).toBe(
    201,
  );

  const app = new App(clock, started.secret);
  const confirm = (code: string) =>
    client.post<{ recovery_codes: string[] }>("/api/v2/users/me/factors/totp/confirm", {
      enrolment: started.enrolment,
      code,
    });
  expect(await awaitRejection(confirm(app.code(5)))).toMatchObject({ status: 400, fields: ["code"] });
  expect(await getFactors("tess")).toMatchObject({ totp: null, recovery_codes_left: 0, required: false });
  const { recovery_codes } = await confirm(app.code());
  expect(new Set(recovery_codes).size).toBe(10);
  for (const code of recovery_codes) expect(code).toMatch(/^[0-9a-z]{4}(-[0-9a-z]{4}){3}$/);
  expect(await getFactors("tess")).toMatchObject({ totp: { created_at: expect.any(String) }, recovery_codes_left: 10 });
  expect(await awaitRejection(confirm(app.next()))).toMatchObject({ status: 400 });
  expect(await fetchStatus(client, "POST", "/users/me/factors/totp")).toBe(409);
});

test("[FA-2] an enrollment belongs to the user who started it, and expires", async () => {
  const { admin, clock } = world;
  const [tim, tom] = [await newPerson(admin, "tim"), await newPerson(admin, "tom")];
  const started = await tim.client.post<TotpEnrolment>("/api/v2/users/me/factors/totp");
  const app = new App(clock, started.secret);
  const confirm = (person: typeof tim) =>
    person.client.post("/api/v2/users/me/factors/totp/confirm", { enrolment: started.enrolment, code: app.code() });
  expect(await awaitRejection(confirm(tom))).toMatchObject({ status: 400 });
  clock.advance(16 * 60_000);
  await tim.client.post("/api/v2/users/me/confirm", { password: PASSWORD });
  expect(await awaitRejection(confirm(tim))).toMatchObject({ status: 400 });
});

test("[FA-3] a correct password requires a code, and the code completes the sign-in once", async () => {
  const { anonymous, clock } = world;
  const ned = await createEnrolledPerson(world, "ned");
  const response = await anonymous.fetch("POST", LOGIN, { email: ned.email, password: PASSWORD });
  expect(response.status).toBe(401);
  expect(response.headers.get("set-cookie")).toBeNull();
  const body = (await response.json()) as LoginRefused;
  const { challenge = "" } = body.second_factor ?? {};
  expect(body).toMatchObject({
    validations: [{ field: "second_factor" }],
    second_factor: { methods: ["totp", "recovery_code"] },
  });
  expect(challenge).not.toContain(ned.user.id);
  expect(await awaitRejection(anonymous.signIn(ned.email, "not the password"))).toMatchObject({
    status: 401,
    fields: [],
  });

  // The current code was already used for enrollment.
  expect(await finishLogin(anonymous, challenge, ned.app.code())).toBe(401);
  const code = ned.app.next();
  const completed = await anonymous.fetch("POST", SECOND_FACTOR_PATH, {
    challenge,
    code: `${code.slice(0, 3)} ${code.slice(3)}`,
  });
  expect(completed.status).toBe(201);
  expect(completed.headers.get("set-cookie")).toStartWith("service_session_token=");
  const { session_token } = (await completed.json()) as { session_token: string };
  expect(await fetchStatus(anonymous.withToken(session_token), "GET", "/users/me")).toBe(200);
  expect(await finishLogin(anonymous, challenge, ned.app.code(1))).toBe(401);
  expect(await finishLogin(anonymous, await startLogin(anonymous, ned.email), code)).toBe(401);
  // A code from the next step is still accepted, and invalidates earlier ones.
  const lateCode = ned.app.code(1);
  expect(await finishLogin(anonymous, await startLogin(anonymous, ned.email), lateCode)).toBe(201);
  clock.advance(STEP);
  expect(await finishLogin(anonymous, await startLogin(anonymous, ned.email), ned.app.code())).toBe(401);
});

test("[FA-3] exactly one of several racing sign-ins with the same code succeeds", async () => {
  const { anonymous } = world;
  const rae = await createEnrolledPerson(world, "rae");
  const code = rae.app.next();
  const challenges = await Promise.all([1, 2, 3, 4].map(() => startLogin(anonymous, rae.email)));
  const statuses = await Promise.all(challenges.map((challenge) => finishLogin(anonymous, challenge, code)));
  expect(statuses.filter((status) => status === 201)).toHaveLength(1);
  const sharedChallenge = await startLogin(anonymous, rae.email);
  const codes = [rae.app.next(), rae.recovery_codes[0] ?? "", rae.recovery_codes[1] ?? ""];
  const sharedStatuses = await Promise.all(codes.map((code) => finishLogin(anonymous, sharedChallenge, code)));
  expect(sharedStatuses.filter((status) => status === 201)).toHaveLength(1);
});

test("[FA-3] an unfinished sign-in expires with time, a new password or a suspension", async () => {
  const { admin, anonymous, clock } = world;
  const kim = await createEnrolledPerson(world, "kim");
  const expiredChallenge = await startLogin(anonymous, kim.email);
  clock.advance(5 * 60_000);
  expect(await finishLogin(anonymous, expiredChallenge, kim.app.code())).toBe(401);
  expect(await finishLogin(anonymous, "made-up", kim.app.code())).toBe(401);
  const oldPasswordChallenge = await startLogin(anonymous, kim.email);
  await admin.put("/api/v2/users/kim/password", { password: "quite-another-secret" });
  expect(await finishLogin(anonymous, oldPasswordChallenge, kim.app.code())).toBe(401);
  const suspendedChallenge = await startLogin(anonymous, kim.email, "quite-another-secret");
  clock.advance(1);
  await admin.put("/api/v2/users/kim/status/suspend");
  expect(await finishLogin(anonymous, suspendedChallenge, kim.app.code())).toBe(401);
  await admin.put("/api/v2/users/kim/status/activate");
  expect(await finishLogin(anonymous, suspendedChallenge, kim.app.code())).toBe(401);
  const newChallenge = await startLogin(anonymous, kim.email, "quite-another-secret");
  expect(await finishLogin(anonymous, newChallenge, kim.app.code())).toBe(201);
});

test("[FA-4] throttles wrong codes per account until a correct code", async () => {
  const { anonymous, clock } = world;
  const gus = await createEnrolledPerson(world, "gus");
  const challenge = await startLogin(anonymous, gus.email);
  const statuses = await Promise.all(Array.from({ length: 7 }, () => finishLogin(anonymous, challenge, "000000")));
  expect(statuses.filter((status) => status === 401)).toHaveLength(5);
  expect(statuses.filter((status) => status === 429)).toHaveLength(2);
  const throttled = await anonymous.fetch("POST", SECOND_FACTOR_PATH, { challenge, code: gus.app.next() });
  expect(throttled.status).toBe(429);
  expect(Number(throttled.headers.get("retry-after"))).toBeGreaterThan(0);
  clock.advance(60_000);
  expect(await finishLogin(anonymous, challenge, "000000")).toBe(401);
  clock.advance(60_000);
  expect(await finishLogin(anonymous, challenge, gus.app.code())).toBe(429);
  clock.advance(60_000);
  expect(await finishLogin(anonymous, await startLogin(anonymous, gus.email), gus.app.code())).toBe(201);
  expect(await finishLogin(anonymous, await startLogin(anonymous, gus.email), "000000")).toBe(401);
});

test("[FA-5] a recovery code signs in once, in any notation; new ones replace all old ones", async () => {
  const { anonymous } = world;
  const lea = await createEnrolledPerson(world, "lea");
  const [first = "", second = ""] = lea.recovery_codes;
  expect(
    await finishLogin(anonymous, await startLogin(anonymous, lea.email), first.replaceAll("-", " ").toUpperCase()),
  ).toBe(201);
  expect(await finishLogin(anonymous, await startLogin(anonymous, lea.email), first)).toBe(401);
  expect(await getFactors("lea")).toMatchObject({ recovery_codes_left: 9 });
  const newCodes = await lea.client.post<{ recovery_codes: string[] }>("/api/v2/users/me/factors/recovery-codes");
  expect(newCodes.recovery_codes).toHaveLength(10);
  expect(await finishLogin(anonymous, await startLogin(anonymous, lea.email), second)).toBe(401);
  expect(await finishLogin(anonymous, await startLogin(anonymous, lea.email), newCodes.recovery_codes[3] ?? "")).toBe(
    201,
  );
  const userWithoutFactors = await newPerson(world.admin, "leo");
  expect(await fetchStatus(userWithoutFactors.client, "POST", "/users/me/factors/recovery-codes")).toBe(409);
});

test("[FA-6] disabling an app requires the password and a code, and removes its recovery codes", async () => {
  const { anonymous } = world;
  const ivy = await createEnrolledPerson(world, "ivy");
  const remove = (body: object) => awaitRejection(ivy.client.delete<unknown>("/api/v2/users/me/factors/totp", body));
  expect(await remove({ password: PASSWORD })).toMatchObject({ status: 400, fields: ["code"] });
  expect(await remove({ code: ivy.app.next(), password: "not the password" })).toMatchObject({
    status: 400,
    fields: ["password"],
  });
  expect(await remove({ code: "123456", password: PASSWORD })).toMatchObject({ status: 400, fields: ["code"] });
  expect(await remove({ code: ivy.app.code(), password: PASSWORD })).toMatchObject({ status: 200 });
  expect(await getFactors("ivy")).toMatchObject({ totp: null, recovery_codes_left: 0 });
  expect(await fetchStatus(anonymous, "POST", "/users/login", { email: ivy.email, password: PASSWORD })).toBe(201);
  await enrollApp(world.clock, await anonymous.signIn(ivy.email, PASSWORD));
});

test("[FA-7] does not store secrets and recovery codes in plain text", async () => {
  const eve = await createEnrolledPerson(world, "eve");
  const stored = (await readStoredTexts(world.server.directory)).join("");
  expect(stored).toContain("eve@example.com");
  for (const secret of [
    eve.app.secret,
    ...eve.recovery_codes,
    ...eve.recovery_codes.map((code) => code.replaceAll("-", "")),
  ]) {
    expect(stored.includes(secret)).toBe(false);
  }
});

test("[FA-8] users cannot see, enroll or disable others' second factors", async () => {
  const { admin } = world;
  const person = await createEnrolledPerson(world, "own");
  const { client } = await newPerson(admin, "nosy");
  expect(await fetchStatus(client, "GET", "/users/own/factors")).toBe(404);
  for (const [method, path, body] of [
    ["POST", "totp", undefined],
    ["POST", "totp/confirm", { enrolment: "x", code: "123456" }],
    ["DELETE", "totp", { password: PASSWORD, code: person.app.code() }],
    ["POST", "recovery-codes", undefined],
  ] as const) {
    expect([path, await fetchStatus(admin, method, `/users/own/factors/${path}`, body)]).toEqual([path, 403]);
  }
  await admin.post("/api/v2/users", { email: "bot@example.com", username: "bot", login_type: "none" });
  expect(await fetchStatus(admin, "PUT", "/users/bot/factors/required", { required: true })).toBe(400);
});

test("[FA-8] the audit log has changes to second factors, without secrets", async () => {
  const zed = await createEnrolledPerson(world, "zed");
  await finishLogin(world.anonymous, await startLogin(world.anonymous, zed.email), zed.recovery_codes[0] ?? "");
  await finishLogin(world.anonymous, await startLogin(world.anonymous, zed.email), "000000");
  await zed.client.delete("/api/v2/users/me/factors/totp", { password: PASSWORD, code: zed.app.next() });
  type Entry = {
    action: string;
    status_code: number;
    diff: Record<string, { secret: boolean }>;
    user?: { username: string };
  };
  const searchEntries = async (q: string) =>
    (await world.admin.get<{ audit_logs: Entry[] }>(`/api/v2/audit?limit=20&q=${encodeURIComponent(q)}`)).audit_logs;
  const entries = await searchEntries("resource_type:second_factor resource_target:zed");
  // The two enrollment entries have the same time.
  const actions = entries.map(({ action }) => action).reverse();
  expect([actions.slice(0, 2).sort(), actions.slice(2)]).toEqual([
    ["create", "write"],
    ["write", "delete"],
  ]);
  expect(entries.every(({ user }) => user?.username === "zed" || user === null)).toBe(true);
  expect(entries.flatMap(({ diff }) => Object.keys(diff)).sort()).toEqual([
    "kind",
    "kind",
    "recovery_codes",
    "recovery_codes",
  ]);
  const logins = await searchEntries("action:login resource_target:zed");
  expect(logins.map(({ status_code }) => status_code).sort()).toEqual([201, 201, 401]);
});

test("[FA-9] changing sign-in methods requires a confirmation within the last 15 minutes with all factors", async () => {
  const { anonymous, clock } = world;
  const { client } = await newPerson(world.admin, "abe");
  const olderSession = await anonymous.signIn("abe@example.com", PASSWORD);
  const { key } = await client.post<{ key: string }>("/api/v2/users/me/keys/tokens", {});
  const { app, recovery_codes } = await enrollApp(clock, client);
  // An older session and a token have not verified the new factor.
  for (const caller of [olderSession, client.withToken(key)]) {
    const rejection = await awaitRejection(caller.post("/api/v2/users/me/factors/recovery-codes"));
    expect(rejection).toMatchObject({ status: 403, fields: ["confirmation"] });
    const change = { old_password: PASSWORD, password: "quite-another-secret" };
    expect(await awaitRejection(caller.put("/api/v2/users/me/password", change))).toMatchObject({
      fields: ["confirmation"],
    });
  }
  const confirm = (caller: typeof client, body: object) =>
    awaitRejection(caller.post<unknown>("/api/v2/users/me/confirm", body));
  expect(await confirm(olderSession, { password: PASSWORD })).toMatchObject({ status: 400, fields: ["code"] });
  expect(await confirm(olderSession, { password: "x", code: app.next() })).toMatchObject({
    status: 400,
    fields: ["password"],
  });
  expect(await confirm(olderSession, { password: PASSWORD, code: app.code() })).toMatchObject({ status: 200 });
  expect(await awaitRejection(olderSession.post("/api/v2/users/me/factors/recovery-codes"))).toMatchObject({
    status: 200,
  });
  clock.advance(15 * 60_000);
  for (const caller of [olderSession, client]) {
    expect(await awaitRejection(caller.post("/api/v2/users/me/factors/recovery-codes"))).toMatchObject({ status: 403 });
  }
  const newSession = await anonymous.signIn("abe@example.com", PASSWORD, async () => app.code());
  await newSession.put("/api/v2/users/me/password", { old_password: PASSWORD, password: "quite-another-secret" });
  expect(await fetchStatus(olderSession, "GET", "/users/me")).toBe(401);
  expect(
    await awaitRejection(
      anonymous.signIn("abe@example.com", "quite-another-secret", async () => recovery_codes[0] ?? ""),
    ),
  ).toMatchObject({
    status: 401,
  });
});

test("[FA-9] enrolling the first factor requires the password within the last 15 minutes, even with a token", async () => {
  const { clock } = world;
  const { client } = await newPerson(world.admin, "ada2");
  const { key } = await client.post<{ key: string }>("/api/v2/users/me/keys/tokens", {});
  clock.advance(15 * 60_000);
  for (const caller of [client, client.withToken(key)]) {
    await expect(enrollApp(clock, caller)).rejects.toThrow(ApiError);
    expect(await awaitRejection(caller.post("/api/v2/users/me/factors/totp"))).toMatchObject({
      fields: ["confirmation"],
    });
  }
  await client.post("/api/v2/users/me/confirm", { password: PASSWORD });
  await enrollApp(clock, client);
});
