// The audit log in a real browser.
import { expect } from "bun:test";
import { fileURLToPath } from "node:url";
import { needs, testNeeding } from "#test/support/needs.ts";
import { ADMIN } from "#test/support/server.ts";
import { openWorld } from "#test/support/workspaces.ts";

const SCRIPT = fileURLToPath(new URL("audit.mjs", import.meta.url));

testNeeding(
  [needs.chromium, needs.node],
  "[WB-4] [WB-6] [WB-20] the audit log shows what was done, keeps filter and entry in the address, and tells field by field",
  async () => {
    await using world = await openWorld();
    await world.admin.put("/api/v2/users/me/profile", { username: ADMIN.username, name: "Ada Lovelace" });
    const given = [world.server.url.href, world.admin.token ?? "", process.env.SLIPWAY_PICTURES ?? ""];
    const child = Bun.spawn([needs.node.file, SCRIPT, needs.chromium.file, ...given], {
      stdout: "pipe",
      stderr: "pipe",
    });
    const [output, errors, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    if (code !== 0) throw new Error(`the browser's story failed:\n${errors}`);
    const told = JSON.parse(output) as Record<string, unknown> & { fields: string[] };
    expect(told).toMatchObject({ wrong: [], address: "resource_type:user" });
    expect(told.fields.join("\n")).toContain("Ada Lovelace");
    expect(told.after).toContain("changed user");
  },
  120_000,
);
