// What earlier runs have left in the provisioner's own folders, when a server starts.
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TerraformProvisioner } from "#src/provisioners/terraform/terraform.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { tempDirectory } from "#test/support/server.ts";

const DAY_MS = 86_400_000;

test("[TF-27] a start removes plugins that nobody has used for 30 days and folders of old imports, and never that of a build", async () => {
  using place = tempDirectory();
  const root = place.path;
  const clock = new ManualClock(Date.now());
  const old = (path: string, days: number): string => {
    const folder = join(root, path);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "file"), "");
    const at = new Date(clock.now() - days * DAY_MS);
    utimesSync(folder, at, at);
    return folder;
  };
  const used = old("plugins/registry.terraform.io/coder/coder/2.19.0/linux_amd64", 29);
  const unused = old("plugins/registry.terraform.io/coder/coder/2.18.0/linux_amd64", 31);
  const [recent, forgotten] = [old("imports/a", 6), old("imports/b", 8)];
  const build = old("builds/c", 400);
  const settings = { binary: undefined, cliConfig: undefined, pass: [], applyLimit: 60_000 };
  await new TerraformProvisioner({ root, clock, env: {}, ...settings }).prepare();
  expect([used, unused, recent, forgotten, build].map((one) => existsSync(one))).toEqual([
    true,
    false,
    true,
    false,
    true,
  ]);
});
