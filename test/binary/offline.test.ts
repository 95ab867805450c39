// Slipway without a network: in a network namespace with only loopback, if the system allows creating one.
import { expect } from "bun:test";
import { fileURLToPath } from "node:url";
import { type Need, testNeeding } from "#test/support/needs.ts";

const STORY = fileURLToPath(new URL("./offline-story.ts", import.meta.url));

/** The first working command that creates a network namespace: as root, or as root of a user namespace. */
const unshareCommand = [
  ["unshare", "-n"],
  ["unshare", "-rn"],
].find((command) => Bun.which("unshare") && Bun.spawnSync([...command, process.execPath, "--version"]).exitCode === 0);

const namespace: Need = {
  found: process.platform === "linux" && unshareCommand !== undefined,
  reason: "needs unshare and the right to a network namespace",
  file: unshareCommand?.[0] ?? "",
};

testNeeding(
  [namespace],
  "[RP-7] without a network, a new server starts, people sign in, and a workspace's startup script sends its output",
  async () => {
    const child = Bun.spawn([...(unshareCommand ?? []), process.execPath, "--no-env-file", STORY], {
      env: process.env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const [out, errors, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    expect([code, errors]).toEqual([0, ""]);
    const results = JSON.parse(out) as { assets: number };
    expect(results).toMatchObject({ outside: [false, false], state: "ready", areLocal: true });
    expect(results).toMatchObject({ output: ["line 1", "line 2", "line 3"] });
    expect(results.assets).toBeGreaterThan(1);
  },
);
