// Requirements for new passwords, in every place where one is set.
import { describe, expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import { updateUser } from "#db/users/users.ts";
import { Passwords } from "#domain/users/passwords.ts";
import { Client } from "#src/client.ts";
import { serverForFile } from "#test/support/for-file.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { ADMIN, startTestServer, type TestServer, tempDirectory } from "#test/support/server.ts";
import { fetchStatus, newPerson, PASSWORD } from "./people.ts";

const COMMON = "Password1234";

const { server, anonymous, admin } = await serverForFile();

describe("a password", () => {
  const passwords = new Passwords(systemClock);
  const ada = { email: "ada.byron@example.com", username: "countess", name: "Ada Lovelace" };

  test.each([
    "correct-horse-battery",
    "a long enough secret",
    "purple tambourine 7 glacier",
    "Tr0ub4dour&3",
    "k9$Vq2!zR7",
    "übermäßig-grüne-Äpfel",
    "lovelace sings of purple rain",
  ])("[ID-20] %p is accepted", async (password) => {
    expect(await passwords.problem(password, ada)).toBe("");
  });

  test.each([
    ["", "12 characters"],
    ["short", "12 characters"],
    ["x9$Kq2!z", "12 characters"],
    ["hamster-7b", "12 characters"],
    ["password", "easy to guess"],
    ["Passw0rd!", "easy to guess"],
    [COMMON, "easy to guess"],
    ["qwertyuiop12", "easy to guess"],
    ["123456789012", "easy to guess"],
    ["letmeinletmein", "easy to guess"],
    ["x1y2".repeat(10), "easy to guess"],
    ["aaaaaaaaaaaa", "different characters"],
    ["x1y2".repeat(40), "at most 128"],
    ["ada-lovelace-1815", "your name"],
    ["Countess2026!", "your name"],
    ["ada.byron@example.com", "your name"],
    ["x-ADA.BYRON-example", "your name"],
  ])("[ID-20] %p is rejected", async (password, reason) => {
    expect(await passwords.problem(password, ada)).toContain(reason);
  });

  test("[ID-20] that is long and hostile does not block the event loop", async () => {
    let timerRuns = 0;
    const timer = systemClock.every(1, () => timerRuns++);
    await Promise.all(["Aa1!".repeat(32), "p455w0rd".repeat(16)].map((password) => passwords.problem(password, {})));
    timer.cancel();
    expect(timerRuns).toBeGreaterThan(5);
  });
});

describe("in every place where a password is set", () => {
  test("[ID-20] a call checks a password without setting it", async () => {
    const check = (password: string) =>
      anonymous.post<{ valid: boolean; details: string }>("/api/v2/users/validate-password", { password });
    expect(await check("correct-horse-battery")).toEqual({ valid: true, details: "" });
    expect(await check(COMMON)).toMatchObject({ valid: false, details: expect.stringContaining("easy to guess") });
  });

  test("[ID-20] creating, changing and resetting reject a common one and the user's own name", async () => {
    const createJoan = (password: string) =>
      fetchStatus(admin, "POST", "/users", { email: "joan@example.com", username: "joan-clarke", password });
    expect(await createJoan(COMMON)).toBe(400);
    expect(await createJoan("joan-clarke-1917")).toBe(400);
    expect(await fetchStatus(admin, "GET", "/users/joan-clarke")).toBe(404);
    const { client: joan, user } = await newPerson(admin, "joan-clarke");
    for (const password of [COMMON, "joan-clarke-1917"]) {
      expect(await fetchStatus(joan, "PUT", "/users/me/password", { old_password: PASSWORD, password })).toBe(400);
      expect(await fetchStatus(admin, "PUT", `/users/${user.id}/password`, { password })).toBe(400);
    }
    expect(await fetchStatus(joan, "GET", "/users/me")).toBe(200);
    await anonymous.signIn("joan-clarke@example.com", PASSWORD);
  });

  testInProcess("[ID-20] setup rejects the first user's password, and the setup token stays valid", async () => {
    const WITHOUT_ADMIN = { SLIPWAY_ADMIN_EMAIL: "", SLIPWAY_ADMIN_USERNAME: "", SLIPWAY_ADMIN_PASSWORD: "" };
    await using freshServer = await startTestServer({ env: WITHOUT_ADMIN });
    const setup_token = new URL((await freshServer.context?.setupUrl()) ?? "").searchParams.get("token");
    const createFirstUser = (password: string) =>
      fetchStatus(new Client(freshServer.url), "POST", "/users/first", {
        email: "ann@example.com",
        username: "ann",
        password,
        setup_token,
      });
    expect(await createFirstUser(COMMON)).toBe(400);
    expect(await createFirstUser(PASSWORD)).toBe(201);
  });

  test("[ID-20] settings and commands reject a common password with an explanation, and create no user", async () => {
    using temp = tempDirectory();
    const data = join(temp.path, "data");
    const file = join(temp.path, "password");
    writeFileSync(file, COMMON);
    const runSlipway = async (...argv: string[]) => {
      const child = Bun.spawn([process.execPath, join(import.meta.dir, "../../../src/main.ts"), ...argv], {
        env: {
          PATH: process.env.PATH,
          HOME: temp.path,
          SLIPWAY_DATA_DIR: data,
          SLIPWAY_ADDRESS: "127.0.0.1:0",
          ...env,
        },
        stdout: "pipe",
        stderr: "pipe",
      });
      const [message, code] = await Promise.all([child.stderr.text(), child.exited]);
      return { message, code };
    };
    const env: Record<string, string> = {};
    const setUp = () => runSlipway("offline", "setup", "root", "--email", "root@example.com", "--password-file", file);
    expect(await setUp()).toMatchObject({ code: 1, message: expect.stringContaining("easy to guess") });
    Object.assign(env, {
      SLIPWAY_ADMIN_EMAIL: ADMIN.email,
      SLIPWAY_ADMIN_USERNAME: "admin",
      SLIPWAY_ADMIN_PASSWORD: COMMON,
    });
    const serve = await runSlipway("serve");
    expect(serve.code).toBe(2);
    expect(serve.message).toContain("admin_password (settings)");
    expect(serve.message).not.toContain(COMMON);
    expect(existsSync(data)).toBe(true);
    writeFileSync(file, PASSWORD);
    for (const key of Object.keys(env)) delete env[key];
    expect(await setUp()).toMatchObject({ code: 0 });
    writeFileSync(file, COMMON);
    for (const verb of [
      ["create", "eve", "--email", "eve@example.com"],
      ["reset-password", "root"],
    ]) {
      expect((await runSlipway("offline", "users", ...verb, "--password-file", file)).code).toBe(1);
    }
  });

  testInProcess("[ID-20] a user with an older, weaker password can still sign in", async () => {
    const { user } = await newPerson(admin, "olga");
    const { store, accounts } = server.context as NonNullable<TestServer["context"]>;
    await store.commit([updateUser(user.id, { password_hash: await accounts.passwords.hash("password1") })]);
    await anonymous.signIn("olga@example.com", "password1");
  });
});
