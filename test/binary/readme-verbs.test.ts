// The other marked shell blocks of the documentation: commands that talk to a server, and commands for operators on the machine. Each kind
// is run in one shell in document order. Only machine-specific values are filled in.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { installProgram } from "#test/cli/client-world.ts";
import { countMarks, findMarkedBlocks, listUserPages, ROOT, readPage } from "#test/support/documents.ts";
import { type Need, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { ADMIN, startTestServer, tempDirectory } from "#test/support/server.ts";

const VERBS_MARK = "tried with the verbs";
const MACHINE_MARK = "tried at the machine";

const listBlocks = (path: string, mark: string): string[] => findMarkedBlocks(readPage(path), mark);

/** Returns the sign-in of docs/cli.md, the steps of the README, and the last block of docs/cli.md, which signs out. */
const listVerbBlocks = (): string[] => {
  const reference = listBlocks("docs/cli.md", VERBS_MARK);
  return [...reference.slice(0, -1), ...listBlocks("README.md", VERBS_MARK), ...reference.slice(-1)];
};

/** Returns the blocks of the operators' pages in reading order. */
const listMachineBlocks = (): string[] =>
  ["docs/operating.md", "docs/backup.md", "docs/cli.md"].flatMap((path) => listBlocks(path, MACHINE_MARK));

const runScript = async (script: string, cwd: string, env: Record<string, string>) => {
  const child = Bun.spawn(["bash", "-euo", "pipefail", "-c", script], {
    cwd,
    env: { PATH: process.env.PATH ?? "", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, out, err };
};

const bash: Need = { found: Bun.which("bash") !== null, reason: "needs bash", file: "" };
/** Skips these tests in a run with the compiled binary, which would test nothing else. */
const testFromSource = Bun.env.SLIPWAY_TEST_BINARY === undefined ? testNeeding : () => {};

test("[RP-8] each of the other marks precedes a shell block", () => {
  const countAllMarks = (mark: string): number =>
    listUserPages().reduce((sum, path) => sum + countMarks(readPage(path), mark), 0);
  expect(listVerbBlocks()).toHaveLength(countAllMarks(VERBS_MARK));
  expect(listMachineBlocks()).toHaveLength(countAllMarks(MACHINE_MARK));
  expect(listVerbBlocks().length + listMachineBlocks().length).toBeGreaterThan(8);
});

testFromSource(
  [bash],
  "[RP-8] the client commands of README and docs/cli.md work as written",
  async () => {
    await using server = await startTestServer();
    const script = listVerbBlocks()
      .join("\n")
      .replaceAll("http://127.0.0.1:7080", server.url.origin)
      .replace("you@example.com", ADMIN.email)
      .replace("'…'", `'${ADMIN.password}'`);
    const { code, out, err } = await runScript(script, ROOT, { HOME: server.directory, TMPDIR: server.directory });
    expect([code, code === 0 ? "" : err]).toEqual([0, ""]);
    for (const line of [
      `Signed in to ${server.url.origin} as admin.`,
      "Created the template hello",
      "hello from first",
      "Linux",
      "greeter is running.",
      "good day from greeter",
      "./template.yaml",
      "provisioner: local",
      "greeter is stopped.",
      "greeter is deleted.",
      `Signed out of ${server.url.origin}.`,
    ]) {
      expect(out).toContain(line);
    }
    expect(out).toMatch(/^greeter +hello +running/m);
  },
  scaleTimeout(180_000),
);

testFromSource(
  [bash],
  "[RP-8] the documentation's commands for operators work as written",
  async () => {
    using temp = tempDirectory();
    const address = { SLIPWAY_ADDRESS: "127.0.0.1:0" };
    const script = listMachineBlocks()
      .join("\n")
      .replaceAll("/var/backups/slipway", join(temp.path, "backups"))
      .replaceAll("/var/lib/slipway-new", join(temp.path, "new"));
    const env = { ...address, PATH: installProgram(temp.path), HOME: temp.path };
    const { code, out, err } = await runScript(script, temp.path, env);
    expect([code, code === 0 ? "" : `${out}${err}`]).toEqual([0, ""]);
    for (const text of [
      "Created the owner ada",
      "grace is suspended",
      "is intact",
      "Restored the backup",
      "up to date",
    ]) {
      expect(out).toContain(text);
    }
    expect(readFileSync(join(temp.path, "slipway.service"), "utf8")).toContain("ProtectSystem=strict");
  },
  scaleTimeout(180_000),
);
