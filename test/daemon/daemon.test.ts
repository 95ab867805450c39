import { describe, expect, test } from "bun:test";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { join } from "node:path";
import { uuidFromBytes } from "#base/ids.ts";
import { getMemoryFolder } from "#base/secrets/memory-folder.ts";
import { VERSION } from "#base/version.ts";
import { until } from "#test/support/until.ts";
import { isAlive, startDaemon, TOKEN } from "./support/daemon.ts";
import { bytes, RecordingServer, script } from "./support/server.ts";

const hasSettled = (states: readonly string[]): boolean =>
  states.some((state) => ["ready", "start_error", "start_timeout"].includes(state));

describe("a daemon that starts", () => {
  test("[DM-1][DM-5] authenticates, introduces itself, runs its start scripts and reports that it is ready", async () => {
    await using server = new RecordingServer();
    server.manifest = {
      directory: "~/project",
      agentName: "main",
      workspaceName: "garden",
      ownerUsername: "ada",
      workspaceId: bytes(7),
      environmentVariables: { GREETING: "hello from $HOME", KEPT: "costs $5" },
      scripts: [
        script(
          'echo "$GREETING|$KEPT"; pwd; echo "$SLIPWAY $SLIPWAY_WORKSPACE_NAME [$SLIPWAY_AGENT_TOKEN] $(cat "$SLIPWAY_AGENT_TOKEN_FILE")"',
        ),
      ],
    };
    await using daemon = startDaemon({ url: server.url });
    await server.until(({ states }) => hasSettled(states));
    expect(server.upgradeRequests[0]).toEqual({
      path: "/api/v2/workspaceagents/me/rpc?version=2.10&role=agent",
      token: TOKEN,
    });
    expect(server.receivedCalls.slice(0, 2).map(({ method }) => method)).toEqual(["getManifest", "updateStartup"]);
    expect(server.calls("updateStartup")[0]?.request).toMatchObject({
      startup: { version: `v${VERSION}`, expandedDirectory: join(daemon.home, "project") },
    });
    expect(server.states).toEqual(["starting", "ready"]);
    await server.until(() => server.lines().length === 3);
    expect(server.lines()).toEqual([
      `info hello from ${daemon.home}|costs $5`,
      `info ${realpathSync(join(daemon.home, "project"))}`,
      `info true garden [] ${TOKEN}`,
    ]);
    expect(server.calls("scriptCompleted")[0]?.request).toMatchObject({
      timing: { scriptId: bytes(1), exitCode: 0, stage: 0, status: 0 },
    });
  });

  test("[DM-22] scripts of existing templates find the program's usual name, their identity, and a folder for their programs", async () => {
    await using server = new RecordingServer();
    const createTool =
      'printf "#!/bin/sh\\necho a tool\\n" > "$CODER_SCRIPT_BIN_DIR/tool"; chmod +x "$CODER_SCRIPT_BIN_DIR/tool"; tool';
    const printIdentity =
      'echo "$CODER $CODER_WORKSPACE_NAME $CODER_WORKSPACE_OWNER_NAME $CODER_WORKSPACE_AGENT_NAME $CODER_AGENT_URL $VSCODE_PROXY_URI"';
    const printDataFolder =
      'echo "$(ls "$CODER_SCRIPT_DATA_DIR" | wc -l) of $(dirname "$(dirname "$CODER_SCRIPT_DATA_DIR")")"';
    server.manifest = {
      agentName: "main",
      workspaceName: "garden",
      ownerUsername: "ada",
      vsCodePortProxyUri: "https://{{port}}--main--garden--ada.example.com",
      environmentVariables: { PATH: "/opt/of/the/template:$PATH" },
      scripts: [
        script(
          `${createTool}; ${printIdentity}; ${printDataFolder}; coder version; slipway version; echo "\${PATH%%:*}"`,
        ),
      ],
    };
    const daemon = startDaemon({ url: server.url });
    try {
      await server.until(() => server.lines().length === 6);
    } finally {
      await daemon.stop();
    }
    const [created, identity, data = "", ...rest] = server.lines().map((line) => line.replace(/^info /, ""));
    expect([created, identity]).toEqual([
      "a tool",
      `true garden ada main ${server.url.href} https://{{port}}--main--garden--ada.example.com`,
    ]);
    const folder = data.replace(/^0 of /, "").replace(/\/data$/, "");
    expect(folder).toContain("slipway-bin-");
    expect(rest).toEqual(
      [`Slipway v${VERSION}`, `Slipway v${VERSION}`, "/opt/of/the/template"].map((text) =>
        expect.stringContaining(text),
      ),
    );
    expect(existsSync(folder)).toBe(false);
    await daemon[Symbol.asyncDispose]();
  });

  test("[DM-21] the owner's secrets become environment variables and files; one that cannot be written does not affect the others", async () => {
    await using server = new RecordingServer();
    const encode = (text: string) => new TextEncoder().encode(text);
    const workspaceId = bytes(21);
    server.manifest = {
      workspaceId,
      environmentVariables: { REGISTRY: "of the template" },
      secrets: [
        { envName: "REGISTRY", filePath: "", value: encode("of the owner $HOME") },
        { envName: "", filePath: "/proc/is/not/writable", value: encode("x") },
        { envName: "BOTH", filePath: "~/.config/registry/token", value: encode("two\nlines") },
        { envName: "BINARY", filePath: "~/binary", value: new Uint8Array([0xff, 0xfe]) },
      ],
      scripts: [
        script(
          'echo "$REGISTRY"; echo "$BOTH" | wc -l; echo "[$BINARY]"; stat -Lc "%a %s" ~/.config/registry/token ~/binary',
        ),
      ],
    };
    await using daemon = startDaemon({ url: server.url });
    await server.until(() => server.lines().length === 5);
    expect(server.lines()).toEqual([...["info of the owner $HOME", "info 2", "info []", "info 600 9", "info 600 2"]]);
    expect(readFileSync(join(daemon.home, ".config/registry/token"), "utf8")).toBe("two\nlines");
    expect(readdirSync(join(daemon.home, ".config/registry"))).toEqual(["token"]);
    await server.until(({ states }) => hasSettled(states));
    expect(server.states).toEqual(["starting", "ready"]);
    // The files are in memory and the home has only links, so a copy of the home contains no secret.
    const memory = getMemoryFolder(uuidFromBytes(workspaceId));
    expect(readlinkSync(join(daemon.home, "binary"))).toStartWith(`${memory}/`);
    expect(statSync(memory).mode & 0o777).toBe(0o700);
    expect(readdirSync(memory)).toHaveLength(3);
    // The record in the home contains no digests, because a weak secret could be guessed from its digest.
    const record = join(daemon.home, `.local/state/slipway/secret-files-${uuidFromBytes(workspaceId)}.json`);
    expect(Object.values(JSON.parse(readFileSync(record, "utf8")).files)).toEqual(
      Array(3).fill({ salt: "", digests: [] }),
    );
    await daemon.stop();
    expect([memory, record].filter(existsSync)).toEqual([]);
    expect(readdirSync(daemon.home)).not.toContain("binary");
  });

  test("[DM-21] does not use a folder in memory that other users can open", async () => {
    await using server = new RecordingServer();
    const workspaceId = bytes(22);
    const memory = getMemoryFolder(uuidFromBytes(workspaceId));
    mkdirSync(memory);
    using _cleanup = { [Symbol.dispose]: () => rmSync(memory, { recursive: true, force: true }) };
    server.manifest = { workspaceId, secrets: [{ envName: "", filePath: "~/key", value: new Uint8Array([1]) }] };
    await using daemon = startDaemon({ url: server.url });
    await server.until(({ states }) => hasSettled(states));
    expect(lstatSync(join(daemon.home, "key"))).toMatchObject({ mode: 0o100600, size: 1 });
  });

  test("[DM-28] installs dotfiles in the home before the start scripts; their failure or timeout blocks nothing", async () => {
    await using server = new RecordingServer();
    const dotfilesScript = (text: string, number: number): ReturnType<typeof script> =>
      script(text, { id: bytes(number), logSourceId: bytes(100 + number), isDotfiles: true });
    server.manifest = {
      directory: "~/not/there/yet",
      scripts: [
        script("cat ~/order; pwd", { id: bytes(2), logSourceId: bytes(102), startBlocksLogin: true }),
        dotfilesScript("pwd; sleep 0.3; echo dotfiles >> ~/order; exit 3", 1),
        Object.assign(dotfilesScript("echo slow >> ~/order; sleep 60", 3), {
          timeout: { seconds: 0n, nanos: 300_000_000 },
        }),
      ],
    };
    await using daemon = startDaemon({ url: server.url });
    await server.until(({ states }) => hasSettled(states));
    expect(server.states).toEqual(["starting", "ready"]);
    await server.until(() => server.calls("scriptCompleted").length === 3 && server.lines(102).length === 3);
    expect(server.lines(102).slice(0, 2)).toEqual(["info dotfiles", "info slow"]);
    expect(server.lines(101)).toEqual([
      `info ${realpathSync(daemon.home)}`,
      "error The script failed with exit code 3.",
    ]);
    const timings = server.calls("scriptCompleted").map(({ request }) => (request as StageTiming).timing);
    expect(timings.map(({ status, exitCode }) => [status, exitCode === 0])).toEqual([
      [1, false],
      [2, false],
      [0, true],
    ]);
  });

  test("[DM-28] a daemon that stops during the dotfiles installation starts no more scripts", async () => {
    await using server = new RecordingServer();
    server.manifest = {
      scripts: [
        script("echo installing; sleep 60", { isDotfiles: true }),
        script("echo too late", { id: bytes(2), logSourceId: bytes(102) }),
      ],
    };
    await using daemon = startDaemon({ url: server.url });
    await server.until(() => server.lines().length === 1);
    await daemon.stop();
    expect([server.states, server.lines(102)]).toEqual([["starting", "shutting_down", "off"], []]);
  });

  test("[DM-24] Codex finds the gateway in its configuration before the first script runs", async () => {
    await using server = new RecordingServer();
    server.manifest = {
      environmentVariables: {
        OPENAI_BASE_URL: "https://slipway.example/api/v2/ai/openai/v1",
        OPENAI_API_KEY: "slipway-ai.agent.secret",
      },
      scripts: [script("grep base_url ~/.codex/config.toml; stat -c %a ~/.codex/config.toml")],
    };
    await using _daemon = startDaemon({ url: server.url });
    await server.until(() => server.lines().length === 2);
    expect(server.lines()).toEqual(['info base_url = "https://slipway.example/api/v2/ai/openai/v1"', "info 600"]);
  });

  test("[DM-23] after a restart or reconnect, removes files of deleted secrets unless a user has changed them", async () => {
    await using server = new RecordingServer();
    const secret = (filePath: string, text: string, envName = "") => ({
      envName,
      filePath,
      value: new TextEncoder().encode(text),
    });
    const workspaceId = bytes(7);
    const names = ["kept", "gone", "moved", "edited", "linked", "folder"];
    server.manifest = { workspaceId, secrets: names.map((name) => secret(`~/${name}`, `${name} value`)) };
    await using first = startDaemon({ url: server.url });
    const homePath = (name: string): string => join(first.home, name);
    const listExisting = (): string[] => [...names, "elsewhere", "late"].filter((name) => existsSync(homePath(name)));
    await server.until(({ states }) => hasSettled(states));
    expect(listExisting()).toEqual(names);
    await Bun.write(homePath("edited"), "edited value, and more");
    renameSync(homePath("linked"), homePath("target"));
    symlinkSync(homePath("target"), homePath("linked"));
    rmSync(homePath("folder"));
    mkdirSync(homePath("folder"));
    await first.stop();
    // Others may mount or copy a stopped workspace's files, so the unchanged secret files are removed.
    expect(listExisting()).toEqual(["edited", "folder"]);
    expect(readFileSync(homePath("edited"), "utf8")).toBe("edited value, and more");
    expect(lstatSync(homePath("edited"))).toMatchObject({ mode: 0o100600 });
    server.manifest = {
      workspaceId,
      secrets: [secret("~/kept", "kept value"), secret("~/elsewhere", "moved value"), secret("~/late", "late", "LATE")],
    };
    const manifestCalls = server.calls("getManifest").length;
    await using _second = startDaemon({ url: server.url, env: { HOME: first.home } });
    await server.until(() => server.calls("getManifest").length > manifestCalls);
    await until(() => listExisting().join() === "kept,edited,folder,elsewhere,late");
    // The user's link remains, but its target was removed when the daemon stopped.
    expect(readlinkSync(homePath("linked"))).toBe(homePath("target"));
    expect(existsSync(homePath("target"))).toBe(false);
    expect(readFileSync(homePath("kept"), "utf8")).toBe("kept value");
    // The daemon learns about secrets that were deleted or changed on the server when it reconnects.
    await Bun.write(homePath("elsewhere"), "mine now");
    server.manifest = {
      workspaceId,
      secrets: [secret("~/kept", "another value"), secret("~/elsewhere", "moved value")],
    };
    server.dropConnections();
    await until(() => !existsSync(homePath("late")));
    await until(() => readFileSync(homePath("kept"), "utf8") === "another value");
    expect(readFileSync(homePath("elsewhere"), "utf8")).toBe("mine now");
    const record = homePath(`.local/state/slipway/secret-files-${uuidFromBytes(workspaceId)}.json`);
    expect(statSync(record).mode & 0o777).toBe(0o600);
    expect(readFileSync(record, "utf8")).not.toContain("value");
  });

  test("[DM-5] reports start_error when a start script fails, and start_timeout when one times out", async () => {
    for (const [text, state, exitCode] of [
      ["exit 7", "start_error", 7],
      ["sleep 60", "start_timeout", 143],
    ] as const) {
      await using server = new RecordingServer();
      server.manifest = { scripts: [script(text, { timeout: { seconds: 0n, nanos: 50_000_000 } })] };
      await using _daemon = startDaemon({ url: server.url });
      await server.until(({ states }) => hasSettled(states));
      expect(server.states).toEqual(["starting", state]);
      expect(server.calls("scriptCompleted")[0]?.request).toMatchObject({ timing: { exitCode } });
    }
  });

  test("[DM-5] only scripts that block login decide the state; other scripts may continue and fail", async () => {
    await using server = new RecordingServer();
    const background = { id: bytes(2), logSourceId: bytes(102) };
    server.manifest = {
      scripts: [
        script("echo quick", { startBlocksLogin: true }),
        script('while [ ! -e "$HOME/go" ]; do sleep 0.02; done; exit 3', background),
      ],
    };
    await using daemon = startDaemon({ url: server.url });
    await server.until(({ states }) => hasSettled(states));
    expect(server.states).toEqual(["starting", "ready"]);
    await Bun.write(join(daemon.home, "go"), "");
    await server.until(() => server.calls("scriptCompleted").length === 2);
    expect(server.calls("scriptCompleted")[1]?.request).toMatchObject({ timing: { scriptId: bytes(2), exitCode: 3 } });
    expect(server.states).toEqual(["starting", "ready"]);
  });

  test("[DM-6] runs a script with a shebang in its interpreter, and a script longer than the argument limit", async () => {
    await using server = new RecordingServer();
    const padding = `# ${"x".repeat(200)}\n`.repeat(1000);
    server.manifest = {
      scripts: [
        script("#!/usr/bin/env -S sh -eu\necho interpreted $0"),
        script(`${padding}echo long`, { id: bytes(2), logSourceId: bytes(102) }),
        script("#!/no/such/interpreter", { id: bytes(3), logSourceId: bytes(103) }),
      ],
    };
    await using _daemon = startDaemon({ url: server.url });
    await server.until(({ states }) => hasSettled(states));
    await server.until(() => [101, 102, 103].every((source) => server.lines(source).length > 0));
    expect(server.lines(101)[0]).toStartWith("info interpreted /");
    expect(existsSync(server.lines(101)[0]!.split(" ")[2]!)).toBe(false);
    expect(server.lines(102)).toEqual(["info long"]);
    expect(server.lines(103)[0]).toStartWith("error The script cannot be started: ");
    expect(server.states).toEqual(["starting", "start_error"]);
  });

  test("[DM-7] handles standard error like other output, keeps colors, and writes everything to a log file", async () => {
    await using server = new RecordingServer();
    server.manifest = {
      directory: "work",
      scripts: [script("printf '\\033[32mgreen\\033[0m\\nno end'; echo progress >&2", { logPath: "logs/start.log" })],
    };
    await using daemon = startDaemon({ url: server.url });
    await server.until(() => server.lines().length === 3);
    expect(server.lines().sort()).toEqual(["info \u001b[32mgreen\u001b[0m", "info no end", "info progress"]);
    const logFile = readFileSync(join(daemon.home, "work/logs/start.log"), "utf8");
    expect(logFile.length).toBe("\u001b[32mgreen\u001b[0m\nno endprogress\n".length);
  });
});

