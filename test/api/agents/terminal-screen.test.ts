// Terminals of the program `screen`, with a real server, real daemon processes that are restarted, and the real program.
import { expect } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { uuid } from "#base/ids.ts";
import { isAlive } from "#test/daemon/support/daemon.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { until } from "#test/support/until.ts";
import { startAgentProcess, startReachableAgent, TestTerminal } from "./reach.ts";

const backend_type = "screen";

testNeeding(
  [needs.screen],
  "[TM-14][TM-15] all clients share a screen terminal with its keys and sizes; it ends its processes with its command",
  async () => {
    await using world = await startReachableAgent();
    const id = uuid();
    const readPid = (name: string) => Number(readFileSync(join(world.home, name), "utf8"));
    using first = await TestTerminal.open(world, { id, backend_type, height: 24, width: 100 });
    // Ctrl-A is normally screen's command key; here it reaches the shell and moves to the beginning of the line.
    await first.until(/[#$] /);
    first.sendInput({ data: '$((40+2)) "on $TERM"\x01echo ' });
    first.sendInput({ data: "\n" });
    await first.until(/42 on screen-256color/);
    using second = await TestTerminal.open(world, { id, backend_type: "screen", height: 30, width: 90 });
    await second.until(/42 on screen-256color/);
    // Screen applies the new size slightly later.
    first.sendInput({ data: 'while [ "$(stty size)" != "24 90" ]; do sleep 0.05; done; echo in $PWD\n' });
    await second.until(new RegExp(`in ${world.home}`));
    second.sendInput({
      data: "(trap '' HUP; exec sleep 1000) & echo $! > job; echo $$ > shell; disown -a; echo ok$((1+1))\n",
    });
    await first.until(/ok2/);
    const [job, shell] = [readPid("job"), readPid("shell")];
    expect([job, shell].map(isAlive)).toEqual([true, true]);
    first.sendInput({ data: "exit\n" });
    const end = { code: 1000, reason: "the command has ended" };
    expect(await Promise.all([first.socket.closed, second.socket.closed])).toEqual([end, end]);
    await until(() => ![job, shell].some(isAlive));
  },
);

testNeeding(
  [needs.screen],
  "[TM-14][TM-15] a program in a screen terminal survives a kill of the daemon, and ends when the daemon stops",
  async () => {
    await using world = await startReachableAgent();
    const command = "echo pid $$; read first; echo got $first; read second";
    using before = await TestTerminal.open(world, { backend_type, command });
    const [, pidText] = /pid (\d+)\r/.exec(await before.until(/pid \d+\r/)) ?? [];
    const pid = Number(pidText);
    world.daemon.process.kill("SIGKILL");
    expect((await before.socket.closed).code).toBe(1011);
    await world.daemon.process.exited;
    expect(isAlive(pid)).toBe(true);

    const daemon = await startAgentProcess(world.server, world.seeded, world.home);
    using after = await TestTerminal.open(world, { id: before.id, backend_type, command: "echo a new one" });
    expect(await after.until(/pid \d+/)).toContain(`pid ${pid}`);
    after.sendInput({ data: "word\n" });
    expect(await after.until(/got word/)).not.toContain("a new one");
    await daemon[Symbol.asyncDispose]();
    expect(await after.socket.closed).toEqual({ code: 1000, reason: "the command has ended" });
    expect(isAlive(pid)).toBe(false);
  },
);

testNeeding([needs.screen], "[TM-14] without the program, the terminal shows an error", async () => {
  await using world = await startReachableAgent();
  await world.daemon[Symbol.asyncDispose]();
  const programs = mkdtempSync(join(tmpdir(), "slipway-programs-"));
  symlinkSync(Bun.which("bash") ?? "", join(programs, "bash"));
  await using _daemon = await startAgentProcess(world.server, world.seeded, world.home, { env: { PATH: programs } });
  using failed = await TestTerminal.open(world, { backend_type, command: "echo never" });
  expect(await failed.until(/\n/)).toBe("This workspace has no program `screen`: open the terminal as `buffered`.\r\n");
  expect((await failed.socket.closed).code).toBe(1000);
  using buffered = await TestTerminal.open(world, { id: failed.id, backend_type: "buffered", command: "echo here" });
  await buffered.until(/here/);
  rmSync(programs, { recursive: true, force: true });
});
