// The commands that talk to a server, as processes with a real server: signing in, workspaces and templates.
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Template } from "#schema/templates/template.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { computeCode, toStep } from "#src/authentication/totp.ts";
import { Client } from "#src/client.ts";
import { forFile } from "#test/support/for-file.ts";
import { ADMIN } from "#test/support/server.ts";
import { ECHO, seedTemplate } from "#test/support/workspaces.ts";
import { type ClientWorld, CuttableProxy, openClientWorld, readToken, signInAs } from "./client-world.ts";

// With this setting, the server assumes that containers can reach it, and does not refuse builds before they begin.
const env = { SLIPWAY_DOCKER_ACCESS_URL: "http://host.docker.internal" };
const world = await forFile(openClientWorld({ env }));
await signInAs(world);
const admin = new Client(world.server.url, readToken(world));
// The templates have no agents, because none would connect.
const manifest = { ...ECHO, resources: [{ name: "main" }] };
const logs = ["one \u001b]0;evil\u0007line", "two"];
await seedTemplate(world.server, { ...manifest, echo: { logs } }, { name: "fine" });
await seedTemplate(world.server, { ...manifest, echo: { logs, error: "no room left" } }, { name: "failing" });
const dockerResources = [{ name: "main", docker: { image: "debian:13" }, agents: [{ name: "main" }] }];
await seedTemplate(world.server, { provisioner: "docker", resources: dockerResources }, { name: "boxes" });
await seedTemplate(world.server, { ...manifest, echo: { logs, hang: true } }, { name: "hanging" });

const splitWords = (line: string): string[] => line.split(" ");
const run = (line: string, ...rest: Parameters<ClientWorld["run"]> extends [unknown, ...infer R] ? R : never) =>
  world.run(splitWords(line), ...rest);