describe("a daemon that ends", () => {
  test("[DM-16] runs its stop scripts, reports off, and leaves no process behind", async () => {
    await using server = new RecordingServer();
    server.manifest = {
      scripts: [
        // The first ends in time, the second must be killed, and the third leaves a process in the background.
        script('trap "echo asked to stop; exit 0" TERM; echo $$ up; while :; do sleep 0.02; done'),
        script("trap '' TERM; echo $$ up; while :; do sleep 0.02; done", { id: bytes(2), logSourceId: bytes(102) }),
        script("sleep 300 > /dev/null 2>&1 & echo $! up", { id: bytes(3), logSourceId: bytes(103) }),
        script("echo bye", { id: bytes(4), logSourceId: bytes(104), runOnStart: false, runOnStop: true }),
      ],
    };
    await using daemon = startDaemon({ url: server.url });
    const pids = await server.until(() => {
      const lines = [101, 102, 103].flatMap((source) => server.lines(source));
      return lines.length === 3 && lines.map((line) => Number(line.split(" ")[1]));
    });
    expect(pids.map(isAlive)).toEqual([true, true, true]);
    await daemon.stop();
    expect(pids.map(isAlive)).toEqual([false, false, false]);
    expect(server.states).toEqual(["starting", "shutting_down", "off"]);
    expect(server.lines(101)).toContain("info asked to stop");
    expect(server.lines(104)).toEqual(["info bye"]);
    expect(
      server
        .calls("scriptCompleted")
        .map(({ request }) => (request as StageTiming).timing.stage)
        .sort(),
    ).toEqual([0, 0, 0, 1]);
  });

  test("[DM-16] reports shutdown_error when a stop script fails", async () => {
    await using server = new RecordingServer();
    server.manifest = { scripts: [script("exit 1", { runOnStart: false, runOnStop: true })] };
    await using daemon = startDaemon({ url: server.url });
    await server.until(({ states }) => hasSettled(states));
    await daemon.stop();
    expect(server.states).toEqual(["starting", "ready", "shutting_down", "shutdown_error"]);
  });

  test("[DM-16] exits immediately if it never connected, and does not wait long for an unreachable server", async () => {
    await using server = new RecordingServer();
    server.status = 503;
    await using neverConnected = startDaemon({ url: server.url });
    await server.until(({ upgradeRequests }) => upgradeRequests.length > 0);
    await neverConnected.stop();
    server.status = 101;
    await using daemon = startDaemon({ url: server.url });
    await server.until(({ states }) => hasSettled(states));
    server.status = 503;
    server.dropConnections();
    await daemon.stop();
    expect(server.states).toEqual(["starting", "ready"]);
  });

  test("[DM-15] reports the open connections and its own round-trip time", async () => {
    await using server = new RecordingServer();
    server.reportInterval = { seconds: 0n, nanos: 50_000_000 };
    await using _daemon = startDaemon({ url: server.url });
    const listReports = () =>
      server.calls("updateStats").flatMap(({ request }) => {
        const { stats } = request as { stats?: { connectionMedianLatencyMs: number; connectionCount: bigint } };
        return stats ? [stats] : [];
      });
    await server.until(() => listReports().length > 0);
    const [first] = listReports();
    expect(first?.connectionCount).toBe(0n);
    expect(first?.connectionMedianLatencyMs).toBeGreaterThan(0);
    expect(first?.connectionMedianLatencyMs).toBeLessThan(10_000);
  });
});

type StageTiming = { timing: { stage: number; status: number; exitCode: number } };
