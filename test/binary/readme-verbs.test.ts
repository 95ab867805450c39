// The other shell blocks of README that are marked: those of the verbs that talk to a server, and those for whoever is at the machine.
// Each kind is pasted into one shell in the order in which it stands there; only what differs on each machine is put in.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { programIn } from "#test/cli/client-world.ts";
import { type Need, testNeeding } from "#test/support/needs.ts";
import { ADMIN, startTestServer, tempDirectory } from "#test/support/server.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const README = readFileSync(join(ROOT, "README.md"), "utf8");

const blocks = (mark: string): string[] =>
  [...README.matchAll(new RegExp(`^<!-- ${mark} -->\\n\`\`\`sh\\n([\\s\\S]*?)^\`\`\`$`, "gm"))].map(
    ([, block = ""]) => block,
  );

const paste = async (script: string, cwd: string, env: Record<string, string>) => {
  const child = Bun.spawn(["bash", "-euo", "pipefail", "-c", script], {
    ...{ cwd, env: { PATH: process.env.PATH ?? "", ...env } },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, out, err };
};

const bash: Need = { found: Bun.which("bash") !== null, reason: "needs bash", file: "" };
/** Beside the compiled binary these would show nothing more. */
const testHere = Bun.env.SLIPWAY_TEST_BINARY === undefined ? testNeeding : () => {};

test("[RP-8] each mark of another kind stands before a shell block, too", () => {
  for (const mark of ["tried with the verbs", "tried at the machine"]) {
    expect(blocks(mark).length).toBeGreaterThan(1);
    expect(blocks(mark)).toHaveLength(README.split(`<!-- ${mark} -->`).length - 1);
  }
});

testHere(
  [bash],
  "[RP-8] the client's lines of README work as they stand",
  async () => {
    await using server = await startTestServer();
    const script = blocks("tried with the verbs")
      .join("\n")
      .replaceAll("http://127.0.0.1:7080", server.url.origin)
      .replace("you@example.com", ADMIN.email)
      .replace("'…'", `'${ADMIN.password}'`);
    const { code, out, err } = await paste(script, ROOT, { HOME: server.directory, TMPDIR: server.directory });
    expect([code, code === 0 ? "" : err]).toEqual([0, ""]);
    for (const line of [
      `Signed in to ${server.url.origin} as admin.`,
      "The template hello is there",
      "greeter runs.",
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
  180_000,
);

testHere(
  [bash],
  "[RP-8] the lines of README for whoever is at the machine work as they stand",
  async () => {
    using place = tempDirectory();
    const address = { SLIPWAY_ADDRESS: "127.0.0.1:0" };
    const script = blocks("tried at the machine")
      .join("\n")
      .replaceAll("/var/backups/slipway", join(place.path, "backups"))
      .replaceAll("/var/lib/slipway-new", join(place.path, "new"));
    const env = { ...address, PATH: programIn(place.path), HOME: place.path };
    const { code, out, err } = await paste(script, place.path, env);
    expect([code, code === 0 ? "" : `${out}${err}`]).toEqual([0, ""]);
    for (const text of [
      "Created the owner ada",
      "grace is suspended",
      "is whole",
      "Restored the backup",
      "up to date",
    ]) {
      expect(out).toContain(text);
    }
    expect(readFileSync(join(place.path, "slipway.service"), "utf8")).toContain("ProtectSystem=strict");
  },
  180_000,
);