describe("signing in", () => {
  test("[CV-1] `login` prompts without echoing the password and stores the session readable only by its user; `logout` removes it", async () => {
    const env = { XDG_CONFIG_HOME: join(world.home, "xdg") };
    const file = join(world.home, "xdg", "slipway", "session.json");
    await using terminal = world.runOnTerminal(`umask 0; slipway login ${world.server.url.origin}`, env);
    await terminal.until(/Email .*: /);
    terminal.type(`${ADMIN.email}\r`);
    await terminal.until("Password: ");
    terminal.type(`wrong\u0015${ADMIN.password}x\u007f\r`);
    await terminal.until("Signed in");
    expect(await terminal.exited).toBe(0);
    expect(terminal.shown()).not.toContain(ADMIN.password);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readFileSync(file, "utf8")).not.toContain(ADMIN.password);
    expect((await run("whoami", { env })).out).toBe(`admin (${ADMIN.email}, owner) at ${world.server.url.origin}\n`);
    const { token } = JSON.parse(readFileSync(file, "utf8")) as { token: string };
    expect(await run("logout", { env })).toMatchObject({ code: 0, out: expect.stringContaining("Signed out") });
    expect(existsSync(file)).toBe(false);
    expect((await admin.withToken(token).fetch("GET", "/api/v2/users/me")).status).toBe(401);
    expect(await run("whoami", { env })).toMatchObject({ code: 1, err: expect.stringContaining("not signed in") });
    expect((await run("logout", { env })).out).toBe("Not signed in.\n");
  });

  test("[CV-1] a second factor's code is prompted for, or passed with --code", async () => {
    const env = { XDG_CONFIG_HOME: join(world.home, "xdg-code") };
    const account = { email: "cora@example.com", username: "cora", password: ADMIN.password };
    await admin.post("/api/v2/users", account);
    const cora = await admin.withToken(undefined).signIn(account.email, account.password);
    const enrollment = await cora.post<{ secret: string; enrolment: string }>("/api/v2/users/me/factors/totp");
    const { recovery_codes } = await cora.post<{ recovery_codes: string[] }>("/api/v2/users/me/factors/totp/confirm", {
      enrolment: enrollment.enrolment,
      code: computeCode(enrollment.secret, toStep(Date.now())),
    });
    await using terminal = world.runOnTerminal(
      `slipway login ${world.server.url.origin} --email ${account.email}`,
      env,
    );
    await terminal.until("Password: ");
    terminal.type(`${account.password}\r`);
    await terminal.until(/authenticator app.*: /);
    terminal.type(`${recovery_codes[0]}\r`);
    await terminal.until("Signed in");
    expect(await terminal.exited).toBe(0);
    const login = `login ${world.server.url.origin} --email ${account.email} --password-stdin`;
    const [withoutCode, withCode] = [
      await run(login, { env, stdin: account.password }),
      await run(`${login} --code ${recovery_codes[1]}`, { env, stdin: account.password }),
    ];
    expect([withoutCode.code, withCode.code]).toEqual([1, 0]);
    expect(withoutCode.err).toContain("A second factor is required.");
  });

  test("[CV-1] `login` reads a token from a pipe and refuses secrets as arguments; an API token survives the sign-out", async () => {
    const env = { XDG_CONFIG_HOME: join(world.home, "xdg2") };
    const { key } = await admin.post<{ key: string }>("/api/v2/users/me/keys/tokens", { token_name: "ci" });
    const login = `login ${world.server.url.origin}`;
    const results = await Promise.all([
      run(`${login} --token-stdin --json`, { env, stdin: `${key}\n` }),
      run(`${login} --token-stdin`, { stdin: "nonsense\n", env: { XDG_CONFIG_HOME: join(world.home, "none") } }),
      run(`${login} --token ${key}`),
      run(login),
      run(`${login} --email ${ADMIN.email} --password-stdin`, { stdin: "wrong one\n" }),
    ]);
    const [signedIn, invalidToken, tokenArgument, noTerminal, wrongPassword] = results;
    const printed = JSON.stringify(results);
    expect(JSON.parse(signedIn.out)).toMatchObject({ username: "admin", email: ADMIN.email });
    expect(invalidToken).toMatchObject({ code: 1, err: expect.stringContaining("slipway login: ") });
    expect(existsSync(join(world.home, "none"))).toBe(false);
    expect(tokenArgument).toMatchObject({ code: 2, err: expect.stringContaining("--token-stdin") });
    expect(printed).not.toContain(key);
    expect(noTerminal).toMatchObject({ code: 1, err: expect.stringContaining("no terminal for prompts") });
    expect(wrongPassword).toMatchObject({ code: 1, err: "slipway login: Incorrect email or password.\n" });
    await world.runOk(["logout"], { env });
    expect((await admin.withToken(key).fetch("GET", "/api/v2/users/me")).status).toBe(200);
  });

  test("[CV-2] a flag overrides the environment, which overrides the session; a session's token is sent only to its own server", async () => {
    using proxy = new CuttableProxy(world.server.url);
    const SLIPWAY_TOKEN = readToken(world);
    const [elsewhere, fromEnvironment, flag, inWorkspace] = await Promise.all([
      run("whoami", { env: { SLIPWAY_URL: proxy.url } }),
      run("whoami --json", { env: { SLIPWAY_URL: proxy.url, SLIPWAY_TOKEN } }),
      run(`whoami --url ${world.server.url.origin} --json`, { env: { SLIPWAY_URL: "http://127.0.0.1:1" } }),
      run("whoami", { env: { SLIPWAY_WORKSPACE_NAME: "dev", SLIPWAY_AGENT_TOKEN: "x", SLIPWAY_DATA_DIR: "/x" } }),
    ]);
    expect(elsewhere).toMatchObject({ code: 1, err: expect.stringContaining(`not signed in to ${proxy.url}`) });
    expect(JSON.parse(fromEnvironment.out)).toMatchObject({ url: `${proxy.url}/`, username: "admin" });
    expect(JSON.parse(flag.out)).toMatchObject({ url: world.server.url.href });
    expect(inWorkspace.code).toBe(0);
  });

  test("[CV-3] an error is a sentence with exit code 1, and wrong usage has exit code 2 and a suggestion", async () => {
    const page = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("<html>") });
    const [unreachable, otherServer, unknownCommand, unknownOption, extraArgument, damaged] = await Promise.all([
      run("workspaces list --url http://127.0.0.1:1 --token x"),
      run(`login ${page.url.origin} --token-stdin`, { stdin: "x" }),
      run("workspaces lst"),
      run("workspaces create dev --templte fine"),
      run("templates list now"),
      run("whoami", { env: { XDG_CONFIG_HOME: writeDamagedSession() } }),
    ]);
    await page.stop(true);
    expect(unreachable).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^slipway workspaces list: http:\/\/127\.0\.0\.1:1 does not answer \(.*\)\n$/),
    });
    expect(otherServer).toMatchObject({ code: 1, err: `slipway login: ${page.url.origin} is not a Slipway server\n` });
    expect(unknownCommand).toMatchObject({ code: 2, err: expect.stringContaining("Did you mean list?") });
    expect(unknownOption).toMatchObject({ code: 2, err: expect.stringContaining("Did you mean --template?") });
    expect(extraArgument.code).toBe(2);
    expect(damaged).toMatchObject({ code: 1, err: expect.stringContaining("is damaged") });
  });

  test("[CV-3] a response that is not JSON, or does not match its content-encoding, is a sentence without a stack", async () => {
    const answers: readonly (readonly [body: string, headers: Record<string, string>, words: string])[] = [
      ["<html>", {}, "is not JSON: another program or a proxy answered. Check the server's URL.\n"],
      ...["zstd", "gzip", "br", "deflate"].map(
        (encoding) =>
          ["[]", { "content-encoding": encoding }, "sent a response that cannot be decompressed ("] as const,
      ),
    ];
    for (const [body, headers, words] of answers) {
      using server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response(body, { headers }) });
      const { code, err } = await run(`workspaces list --url ${server.url.origin} --token x`);
      expect([code, err]).toEqual([1, expect.stringContaining(words)]);
      expect(err).not.toContain(" at ");
      expect(err).toContain(`slipway workspaces list: `);
    }
  });

  const writeDamagedSession = (): string => {
    mkdirSync(join(world.home, "damaged", "slipway"), { recursive: true });
    writeFileSync(join(world.home, "damaged", "slipway", "session.json"), "{");
    return join(world.home, "damaged");
  };
});

