// The time-dependent parts of a terminal in the daemon, and its small pieces: real programs, in-memory streams, a stopped clock.
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
      const theirs = await pair.server.accept();
      if (!theirs) throw new Error("the session is over");
      void sessions.serve(theirs);
      const request = { ID, Command, Height: 24, Width: 80, Container: "", ContainerUser: "", BackendType };
      await stream.write(encodeTerminalRequest(request));
      return stream;
    },
    async [Symbol.asyncDispose]() {
      const ending = sessions.endAll();
      while ((await Promise.race([ending.then(() => "over"), nextTurn().then(() => "on")])) === "on")
        await clock.advance(50);
      pair.client.close();
      folder[Symbol.dispose]();
    },
  };
};

const SIZE = { height: 24, width: 80 };

const writeText = (terminal: Terminal, text: string): Promise<void> =>
  new Promise((resolve) => terminal.write(text, resolve));

/** A client's terminal with this output. */
const clientWith = async (text: string): Promise<Terminal> => {
  const terminal = new Terminal({ cols: SIZE.width, rows: SIZE.height, allowProposedApi: true });
  await writeText(terminal, text);
  return terminal;
};

/** Returns the lines on its current screen. */
const renderLines = async (text: string): Promise<(string | undefined)[]> => {
  const { active } = (await clientWith(text)).buffer;
  return Array.from({ length: SIZE.height }, (_, at) => active.getLine(active.baseY + at)?.translateToString(true));
};

/** Reads continuously and counts the bytes. */
const readInBackground = (stream: Duplex) => {
  const seen = { bytes: 0, text: "", last: "", over: false };
  void (async () => {
    try {
      for await (const chunk of stream) {
        seen.bytes += chunk.byteLength;
        const text = new TextDecoder().decode(chunk);
        seen.last = (seen.last + text).slice(-100);
        if (seen.text.length < 10_000) seen.text += text;
      }
    } catch {
      // The stream was reset.
    }
    seen.over = true;
  })();
  return seen;
};

/** Returns the process ID of a program that prints `pid N`. */
const awaitPid = async (stream: Duplex): Promise<number> => {
  const seen = readInBackground(stream);
  return until(() => Number(/pid (\d+)\r/.exec(seen.text)?.[1]) || false);
};

const LOUD = "while :; do echo 01234567890123456789012345678901234567890123456789; done";

/** Resolves when the other client's window and queue are full and nothing more arrives. */
const waitUntilFull = async (seen: { bytes: number }): Promise<void> => {
  // A window of 256 KiB and part of the queue; the program may still be filling the terminal itself.
  await until(() => seen.bytes > 300 * 1024);
  for (let before = -1, same = 0; same < 1_000; ) {
    same = before === seen.bytes ? same + 1 : 0;
    before = seen.bytes;
    await nextTurn();
  }
};

describe("several clients of one terminal", () => {
  test("[TM-6] wait for the slowest, which is detached after 20 s", async () => {
    await using world = startWorld();
    const seen = readInBackground(await world.attach("a", LOUD));
    const slow = await world.attach("a");
    await waitUntilFull(seen);
    await world.clock.advance(19_000);
    const held = seen.bytes;
    await world.clock.advance(3_000);
    expect((await slow.closed)?.failure).toBe("reset");
    await until(() => seen.bytes > held + 500_000);
    expect(seen.over).toBe(false);
  });

  test("[TM-6] a single client can take 120 s", async () => {
    await using world = startWorld();
    const other = await world.attach("a", LOUD);
    const slow = await world.attach("a");
    let isOver = false;
    void slow.closed.then(() => {
      isOver = true;
    });
    await waitUntilFull(readInBackground(other));
    other.reset();
    await nextTurn();
    await world.clock.advance(115_000);
    expect(isOver).toBe(false);
    await world.clock.advance(10_000);
    expect(isOver).toBe(true);
    const seen = readInBackground(await world.attach("a"));
    await until(() => seen.bytes > 500_000);
  });
});

