// Terminals end to end: a real server, a real daemon process, a real shell on a real pseudo-terminal.
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { uuid } from "#base/ids.ts";
import { Client } from "#src/client.ts";
import { isAlive } from "#test/daemon/support/daemon.ts";
import { forFile } from "#test/support/for-file.ts";
import { BareSocket } from "#test/support/net/bare-socket.ts";
import { getContext, seedAgent, seedUser } from "#test/support/seed.ts";
import { ADMIN } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { startAgentProcess, startReachableAgent, TestTerminal } from "./reach.ts";
import { readSlowly, waitUntilStalled } from "./slow-socket.ts";

const world = await forFile(startReachableAgent());

const open = (options: Parameters<typeof TestTerminal.open>[1] = {}) => TestTerminal.open(world, options);
const READY = /# $|\$ $/;

/** Returns the process ID that a command has written into this file of the home folder. */
const readPid = (name: string): number => Number(readFileSync(join(world.home, name), "utf8"));

describe("a terminal", () => {
  test("[TM-1] is a login shell with a known terminal type and a UTF-8 character set, in the agent's folder", async () => {
    using terminal = await open();
    terminal.sendInput({
      data: "echo [$TERM] [$(locale charmap)] [$PWD] [$SLIPWAY_AGENT_TOKEN]; shopt -q login_shell && echo log''in\n",
    });
    const output = await terminal.until(/\nlogin/);
    expect(output).toContain(`[xterm-256color] [UTF-8] [${world.home}]`);
    expect(output).toContain("]");
    terminal.sendInput({ data: "exit\n" });
    expect(await terminal.socket.closed).toEqual({ code: 1000, reason: "the command has ended" });
  });

  test("[TM-1] a command runs through the shell, and its exit closes normally after all output", async () => {
    using terminal = await open({ command: "printf 'héllo %s' $((40+2)); exit 3" });
    expect(await terminal.until(/42/)).toBe("héllo 42");
    expect(await terminal.socket.closed).toEqual({ code: 1000, reason: "the command has ended" });
  });

  test("[TM-2] Ctrl-C reaches the program in the foreground, and only that", async () => {
    using terminal = await open();
    await terminal.until(READY);
    terminal.sendInput({ data: "echo $$ > shell; (echo $BASHPID > sleeper; exec sleep 1000)\n" });
    await untilHolds(() => isAlive(readPid("sleeper")));
    const sleeper = readPid("sleeper");
    terminal.clearOutput();
    terminal.sendInput({ data: "\x03" });
    await terminal.until(/\^C/);
    terminal.sendInput({ data: "echo still $((1+1)) here\n" });
    await terminal.until(/still 2 here/);
    expect(isAlive(sleeper)).toBe(false);
    expect(isAlive(readPid("shell"))).toBe(true);
    terminal.sendInput({ data: "exit\n" });
    await terminal.socket.closed;
  });

  test("[TM-3] has the size it was opened with, and never more than the smallest of its clients", async () => {
    const id = uuid();
    const command = "while stty size; do sleep 0.05; done";
    using one = await open({ id, height: 24, width: 100, command });
    await one.until(/24 100/);
    using two = await open({ id, height: 30, width: 90 });
    await one.until(/24 90/);
    one.sendInput({ height: 50 });
    one.sendInput({ width: 0, height: 10 });
    one.sendInput({ height: 51, width: 132 });
    await two.until(/30 90/);
    two[Symbol.dispose]();
    // The larger client gets its full size back automatically.
    expect(await one.until(/51 132/)).not.toMatch(/^(50|10) /m);
  });

  test("[TM-4] shows its screen and 1,000 lines above it to clients that return with its ID, and all output to every client", async () => {
    const id = uuid();
    const command = "seq 1 30000; echo the end of it; read x; echo got $x; read y";
    const first = await open({ id, command });
    await first.until(/the end of it/);
    first[Symbol.dispose]();
    using second = await open({ id });
    const output = await second.until(/the end of it/);
    expect(output).toContain("29999\r\n30000\r\n");
    const lines = output.match(/^\d+\r$/gm) ?? [];
    expect(lines.length).toBeGreaterThan(1_000);
    expect(lines.length).toBeLessThan(1_100);
    using third = await open({ id });
    await third.until(/the end of it/);
    third.sendInput({ data: "hi\n" });
    await Promise.all([second.until(/got hi/), third.until(/got hi/)]);
    second.sendInput({ data: "\n" });
    expect(await Promise.all([second.socket.closed, third.socket.closed])).toMatchObject([
      { code: 1000 },
      { code: 1000 },
    ]);
    using again = await open({ id, command: "echo a new one" });
    expect(await again.until(/one/)).toStartWith("a new one");
  });

  test("[TM-8] ends its processes when it ends, including background jobs", async () => {
    using terminal = await open();
    await terminal.until(READY);
    terminal.sendInput({
      data: "sleep 1000 & echo $! > job; (trap '' HUP; exec sleep 1000) & echo $! > stubborn; echo ok$((1+1))\n",
    });
    await terminal.until(/ok2/);
    const jobs = [readPid("job"), readPid("stubborn")];
    expect(jobs.map(isAlive)).toEqual([true, true]);
    terminal.sendInput({ data: "disown -a; exit\n" });
    expect(await terminal.socket.closed).toMatchObject({ code: 1000 });
    await untilHolds(() => !jobs.some(isAlive));
  });
});

