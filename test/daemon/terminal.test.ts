// The parts of the daemon's terminals that depend on time, and their helpers: real programs, in-memory streams, a stopped clock.
import { describe, expect, test } from "bun:test";
import { Terminal } from "@xterm/headless/lib-headless/xterm-headless.js";
import { uuid } from "#base/ids.ts";
import { ProcessGroups } from "#src/daemon/scripts/groups.ts";
import { Emulator } from "#src/daemon/terminal/emulator.ts";
import { ScreenBuffer } from "#src/daemon/terminal/screen-replay.ts";
import { buildTerminalEnvironment, TerminalSessions } from "#src/daemon/terminal/sessions.ts";
import type { Duplex } from "#src/wire/duplex.ts";
import { JsonObjects } from "#src/wire/json-objects.ts";
import { encodeTerminalRequest } from "#src/wire/terminal-protocol.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { randomFrom } from "#test/support/random.ts";
import { until } from "#test/support/until.ts";
import { type StillClock, sessionPair } from "#test/wire/support.ts";
import { nextTurn, WatchedClock } from "./support/clock.ts";
import { isAlive, TOKEN, tempFolder } from "./support/daemon.ts";

type World = {
  clock: StillClock;
  sessions: TerminalSessions;
  attach(id: string, command?: string, backend?: string): Promise<Duplex>;
} & AsyncDisposable;

const startWorld = (agent_id: string = uuid()): World => {
  const clock = new WatchedClock();
  const folder = tempFolder();
  const sessions = new TerminalSessions({
    clock,
    groups: new ProcessGroups({ clock, agent_id: TOKEN }),
    agent_id,
    env: { PATH: process.env.PATH ?? "", SHELL: "/bin/sh", HOME: folder.path },
    directory: folder.path,
  });
  const pair = sessionPair();
  return {
    clock,
    sessions,
    async attach(ID, Command = "", BackendType = "") {
      const stream = await pair.client.open();
      const accepted = await pair.server.accept();
      if (!accepted) throw new Error("the session is over");
      void sessions.serve(accepted);
      const request = { ID, Command, Height: 24, Width: 80, Container: "", ContainerUser: "", BackendType };
      await stream.write(encodeTerminalRequest(request));
      return stream;
    },
    async [Symbol.asyncDispose]() {
      const ended = sessions.endAll();
      while ((await Promise.race([ended.then(() => "ended"), nextTurn().then(() => "running")])) === "running")
        await clock.advance(50);
      pair.client.close();
      folder[Symbol.dispose]();
    },
  };
};

const SIZE = { height: 24, width: 80 };

const writeText = (terminal: Terminal, text: string): Promise<void> =>
  new Promise((resolve) => terminal.write(text, resolve));

/** Creates a client's terminal that shows this output. */
const createClientTerminal = async (text: string): Promise<Terminal> => {
  const terminal = new Terminal({ cols: SIZE.width, rows: SIZE.height, allowProposedApi: true });
  await writeText(terminal, text);
  return terminal;
};

/** Returns the lines of a terminal's screen after this output. */
const renderLines = async (text: string): Promise<(string | undefined)[]> => {
  const { active } = (await createClientTerminal(text)).buffer;
  return Array.from({ length: SIZE.height }, (_, row) => active.getLine(active.baseY + row)?.translateToString(true));
};

/** Reads the stream in the background and records its output. */
const readInBackground = (stream: Duplex) => {
  const output = { bytes: 0, text: "", last: "", isOver: false };
  void (async () => {
    try {
      for await (const chunk of stream) {
        output.bytes += chunk.byteLength;
        const text = new TextDecoder().decode(chunk);
        output.last = (output.last + text).slice(-100);
        if (output.text.length < 10_000) output.text += text;
      }
    } catch {
      // The stream was reset.
    }
    output.isOver = true;
  })();
  return output;
};

/** Returns the process ID of a program that prints `pid N`. */
const awaitPid = async (stream: Duplex): Promise<number> => {
  const output = readInBackground(stream);
  return until(() => Number(/pid (\d+)\r/.exec(output.text)?.[1]) || false);
};

const ENDLESS_OUTPUT = "while :; do echo 01234567890123456789012345678901234567890123456789; done";