describe("workspaces", () => {
  test("[CV-4][CV-5][CV-6] workspaces are created, listed, shown, stopped, started and deleted; result and log are separate", async () => {
    const created = await run("workspaces create one --template fine --ttl 2h");
    expect(created).toEqual({ code: 0, out: "one is running.\n", err: "starting one\n== Echo start\none line\ntwo\n" });
    const [list, shown, json, secondStart, missing] = await Promise.all([
      world.runOk(splitWords("workspaces list name:one")),
      world.runOk(splitWords("workspaces show admin/one")),
      world.runOk(splitWords("workspaces list --json --all")),
      world.runOk(splitWords("workspaces start one")),
      run("workspaces show two"),
    ]);
    expect(list).toMatch(/^WORKSPACE +TEMPLATE +STATUS +LAST USED\none +fine +running.*\n$/);
    expect(shown).toContain("Workspace   admin/one");
    expect(shown).toContain("Stops       in 2 hours");
    expect((JSON.parse(json) as Workspace[]).map(({ name }) => name)).toEqual(["one"]);
    expect(secondStart).toBe("one is already running.\n");
    expect(missing).toMatchObject({ code: 1, err: expect.stringContaining("there is no workspace two") });
    const stopped = JSON.parse(await world.runOk(splitWords("workspaces stop one --json"))) as Workspace;
    expect(stopped).toMatchObject({ name: "one", latest_build: { status: "stopped", reason: "cli" } });
    expect(await world.runOk(splitWords("workspaces logs one"))).toBe("one line\ntwo\n");
    expect(await run("workspaces delete one")).toMatchObject({ code: 2, err: expect.stringContaining("--yes") });
    await using terminal = world.runOnTerminal("slipway workspaces delete one");
    await terminal.until("Type its name: ");
    terminal.type("one\r");
    await terminal.until("one is deleted.");
    expect(await terminal.exited).toBe(0);
  });

  test("[CV-5] a terminal shows a progress line below the log and removes it at the end", async () => {
    await using terminal = world.runOnTerminal("slipway workspaces create moving --template fine");
    await terminal.until("moving is running.");
    expect(terminal.shown()).toContain("⠋ starting moving");
    expect(terminal.shown()).toContain("one line\r\n");
    expect(terminal.shown()).toEndWith("\r\u001b[Kmoving is running.\r\n");
    expect(await terminal.exited).toBe(0);
  });

  test("[CV-6] when a container cannot be removed, the error suggests --orphan, which deletes the workspace anyway", async () => {
    expect(await run("workspaces create boxed --template boxes")).toMatchObject({ code: 1 });
    const failed = await run("workspaces delete boxed --yes");
    expect(failed.code).toBe(1);
    expect(failed.err).toMatch(/deleting boxed failed: The Docker Engine is not responding at .*/);
    expect(failed.err).toContain("delete it anyway with `slipway workspaces delete boxed --orphan`");
    expect(await run("workspaces delete boxed --orphan --yes")).toMatchObject({ code: 0, out: "boxed is deleted.\n" });
  });

  test("[CV-6] a failed build exits 1 with its reason; Ctrl-C ends the wait, not the build", async () => {
    expect(await run("workspaces create bad --template failing")).toMatchObject({
      code: 1,
      out: "",
      err: expect.stringMatching(/\ntwo\n(.*\n)*slipway workspaces create: starting bad failed: no room left\n$/),
    });
    const createProcess = world.spawn(splitWords("workspaces create slow --template hanging"));
    let err = "";
    const decoder = new TextDecoder();
    for await (const chunk of createProcess.stderr) {
      err += decoder.decode(chunk, { stream: true });
      if (err.endsWith("two\n")) createProcess.kill("SIGINT");
    }
    expect([await createProcess.exited, err]).toEqual([130, expect.stringContaining("starting slow continues")]);
    const { latest_build } = await admin.get<Workspace>("/api/v2/users/me/workspace/slow");
    expect(latest_build.status).toBe("starting");
    const busy = await run("workspaces stop slow");
    expect([busy.code, busy.err]).toEqual([1, expect.stringContaining("slow is starting")]);
    expect(busy.err).toContain("`slipway workspaces cancel slow` cancels it");
    await admin.patch(`/api/v2/workspacebuilds/${latest_build.id}/cancel`);
  });

  test("[CV-35] `cancel` cancels a hanging build and ends waiting commands; a second cancel does nothing", async () => {
    const createProcess = world.spawn(splitWords("workspaces create stuck --template hanging"));
    let err = "";
    for await (const chunk of createProcess.stderr) {
      err += new TextDecoder().decode(chunk);
      if (!err.endsWith("two\n")) continue;
      expect(await run("workspaces cancel stuck")).toMatchObject({ code: 0, out: "Canceled: starting stuck.\n" });
    }
    expect([await createProcess.exited, err]).toEqual([1, expect.stringContaining("starting stuck was canceled")]);
    const secondCancel = await run("workspaces cancel stuck");
    expect(secondCancel).toMatchObject({ code: 0, out: "Nothing to cancel: stuck is canceled.\n" });
    await run("workspaces start stuck --no-wait");
    const canceled = JSON.parse(await world.runOk(splitWords("workspaces cancel stuck --no-wait --json"))) as Workspace;
    expect(canceled.latest_build).toMatchObject({ build_number: 2, job: { status: expect.stringMatching(/^cancel/) } });
    expect(await run("workspaces cancel missing")).toMatchObject({ code: 1, err: expect.stringContaining("missing") });
  });

  test("[CV-6] a connection that breaks during a build is reopened without repeating a line", async () => {
    using proxy = new CuttableProxy(world.server.url);
    const create = splitWords("workspaces create cut --template hanging --url");
    const createProcess = world.spawn([...create, proxy.url, "--token", readToken(world)]);
    let err = "";
    let isCut = false;
    const decoder = new TextDecoder();
    for await (const chunk of createProcess.stderr) {
      err += decoder.decode(chunk, { stream: true });
      if (isCut || !err.endsWith("two\n")) continue;
      isCut = true;
      proxy.cut();
      const { latest_build } = await admin.get<Workspace>("/api/v2/users/me/workspace/cut");
      await admin.patch(`/api/v2/workspacebuilds/${latest_build.id}/cancel`);
    }
    expect(await createProcess.exited).toBe(1);
    expect(err.match(/^two$/gm)).toHaveLength(1);
    expect(err).toContain("starting cut was canceled");
  });
});