describe("a slow reader", () => {
  test("[TM-6] gets every byte, while the program waits and memory stays flat", async () => {
    const lines = 40_000_000;
    const path = world.path(
      `pty?reconnect=${uuid()}&command=${encodeURIComponent(`stty -onlcr; yes | head -n ${lines}`)}`,
    );
    await using slow = await BareSocket.open(world.server.url, path, world.seeded.owner_token);
    await waitUntilStalled();
    const before = readResidentBytes(world.daemon.process.pid);
    // Measured in the daemon, where it would accumulate: this process contains the server, the reader and all earlier tests.
    const { bytes, right, close } = await readSlowly(slow, 2 * lines, "y\n");
    const grown = readResidentBytes(world.daemon.process.pid) - before;
    expect([bytes, right]).toEqual([2 * lines, true]);
    expect(close).toEqual({ code: 1000, reason: "the command has ended" });
    expect(grown).toBeLessThan(48 * 1024 * 1024);
  });

  test("[TM-6] holds back the program, which still receives Ctrl-C", async () => {
    const query = new URLSearchParams({ reconnect: uuid(), command: "echo $$ > loud; exec yes" });
    await using slow = await BareSocket.open(world.server.url, world.path(`pty?${query}`), world.seeded.owner_token);
    await waitUntilStalled();
    expect(isAlive(readPid("loud"))).toBe(true);
    slow.send(JSON.stringify({ data: "\x03" }));
    await untilHolds(() => !isAlive(readPid("loud")));
  });
});