describe("a terminal without clients", () => {
  test("[TM-8] is kept for five minutes after each visit, then its program ends", async () => {
    await using world = startWorld();
    const first = await world.attach("a", "echo pid $$; exec sleep 1000");
    const seen = readInBackground(first);
    await until(() => /pid \d+\r/.test(seen.text));
    const pid = Number(/pid (\d+)/.exec(seen.text)?.[1]);
    first.reset();
    await nextTurn();
    await world.clock.advance(290_000);
    const second = await world.attach("a", "echo never");
    const again = readInBackground(second);
    await until(() => again.text.includes(`pid ${pid}`));
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
    "[TM-15] a `screen` session ends when no client attaches to it within five minutes of the next daemon's start",
    async () => {
      const agent_id = uuid();
      await using earlier = startWorld(agent_id);
      const forgotten = await awaitPid(await earlier.attach("a", "echo pid $$; read x", "screen"));
      const wanted = await awaitPid(await earlier.attach("b", "echo pid $$; read x", "screen"));
      await using later = startWorld(agent_id);
      // The earlier one only displays it: the later one takes it over.
      expect(await awaitPid(await later.attach("b", "echo never", "screen"))).toBe(wanted);
      await later.clock.advance(299_000);
      expect(isAlive(forgotten)).toBe(true);
      await later.clock.advance(2_000);
      await until(() => !isAlive(forgotten));
      expect(isAlive(wanted)).toBe(true);
    },
  );

  test("[TM-3] gets the size of the remaining client when the smaller one detaches", async () => {
    await using world = startWorld();
    const id = uuid();
    const command = "trap 'stty size' WINCH; echo ready; while :; do sleep 0.05; done";
    const wide = await world.attach(id, command);
    const seen = readInBackground(wide);
    await until(() => seen.text.includes("ready"));
    const narrow = await world.attach(id);
    await narrow.write(new TextEncoder().encode('{"height":10,"width":40}'));
    await until(() => seen.text.includes("10 40"));
    narrow.reset("closed");
    await until(() => seen.text.lastIndexOf("24 80") > seen.text.indexOf("10 40"));
  });

  test("[TM-14] of an unknown kind shows the reason on the terminal", async () => {
    await using world = startWorld();
    const seen = readInBackground(await world.attach("a", "echo never", "tmux"));
    await until(() => seen.over);
    expect(seen.text).toBe("Unknown terminal backend. Use `buffered` or `screen`.\r\n");
    expect(world.sessions.size).toBe(0);
  });

  test("[TM-5] that cannot be started shows the reason on the terminal", async () => {
    await using world = startWorld();
    const seen = readInBackground(await world.attach("a", "exit 0"));
    await until(() => seen.over);
    await world.sessions.endAll();
    const refused = readInBackground(await world.attach("b"));
    await until(() => refused.over);
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

  test("[TM-4] sees a full-screen program in its current state, after any amount of output: other screen, mouse, title, cursor", async () => {
    await using world = startWorld();
    const program = String.raw`stty -echo; printf '$ top\r\n\033]2;the title\007\033[?1049h\033[?1003h\033[?1006h\033[?25l\033[H\033[44mhead\033[0m'
      i=0; while [ $i -lt 6000 ]; do printf '\033[10;1Hcounter %s' $i; i=$((i+1)); done; read x; printf '\033[?1049l\033[?25hover'; read y`;
    const first = await world.attach("a", program);
    const seen = readInBackground(first);
    await until(() => seen.bytes > 100_000 && seen.last.endsWith("counter 5999"));
    const late = readInBackground(await world.attach("a"));
    await until(() => late.text.includes("the title"));
    expect(late.bytes).toBeLessThan(2_000);
    const client = await clientWith(late.text);
    const { buffer, modes } = client;
    expect(buffer.active.type).toBe("alternate");
    expect(modes.mouseTrackingMode).toBe("any");
    for (const kept of ["\x1b[?1006h", "\x1b[?25l", "\x1b]2;the title\x07"]) expect(late.text).toContain(kept);
    const line = (at: number) => buffer.active.getLine(at)?.translateToString(true);
    expect([line(0), line(1), line(9)]).toEqual(["head", "", "counter 5999"]);
    expect([buffer.active.cursorX, buffer.active.cursorY]).toEqual([12, 9]);
    // The header's color has not filled the screen, and the earlier content is below it.
    expect(buffer.active.getLine(3)?.getCell(5)?.isBgDefault()).toBe(true);
    await first.write(Buffer.from('{"data":"\\n"}'));
    await until(() => late.text.endsWith("over"));
    await writeText(client, late.text.slice(late.text.indexOf("the title") + 10));
    expect([buffer.active.type, line(0), line(1)]).toEqual(["normal", "$ top", "over"]);
  });

  test("[TM-4] sees the same screen as a terminal that got all output, whatever it was and however it was split", async () => {
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
      const kept = new ScreenBuffer(new WatchedClock(), SIZE, () => {});
      const bytes = Buffer.from(text);
      for (let at = 0; at < bytes.byteLength; ) {
        const size = 1 + Math.floor(next() * 20);
        kept.push(bytes.subarray(at, at + size));
        at += size;
      }
      const shown = new TextDecoder().decode(await kept.snapshot());
      expect({ seed, shown }).toEqual({ seed, shown: await renderOutput(text) });
      // A client with this output shows the same; cells cleared in a color are equivalent to written ones.
      expect({ seed, text: await renderLines(shown) }).toEqual({ seed, text: await renderLines(text) });
      kept.dispose();
    }
  });

  test("[TM-4] gets no text that has scrolled away: the screen is the same, and the queue is bounded", async () => {
    const kept = new ScreenBuffer(new WatchedClock(), SIZE, () => {});
    const lines = Array.from({ length: 60_000 }, (_, i) => `line ${i}\r\n`).join("");
    const text = `\x1b[32mgreen\r\n${lines}`;
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.byteLength; at += 10_000) kept.push(bytes.subarray(at, at + 10_000));
    expect(new TextDecoder().decode(await kept.snapshot())).toBe(await renderOutput(text));
    expect(kept.waiting).toBe(0);
    expect(kept.written).toBe(bytes.byteLength);
    kept.dispose();
  });

  test("[TM-4] of a huge terminal gets a bounded screen, even if every cell has a different color", async () => {
    const size = { height: 4_096, width: 4_096 };
    const cells = Array.from({ length: 60_000 }, (_, i) => `\x1b[48;2;${i % 256};${(i >> 8) % 256};1mx`).join("");
    expect((await renderOutput(cells.repeat(4), size)).length).toBeLessThan(3 * 1024 * 1024);
  });
});

describe("the pieces", () => {
  test("[TM-1] programs get a UTF-8 character set, the user's own if it is one", () => {
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

  test("[TM-9] JSON objects are found however they are split", () => {
    const text = '{"a":"}{\\"\\\\"}\n {"b":{"c":[1,{"d":"é"}]}}{}';
    const bytes = Buffer.from(text);
    for (let size = 1; size <= bytes.byteLength; size += 1) {
      const objects = new JsonObjects(1_000);
      const found: unknown[] = [];
      for (let at = 0; at < bytes.byteLength; at += size) found.push(...objects.push(bytes.subarray(at, at + size)));
      expect(found).toEqual([{ a: '}{"\\' }, { b: { c: [1, { d: "é" }] } }, {}]);
    }
    expect(() => new JsonObjects(10).push(Buffer.from('{"a":"12345678"'))).toThrow("more than 10 bytes");
    for (const bad of ["x", "[", "}", "{]}", '{"a"}'])
      expect(() => new JsonObjects(99).push(Buffer.from(bad))).toThrow();
  });
});
