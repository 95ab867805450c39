// The files of a folder that become a template. Links inside the folder are followed, and links out of it are skipped.
import { expect, test } from "bun:test";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packFolder } from "#src/cli/client/templates/folder.ts";
import { tempDirectory } from "#test/support/server.ts";

test("[CV-42] follows links inside a template's folder; skips and names dangling links, cycles and links out of the folder", async () => {
  using temp = tempDirectory();
  const folder = join(temp.path, "template");
  mkdirSync(join(folder, "shared", "deep"), { recursive: true });
  mkdirSync(join(folder, ".git"));
  writeFileSync(join(temp.path, "secret"), "outside");
  writeFileSync(join(folder, ".git", "config"), "hidden");
  writeFileSync(join(folder, "real.yaml"), "provisioner: echo\n");
  writeFileSync(join(folder, "shared", "deep", "main.tf"), "# module\n");
  const links = {
    "template.yaml": "real.yaml",
    module: "shared/deep",
    out: "../secret",
    folder: "..",
    "shared/deep/circle": "../..",
    nowhere: "missing",
    git: ".git/config",
  };
  for (const [path, target] of Object.entries(links)) symlinkSync(target, join(folder, path));
  const { archive, skippedPaths } = await packFolder(folder);
  const files = await new Bun.Archive(archive).files();
  expect([...files.keys()].sort()).toEqual(["module/main.tf", "real.yaml", "shared/deep/main.tf", "template.yaml"]);
  expect(await files.get("template.yaml")?.text()).toBe("provisioner: echo\n");
  expect([...skippedPaths].sort()).toEqual(["folder", "git", "module/circle", "nowhere", "out", "shared/deep/circle"]);
});
