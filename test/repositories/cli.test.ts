// `slipway create --repo` creates a running workspace from a link.
import { afterAll, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { openClientWorld, signInAs } from "#test/cli/client-world.ts";
import { forFile } from "#test/support/for-file.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { requireSingleServer } from "#test/support/one-server.ts";
import { openGitWorld } from "./world.ts";

const git = openGitWorld();
afterAll(() => git[Symbol.dispose]());
const world = await forFile(openClientWorld());
await signInAs(world);

testNeeding(
  [needs.git, requireSingleServer("local")],
  "[RW-6] slipway create --repo creates a workspace with the name of the repository and waits until it is ready",
  async () => {
    await git.publish("my.app", { "docs/a.txt": "a" });
    const created = await world.runOk([
      "create",
      "--repo",
      git.link("my.app"),
      "--path",
      "docs",
      "--full-history",
      "--json",
    ]);
    const { id, name, template_name } = JSON.parse(created) as Workspace;
    expect([name, template_name]).toEqual(["my-app", "repository-local"]);
    const clone = join(world.server.directory, "workspaces", id, "home", "my.app");
    expect(existsSync(join(clone, "docs", "a.txt"))).toBe(true);
    expect(existsSync(join(clone, ".git", "shallow"))).toBe(false);
    await world.runOk(["workspaces", "delete", name, "--yes"]);
  },
);

/** Invalid arguments and their errors. */
const INVALID_ARGUMENTS: readonly (readonly [string, string])[] = [
  ["--repo nothing", "expected a link such as https://github.com/acme/app"],
  ["app --branch main", "requires --repo"],
  ["--repo https://github.com/acme/app --pull-request x", "expected a number"],
];

test.each(INVALID_ARGUMENTS as [string, string][])(
  "[RW-6] slipway create %s explains the error",
  async (args, message) => {
    const { code, err } = await world.run(["create", ...args.split(" ")]);
    expect([code, err]).toEqual([2, expect.stringContaining(message)]);
  },
);
