// The program as a process with arguments, an environment and signals. Runs from source, and again with the compiled binary if
// SLIPWAY_TEST_BINARY is set.
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { VERSION, WIRE_VERSION } from "#base/version.ts";

const BINARY = process.env.SLIPWAY_TEST_BINARY;
const SOURCE = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
const COMMAND = BINARY ? [BINARY] : [process.execPath, "--no-env-file", SOURCE];

/** Creates an empty folder as the program's working directory; removed when disposed. */
const makeEmptyFolder = () => {
  const path = mkdtempSync(join(tmpdir(), "slipway-program-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
};

const start = (args: string[], cwd: string, env: Record<string, string> = {}) =>
  Bun.spawn([...COMMAND, ...args], {
    cwd,
    // The environment contains only PATH, HOME and the mark of the test run.
    env: { PATH: process.env.PATH, HOME: cwd, TEST_RUN_MARK: process.env.TEST_RUN_MARK, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });

const run = async (args: string[], env: Record<string, string> = {}) => {
  using folder = makeEmptyFolder();
  const child = start(args, folder.path, env);
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { out, err, code };
};

/** Reads the stream until its text matches. */
const findLine = async (stream: ReadableStream<Uint8Array>, pattern: RegExp): Promise<RegExpExecArray> => {
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of stream) {
    text += decoder.decode(chunk, { stream: true });
    const match = pattern.exec(text);
    if (match) return match;
  }
  throw new Error(`the program ended without ${pattern}: ${text}`);
};

test("[CF-9] `version`, `help` and `config example` print to standard output", async () => {
  const version = await run(["version", "--json"]);
  expect(JSON.parse(version.out)).toMatchObject({ version: WIRE_VERSION, slipway: VERSION, bun: Bun.version });
  expect(version.code).toBe(0);
  const help = await run(["help"]);
  expect(help.out).toContain("serve");
  expect((await run(["serve", "--help"])).out).toContain("--data-dir PATH");
  expect((await run(["config", "example"])).out).toContain("#data_dir: ./data");
});

test("[CF-9] wrong usage exits 2 and explains the problem on standard error", async () => {
  const unknownCommand = await run(["srve"]);
  expect(unknownCommand).toMatchObject({ code: 2, out: "" });
  expect(unknownCommand.err).toContain("Did you mean serve?");
  const wrongSetting = await run(["serve", "--address", "7080"], { SLIPWAY_DATADIR: "/x" });
  expect(wrongSetting).toMatchObject({ code: 2, out: "" });
  expect(wrongSetting.err).toContain("--address (command line): expected host:port");
  expect(wrongSetting.err).toContain("SLIPWAY_DATADIR (environment): unknown setting. Did you mean SLIPWAY_DATA_DIR?");
});

test("[CF-5] `config show` prints the source of a secret, but not the secret", async () => {
  const { out, code } = await run(["config", "show", "--json"], {
    SLIPWAY_ADMIN_EMAIL: "a@b.example",
    SLIPWAY_ADMIN_USERNAME: "admin",
    SLIPWAY_ADMIN_PASSWORD: "correct-horse",
  });
  expect(code).toBe(0);
  expect(out).not.toContain("correct-horse");
  expect(JSON.parse(out)).toContainEqual({
    key: "admin_password",
    value: "(hidden)",
    from: "env",
    name: "SLIPWAY_ADMIN_PASSWORD",
  });
});

test("[CF-8] `serve` prints its address, is healthy and exits 0 on SIGTERM; a second server with the same data exits 1", async () => {
  using folder = makeEmptyFolder();
  const server = start(["serve", "--address=127.0.0.1:0"], folder.path);
  const [, url = ""] = await findLine(server.stdout, /^Slipway \S+ is listening on (http:\/\/127\.0\.0\.1:\d+)$/m);
  const address = url.replace("http://", "");
  expect(await run(["health", `--address=${address}`])).toMatchObject({ code: 0, out: "ready\n" });
  const second = start(["serve", "--address=127.0.0.1:0"], folder.path);
  expect(await second.stderr.text()).toContain("is in use by another Slipway process");
  expect(await second.exited).toBe(1);
  server.kill("SIGTERM");
  expect(await server.exited).toBe(0);
  expect((await run(["health", `--address=${address}`])).code).toBe(1);
});

test("[CF-9] Ctrl-C while waiting for a server exits 130", async () => {
  using folder = makeEmptyFolder();
  const requested = Promise.withResolvers<void>();
  const silentServer = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => {
      requested.resolve();
      return new Promise<Response>(() => {});
    },
  });
  try {
    const child = start(["health", `--address=127.0.0.1:${silentServer.port}`], folder.path);
    await requested.promise;
    child.kill("SIGINT");
    expect(await child.exited).toBe(130);
  } finally {
    await silentServer.stop(true);
  }
});

// Only the binary guarantees this: a program that Bun runs from source reads bunfig.toml.
if (BINARY) {
  test("[RP-6] a copy of the binary serves in a folder with a hostile .env and bunfig.toml", async () => {
    using folder = makeEmptyFolder();
    const copy = join(folder.path, "slipway");
    await Bun.write(copy, Bun.file(BINARY), { mode: 0o755 });
    writeFileSync(join(folder.path, ".env"), "SLIPWAY_ADDRESS=nonsense\n");
    writeFileSync(join(folder.path, "bunfig.toml"), 'preload = ["./missing.ts"]\n');
    const server = Bun.spawn([copy, "serve", "--address=127.0.0.1:0"], {
      cwd: folder.path,
      env: { PATH: "/nowhere", TEST_RUN_MARK: process.env.TEST_RUN_MARK },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [, url = ""] = await findLine(server.stdout, /listening on (\S+)$/m);
    expect((await fetch(`${url}/swagger`)).status).toBe(200);
    server.kill("SIGTERM");
    expect(await server.exited).toBe(0);
  });
}
