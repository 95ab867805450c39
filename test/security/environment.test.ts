// Secrets in the initial environment of a process: a real server, and what the system shows of it to other programs of the same user.
import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "#src/client.ts";
import { command } from "#test/crash/server.ts";
import { ADMIN, readAnnouncedUrl, tempDirectory } from "#test/support/server.ts";
import { awaitWorkspace, createBuild, createWorkspace } from "#test/support/workspaces.ts";

const PROVIDER = JSON.stringify([
  { id: "git", type: "github", client_id: "c", client_secret: "secret-of-the-provider" },
]);
const ADMIN_NAMES = { SLIPWAY_ADMIN_EMAIL: ADMIN.email, SLIPWAY_ADMIN_USERNAME: ADMIN.username };
const testOnLinux = process.platform === "linux" ? test : test.skip;

/** Starts a server as a person would, with these variables, and collects its log. */
const serve = async (directory: string, env: Record<string, string>) => {
  const child = Bun.spawn([...command(), "serve", "--address=127.0.0.1:0", `--data-dir=${join(directory, "data")}`], {
    env: { PATH: process.env.PATH, HOME: directory, ...ADMIN_NAMES, ...env },
    stdout: "pipe",
    stderr: "pipe",
  });
  const url = await readAnnouncedUrl(child.stdout);
  const reader = child.stderr
    .pipeThrough(new TextDecoderStream() as never)
    .getReader() as ReadableStreamDefaultReader<string>;
  let log = "";
  return {
    url,
    pid: child.pid,
    environ: () => readFileSync(`/proc/${child.pid}/environ`, "latin1"),
    reload: async (): Promise<string> => {
      child.kill("SIGHUP");
      for (;;) {
        const { value, done } = await reader.read();
        log += value ?? "";
        if (done || /settings were reloaded|cannot be used/.test(log)) return log;
      }
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await child.exited;
    },
  };
};

testOnLinux(
  "[CF-17] a server hides the secrets that it was started with in its environment, and keeps them across a reload",
  async () => {
    using temp = tempDirectory();
    const secrets = {
      SLIPWAY_ADMIN_PASSWORD: ADMIN.password,
      SLIPWAY_EXTERNAL_AUTH: PROVIDER,
      SLIPWAY_TOKEN: "a-token-of-the-operator",
    };
    await using server = await serve(temp.path, { FIRST: "1", ...secrets, LAST: "kept" });
    const environment = server.environ();
    for (const [name, value] of Object.entries(secrets)) {
      expect(environment).not.toContain(name);
      expect(environment).not.toContain(value);
    }
    expect(environment).not.toContain("secret-of-the-provider");
    for (const variable of ["FIRST=1", "LAST=kept", `SLIPWAY_ADMIN_EMAIL=${ADMIN.email}`]) {
      expect(environment.split("\0")).toContain(variable);
    }
    await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
    const log = await server.reload();
    expect(log).toContain("settings were reloaded");
    expect(log).not.toContain("with_the_next_start");
  },
);

testOnLinux("[CF-17] daemons of local workspaces do not get the server's secrets", async () => {
  using temp = tempDirectory();
  await using server = await serve(temp.path, { SLIPWAY_ADMIN_PASSWORD: ADMIN.password });
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  const [local] = await admin.get<{ id: string }[]>("/api/v2/templates");
  const { id } = await createWorkspace(admin, local?.id ?? "");
  await awaitWorkspace(
    admin,
    id,
    ({ latest_build }) => latest_build.resources[0]?.agents[0]?.lifecycle_state === "ready",
  );
  const record = JSON.parse(readFileSync(join(temp.path, "data", "workspaces", id, "daemon.json"), "utf8"));
  const environment = readFileSync(`/proc/${record.pid}/environ`, "latin1");
  expect(environment).toContain(`HOME=${join(temp.path, "data", "workspaces", id, "home")}`);
  expect(environment).not.toContain(record.token);
  expect(environment).not.toContain(ADMIN.password);
  await createBuild(admin, id, "delete");
  await awaitWorkspace(admin, id, ({ latest_build }) => latest_build.status === "deleted");
});

testOnLinux(
  "[CF-16] a server starts and reloads with a secret from a file, which its environment does not contain",
  async () => {
    using temp = tempDirectory();
    const file = join(temp.path, "password");
    writeFileSync(file, `${ADMIN.password}\n`, { mode: 0o600 });
    await using server = await serve(temp.path, { SLIPWAY_ADMIN_PASSWORD_FILE: file });
    await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
    expect(await server.reload()).toContain("settings were reloaded");
    expect(server.environ()).toContain(`SLIPWAY_ADMIN_PASSWORD_FILE=${file}`);
    expect(server.environ()).not.toContain(ADMIN.password);
  },
);
