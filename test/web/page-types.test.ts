// The types of browser code, which the step `types` excludes: different globals, JSX, and calls with types from the server's routes.
import { expect, test } from "bun:test";
import { ROOT } from "#test/support/documents.ts";
import { TYPE_CHECKER, TYPE_CHECKER_ENV } from "#test/support/type-checker.ts";

test.each(["app", "browser"])("src/web/%s passes the type checker", (folder) => {
  const command = [process.execPath, ...TYPE_CHECKER, "-p", `src/web/${folder}`];
  const env = Object.assign({}, process.env, TYPE_CHECKER_ENV);
  const { stdout, exitCode } = Bun.spawnSync(command, { cwd: ROOT, env });
  expect([stdout.toString(), exitCode]).toEqual(["", 0]);
});
