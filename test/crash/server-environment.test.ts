// Short versions of the tests with a full disk, a locked database and a read-only directory; `bun run torture` runs the long ones.
import { expect } from "bun:test";
import { testNeeding } from "#test/support/needs.ts";
import { smallDiskSkipReason } from "./disk/small-disk.ts";
import { checkFullDisk, readOnlyDirectory } from "./server-environment.ts";

const quiet = { seed: 1, log: () => {} };
const disk = { found: smallDiskSkipReason() === "", reason: smallDiskSkipReason(), file: "" };

testNeeding(
  [disk],
  "[CR-18] [CR-19] with a full disk or a locked database, reads continue, nothing acknowledged is lost, and the server recovers",
  async () => {
    expect(await checkFullDisk({ ...quiet, rounds: 1 })).toContain("none lost");
  },
);

testNeeding([disk], "[CR-20] a start on a read-only directory fails with one line and changes nothing", async () => {
  expect(await readOnlyDirectory({ ...quiet, rounds: 1 })).toContain("nothing changed");
});