/** Resolves when the slow client's window and queue are full, so that the program waits and no more output arrives. */
const waitUntilFull = async (output: { bytes: number }): Promise<void> => {
  // That is the window of 256 KiB and part of the queue. The program may still fill the terminal's own buffer.
  await until(() => output.bytes > 300 * 1024);
  for (let before = -1, same = 0; same < 1_000; ) {
    same = before === output.bytes ? same + 1 : 0;
    before = output.bytes;
    await nextTurn();
  }
};

describe("several clients of one terminal", () => {
  test("[TM-6] wait for the slowest, which is detached after 20 s", async () => {
    await using world = startWorld();
    const output = readInBackground(await world.attach("a", ENDLESS_OUTPUT));
    const slow = await world.attach("a");
    await waitUntilFull(output);
    await world.clock.advance(19_000);
    const bytesBefore = output.bytes;
    await world.clock.advance(3_000);
    expect((await slow.closed)?.failure).toBe("reset");
    await until(() => output.bytes > bytesBefore + 500_000);
    expect(output.isOver).toBe(false);
  });

  test("[TM-6] a single client can take 120 s", async () => {
    await using world = startWorld();
    const fast = await world.attach("a", ENDLESS_OUTPUT);
    const slow = await world.attach("a");
    let isOver = false;
    void slow.closed.then(() => {
      isOver = true;
    });
    await waitUntilFull(readInBackground(fast));
    fast.reset();
    await nextTurn();
    await world.clock.advance(115_000);
    expect(isOver).toBe(false);
    await world.clock.advance(10_000);
    expect(isOver).toBe(true);
    const output = readInBackground(await world.attach("a"));
    await until(() => output.bytes > 500_000);
  });
});

describe("a terminal without clients", () => {
  test("[TM-8] is kept for five minutes after its last client detaches, then its program ends", async () => {
    await using world = startWorld();
    const first = await world.attach("a", "echo pid $$; exec sleep 1000");
    const output = readInBackground(first);
    await until(() => /pid \d+\r/.test(output.text));
    const pid = Number(/pid (\d+)/.exec(output.text)?.[1]);
    first.reset();
    await nextTurn();
    await world.clock.advance(290_000);
    const second = await world.attach("a", "echo never");
    const secondOutput = readInBackground(second);
    await until(() => secondOutput.text.includes(`pid ${pid}`));
    await world.clock.advance(600_000);
    expect(isAlive(pid)).toBe(true);
    second.reset();
    await nextTurn();
    await world.clock.advance(299_000);
    expect(isAlive(pid)).toBe(true);
    await world.clock.advance(2_000);
    await until(() => !isAlive(pid));
    expect(world.sessions.size).toBe(0);
  });

  testNeeding([needs.screen], "[TM-15] of `screen` ends five minutes after its last client", async () => {
    await using world = startWorld();
    const stream = await world.attach("a", "echo pid $$; read x", "screen");
    const pid = await awaitPid(stream);
    stream.reset();
    await nextTurn();
    await world.clock.advance(299_000);
    expect(isAlive(pid)).toBe(true);
    await world.clock.advance(2_000);
    await until(() => !isAlive(pid));
    expect(world.sessions.size).toBe(0);
  });

  testNeeding(
    [needs.screen],
    "[TM-15] a `screen` session ends if no client attaches within five minutes of the next daemon's start",
    async () => {
      const agent_id = uuid();
      await using earlierDaemon = startWorld(agent_id);
      const unattachedPid = await awaitPid(await earlierDaemon.attach("a", "echo pid $$; read x", "screen"));
      const attachedPid = await awaitPid(await earlierDaemon.attach("b", "echo pid $$; read x", "screen"));
      await using laterDaemon = startWorld(agent_id);
      // The later daemon takes over the session, because the earlier one only displayed it.
      expect(await awaitPid(await laterDaemon.attach("b", "echo never", "screen"))).toBe(attachedPid);
      await laterDaemon.clock.advance(299_000);
      expect(isAlive(unattachedPid)).toBe(true);
      await laterDaemon.clock.advance(2_000);
      await until(() => !isAlive(unattachedPid));
      expect(isAlive(attachedPid)).toBe(true);
    },
  );

  test("[TM-3] gets the size of the remaining client when the smaller one detaches", async () => {
    await using world = startWorld();
    const id = uuid();
    const command = "trap 'stty size' WINCH; echo ready; while :; do sleep 0.05; done";
    const wide = await world.attach(id, command);
    const output = readInBackground(wide);
    await until(() => output.text.includes("ready"));
    const narrow = await world.attach(id);
    await narrow.write(new TextEncoder().encode('{"height":10,"width":40}'));
    await until(() => output.text.includes("10 40"));
    narrow.reset("closed");
    await until(() => output.text.lastIndexOf("24 80") > output.text.indexOf("10 40"));
  });

  test("[TM-14] of an unknown kind shows the reason on the terminal", async () => {
    await using world = startWorld();
    const output = readInBackground(await world.attach("a", "echo never", "tmux"));
    await until(() => output.isOver);
    expect(output.text).toBe("Unknown terminal backend. Use `buffered` or `screen`.\r\n");
    expect(world.sessions.size).toBe(0);
  });

  test("[TM-5] that cannot be started shows the reason on the terminal", async () => {
    await using world = startWorld();
    const output = readInBackground(await world.attach("a", "exit 0"));
    await until(() => output.isOver);
    await world.sessions.endAll();
    const refused = readInBackground(await world.attach("b"));
    await until(() => refused.isOver);
    expect(refused.text).toBe("The workspace is stopping.\r\n");
  });
});

