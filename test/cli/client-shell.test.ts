// `slipway workspaces shell`: a workspace's terminal for a person, and for a script.
import { expect, test } from "bun:test";
import { forFile } from "#test/support/for-file.ts";
import { CuttableProxy, openDevWorld, readToken } from "./client-world.ts";

const world = await forFile(openDevWorld());

/** The end of a shell's prompt. */
const PROMPT = /[#$%>] $/;

const shellArgs = (...args: string[]): string[] => ["workspaces", "shell", ...args];

test("[CV-8] keys, Ctrl-C and the size reach the terminal; its exit code is passed on, and the local terminal is restored", async () => {
  await using terminal = world.runOnTerminal(
    'before=$(stty -g); slipway workspaces shell dev; code=$?; [ "$before" = "$(stty -g)" ] && echo as-before; exit $code',
  );
  await terminal.until(PROMPT);
  terminal.type("stty size\r");
  await terminal.until(/\d+ 80\r\n/);
  terminal.resize(100, 30);
  terminal.type("until [ \"$(stty size)\" = '30 100' ]; do :; done; echo re''sized\r");
  await terminal.until("resized\r\n");
  await terminal.until(PROMPT);
  // Once the program has printed this, it is in the foreground.
  terminal.type("sh -c 'echo rea\"\"dy; exec cat'\r");
  await terminal.until("ready\r\n");
  terminal.type("\u0003");
  await terminal.until(PROMPT);
  terminal.type("exit 7\r");
  await terminal.until("as-before");
  expect(await terminal.exited).toBe(7);
  expect(terminal.shown()).not.toContain("\u001e");
});

test("[CV-34] `connections` lists and searches connections, and shows and sets their retention", async () => {
  await world.runOk(shellArgs("dev", "--", "true"));
  const listed = await world.runOk([
    "connections",
    "list",
    "type:reconnecting_pty",
    "workspace_owner:admin",
    "--limit",
    "1",
  ]);
  expect(listed).toMatch(/^WHO +HOW +WORKSPACE .*\nadmin +reconnecting_pty\b.* admin\/dev +.*\n$/);
  expect(await world.runOk(["connections", "list", "type:vscode"])).toBe("No connections.\n");
  expect(await world.runOk(["connections", "retention"])).toBe("Connections are kept for 90 days.\n");
  expect(await world.runOk(["connections", "retention", "30", "--json"])).toBe('{"days":30}\n');
  const invalid = await Promise.all(
    [
      ["retention", "soon"],
      ["list", "--limit", "0"],
    ].map((args) => world.run(["connections", ...args])),
  );
  expect(invalid.map(({ code }) => code)).toEqual([2, 2]);
});

test("[CV-9] ~. leaves a terminal running; --reconnect restores it with its screen, even after a connection loss", async () => {
  let id = "";
  {
    await using terminal = world.runOnTerminal("slipway workspaces shell dev.main");
    await terminal.until(PROMPT);
    terminal.type("kept=some''thing; echo first-$kept\r");
    await terminal.until("first-something\r\n");
    terminal.type("~.");
    const message = await terminal.until(/--reconnect \S+`/);
    id = /--reconnect ([0-9a-f-]{36})/.exec(message)?.[1] ?? "";
    expect(await terminal.exited).toBe(0);
  }
  // The connection of the second terminal can be cut.
  using proxy = new CuttableProxy(world.server.url);
  const env = { SLIPWAY_URL: proxy.url, SLIPWAY_TOKEN: readToken(world) };
  await using terminal = world.runOnTerminal(`slipway workspaces shell dev --reconnect ${id}`, env);
  await terminal.until("first-something");
  proxy.cut();
  await terminal.until("Connection lost");
  await terminal.until("first-something");
  terminal.type("\recho still-$kept\r");
  await terminal.until("still-something\r\n");
  terminal.type("exit\r");
  expect(await terminal.exited).toBe(0);
});

test("[CV-10] in a pipe, a command's input, output and exit code are passed on unchanged", async () => {
  const bytes = crypto.getRandomValues(new Uint8Array(200_000));
  const hash = new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
  const [piped, script, quoted, early] = await Promise.all([
    world.run(shellArgs("dev", "--", "tee", "copy", "|", "sha256sum"), { stdin: bytes }),
    world.run(shellArgs("dev"), { stdin: "printf 'a\\tb\\n\\036'\nexit 3\n" }),
    world.run(shellArgs("dev", "--", `printf '%s|' "it's" '$HOME'; echo lost >&2; exit 5`)),
    world.run(shellArgs("dev", "--", "head -c 3"), { stdin: "abcdef".repeat(100_000) }),
  ]);
  expect(piped).toMatchObject({ code: 0, out: `${hash}  -\n` });
  expect(script).toMatchObject({ code: 3, out: "a\tb\n\u001e" });
  expect(quoted).toMatchObject({ code: 5, out: "it's|$HOME|lost\n" });
  expect(early).toMatchObject({ code: 0, out: "abc" });
  expect((await world.run(shellArgs("dev", "--reconnect", crypto.randomUUID()), { stdin: "x" })).err).toContain(
    "terminal",
  );
});

test("[CV-11] `shell` starts a stopped workspace first; the error for an unknown agent names the existing ones", async () => {
  await world.runOk(["workspaces", "stop", "dev"]);
  const started = await world.run(shellArgs("dev", "--", "echo", "here"));
  expect(started).toMatchObject({ code: 0, out: "here\n", err: expect.stringContaining("starting dev") });
  expect(await world.run(shellArgs("dev.second", "--", "true"))).toMatchObject({
    code: 1,
    err: "slipway workspaces shell: dev has no agent second; it has main\n",
  });
});
