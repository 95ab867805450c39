// A single server loads no code for clusters or trace collectors.
import { expect, test } from "bun:test";
import { join } from "node:path";
import { tempDirectory } from "#test/support/server.ts";

test("[CL-19] [OP-26] a server without a cluster or a trace collector loads no code for them", async () => {
  using directory = tempDirectory();
  const child = Bun.spawn(
    [process.execPath, "--no-env-file", join(import.meta.dir, "loaded-modules.ts"), directory.path],
    {
      env: { PATH: process.env.PATH ?? "", HOME: directory.path },
      stdout: "pipe",
    },
  );
  const { status, modules } = JSON.parse(await child.stdout.text()) as { status: number; modules: string[] };
  expect(status).toBe(200);
  expect(modules).toContain("src/server.ts");
  expect(modules.filter((path) => /^(db\/pg|src\/cluster|src\/telemetry)\//.test(path))).toEqual([]);
});
