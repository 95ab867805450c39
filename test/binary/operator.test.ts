// An operator's story with the compiled binary on an empty machine: install, first user, template, workspace, backup, restore elsewhere, a
// forgotten password, a stop, and the upgrade of an earlier build's data. Every command is documented. older-data.ts creates the earlier
// build's data. next-build.ts is a newer build, whose data the binary refuses until the documented steps have restored the earlier data.
import { afterEach, beforeEach, expect } from "bun:test";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findMarkedBlocks, listUserPages, readPage } from "#test/support/documents.ts";
import { compiled, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { tempDirectory } from "#test/support/server.ts";
import { revertNewestMigration } from "./older-data.ts";

const BINARY = compiled.file;
const NEXT_BUILD = fileURLToPath(new URL("next-build.ts", import.meta.url));
const DOCUMENTATION = listUserPages().map(readPage).join("\n");
const ADA = { email: "ada@example.com", username: "ada", password: "correct horse, battery" };
const TEMPLATE = "provisioner: local\nresources:\n  - name: home\n    agents: [{name: main}]\n";

type RunningServer = { url: string; link: string; stop(): Promise<number> };

let temp: ReturnType<typeof tempDirectory>;
let machine: string;
const children = new Set<Bun.Subprocess>();

beforeEach(() => {
  temp = tempDirectory();
  machine = temp.path;
});
afterEach(async () => {
  for (const child of children) child.kill("SIGKILL");
  await Promise.all([...children].map(({ exited }) => exited));
  children.clear();
  temp[Symbol.dispose]();
});

const environment = (): Record<string, string> => ({
  PATH: `${join(machine, "bin")}:${process.env.PATH}`,
  HOME: machine,
  ...(process.env.TEST_RUN_MARK ? { TEST_RUN_MARK: process.env.TEST_RUN_MARK } : {}),
});

/** Runs a shell line and returns its output. Fails if the exit code is unexpected or the command is not documented. */
const sh = async (line: string, { code = 0, stdin = "" } = {}): Promise<string> => {
  for (const [command, verb, word] of line.matchAll(/\bslipway ([a-z-]+)(?: ([a-z-]+)\b)?/g)) {
    const hasSubcommand = ["workspaces", "templates", "user", "migrate"].includes(verb ?? "") && word !== undefined;
    expect(DOCUMENTATION).toContain(hasSubcommand ? command : `slipway ${verb}`);
  }
  const child = Bun.spawn(["sh", "-c", line], {
    cwd: machine,
    env: environment(),
    stdio: [new TextEncoder().encode(stdin), "pipe", "pipe"],
  });
  const [out, err, exitCode] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  if (exitCode !== code) throw new Error(`${line}: ${exitCode}\n${out}${err}`);
  return out + err;
};

/** Starts a server and reads its announcement. */
const serve = async (command: string[], data: string): Promise<RunningServer> => {
  const child = Bun.spawn([...command, "serve", "--address", "127.0.0.1:0", "--data-dir", data], {
    cwd: machine,
    env: environment(),
    stdio: ["ignore", "pipe", "ignore"],
  });
  children.add(child);
  let text = "";
  const decoder = new TextDecoder();
  const reader = child.stdout.getReader();
  while (!text.includes("Data directory:")) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`the server ended before it listened: ${text}`);
    text += decoder.decode(value, { stream: true });
  }
  reader.releaseLock();
  return {
    url: / is listening on (\S+)/.exec(text)?.[1] ?? "",
    link: /http\S+\/setup\?token=\S+/.exec(text)?.[0] ?? "",
    async stop() {
      child.kill("SIGTERM");
      children.delete(child);
      return await child.exited;
    },
  };
};

const signIn = (url: string, password = ADA.password): Promise<string> =>
  sh(`slipway login ${url} --email ${ADA.email} --password-stdin`, { stdin: `${password}\n` });

/** Opens the setup link like a browser, and submits the form of its page. */
const createFirstUser = async ({ url, link }: RunningServer): Promise<number> => {
  expect((await fetch(link)).headers.get("content-type")).toContain("text/html");
  const body = JSON.stringify({ ...ADA, setup_token: new URL(link).searchParams.get("token") });
  const headers = { "content-type": "application/json" };
  return (await fetch(`${url}/api/v2/users/first`, { method: "POST", headers, body })).status;
};

// Other tests cover this from source. This test uses the program that people install.
testNeeding(
  [compiled],
  "[OS-1][OS-2] an operator installs, uses, backs up and restores a server, resets a password, and upgrades an earlier build's data",
  async () => {
    await sh(`install -D -m 755 '${BINARY}' bin/slipway`);
    await installAndRestore();
    await upgrade();
  },
  scaleTimeout(180_000),
);

