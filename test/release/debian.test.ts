// The Debian package on Debian: debian.sh installs it in a copy of this machine's system, in its own namespaces.
import { expect } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { makePackages } from "#src/release/packages.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { findCompiledProgram, toProgramCommand } from "#test/support/program.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const program = findCompiledProgram();
const compiled = {
  found: program !== undefined,
  reason: "needs the compiled program in SLIPWAY_TEST_PROGRAM",
  file: "",
};
const debian = {
  found: Bun.which("apt-get") !== null && Bun.which("unshare") !== null,
  reason: "needs a Debian with the program unshare",
  file: "",
};

testNeeding(
  [needs.root, needs.nfpm, needs.curl, compiled, debian],
  "[RL-8] on Debian, apt installs the service and its first user, and upgrades, downgrades, removes and purges the package",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "slipway-debian-"));
    try {
      const unit = Bun.spawnSync([...toProgramCommand(), "systemd", "--program", "/usr/bin/slipway"], {
        env: { PATH: process.env.PATH },
      }).stdout.toString();
      for (const name of ["packages", "tree"]) mkdirSync(join(folder, name));
      for (const version of ["0.2.0", "0.2.1"]) {
        await makePackages(
          {
            root: ROOT,
            out: join(folder, "packages"),
            scratch: folder,
            version,
            epoch: 1_700_000_000,
            env: { PATH: `${join(needs.nfpm.file, "..")}:${process.env.PATH}` },
            programs: { [process.arch === "x64" ? "linux-amd64" : "linux-arm64"]: program as string },
            publicKey: "",
            url: undefined,
          },
          unit,
          { kinds: ["deb"], compression: "none" },
        );
      }
      const child = Bun.spawn(
        [
          ...[
            "unshare",
            "--mount",
            "--pid",
            "--net",
            "--fork",
            "--kill-child",
            "sh",
            join(import.meta.dir, "debian.sh"),
          ],
          ...[join(folder, "packages"), join(folder, "tree")],
        ],
        { stdio: ["ignore", "pipe", "pipe"] },
      );
      const [output, errors, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
      // Packaging tools draw their progress with carriage returns.
      const lines = output.split("\n").map((line) => line.trimEnd().split("\r").at(-1));
      expect({ code, lines, errors }).toEqual({
        code: 0,
        lines: [
          "== account /var/lib/slipway:/usr/sbin/nologin",
          "== data slipway 700 settings root:slipway 640",
          "== owner slipway: /usr/bin/slipway",
          "== Slipway",
          "== first user 201",
          "== stopped with 0",
          "== version 0.2.1 settings kept 1",
          "== after the upgrade 201",
          "== stopped with 0",
          "== back at 0.2.0 201",
          "== stopped with 0",
          "== removed gone data /var/lib/slipway/slipway.db",
          "The data of Slipway is kept in /var/lib/slipway.",
          "== purged settings gone data /var/lib/slipway/slipway.db",
          "",
        ],
        errors: "",
      });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
  scaleTimeout(180_000),
);
