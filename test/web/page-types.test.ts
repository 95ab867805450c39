// The types of browser code, which the step `types` excludes: different globals, JSX, and calls with types from the server's routes.
import { expect, test } from "bun:test";
import { ROOT } from "#test/support/documents.ts";

test.each(["app", "browser"])("the types of src/web/%s hold", (folder) => {
  const command = ["bun", "node_modules/typescript/bin/tsc", "-p", `src/web/${folder}`];
  const { stdout, exitCode } = Bun.spawnSync(command, { cwd: ROOT });
  expect([stdout.toString(), exitCode]).toEqual(["", 0]);
});