/** OS-1: goes from an empty machine to a restored server with a new password. */
const installAndRestore = async (): Promise<void> => {
  const first = await serve(["slipway"], "data");
  expect(await createFirstUser(first)).toBe(201);
  expect(await createFirstUser(first)).toBeGreaterThanOrEqual(400);
  await signIn(first.url);
  mkdirSync(join(machine, "small"));
  writeFileSync(join(machine, "small", "template.yaml"), TEMPLATE);
  await sh("slipway templates push small");
  await sh("slipway workspaces create dev --template small");
  expect(await sh("slipway workspaces shell dev -- 'echo hello from $SLIPWAY_WORKSPACE_NAME'")).toContain(
    "hello from dev",
  );
  await sh("slipway workspaces stop dev");
  await sh("slipway backup today.tar --data-dir data");
  expect(await sh("slipway restore today.tar --check")).toContain("is intact");
  expect(await first.stop()).toBe(0);

  await sh("slipway restore today.tar --data-dir elsewhere");
  expect(
    await sh("slipway offline users reset-password ada --data-dir data --password-file /dev/stdin", {
      stdin: "another one, just as long\n",
    }),
  ).toContain("were revoked");
  const output = await sh("slipway offline users reset-password ada --data-dir elsewhere");
  const password = /New password: (\S+)/.exec(output)?.[1] ?? "";
  expect(await sh("slipway doctor --data-dir elsewhere --address 127.0.0.1:0")).not.toContain("wrong");
  const second = await serve(["slipway"], "elsewhere");
  expect(await sh(`slipway whoami --url ${second.url}`, { code: 1 })).toContain("not signed in");
  await expectRefused(second.url);
  await signIn(second.url, password);
  expect(await sh("slipway workspaces list")).toMatch(/\ndev +small +stopped/);
  // The home is recreated, because backups do not contain homes.
  expect(await sh("slipway workspaces shell dev -- 'echo there again'")).toContain("there again");
  await sh("slipway workspaces delete dev --yes");
  expect(await second.stop()).toBe(0);
};

/** OS-2: upgrades an earlier build's data directory, and returns from a newer build. */
const upgrade = async (): Promise<void> => {
  const olderServer = await serve(["slipway"], "older");
  expect(await createFirstUser(olderServer)).toBe(201);
  await signIn(olderServer.url);
  await sh("slipway workspaces create kept --template local");
  await sh("slipway workspaces stop kept");
  expect(await olderServer.stop()).toBe(0);
  revertNewestMigration(join(machine, "older"));

  await expectPendingMigration();
  const upgradedServer = await serve(["slipway"], "older");
  await expectWorkspaceKept(upgradedServer);
  await sh("slipway workspaces delete kept --yes");
  expect(await upgradedServer.stop()).toBe(0);
  expect(await sh("slipway migrate --check --data-dir older")).toContain("up to date");
  expect(listCopies()).toHaveLength(1);
  // The documented steps restore the earlier build's data: the migration is pending again, and the deleted workspace exists.
  await restoreEarlierData();
  await expectPendingMigration();
  const upgradedAgain = await serve(["slipway"], "older");
  await expectWorkspaceKept(upgradedAgain);
  expect(await upgradedAgain.stop()).toBe(0);
  expect(listCopies()).toHaveLength(2);

  const newerServer = await serve([process.execPath, "--no-env-file", NEXT_BUILD], "older");
  await expectWorkspaceKept(newerServer);
  await sh("slipway workspaces delete kept --yes");
  expect(await newerServer.stop()).toBe(0);
  expect(listCopies()).toHaveLength(3);
  expect(await sh("slipway serve --address 127.0.0.1:0 --data-dir older", { code: 1 })).toContain(
    "was written by a newer Slipway",
  );
  await restoreEarlierData();
  const restoredServer = await serve(["slipway"], "older");
  await expectWorkspaceKept(restoredServer);
  expect(await restoredServer.stop()).toBe(0);
};

const expectPendingMigration = async (): Promise<void> => {
  expect(await sh("slipway migrate --check --data-dir older", { code: 1 })).toContain("Pending: ");
};

const expectWorkspaceKept = async ({ url }: RunningServer): Promise<void> => {
  await signIn(url);
  expect(await sh("slipway workspaces list")).toMatch(/\nkept +local +stopped/);
};

/** Returns the database copies made by upgrades. */
const listCopies = (): string[] =>
  readdirSync(join(machine, "older", "backups")).filter((name) => /^before-\d+\.\d+\.\d+\S*Z\.db$/.test(name));

/** Restores the earlier data with the documented steps. */
const restoreEarlierData = async (): Promise<void> => {
  const [steps = ""] = findMarkedBlocks(readPage("docs/backup.md"), "tried after an upgrade");
  expect(steps).toContain("cd /var/lib/slipway\n");
  await sh(`set -e\n${steps.replace("/var/lib/slipway", join(machine, "older"))}`);
};

/** Asserts that the forgotten password is rejected. */
const expectRefused = async (url: string): Promise<void> => {
  const line = `slipway login ${url} --email ${ADA.email} --password-stdin`;
  expect(await sh(line, { code: 1, stdin: ADA.password })).toContain("Incorrect email or password.");
};
