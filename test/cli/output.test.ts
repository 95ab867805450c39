// A slow reader gets a command's complete output. The command ends when its reader exits or the disk is full. Control sequences in the
// output cannot affect the terminal.
import { describe, expect, test } from "bun:test";
import { escapeAllHidden, escapeHidden } from "#base/visible-text.ts";
import { Output, OutputClosedError } from "#src/cli/output.ts";
import { toPlainLine, toPlainLines } from "#src/cli/text.ts";
import { Client } from "#src/client.ts";
import { forFile } from "#test/support/for-file.ts";
import { awaitBuild, createWorkspace, ECHO, seedTemplate } from "#test/support/workspaces.ts";
import { openClientWorld, readToken, signInAs } from "./client-world.ts";

const PIPE_BYTES = 65_536;
const world = await forFile(openClientWorld());
await signInAs(world);
const admin = new Client(world.server.url, readToken(world));
const lines = Array.from({ length: 4_000 }, (_, i) => `line ${i} ${"x".repeat(40)}`);
const { template_id } = await seedTemplate(world.server, { ...ECHO, echo: { logs: lines } }, { name: "wordy" });
for (let i = 0; i < 24; i++) {
  const { id } = await createWorkspace(admin, template_id, `w${i}`);
  await awaitBuild(admin, id);
}

/** Runs a shell command line and returns its output and exit code. */
const runInShell = async (line: string): Promise<{ out: string; errors: string; code: number }> => {
  await using terminal = world.runOnTerminal(`( ${line} ) >out 2>err`);
  const code = await terminal.exited;
  const [out, errors] = [Bun.file(`${world.home}/out`), Bun.file(`${world.home}/err`)];
  return { code, out: await out.text(), errors: await errors.text() };
};

