// An editor that works over OpenSSH for forty minutes and then stays open without being used. Server, agent and command line share a clock
// that the test controls. They are connected by real sockets, and the editor's connection is the real OpenSSH.
import { expect } from "bun:test";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Server } from "node:net";
import { join } from "node:path";
import { sha256, uuid } from "#base/ids.ts";
import { run } from "#src/cli/client/network/ssh.ts";
import type { Streams } from "#src/cli/streams.ts";
import type { VerbInput } from "#src/cli/verb.ts";
import { type ClockWorld, MINUTE, openClockWorld, read } from "#test/api/workspaces/clock-world.ts";
import { startDaemon } from "#test/daemon/support/daemon.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { findFreePort } from "#test/support/net/free-port.ts";
import { getContext } from "#test/support/seed.ts";
import { tempDirectory } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";

const WORK_PACKETS = 12;
const WORK_BYTES = 1_100;
/** Keepalives per connection and minute, as in VS Code. */
const KEEPALIVES = 4;
const KEEPALIVE_BYTES = 39;
/** Less than any connection timeout, so that each response arrives in time. */
const STEP_MS = 4_000;
/** The script of OpenSSH's ProxyCommand, which forwards bytes to the command that runs in the test's process. */
const PROXY_SCRIPT = `const socket = require("node:net").connect(process.argv[2]);
process.stdin.pipe(socket).pipe(process.stdout);
socket.on("close", () => process.exit());
`;

/** Advances time in small steps and lets the effects of each step complete. */
const passTime = async (
  { clock, server, admin }: ClockWorld,
  ms: number,
  everyFiveMinutes = async () => {},
): Promise<void> => {
  for (let passed = 0; passed < ms; passed += STEP_MS) {
    clock.advance(STEP_MS);
    // All sockets are in this process, so their data has been read when these responses arrive.
    for (let i = 0; i < 2; i++) await admin.fetch("GET", "/api/v2/buildinfo");
    if (passed % MINUTE !== 0) continue;
    await getContext(server).scheduler.tick();
    if (passed % (5 * MINUTE) === 0) await everyFiveMinutes();
  }
};

/** Waits for work that needs the clock to advance, like acknowledgments and the pauses between them. */
const advanceUntilDone = async (clock: ClockWorld["clock"], work: Promise<void> | undefined, stepMs = 20) => {
  let isDone = false;
  const ended = Promise.resolve(work).finally(() => {
    isDone = true;
  });
  await until(() => {
    clock.advance(stepMs);
    return isDone;
  });
  await ended;
};

/** Starts a daemon on the test's clock, which advances while the daemon ends. */
const startDaemonOn = ({ server, clock }: ClockWorld, token: string): AsyncDisposable => {
  const daemon = startDaemon({ url: server.url, token, clock });
  return {
    async [Symbol.asyncDispose]() {
      await advanceUntilDone(clock, Promise.resolve(daemon[Symbol.asyncDispose]()), STEP_MS);
    },
  };
};

/** Runs `slipway ssh ...` for each connection to a socket, on the test's clock. */
const serveVerb = async (path: string, { server, clock, owner_token }: ClockWorld, argv: readonly string[]) => {
  const codes: Promise<number>[] = [];
  const stopping = new AbortController();
  const listener = createServer({ allowHalfOpen: true }, (socket) => {
    const streams: Pick<Streams, "input" | "write"> = {
      input: () => socket as AsyncIterable<Uint8Array>,
      write: (data) => new Promise((resolve) => void socket.write(data, () => resolve())),
    };
    const input: VerbInput = {
      argv,
      env: { SLIPWAY_URL: server.url.href, SLIPWAY_TOKEN: owner_token },
      signal: stopping.signal,
      clock,
      print: () => {},
      printError: () => {},
      isTerminal: false,
      readFile: (file) => readFileSync(file, "utf8"),
      streams: streams as Streams,
    };
    codes.push(run(input).finally(() => socket.destroy()));
  }).listen(path);
  await once(listener, "listening");
  return {
    codes,
    [Symbol.dispose]() {
      stopping.abort();
      listener.close();
    },
  };
};

/** Starts an echo server in the workspace. */
const startEchoServer = async (): Promise<Server> => {
  const server = createServer((socket) => socket.pipe(socket)).listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
};

/** Opens a persistent connection through a forward. */
const openForward = async (port: number) => {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  const exchange = (text: string): Promise<string> =>
    new Promise((resolve) => {
      // A closed connection also counts as a response.
      const onResponse = (response: Buffer | boolean): void => {
        socket.off("data", onResponse).off("close", onResponse);
        resolve(String(response));
      };
      socket.on("data", onResponse).on("close", onResponse);
      socket.write(text);
    });
  return {
    exchange,
    /** Transfers as many bytes as a busy editor does per minute. The packets do not depend on the clock. */
    work: async (): Promise<void> => {
      for (let i = 0; i < WORK_PACKETS; i++) await exchange("x".repeat(WORK_BYTES));
    },
    [Symbol.dispose]: () => void socket.destroy(),
  };
};

