// An editor over OpenSSH that is used for forty minutes and then left open. The server, the agent and the command line share one clock
// controlled by the test; between them are real sockets, and in front of them is the real OpenSSH.
import { expect } from "bun:test";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Server } from "node:net";
import { join } from "node:path";
import { sha256, uuid } from "#base/ids.ts";
import { run } from "#src/cli/client/network/ssh.ts";
import type { Streams } from "#src/cli/streams.ts";
import type { VerbInput } from "#src/cli/verb.ts";
import { type Clockwork, MINUTE, openClockwork, read } from "#test/api/workspaces/clock-world.ts";
import { startDaemon } from "#test/daemon/support/daemon.ts";
import { testInside } from "#test/support/inside.ts";
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
/** OpenSSH's ProxyCommand, which forwards its bytes to the verb in the test's process. */
const PIPE = `const socket = require("node:net").connect(process.argv[2]);
process.stdin.pipe(socket).pipe(process.stdout);
socket.on("close", () => process.exit());
`;

/** Advances time in small steps and lets the effects of each step complete. */
const passTime = async (
  { clock, server, admin }: Clockwork,
  ms: number,
  everyFiveMinutes = async () => {},
): Promise<void> => {
  for (let passed = 0; passed < ms; passed += STEP_MS) {
    clock.advance(STEP_MS);
    // All sockets are in this process: when these responses arrive, their data has been read.
    for (let i = 0; i < 2; i++) await admin.fetch("GET", "/api/v2/buildinfo");
    if (passed % MINUTE !== 0) continue;
    await getContext(server).scheduler.tick();
    if (passed % (5 * MINUTE) === 0) await everyFiveMinutes();
  }
};

/** Waits for work that itself waits for the clock: acknowledgments and pauses between them. */
const whileTimePasses = async (clock: Clockwork["clock"], work: Promise<void> | undefined, step_ms = 20) => {
  let isDone = false;
  const ended = Promise.resolve(work).finally(() => {
    isDone = true;
  });
  await until(() => {
    clock.advance(step_ms);
    return isDone;
  });
  await ended;
};

/** Starts a daemon on the test's clock, which advances while the daemon ends. */
const startDaemonOn = ({ server, clock }: Clockwork, token: string): AsyncDisposable => {
  const daemon = startDaemon({ url: server.url, token, clock });
  return {
    async [Symbol.asyncDispose]() {
      await whileTimePasses(clock, Promise.resolve(daemon[Symbol.asyncDispose]()), STEP_MS);
    },
  };
};

/** Runs `slipway ssh ...` for each connection to a socket, on the test's clock. */
const serveVerb = async (path: string, { server, clock, owner_token }: Clockwork, argv: readonly string[]) => {
  const codes: Promise<number>[] = [];
  const stopping = new AbortController();
  const listener = createServer({ allowHalfOpen: true }, (socket) => {
    const streams: Pick<Streams, "input" | "write"> = {
      input: () => socket as AsyncIterable<Uint8Array>,
      write: (data) => new Promise((done) => void socket.write(data, () => done())),
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
      // The end of the connection also counts as a response.
      const onAnswer = (answer: Buffer | boolean): void => {
        socket.off("data", onAnswer).off("close", onAnswer);
        resolve(String(answer));
      };
      socket.on("data", onAnswer).on("close", onAnswer);
      socket.write(text);
    });
  return {
    exchange,
    /** Transfers as much as an editor in use does per minute, in packets that do not depend on the clock. */
    work: async (): Promise<void> => {
      for (let i = 0; i < WORK_PACKETS; i++) await exchange("x".repeat(WORK_BYTES));
    },
    [Symbol.dispose]: () => void socket.destroy(),
  };
};

testInside.if(Bun.which("ssh") !== null)(
  "[CN-9] a session with three forwards is unchanged after forty minutes; the workspace runs while the editor is used, and stops although an unused editor stays open",
  async () => {
    await using world = await openClockwork({ template: { activity_bump_ms: 10 * MINUTE } });
    const { server, clock, owner } = world;
    const created = await world.make({ ttl_ms: 20 * MINUTE });
    const agent_id = created.latest_build.resources[0]?.agents[0]?.id ?? "";
    const token = uuid();
    await getContext(server).agents.ask(agent_id, "signIn", { token_hash: sha256(token) });
    await using _daemon = startDaemonOn(world, token);
    const agent = async () => (await read(owner, created)).latest_build.resources[0]?.agents[0];
    await until(async () => (await agent())?.lifecycle_state === "ready");

    using folder = tempDirectory();
    const [socket, script, info] = ["ssh.sock", "pipe.cjs", "net"].map((name) => join(folder.path, name)) as [
      string,
      string,
      string,
    ];
    writeFileSync(script, PIPE);
    // As in the extension's block for OpenSSH (editor-plugin.test.ts).
    const prefix = `coder-vscode.${server.url.hostname}--`;
    const host = `${prefix}${created.owner_name}--${created.name}`;
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
        ...apps.flatMap((app, at) => ["-L", `${ports[at]}:127.0.0.1:${(app.address() as AddressInfo).port}`]),
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
    const exchangeAll = (text: string) => Promise.all(forwards.map((one) => one.exchange(text)));
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
    const { latest_build } = await read(owner, created);
    expect(latest_build.status).toBe("running");
    expect(Date.parse(latest_build.deadline as string)).toBeGreaterThan(clock.now());

    // The window stays open, unused. Its connections send keepalives, and a program in the workspace prints.
    await passTime(world, 25 * MINUTE, async () => {
      if ((await read(owner, created)).latest_build.status !== "running") return;
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
    expect((await read(owner, created)).latest_build).toMatchObject({ status: "stopped", reason: "autostop" });
    for (const one of forwards) one[Symbol.dispose]();
    ssh.kill("SIGKILL");
    await ssh.exited;
    for (const app of apps) app.close();
  },
);
