// Terminals inside containers. The fake engine runs the programs on this machine; everything else is real.
import { describe, expect, test } from "bun:test";
import { isAlive } from "#test/daemon/support/daemon.ts";
import { forFile } from "#test/support/for-file.ts";
import { until } from "#test/support/until.ts";
import { startContainerWorld } from "./containers-world.ts";
import { TestTerminal } from "./reach.ts";

const setup = await forFile(startContainerWorld());
setup.docker.put("box");
setup.docker.put("stopped", { running: false });

const open = (options: Parameters<typeof TestTerminal.open>[1]) =>
  TestTerminal.open(setup.world, { container: "box", ...options });

describe("a terminal in a container", () => {
  test("[TM-11] runs a command as the requested user, with the requested size, and ends with the command", async () => {
    using terminal = await open({
      command: "read go; stty size; echo [$TERM] done",
      container_user: "dev",
      height: 33,
      width: 101,
    });
    terminal.sendInput({ height: 34, width: 102 });
    terminal.sendInput({ data: "\n" });
    expect(await terminal.until(/done/)).toMatch(/34 102[\s\S]*\[xterm-256color\] done/);
    expect(await terminal.socket.closed).toMatchObject({ code: 1000 });
    const exec = [...setup.docker.execs.values()].at(-1);
    expect(exec).toMatchObject({ container: "box", body: { User: "dev", Tty: true } });
  });

  test("[TM-11] is a shell in which Ctrl-C works; a second client sees its current state", async () => {
    using first = await open({});
    first.sendInput({ data: "sh -c 'echo one$((1+1)); exec sleep 1000'\n" });
    await first.until(/one2/);
    using second = await open({ id: first.id });
    await second.until(/one2/);
    second.sendInput({ data: "\x03" });
    second.sendInput({ data: "echo aft''er\n" });
    await first.until(/after/);
    first.sendInput({ data: "exit\n" });
    expect(await second.socket.closed).toMatchObject({ code: 1000 });
  });

  test("[TM-11] reports an error if the container is missing or stopped", async () => {
    using missing = await open({ container: "nowhere" });
    expect(await missing.until(/\n/)).toMatch(/No such container: nowhere/);
    using stopped = await open({ container: "stopped" });
    expect(await stopped.until(/\n/)).toMatch(/not running/);
    expect(await stopped.socket.closed).toMatchObject({ code: 1000 });
  });

  test("[TM-12] transfers a large output completely", async () => {
    using terminal = await open({ command: "yes 0123456789 | head -c 3000000 | tr -d '\\n'; echo; echo en''d" });
    let size = 0;
    let last = "";
    for await (const chunk of terminal.socket) {
      size += (chunk as Uint8Array).byteLength;
      last = new TextDecoder().decode(chunk as Uint8Array).slice(-20);
    }
    expect(last).toMatch(/end\r\n$/);
    expect(size).toBeGreaterThanOrEqual(Math.floor((3_000_000 / 11) * 10));
  });

  test("[TM-12] ends every process in it when the workspace stops", async () => {
    using terminal = await open({});
    terminal.sendInput({ data: "sleep 1000 & echo pid=$!.\n" });
    const pid = Number(/pid=(\d+)\./.exec(await terminal.until(/pid=\d+\./))?.[1]);
    expect(isAlive(pid)).toBe(true);
    await setup.world.daemon[Symbol.asyncDispose]();
    await terminal.socket.closed;
    await until(() => !isAlive(pid));
    expect(isAlive(pid)).toBe(false);
  });
});