testInProcess.if(Bun.which("ssh") !== null)(
  "[CN-9] a session with three forwards works after forty minutes; the workspace runs while the editor is used, then stops",
  async () => {
    await using world = await openClockWorld({ template: { activity_bump_ms: 10 * MINUTE } });
    const { server, clock, owner } = world;
    const workspace = await world.make({ ttl_ms: 20 * MINUTE });
    const agent_id = workspace.latest_build.resources[0]?.agents[0]?.id ?? "";
    const token = uuid();
    await getContext(server).agents.ask(agent_id, "signIn", { token_hash: sha256(token) });
    await using _daemon = startDaemonOn(world, token);
    const agent = async () => (await read(owner, workspace)).latest_build.resources[0]?.agents[0];
    await until(async () => (await agent())?.lifecycle_state === "ready");

    using folder = tempDirectory();
    const [socket, script, info] = ["ssh.sock", "pipe.cjs", "net"].map((name) => join(folder.path, name)) as [
      string,
      string,
      string,
    ];
    writeFileSync(script, PROXY_SCRIPT);
    // The same flags as in the extension's OpenSSH configuration (editor-plugin.test.ts).
    const prefix = `coder-vscode.${server.url.hostname}--`;
    const host = `${prefix}${workspace.owner_name}--${workspace.name}`;
    const folders = ["--network-info-dir", info, "--log-dir", folder.path];
    const argv = [
      "--disable-autostart",
      "--stdio",
      "--usage-app=vscode",
      ...folders,
      "-v",
      "--ssh-host-prefix",
      prefix,
      host,
    ];
    using verb = await serveVerb(socket, world, argv);
    const apps = await Promise.all([1, 2, 3].map(startEchoServer));
    const ports = apps.map(findFreePort);
    await using ssh = Bun.spawn(
      [
        ...["ssh", "-F", "/dev/null", "-o", `ProxyCommand='${process.execPath}' '${script}' '${socket}'`],
        ...[
          "StrictHostKeyChecking=no",
          "UserKnownHostsFile=/dev/null",
          "LogLevel=ERROR",
          "ExitOnForwardFailure=yes",
          "ServerAliveInterval=10",
          "SetEnv=CODER_SSH_SESSION_TYPE=vscode",
        ].flatMap((option) => ["-o", option]),
        ...apps.flatMap((app, index) => ["-L", `${ports[index]}:127.0.0.1:${(app.address() as AddressInfo).port}`]),
        ...[
          "workspace",
          `echo ready; while read -r line; do case "$line" in print) head -c ${WORK_BYTES} /dev/zero | tr "\\0" y;; *) echo "$line";; esac; done`,
        ],
      ],
      { env: { PATH: process.env.PATH ?? "", HOME: folder.path }, stdio: ["pipe", "pipe", "inherit"] },
    );
    const output = ssh.stdout.getReader();
    const readOutput = async () => new TextDecoder().decode((await output.read()).value);
    expect(await readOutput()).toBe("ready\n");
    const forwards = await Promise.all(ports.map(openForward));
    const exchangeAll = (text: string) => Promise.all(forwards.map((forward) => forward.exchange(text)));
    expect(await exchangeAll("before")).toEqual(["before", "before", "before"]);
    let reconnects = 0;
    const unsubscribe = getContext(server).topics.subscribe("agent_connection", agent_id, () => {
      reconnects += 1;
    });

    await passTime(world, 40 * MINUTE, async () => forwards[0]?.work());
    unsubscribe();

    ssh.stdin.write("still here\n");
    ssh.stdin.flush();
    expect(await readOutput()).toBe("still here\n");
    expect(await exchangeAll("after")).toEqual(["after", "after", "after"]);
    expect([reconnects, verb.codes.length]).toEqual([0, 1]);
    expect(JSON.parse(readFileSync(join(info, "0.json"), "utf8"))).toMatchObject({ latency: expect.any(Number) });
    const { latest_build } = await read(owner, workspace);
    expect(latest_build.status).toBe("running");
    expect(Date.parse(latest_build.deadline as string)).toBeGreaterThan(clock.now());

    // The editor stays open without being used. Its connections send keepalives, and a program in the workspace prints.
    await passTime(world, 25 * MINUTE, async () => {
      if ((await read(owner, workspace)).latest_build.status !== "running") return;
      for (let i = 0; i < KEEPALIVES; i++) await exchangeAll("x".repeat(KEEPALIVE_BYTES));
      for (let i = 0; i < KEEPALIVES; i++) {
        ssh.stdin.write("print\n");
        ssh.stdin.flush();
        for (let remaining = WORK_BYTES; remaining > 0; ) {
          const printed = await readOutput();
          if (printed === "") return;
          remaining -= printed.length;
        }
      }
    });
    expect((await read(owner, workspace)).latest_build).toMatchObject({ status: "stopped", reason: "autostop" });
    for (const forward of forwards) forward[Symbol.dispose]();
    ssh.kill("SIGKILL");
    await ssh.exited;
    for (const app of apps) app.close();
  },
);