describe("failures", () => {
  test("[TM-7] an agent that is not connected is named in the close reason", async () => {
    const never = await seedAgent(world.server);
    const owner = new Client(world.server.url, never.owner_token);
    using terminal = await TestTerminal.open({
      owner,
      path: (rest) => `/api/v2/workspaceagents/${never.agent_id}/${rest}`,
    });
    expect(await terminal.socket.closed).toEqual({
      code: 1011,
      reason: 'The agent is not connected: its state is "connecting".',
    });
  });

  test("[TM-7] killing the daemon ends the terminal with a reason", async () => {
    await using other = await startReachableAgent();
    using terminal = await TestTerminal.open(other, { command: "echo up; sleep 1000" });
    await terminal.until(/up/);
    other.daemon.process.kill("SIGKILL");
    const { code, reason } = await terminal.socket.closed;
    expect(code).toBe(1011);
    expect(reason).toContain("the agent disconnected");
    await other.daemon.process.exited;
    await using _again = await startAgentProcess(other.server, other.seeded, other.home);
    using fresh = await TestTerminal.open(other, { id: terminal.id, command: "echo back" });
    await fresh.until(/back/);
  });

  test("[TM-5] a daemon that stops cleanly closes its terminals cleanly, with their programs", async () => {
    await using other = await startReachableAgent();
    using terminal = await TestTerminal.open(other, { command: "echo $$ > shell; echo up; sleep 1000; true" });
    await terminal.until(/up/);
    const pid = Number(readFileSync(join(other.home, "shell"), "utf8"));
    await other.daemon[Symbol.asyncDispose]();
    expect(await terminal.socket.closed).toEqual({ code: 1000, reason: "the command has ended" });
    expect(isAlive(pid)).toBe(false);
  });

  test("[TM-9] invalid requests are refused, and callers without permission see nothing", async () => {
    const { status } = await world.owner.fetch("GET", world.path("pty"));
    expect(status).toBe(400);
    const fetchStatus = async (query: string, client = world.owner) => {
      const headers = {
        upgrade: "websocket",
        connection: "upgrade",
        "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
      };
      return (await client.fetch("GET", world.path(`pty?${query}`), undefined, { headers })).status;
    };
    expect(await fetchStatus("")).toBe(400);
    expect(await fetchStatus("reconnect=nonsense")).toBe(400);
    expect(await fetchStatus(`reconnect=${uuid()}&backend_type=tmux`)).toBe(400);
    expect(await fetchStatus(`reconnect=${uuid()}&backend_type=screen&container=one`)).toBe(400);
    expect(await fetchStatus(`reconnect=${uuid()}&height=0`)).toBe(400);
    const outsider = await seedUser(world.server, { organization_id: world.seeded.organization_id });
    expect(await fetchStatus(`reconnect=${uuid()}`, world.owner.withToken(outsider.token))).toBe(404);
    const templateAdmin = await seedUser(world.server, {
      organization_id: world.seeded.organization_id,
      roles: ["template-admin"],
    });
    expect(await fetchStatus(`reconnect=${uuid()}`, world.owner.withToken(templateAdmin.token))).toBe(404);
    expect(await fetchStatus(`reconnect=${uuid()}`, world.owner.withToken(undefined))).toBe(401);
    expect(await fetchStatus(`reconnect=${uuid()}`, world.owner.withToken(world.seeded.agent_token))).toBe(401);
  });

  // biome-ignore format: a table of cases
  const nonsense: [string, string | Uint8Array<ArrayBuffer>, number][] = [
    ["text", "hello", 1008],
    ["a list", "[1]", 1008],
    ["random bytes", new Uint8Array(300).fill(0xfe), 1008],
    ["broken JSON", '{"data": }', 1008],
    ["invalid UTF-8", Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d), 1008],
    ["an object without end", `{"data":"${"x".repeat(1_100_000)}`, 1009],
  ];
  test.each(nonsense)(
    "[TM-9] input that is %s closes the socket and leaves the terminal alone",
    async (_, input, code) => {
      const id = uuid();
      using other = await open({ id, command: "echo up; read x; echo $x" });
      await other.until(/up/);
      using terminal = await open({ id });
      await terminal.until(/up/);
      terminal.socket.send(input);
      const end = await terminal.socket.closed;
      expect(end.code).toBe(code);
      expect(end.reason).not.toBe("");
      other.sendInput({ data: "fine\n" });
      await other.until(/fine\r\nfine/);
    },
  );

  test("[TM-9] unknown members are ignored, objects may arrive in pieces or together", async () => {
    using terminal = await open({ command: "read x; read y; echo [$x] [$y]" });
    for (const part of [
      '{"da',
      'ta":"a}{\\"b',
      '\\n"} {"height":"x","width":-1,"more":{"a":[{}]}}\n{"data":7}',
      '{"data":"c\\n"}',
    ]) {
      terminal.socket.send(part);
    }
    await terminal.until(/\[a\}\{"b\] \[c\]/);
  });

  test("[TM-18] input that no program reads is bounded for a person, in all terminals together", async () => {
    const id = uuid();
    using stack = new DisposableStack();
    const openMore = async () => stack.use(await open({ id, command: "stty raw -echo; echo up; sleep 1000" }));
    const first = await openMore();
    await first.until(/up/);
    const input = JSON.stringify({ data: "x".repeat(1_000_000) }).repeat(4);
    const terminals = [first, ...(await Promise.all(Array.from({ length: 23 }, openMore)))];
    for (const { socket } of terminals) socket.send(input);
    const { code, reason } = await Promise.race(terminals.map(({ socket }) => socket.closed));
    expect([code, reason]).toEqual([1013, "Too much input for workspaces is waiting. Try again later."]);
    // What its sockets held is free once they are closed.
    stack.dispose();
    using other = await open({ command: "read x; echo [$x]" });
    other.sendInput({ data: "fine\n" });
    await other.until(/\[fine\]/);
  });

  test("[TM-9] a paste of any size waits for its program and arrives complete, while memory stays flat", async () => {
    const piece = "0123456789abcdef".repeat(1_024);
    const count = 1_280;
    const command = `stty raw -echo; echo up; sleep 1; head -c ${piece.length * count} | sha256sum`;
    using terminal = await open({ command });
    const digest = new Bun.CryptoHasher("sha256").update(piece.repeat(count)).digest("hex");
    await terminal.until(/up/);
    const before = process.memoryUsage().rss;
    for (let i = 0; i < count; i += 1) terminal.sendInput({ data: piece });
    expect(await terminal.until(/[\da-f]{64}/)).toContain(digest);
    // Unreferenced buffers may not have been collected yet.
    Bun.gc(true);
    expect(process.memoryUsage().rss - before).toBeLessThan(150 * 1024 * 1024);
    expect(await terminal.socket.closed).toMatchObject({ code: 1000 });
  });

  test("[TM-17] a terminal opened with a ticket works, and ends with the session that requested the ticket", async () => {
    const session = await new Client(world.server.url).signIn(ADMIN.email, ADMIN.password);
    const url = new URL(world.path("pty"), world.server.url).href;
    const agentID = /[0-9a-f-]{36}/.exec(url)?.[0];
    const requested = await session.post<{ signed_token: string }>(
      "/api/v2/applications/reconnecting-pty-signed-token",
      {
        url,
        agentID,
      },
    );
    const path = (rest: string) => world.path(`${rest}&signed_token=${requested.signed_token}`);
    using terminal = await TestTerminal.open(
      { owner: new Client(world.server.url), path },
      { command: "echo up; cat" },
    );
    await terminal.until(/up/);
    await session.post("/api/v2/users/logout");
    expect(await terminal.socket.closed).toMatchObject({ code: 1008 });
  });

  test("[TM-10] closes when the key that opened it is revoked", async () => {
    using terminal = await open({ command: "echo up; sleep 1000" });
    await terminal.until(/up/);
    getContext(world.server).topics.publish("key_gone", world.seeded.owner_token.slice(0, 10), {});
    expect(await terminal.socket.closed).toMatchObject({ code: 1008 });
  });
});

const readResidentBytes = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) * 1024;

/** Polls until it holds; the file may not exist yet. */
const untilHolds = (holds: () => boolean): Promise<true> =>
  until(() => {
    try {
      return holds();
    } catch {
      return false;
    }
  });