describe("a late client", () => {
  /** Returns what a terminal shows for this output, with all its effects. */
  const renderOutput = async (text: string, size = SIZE): Promise<string> => {
    const emulator = new Emulator(size);
    await emulator.write(Buffer.from(text));
    return emulator.serialize();
  };

  test("[TM-4] sees a full-screen program's current state after any amount of output: screen, mouse mode, title, cursor", async () => {
    await using world = startWorld();
    const program = String.raw`stty -echo; printf '$ top\r\n\033]2;the title\007\033[?1049h\033[?1003h\033[?1006h\033[?25l\033[H\033[44mhead\033[0m'
      i=0; while [ $i -lt 6000 ]; do printf '\033[10;1Hcounter %s' $i; i=$((i+1)); done; read x; printf '\033[?1049l\033[?25hover'; read y`;
    const first = await world.attach("a", program);
    const output = readInBackground(first);
    await until(() => output.bytes > 100_000 && output.last.endsWith("counter 5999"));
    const late = readInBackground(await world.attach("a"));
    await until(() => late.text.includes("the title"));
    expect(late.bytes).toBeLessThan(2_000);
    const client = await createClientTerminal(late.text);
    const { buffer, modes } = client;
    expect(buffer.active.type).toBe("alternate");
    expect(modes.mouseTrackingMode).toBe("any");
    for (const sequence of ["\x1b[?1006h", "\x1b[?25l", "\x1b]2;the title\x07"]) expect(late.text).toContain(sequence);
    const line = (row: number) => buffer.active.getLine(row)?.translateToString(true);
    expect([line(0), line(1), line(9)]).toEqual(["head", "", "counter 5999"]);
    expect([buffer.active.cursorX, buffer.active.cursorY]).toEqual([12, 9]);
    // The header's color does not fill the screen.
    expect(buffer.active.getLine(3)?.getCell(5)?.isBgDefault()).toBe(true);
    await first.write(Buffer.from('{"data":"\\n"}'));
    await until(() => late.text.endsWith("over"));
    await writeText(client, late.text.slice(late.text.indexOf("the title") + 10));
    expect([buffer.active.type, line(0), line(1)]).toEqual(["normal", "$ top", "over"]);
  });

  test("[TM-4] sees the same screen as a terminal that received all output, however it was split", async () => {
    const pieces = [
      ...[
        "plain words ",
        "\r\n",
        "a\tb",
        "wide 漢字 é ",
        "\x1b[31mred",
        "\x1b[1;48;2;1;2;3mdeep",
        "\x1b[0m",
        "\x1b[3;5H",
      ],
      ...["\x1b[?1049h", "\x1b[?1049l", "\x1b[2J", "\x1b[K", "\x1b[?1h", "\x1b[?2004h", "\x1b[?1000h", "\x1b[?1006h"],
      ...[
        "\x1b[?25l",
        "\x1b[5;10r",
        "\x1b[r",
        "\x1b[4 q",
        "\x1b]2;title\x07",
        "\x1bc",
        "\x1b[!p",
        "\n\n\n",
        "x".repeat(90),
      ],
    ];
    for (let seed = 1; seed <= 25; seed++) {
      const next = randomFrom(seed);
      const text = Array.from({ length: 30 }, () => pieces[Math.floor(next() * pieces.length)]).join("");
      const screen = new ScreenBuffer(new WatchedClock(), SIZE, () => {});
      const bytes = Buffer.from(text);
      for (let position = 0; position < bytes.byteLength; ) {
        const size = 1 + Math.floor(next() * 20);
        screen.push(bytes.subarray(position, position + size));
        position += size;
      }
      const shown = new TextDecoder().decode(await screen.snapshot());
      expect({ seed, shown }).toEqual({ seed, shown: await renderOutput(text) });
      // A client shows the same text. Cells that were cleared in a color are equivalent to written ones.
      expect({ seed, text: await renderLines(shown) }).toEqual({ seed, text: await renderLines(text) });
      screen.dispose();
    }
  });

  test("[TM-4] gets the same screen without text that has scrolled away, and the queue is bounded", async () => {
    const screen = new ScreenBuffer(new WatchedClock(), SIZE, () => {});
    const lines = Array.from({ length: 60_000 }, (_, i) => `line ${i}\r\n`).join("");
    const text = `\x1b[32mgreen\r\n${lines}`;
    const bytes = Buffer.from(text);
    for (let position = 0; position < bytes.byteLength; position += 10_000)
      screen.push(bytes.subarray(position, position + 10_000));
    expect(new TextDecoder().decode(await screen.snapshot())).toBe(await renderOutput(text));
    expect(screen.waiting).toBe(0);
    expect(screen.written).toBe(bytes.byteLength);
    screen.dispose();
  });

  test("[TM-4] gets a bounded screen from a huge terminal, even if every cell has a different color", async () => {
    const size = { height: 4_096, width: 4_096 };
    const cells = Array.from({ length: 60_000 }, (_, i) => `\x1b[48;2;${i % 256};${(i >> 8) % 256};1mx`).join("");
    expect((await renderOutput(cells.repeat(4), size)).length).toBeLessThan(3 * 1024 * 1024);
  });
});

