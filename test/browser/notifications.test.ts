// The inbox in a real browser, on a real server.
import { expect } from "bun:test";
import { fileURLToPath } from "node:url";
import { needs, testNeeding } from "#test/support/needs.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";

const SCRIPT = fileURLToPath(new URL("notifications.mjs", import.meta.url));

testNeeding(
  [needs.chromium, needs.node],
  "[WB-35] the bell tells what is new without being asked, its panel shows and marks it, and the account chooses what to hear of",
  async () => {
    await using server = await startTestServer();
    const given = [server.url.href, ADMIN.email, ADMIN.password, process.env.SLIPWAY_PICTURES ?? ""];
    const child = Bun.spawn([needs.node.file, SCRIPT, needs.chromium.file, ...given], {
      stdout: "pipe",
      stderr: "pipe",
    });
    const [output, errors, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    if (code !== 0) throw new Error(`the browser's story failed:\n${errors}`);
    expect(JSON.parse(output)).toMatchObject({ wrong: [], left: 0, checked: false });
  },
  180_000,
);