describe("into a pipe", () => {
  const LONG_COMMANDS = [
    "workspaces list --json",
    "workspaces logs w1",
    "logs w1 --json",
    "templates push . --help && slipway config example && slipway help && slipway workspaces list --json",
  ];

  test.each(LONG_COMMANDS)("[CV-36] `%s` prints its complete output to a slow reader", async (command) => {
    const complete = await runInShell(`slipway ${command}`);
    const { out } = await runInShell(`{ slipway ${command}; echo code $? >&2; } | { sleep 0.3; cat; }`);
    expect(complete.out.length).toBeGreaterThan(PIPE_BYTES);
    expect(out).toBe(complete.out);
  });

  test.each(["workspaces list --json", "workspaces logs w1", "logs w1 --follow", "help"])(
    "[CV-36] `%s` exits quietly when its reader has exited",
    async (command) => {
      const { out, errors } = await runInShell(`{ slipway ${command}; echo code $? >&2; } | head -c 5`);
      expect(out).toHaveLength(5);
      // Output that fits into the pipe may have been written before the reader disconnected.
      expect(errors).toMatch(/^code [01]\n$/);
      const closed = await runInShell(`{ sleep 0.2; slipway ${command}; echo code $? >&2; } | true`);
      expect(closed).toMatchObject({ out: "", errors: "code 1\n" });
    },
  );

  test("[CV-36] fails with the reason when its output cannot be written", async () => {
    const { errors, code } = await runInShell("sh -c 'slipway workspaces list --json >/dev/full'");
    expect({ errors, code }).toEqual({
      errors: expect.stringMatching(/^slipway: standard output cannot be written: .*ENOSPC.*\n$/),
      code: 1,
    });
  });

  test("[CV-36] Ctrl-C ends a command whose output is not read", async () => {
    const child = Bun.spawn(["sh", "-c", "slipway workspaces logs w1 & echo $! >&2; wait $!; echo code $? >&2"], {
      cwd: world.home,
      env: { ...process.env, HOME: world.home, PATH: `${world.home}/bin:${process.env.PATH}` },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const reader = child.stdout.getReader();
    let size = 0;
    while (size < PIPE_BYTES / 2) size += (await reader.read()).value?.byteLength ?? 0;
    const errors = child.stderr.getReader();
    const pid = Number(new TextDecoder().decode((await errors.read()).value));
    process.kill(pid, "SIGINT");
    // The pipe stays full, because it is not read until the process has ended.
    expect(new TextDecoder().decode((await errors.read()).value)).toBe("code 130\n");
    await reader.cancel();
    await child.exited;
  });
});

describe("the writer", () => {
  test("[CV-36] writes in order, waits until everything is written, and keeps the first failure", async () => {
    const pendingCallbacks: (() => void)[] = [];
    const written: string[] = [];
    const output = new Output({
      write(data, done) {
        written.push(String(data));
        pendingCallbacks.push(() => done());
      },
    });
    output.print("one");
    output.print("two");
    let isFlushed = false;
    const flushed = output.flush().then(() => {
      isFlushed = true;
    });
    pendingCallbacks.shift()?.();
    await Promise.resolve();
    expect({ isFlushed, written }).toEqual({ isFlushed: false, written: ["one", "two"] });
    pendingCallbacks.shift()?.();
    await flushed;
    const closedOutput = new Output({ write: (_, done) => done(Object.assign(new Error("EPIPE"), { code: "EPIPE" })) });
    closedOutput.print("one");
    await closedOutput.flush();
    expect(closedOutput.failure).toBeInstanceOf(OutputClosedError);
    await expect(closedOutput.write("two")).rejects.toBeInstanceOf(OutputClosedError);
  });

  test("[CV-36] drops messages beyond 16 MiB while the output is not read, and then reports their number", async () => {
    const pendingCallbacks: (() => void)[] = [];
    const written: string[] = [];
    const output = new Output(
      {
        write(data, done) {
          written.push(String(data));
          pendingCallbacks.push(() => done());
        },
      },
      { mayDrop: true },
    );
    const mebibyte = "x".repeat(1024 * 1024);
    for (let i = 0; i < 40; i++) output.print(mebibyte);
    expect(written.length).toBeLessThan(20);
    const dropped = 40 - written.length;
    for (let next = pendingCallbacks.shift(); next; next = pendingCallbacks.shift()) next();
    expect(written.at(-1)).toBe(`(${dropped} messages were dropped: the output was not read)\n`);
  });
});

describe("on a terminal", () => {
  const hostileText = "a\u202eb\u2066c\u0007\u001b[2Jd\u009b31me\u061cf";

  test("[CV-5] shows reordering characters as codes, and removes control sequences", () => {
    expect(toPlainLines(hostileText)).toBe("a\\u202eb\\u2066cde\\u061cf");
    expect(toPlainLine("one\ntwo\u2028three")).toBe("one two\\u2028three");
    expect(escapeAllHidden("a\u200bb\tc\u001b")).toBe("a\\u200bb    c\\u001b");
    // Joiners are part of ordinary text.
    expect(toPlainLines("👩\u200d💻 می\u200cخواهم")).toBe("👩\u200d💻 می\u200cخواهم");
  });

  test("[CV-5] escaped JSON parses to the same value", () => {
    const json = JSON.stringify({ text: hostileText });
    expect(JSON.parse(escapeHidden(json))).toEqual({ text: hostileText });
    expect(escapeHidden(json)).not.toMatch(/[\u0080-\u009f\u202e\u2066]/);
  });

  test("[CV-5] escapes logs and server responses in the same way", async () => {
    const template = await seedTemplate(world.server, { ...ECHO, echo: { logs: [hostileText] } }, { name: "evil" });
    const { id } = await createWorkspace(admin, template.template_id, "evil");
    await awaitBuild(admin, id);
    expect((await world.run(["logs", "evil"])).out).toBe("a\\u202eb\\u2066cde\\u061cf\n");
    const { out } = await world.run(["logs", "evil", "--json"]);
    expect(out).not.toMatch(/[\u0080-\u009f\u202e\u2066]/);
    expect(out).toContain("a\\u202eb");
  });
});