describe("the pieces", () => {
  test("[TM-1] programs get a UTF-8 locale, preferably the user's own", () => {
    expect(buildTerminalEnvironment({ LANG: "C" }, "/bin/sh")).toMatchObject({
      LC_CTYPE: "C.UTF-8",
      TERM: "xterm-256color",
    });
    expect(buildTerminalEnvironment({ LC_ALL: "POSIX" }, "/bin/sh")).toEqual(
      expect.not.objectContaining({ LC_ALL: "POSIX" }),
    );
    expect(buildTerminalEnvironment({ LANG: "de_DE.UTF-8" }, "/bin/sh").LC_CTYPE).toBeUndefined();
    expect(buildTerminalEnvironment({ LC_ALL: "en_US.utf8" }, "/bin/sh")).toMatchObject({ LC_ALL: "en_US.utf8" });
  });

  test("[TM-9] finds JSON objects however they are split", () => {
    const text = '{"a":"}{\\"\\\\"}\n {"b":{"c":[1,{"d":"é"}]}}{}';
    const bytes = Buffer.from(text);
    for (let size = 1; size <= bytes.byteLength; size += 1) {
      const objects = new JsonObjects(1_000);
      const found: unknown[] = [];
      for (let position = 0; position < bytes.byteLength; position += size)
        found.push(...objects.push(bytes.subarray(position, position + size)));
      expect(found).toEqual([{ a: '}{"\\' }, { b: { c: [1, { d: "é" }] } }, {}]);
    }
    expect(() => new JsonObjects(10).push(Buffer.from('{"a":"12345678"'))).toThrow("more than 10 bytes");
    for (const invalid of ["x", "[", "}", "{]}", '{"a"}'])
      expect(() => new JsonObjects(99).push(Buffer.from(invalid))).toThrow();
  });
});
