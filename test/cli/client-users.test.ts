// Users, tokens and applications of a running server, on an administrator's command line.
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ApiKey } from "#schema/users/api-key.ts";
import type { User } from "#schema/users/user.ts";
import { Client } from "#src/client.ts";
import { forFile } from "#test/support/for-file.ts";
import { ADMIN } from "#test/support/server.ts";
import { type ClientWorld, openClientWorld, readToken, signInAs } from "./client-world.ts";

const world = await forFile(openClientWorld());
await signInAs(world);
const admin = new Client(world.server.url, readToken(world));

const splitWords = (line: string): string[] => line.split(" ");
const run = (line: string, ...rest: Parameters<ClientWorld["run"]> extends [unknown, ...infer R] ? R : never) =>
  world.run(splitWords(line), ...rest);
const runOk = (line: string, ...rest: Parameters<ClientWorld["run"]> extends [unknown, ...infer R] ? R : never) =>
  world.runOk(splitWords(line), ...rest);

/** Returns the HTTP status of a request with a token. */
const fetchStatus = async (token: string, path = "/api/v2/users/me"): Promise<number> =>
  (await admin.withToken(token).fetch("GET", path)).status;

describe("users", () => {
  test("[CV-19] a user is created, found, suspended, activated and deleted while the server runs", async () => {
    const password = join(world.home, "password");
    writeFileSync(password, "a long and private one\n");
    expect(
      await runOk(`users create grace --email grace@example.com --roles auditor --password-file ${password}`),
    ).toBe("Created grace.\n");
    const { token: session = "" } = await admin
      .withToken(undefined)
      .signIn("grace@example.com", "a long and private one");
    expect(await runOk("users list role:auditor")).toMatch(
      /^USERNAME +EMAIL .*\ngrace +grace@example.com +active +auditor +/,
    );
    expect(JSON.parse(await runOk("users show grace@example.com --output json"))).toMatchObject({ username: "grace" });
    expect(await runOk("users show grace")).toContain("Sign-in        password\nRoles          auditor\n");
    expect(await runOk("users suspend grace")).toBe("grace is suspended.\n");
    expect(await fetchStatus(session)).toBe(401);
    expect(
      (JSON.parse(await runOk("users list status:suspended --json")) as User[]).map((user) => user.username),
    ).toEqual(["grace"]);
    expect(await runOk("users activate grace")).toBe("grace is active.\n");
    expect(await run("users delete grace")).toEqual({
      code: 2,
      out: "",
      err:
        "slipway users delete: nothing was deleted: without a terminal, pass --yes to confirm\n" +
        "`slipway users delete --help` explains more.\n",
    });
    await using terminal = world.runOnTerminal("slipway users delete grace");
    await terminal.until("deletes the user grace (grace@example.com). Type its name: ");
    terminal.type("grace\r");
    await terminal.until("grace is deleted.");
    expect(await terminal.exited).toBe(0);
    expect(await run("users show grace")).toMatchObject({ code: 1, err: expect.stringContaining("there is no user") });
  });

  test("[CV-19] people are invited from arguments and a file; the links are printed, resent and revoked", async () => {
    const file = join(world.home, "team.csv");
    writeFileSync(file, "Name,Email\nIda Rhodes,ida@example.com\n");
    const out = await runOk(`users invite jo@example.com --file ${file} --roles auditor`);
    expect(out).toMatch(
      /^EMAIL +LINK \(works once, for 7 days\)\njo@example.com +http\S+\/invite#\w{43}\nida@example.com +http/,
    );
    expect(await runOk("users invitations")).toMatch(
      /^EMAIL .*\nida@example.com +default +auditor +admin +link +\d{4}-/,
    );
    expect(await runOk("users resend ida@example.com")).toMatch(/^http\S+\/invite#\w{43}\n$/);
    expect(await runOk("users revoke IDA@example.com")).toBe("The invitation for ida@example.com is revoked.\n");
    expect(await run("users revoke ida@example.com")).toMatchObject({
      code: 1,
      err: expect.stringContaining("there is no invitation for ida@example.com"),
    });
    expect(await run("users invite not-an-address")).toMatchObject({
      code: 2,
      err: expect.stringContaining('no email address in "not-an-address"'),
    });
    expect(await run("users invite jo@example.com")).toMatchObject({
      code: 0,
      err: expect.stringContaining("was not invited"),
    });
  });

  test("[CV-19] roles are shown, assigned and removed; users cannot assign roles to themselves", async () => {
    await runOk("users create rita --email rita@example.com");
    expect(await runOk("users roles rita")).toBe("rita: -\n");
    expect(await runOk("users roles rita --set auditor,user-admin")).toBe("rita: auditor,user-admin\n");
    expect(await runOk("users roles rita --add template-admin --json")).toContain('"template-admin"');
    expect(await runOk("users roles rita --remove auditor,user-admin")).toBe("rita: template-admin\n");
    expect(await runOk("users roles rita --set none")).toBe("rita: -\n");
    const [ownAccount, unknown, both] = await Promise.all([
      run("users roles admin --set none"),
      run("users roles rita --add king"),
      run("users roles rita --add auditor --set none"),
    ]);
    expect(ownAccount).toMatchObject({ code: 1, err: expect.stringContaining("You cannot change your own roles.") });
    expect(unknown).toMatchObject({ code: 1, err: expect.stringContaining("roles") });
    expect(both.code).toBe(2);
    expect(await runOk("users roles rita")).toBe("rita: -\n");
  });

  test("[CV-19] a generated password is printed once; a reset revokes sessions of the old one", async () => {
    const created = JSON.parse(await runOk("users create paul --email paul@example.com --json"));
    const { token: session = "" } = await admin.withToken(undefined).signIn("paul@example.com", created.password);
    const output = await runOk("users reset-password paul");
    const password = /New password: (\S+)\n/.exec(output)?.[1] ?? "";
    expect([await fetchStatus(session), password === created.password]).toEqual([401, false]);
    expect((await admin.withToken(undefined).signIn("paul@example.com", password)).token).toBeString();
    expect(await runOk("users show paul --json")).not.toContain(password);
    const ownAccount = await run("users reset-password admin");
    expect(ownAccount).toMatchObject({ code: 1, err: expect.stringContaining("at a terminal") });
    expect((await admin.withToken(undefined).signIn(ADMIN.email, ADMIN.password)).token).toBeString();
    expect(await run("users reset-factors paul")).toMatchObject({ code: 1, err: expect.stringContaining("factor") });
  });

  test("[CV-18] a terminal prompts for a missing argument with the available names; without a terminal, the exit code is 2", async () => {
    const withoutTerminal = await Promise.all(
      ["users show", "users create", "users create x", "tokens show"].map((line) => run(line)),
    );
    expect(withoutTerminal.map(({ code }) => code)).toEqual([2, 2, 2, 2]);
    await using create = world.runOnTerminal("slipway users create");
    await create.until("Name of the new user: ");
    create.type("tina\r");
    await create.until("Email: ");
    create.type("tina@example.com\r");
    await create.until("Created tina. Password: ");
    expect(await create.exited).toBe(0);
    await using show = world.runOnTerminal("slipway users show");
    await show.until(/User \(admin, .*tina\): /);
    show.type("tina\r");
    await show.until("tina@example.com");
    expect(await show.exited).toBe(0);
  });
});

describe("tokens", () => {
  test("[CV-20] a token is valid for its scopes and networks, can be changed, and is invalid once removed", async () => {
    const token = (await runOk("tokens create ci --lifetime 24h --scope workspace:read --address 127.0.0.0/8")).trim();
    expect(await runOk("tokens list")).toMatch(/ci .* never +in \d/);
    expect(await fetchStatus(token, "/api/v2/workspaces")).toBe(200);
    expect(await fetchStatus(token, "/api/v2/users")).toBe(403);
    const [listed] = JSON.parse(await runOk("tokens list --json")) as ApiKey[];
    expect(listed).toMatchObject({ token_name: "ci", scopes: ["workspace:read"], lifetime_seconds: 86_400 });
    expect(await runOk("tokens list")).toMatch(/\n\w{10} +ci +workspace:read +127\.0\.0\.0\/8 +/);
    expect(await runOk("tokens show ci")).toContain("Scopes     workspace:read\nNetworks   127.0.0.0/8\n");
    expect(await runOk("tokens change ci --scope user:read --scope workspace:read")).toContain("user:read");
    expect(await fetchStatus(token, "/api/v2/users")).toBe(200);
    await runOk("tokens change ci --address 203.0.113.0/24");
    expect(await fetchStatus(token, "/api/v2/workspaces")).toBe(403);
    expect(await runOk("tokens remove ci")).toBe("The token ci is revoked.\n");
    expect(await run("tokens show ci")).toMatchObject({
      code: 1,
      err: expect.stringContaining("there is no token ci"),
    });
    expect((await runOk("tokens scopes")).split("\n")).toContain("workspace:read");
  });

  test("[CV-20] an owner creates and removes a service account's tokens; an invalid request creates none", async () => {
    expect(await runOk("users create robot --service-account")).toBe("Created robot.\n");
    const token = (await runOk("tokens create deploy --user robot")).trim();
    expect(await admin.withToken(token).get<User>("/api/v2/users/me")).toMatchObject({ username: "robot", email: "" });
    expect(await runOk("tokens list --all")).toMatch(/\n\w{10} +robot +deploy +all +/);
    const refused = await Promise.all([
      run("tokens create deploy --user robot"),
      run("tokens create x --lifetime 9999d"),
      run("tokens create x --scope everything"),
      run("tokens create x --address nowhere"),
      run("users create other --service-account --email other@example.com"),
      run("tokens change deploy --user robot"),
      run("tokens list --all --user robot"),
      run("tokens list --output yaml"),
    ]);
    expect(refused.map(({ code }) => code)).toEqual([1, 1, 1, 1, 2, 2, 2, 2]);
    expect(refused.map(({ err }) => err).join()).toMatch(
      /token_name[\s\S]*lifetime[\s\S]*scopes?[\s\S]*allowed_addresses/,
    );
    await runOk("tokens remove deploy --user robot");
    expect(await fetchStatus(token)).toBe(401);
    expect(await runOk("tokens list")).not.toContain("deploy");
  });

  test("[CV-19] the old names of offline commands point to the new ones", async () => {
    const [user, token, setup, help] = await Promise.all([
      run("user list"),
      run("token list"),
      run("setup x"),
      run("help"),
    ]);
    expect(user).toMatchObject({ code: 2, out: "", err: expect.stringContaining("`slipway offline users`") });
    expect(token).toMatchObject({ code: 2, out: "", err: expect.stringContaining("`slipway tokens`") });
    expect(setup).toMatchObject({ code: 2, out: "", err: expect.stringContaining("`slipway offline setup`") });
    expect(help.out).toMatch(/\n {2}offline +Create and recover accounts/);
  });
});

describe("applications", () => {
  test("[CV-33] [CV-6] [CV-18] applications are created, edited and deleted, and one secret replaces another", async () => {
    expect(await runOk("oauth2 apps list")).toStartWith("No applications.");
    const created = await runOk(
      "oauth2 apps create Board --callback-url https://boards.example.com/back --scope user:read",
    );
    expect(created).toContain("Redirects to   https://boards.example.com/back\nScopes         user:read\n");
    expect(await runOk("oauth2 apps list")).toMatch(/\nBoard +[0-9a-f-]{36} +created here +https:\/\/boards\.example/);
    const edited = await runOk(
      "oauth2 apps edit board --name Maps --icon /emojis/1f310.png --redirect-uri http://127.0.0.1/back --scope all --json",
    );
    const { id } = JSON.parse(edited) as { id: string };
    expect(JSON.parse(edited)).toMatchObject({
      name: "Maps",
      icon: "/emojis/1f310.png",
      redirect_uris: ["https://boards.example.com/back", "http://127.0.0.1/back"],
      scopes: [],
    });
    expect(await runOk("oauth2 apps edit maps --icon none --json")).toContain('"icon":""');
    const secrets = [
      await runOk("oauth2 apps secrets Maps --create"),
      await runOk(`oauth2 apps secrets ${id} --create`),
    ];
    const secretEndings = secrets.map((text) => text.trim().slice(-6));
    expect(await runOk(`oauth2 apps secrets Maps --delete ${secretEndings[0]}`)).toMatch(
      new RegExp(`^ID .*\\n[0-9a-f-]{36} +…${secretEndings[1]} +.* never\\n$`),
    );
    const [unknown, unknownApp, noChange, noAddress, unknownCommand] = await Promise.all([
      run("oauth2 apps secrets Maps --delete missing"),
      run("oauth2 apps edit missing --name x"),
      run("oauth2 apps edit Maps"),
      run("oauth2 apps create Third"),
      run("oauth2 apps lst"),
    ]);
    expect(unknown).toMatchObject({ code: 1, err: expect.stringContaining("has no secret missing") });
    expect(unknownApp).toMatchObject({ code: 1, err: expect.stringContaining("there is no application missing") });
    expect([noChange.code, noAddress.code, unknownCommand.code]).toEqual([2, 2, 2]);
    expect(unknownCommand.err).toContain("Did you mean apps list?");
    expect(await runOk("help oauth2 apps secrets")).toContain("Usage: slipway oauth2 apps secrets APP");
    const refused = await run("oauth2 apps delete Maps");
    expect(refused).toMatchObject({ code: 2, err: expect.stringContaining("nothing was deleted") });
    expect(await runOk("oauth2 apps delete Maps --yes")).toBe("Maps is deleted.\n");
    expect(await runOk("oauth2 apps list --json")).toBe("[]\n");
  });
});
