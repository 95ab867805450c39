// Terminals with a real server, a real daemon process and a real shell on a real pseudo-terminal.
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

const openTerminal = (options: Parameters<typeof TestTerminal.open>[1] = {}) => TestTerminal.open(world, options);
const PROMPT = /# $|\$ $/;

/** Returns the process ID that a command has written to this file in the home folder. */
const readPid = (name: string): number => Number(readFileSync(join(world.home, name), "utf8"));

describe("a terminal", () => {
  test("[TM-1] is a login shell in the agent's folder, with a known terminal type and the UTF-8 character set", async () => {
    using terminal = await openTerminal();
    terminal.sendInput({
      data: "echo [$TERM] [$(locale charmap)] [$PWD] [$SLIPWAY_AGENT_TOKEN]; shopt -q login_shell && echo log''in\n",
    });
    const output = await terminal.until(/\nlogin/);
    expect(output).toContain(`[xterm-256color] [UTF-8] [${world.home}]`);
    expect(output).toContain("]");
    terminal.sendInput({ data: "exit\n" });
    expect(await terminal.socket.closed).toEqual({ code: 1000, reason: "the command has ended" });
  });

  test("[TM-1] runs a command in the shell, and closes normally after all output", async () => {
    using terminal = await openTerminal({ command: "printf 'héllo %s' $((40+2)); exit 3" });
    expect(await terminal.until(/42/)).toBe("héllo 42");
    expect(await terminal.socket.closed).toEqual({ code: 1000, reason: "the command has ended" });
  });

  test("[TM-2] sends Ctrl-C only to the program in the foreground", async () => {
    using terminal = await openTerminal();
    await terminal.until(PROMPT);
    terminal.sendInput({ data: "echo $$ > shell; (echo $BASHPID > sleeper; exec sleep 1000)\n" });
    await untilTrue(() => isAlive(readPid("sleeper")));
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

  test("[TM-3] has the size of its smallest client", async () => {
    const id = uuid();
    const command = "while stty size; do sleep 0.05; done";
    using first = await openTerminal({ id, height: 24, width: 100, command });
    await first.until(/24 100/);
    using second = await openTerminal({ id, height: 30, width: 90 });
    await first.until(/24 90/);
    first.sendInput({ height: 50 });
    first.sendInput({ width: 0, height: 10 });
    first.sendInput({ height: 51, width: 132 });
    await second.until(/30 90/);
    second[Symbol.dispose]();
    // When the smaller client leaves, the terminal gets the size of the larger one.
    expect(await first.until(/51 132/)).not.toMatch(/^(50|10) /m);
  });

  test("[TM-4] shows reconnecting clients its screen and 1,000 lines above it, and sends all output to every client", async () => {
    const id = uuid();
    const command = "seq 1 30000; echo the end of it; read x; echo got $x; read y";
    const first = await openTerminal({ id, command });
    await first.until(/the end of it/);
    first[Symbol.dispose]();
    using second = await openTerminal({ id });
    const output = await second.until(/the end of it/);
    expect(output).toContain("29999\r\n30000\r\n");
    const lines = output.match(/^\d+\r$/gm) ?? [];
    expect(lines.length).toBeGreaterThan(1_000);
    expect(lines.length).toBeLessThan(1_100);
    using third = await openTerminal({ id });
    await third.until(/the end of it/);
    third.sendInput({ data: "hi\n" });
    await Promise.all([second.until(/got hi/), third.until(/got hi/)]);
    second.sendInput({ data: "\n" });
    expect(await Promise.all([second.socket.closed, third.socket.closed])).toMatchObject([
      { code: 1000 },
      { code: 1000 },
    ]);
    using newTerminal = await openTerminal({ id, command: "echo a new one" });
    expect(await newTerminal.until(/one/)).toStartWith("a new one");
  });

  test("[TM-8] ends all of its processes when it ends, including background jobs", async () => {
    using terminal = await openTerminal();
    await terminal.until(PROMPT);
    terminal.sendInput({
      data: "sleep 1000 & echo $! > job; (trap '' HUP; exec sleep 1000) & echo $! > stubborn; echo ok$((1+1))\n",
    });
    await terminal.until(/ok2/);
    const jobs = [readPid("job"), readPid("stubborn")];
    expect(jobs.map(isAlive)).toEqual([true, true]);
    terminal.sendInput({ data: "disown -a; exit\n" });
    expect(await terminal.socket.closed).toMatchObject({ code: 1000 });
    await untilTrue(() => !jobs.some(isAlive));
  });
});

describe("a terminal with a slow reader", () => {
  test("[TM-6] sends every byte while the program waits and memory stays flat", async () => {
    const lines = 40_000_000;
    const path = world.path(
      `pty?reconnect=${uuid()}&command=${encodeURIComponent(`stty -onlcr; yes | head -n ${lines}`)}`,
    );
    await using reader = await BareSocket.open(world.server.url, path, world.seeded.owner_token);
    await waitUntilStalled();
    const before = readResidentBytes(world.daemon.process.pid);
    // Measures the daemon, where output would accumulate. This process also contains the server, the reader and earlier tests.
    const { bytes, isRight, close } = await readSlowly(reader, 2 * lines, "y\n");
    const growth = readResidentBytes(world.daemon.process.pid) - before;
    expect([bytes, isRight]).toEqual([2 * lines, true]);
    expect(close).toEqual({ code: 1000, reason: "the command has ended" });
    expect(growth).toBeLessThan(48 * 1024 * 1024);
  });

  test("[TM-6] pauses the program, which still receives Ctrl-C", async () => {
    const query = new URLSearchParams({ reconnect: uuid(), command: "echo $$ > loud; exec yes" });
    await using reader = await BareSocket.open(world.server.url, world.path(`pty?${query}`), world.seeded.owner_token);
    await waitUntilStalled();
    expect(isAlive(readPid("loud"))).toBe(true);
    reader.send(JSON.stringify({ data: "\x03" }));
    await untilTrue(() => !isAlive(readPid("loud")));
  });
});

describe("failures", () => {
  test("[TM-7] if the agent is not connected, the close reason contains its state", async () => {
    const neverConnected = await seedAgent(world.server);
    const owner = new Client(world.server.url, neverConnected.owner_token);
    using terminal = await TestTerminal.open({
      owner,
      path: (suffix) => `/api/v2/workspaceagents/${neverConnected.agent_id}/${suffix}`,
    });
    expect(await terminal.socket.closed).toEqual({
      code: 1011,
      reason: 'The agent is not connected: its state is "connecting".',
    });
  });

  test("[TM-7] killing the daemon closes the terminal with a reason", async () => {
    await using ownWorld = await startReachableAgent();
    using terminal = await TestTerminal.open(ownWorld, { command: "echo up; sleep 1000" });
    await terminal.until(/up/);
    ownWorld.daemon.process.kill("SIGKILL");
    const { code, reason } = await terminal.socket.closed;
    expect(code).toBe(1011);
    expect(reason).toContain("the agent disconnected");
    await ownWorld.daemon.process.exited;
    await using _newDaemon = await startAgentProcess(ownWorld.server, ownWorld.seeded, ownWorld.home);
    using newTerminal = await TestTerminal.open(ownWorld, { id: terminal.id, command: "echo back" });
    await newTerminal.until(/back/);
  });

  test("[TM-5] a daemon that stops cleanly closes its terminals normally and ends their programs", async () => {
    await using ownWorld = await startReachableAgent();
    using terminal = await TestTerminal.open(ownWorld, { command: "echo $$ > shell; echo up; sleep 1000; true" });
    await terminal.until(/up/);
    const pid = Number(readFileSync(join(ownWorld.home, "shell"), "utf8"));
    await ownWorld.daemon[Symbol.asyncDispose]();
    expect(await terminal.socket.closed).toEqual({ code: 1000, reason: "the command has ended" });
    expect(isAlive(pid)).toBe(false);
  });

  test("[TM-9] invalid requests return 400, and callers without permission 401 or 404", async () => {
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
  const invalidInputs: [string, string | Uint8Array<ArrayBuffer>, number][] = [
    ["text", "hello", 1008],
    ["a list", "[1]", 1008],
    ["random bytes", new Uint8Array(300).fill(0xfe), 1008],
    ["broken JSON", '{"data": }', 1008],
    ["invalid UTF-8", Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d), 1008],
    ["an object without end", `{"data":"${"x".repeat(1_100_000)}`, 1009],
  ];
  test.each(invalidInputs)(
    "[TM-9] input that is %s closes the socket without affecting the terminal",
    async (_, input, code) => {
      const id = uuid();
      using otherClient = await openTerminal({ id, command: "echo up; read x; echo $x" });
      await otherClient.until(/up/);
      using terminal = await openTerminal({ id });
      await terminal.until(/up/);
      terminal.socket.send(input);
      const closeEvent = await terminal.socket.closed;
      expect(closeEvent.code).toBe(code);
      expect(closeEvent.reason).not.toBe("");
      otherClient.sendInput({ data: "fine\n" });
      await otherClient.until(/fine\r\nfine/);
    },
  );

  test("[TM-9] input may have unknown members, and objects may arrive in pieces or together", async () => {
    using terminal = await openTerminal({ command: "read x; read y; echo [$x] [$y]" });
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

  test("[TM-18] input that no program reads is limited for each person across all terminals", async () => {
    const id = uuid();
    using stack = new DisposableStack();
    const openClient = async () =>
      stack.use(await openTerminal({ id, command: "stty raw -echo; echo up; sleep 1000" }));
    const first = await openClient();
    await first.until(/up/);
    const input = JSON.stringify({ data: "x".repeat(1_000_000) }).repeat(4);
    const terminals = [first, ...(await Promise.all(Array.from({ length: 23 }, openClient)))];
    for (const { socket } of terminals) socket.send(input);
    const { code, reason } = await Promise.race(terminals.map(({ socket }) => socket.closed));
    expect([code, reason]).toEqual([1013, "Too much input for workspaces is waiting. Try again later."]);
    // Closing the sockets frees the memory of their input.
    stack.dispose();
    using newTerminal = await openTerminal({ command: "read x; echo [$x]" });
    newTerminal.sendInput({ data: "fine\n" });
    await newTerminal.until(/\[fine\]/);
  });

  test("[TM-9] a large paste arrives completely when the program reads it, while memory stays flat", async () => {
    const chunk = "0123456789abcdef".repeat(1_024);
    const count = 1_280;
    const command = `stty raw -echo; echo up; sleep 1; head -c ${chunk.length * count} | sha256sum`;
    using terminal = await openTerminal({ command });
    const digest = new Bun.CryptoHasher("sha256").update(chunk.repeat(count)).digest("hex");
    await terminal.until(/up/);
    const before = process.memoryUsage().rss;
    for (let i = 0; i < count; i += 1) terminal.sendInput({ data: chunk });
    expect(await terminal.until(/[\da-f]{64}/)).toContain(digest);
    // Collects unreferenced buffers first.
    Bun.gc(true);
    expect(process.memoryUsage().rss - before).toBeLessThan(150 * 1024 * 1024);
    expect(await terminal.socket.closed).toMatchObject({ code: 1000 });
  });

  test("[TM-17] a terminal that was opened with a ticket ends with the session that requested the ticket", async () => {
    const session = await new Client(world.server.url).signIn(ADMIN.email, ADMIN.password);
    const url = new URL(world.path("pty"), world.server.url).href;
    const agentID = /[0-9a-f-]{36}/.exec(url)?.[0];
    const ticket = await session.post<{ signed_token: string }>("/api/v2/applications/reconnecting-pty-signed-token", {
      url,
      agentID,
    });
    const path = (suffix: string) => world.path(`${suffix}&signed_token=${ticket.signed_token}`);
    using terminal = await TestTerminal.open(
      { owner: new Client(world.server.url), path },
      { command: "echo up; cat" },
    );
    await terminal.until(/up/);
    await session.post("/api/v2/users/logout");
    expect(await terminal.socket.closed).toMatchObject({ code: 1008 });
  });

  test("[TM-10] revoking the key that opened a terminal closes it", async () => {
    using terminal = await openTerminal({ command: "echo up; sleep 1000" });
    await terminal.until(/up/);
    getContext(world.server).topics.publish("key_gone", world.seeded.owner_token.slice(0, 10), {});
    expect(await terminal.socket.closed).toMatchObject({ code: 1008 });
  });
});

const readResidentBytes = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) * 1024;

/** Polls until the condition is true. An error counts as false, because a file may not exist yet. */
const untilTrue = (condition: () => boolean): Promise<true> =>
  until(() => {
    try {
      return condition();
    } catch {
      return false;
    }
  });