describe("templates", () => {
  const writeFolder = (name: string, files: Record<string, string>): string => {
    const path = join(world.home, name);
    mkdirSync(join(path, ".git"), { recursive: true });
    for (const [file, text] of Object.entries(files)) writeFileSync(join(path, file), text);
    return path;
  };
  const VALID_MANIFEST = "provisioner: echo\nresources:\n  - name: main\n    agents: [{name: main}]\n";

  test("[CV-7] `push` creates a template from a folder, promotes its next version, and shows the import's log", async () => {
    const cwd = writeFolder("My template", {
      "template.yaml": VALID_MANIFEST,
      "README.md": "# Hello\n",
      ".git/HEAD": "x",
    });
    symlinkSync("/etc/passwd", join(cwd, "link"));
    const first = await run("templates push", { cwd });
    expect(first).toMatchObject({ code: 0, out: expect.stringContaining("Created the template My-template") });
    expect(first.err).toContain("link is skipped: it is not a file in this folder\nuploading 2 files\n");
    expect(first.err).toContain("\nFound template.yaml.\n");
    writeFileSync(join(cwd, "template.yaml"), `${VALID_MANIFEST}# more\n`);
    const second = JSON.parse((await run("templates push --version v2 --message more --json", { cwd })).out);
    expect(second).toMatchObject({ version: { name: "v2", message: "more", readme: "# Hello\n" } });
    expect(second.template.active_version_id).toBe(second.version.id);
    writeFileSync(join(cwd, "template.yaml"), `${VALID_MANIFEST}# still more\n`);
    expect((await run("templates push --version v3 --no-activate", { cwd })).out).toContain("Added version v3 to");
    const listed = JSON.parse(await world.runOk(splitWords("templates list --json"))) as Template[];
    expect(listed.find(({ name }) => name === "My-template")?.active_version_id).toBe(second.version.id);
    expect(await world.runOk(splitWords("templates list"))).toMatch(/\nMy-template +echo +0 +/);
  });

  test("[CV-7] `push` reports an error with its line and creates nothing, even for a missing folder", async () => {
    const invalidFolder = writeFolder("wrong", { "template.yaml": "provisioner: echo\nresources:\n  - agents: []\n" });
    const [pushed, empty, nowhere, unknown] = await Promise.all([
      run(`templates push ${invalidFolder}`),
      run(`templates push ${writeFolder("empty", {})}`),
      run("templates push /nowhere/at/all"),
      run("workspaces create x --template wrong"),
    ]);
    expect(pushed).toMatchObject({
      code: 1,
      out: "",
      err: expect.stringMatching(/failed: template\.yaml line 3: .*name/),
    });
    expect(empty.err).toMatch(/no template.yaml in .*, and no \*\.tf/);
    expect(nowhere).toMatchObject({ code: 1, err: expect.stringContaining("/nowhere/at/all cannot be read") });
    expect(unknown).toMatchObject({ code: 1, err: expect.stringContaining("there is no template wrong.") });
    expect(await world.runOk(splitWords("templates list"))).not.toContain("wrong");
  });
});
