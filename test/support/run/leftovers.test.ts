// Tests of the runner's leak detection: a process that outlives its test is found and attributed to the test that created its folder.
import { expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeLocation, noteFolder, RUN_LEDGER, readNotedFolders } from "#test/support/run/ledger.ts";
import { endLeftovers, findLeftovers, RUN_MARK } from "#test/support/run/leftovers.ts";

const testOnLinux = process.platform === "linux" ? test : test.skip;

testOnLinux(
  "[RP-30] a process with its own environment is found by its home, and attributed to the test that created the folder",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "slipway-left-"));
    const earlierLedger = process.env[RUN_LEDGER];
    const ledger = join(folder, "ledger");
    const home = join(folder, "home");
    mkdirSync(home);
    process.env[RUN_LEDGER] = ledger;
    noteFolder(home);
    if (earlierLedger === undefined) delete process.env[RUN_LEDGER];
    else process.env[RUN_LEDGER] = earlierLedger;
    const byHome = Bun.spawn(["/bin/sleep", "1000"], { cwd: "/", env: { HOME: join(home, "deep") } });
    const byFolder = Bun.spawn(["/bin/sleep", "1001"], { cwd: home, env: {} });
    const marked = Bun.spawn(["/bin/sleep", "1002"], { cwd: "/", env: { [RUN_MARK]: "mine" } });
    const unrelated = Bun.spawn(["/bin/sleep", "1003"], { cwd: "/", env: { HOME: `${home}er`, [RUN_MARK]: "theirs" } });
    const noted = readNotedFolders(ledger);
    const found = findLeftovers("mine", noted);
    expect(found.map(({ pid }) => pid).sort()).toEqual([byHome.pid, byFolder.pid, marked.pid].sort());
    const [byHomeLeftover] = found.filter(({ pid }) => pid === byHome.pid);
    expect(describeLocation(byHomeLeftover?.location ?? "")).toMatch(
      /leftovers\.test\.ts:\d+ \[RP-30\] a process with its own environment/,
    );
    endLeftovers(found);
    await Promise.all([byHome.exited, byFolder.exited, marked.exited]);
    expect(findLeftovers("mine", noted)).toEqual([]);
    unrelated.kill();
    await unrelated.exited;
    rmSync(folder, { recursive: true });
  },
);
