// The compiled program runs no code from the folder where it is started. From a package that loads native code, it uses only the part that
// was compiled into the program.
import { expect } from "bun:test";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openClientWorld, signInAs } from "#test/cli/client-world.ts";
import { compiled, testNeeding } from "#test/support/needs.ts";

const BINARY = compiled.file;

testNeeding(
  [compiled],
  "[RP-6] [CN-2] ssh in a folder with a hostile node_modules reaches the workspace and runs none of its code",
  async () => {
    await using world = await openClientWorld();
    await signInAs(world);
    await world.runOk(["workspaces", "create", "dev"]);
    const hostileFolder = join(world.home, "hostile");
    const marker = join(world.home, "was-run");
    for (const name of ["cpu-features", "sshcrypto", "ssh2"]) {
      const folder = join(hostileFolder, "node_modules", name);
      mkdirSync(folder, { recursive: true });
      const text = `require("node:fs").writeFileSync(${JSON.stringify(marker)}, "");\n`;
      writeFileSync(join(folder, "index.js"), text);
    }
    const child = Bun.spawn([BINARY, "ssh", "dev", "--", "echo reached"], {
      cwd: hostileFolder,
      env: { HOME: world.home, PATH: process.env.PATH },
      stdio: ["ignore", "pipe", "inherit"],
    });
    expect(await child.stdout.text()).toBe("reached\n");
    expect([await child.exited, existsSync(marker)]).toEqual([0, false]);
    await world.runOk(["workspaces", "delete", "dev", "--yes"]);
  },
);
