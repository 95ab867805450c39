// MCP servers from npm and PyPI in realistic situations: they start late, are killed, are slow, and are restarted. `.ci/mcp-servers`
// installs them.
import { expect } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import type { Chat } from "#schema/chats/chat.ts";
import type { McpServerConfig } from "#schema/chats/mcp-server.ts";
import { Client } from "#src/client.ts";
import { WorkspaceMcp } from "#src/daemon/context/mcp.ts";
import { ProcessGroups } from "#src/daemon/scripts/groups.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { findFreePort } from "#test/support/net/free-port.ts";
import { ADMIN, tempDirectory } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { callTools, openChat, openToolWorld } from "../tools/world.ts";

const PATH = process.env.PATH ?? "";
const neverAborted = new AbortController().signal;
const getProgramPath = (name: string): string => join(needs.mcpServers.file, name);
const [NPM, PYPI] = ["node_modules/.bin", "python/bin"];

/**
 * Starts the servers that a workspace declares, by name. Each writes its process ID to `NAME.pid` in the folder, and then waits for the
 * file `gate` in the folder.
 */
const openServers = (folder: string, commands: Record<string, readonly string[]>) => {
  const script = 'echo $$ > "$0"; while [ ! -e gate ]; do sleep 0.05; done; exec "$@"';
  const mcpServers = Object.fromEntries(
    Object.entries(commands).map(([name, command]) => {
      return [name, { command: "sh", args: ["-c", script, join(folder, `${name}.pid`), ...command] }];
    }),
  );
  const groups = new ProcessGroups({ clock: systemClock, agent_id: "t" });
  const mcp = new WorkspaceMcp({ clock: systemClock, groups, env: { PATH, HOME: folder } });
  mcp.onChange(async () => {});
  mcp.use([{ folder, text: JSON.stringify({ mcpServers }) }]);
  const find = (name: string) => mcp.resources.find(({ source }) => source === name);
  return {
    /** Resolves when each server has this status. */
    waitForAll: (status: string) =>
      until(() => Object.keys(commands).every((name) => find(name)?.status === status), { timeoutMs: 90_000 }),
    getError: (name: string) => find(name)?.error,
    listTools: (name: string) => (find(name)?.tools ?? []).map((tool) => tool.name),
    call: (name: string, tool: string, args: object, silence_ms = 60_000) =>
      mcp.call(name, tool, { ...args }, neverAborted, { silence_ms, total_ms: 600_000 }),
    kill: (name: string) => process.kill(Number(readFileSync(join(folder, `${name}.pid`), "utf8")), "SIGKILL"),
    openGate: () => writeFileSync(join(folder, "gate"), ""),
    [Symbol.dispose]: () => mcp.end(),
  };
};

/** Serves a page. Its path /slow responds when the gate resolves. */
const startPageServer = (gate: Promise<void>) =>
  Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      if (new URL(request.url).pathname === "/slow") await gate;
      return new Response("a page of words", { headers: { "content-type": "text/plain" } });
    },
  });

testNeeding(
  [needs.mcpServers, needs.git],
  "[MC-3][MC-6][MC-12] programs from npm and PyPI start late, answer calls, and restart after a kill; only slow calls fail",
  async () => {
    using directory = tempDirectory();
    const folder = directory.path;
    const repository = join(folder, "work");
    mkdirSync(repository);
    Bun.spawnSync(["git", "init", "-q", "-b", "main", repository]);
    writeFileSync(join(repository, "notes.txt"), "some notes");
    const gate = Promise.withResolvers<void>();
    const pageServer = startPageServer(gate.promise);
    await using _ = { [Symbol.asyncDispose]: () => pageServer.stop(true) };
    using servers = openServers(folder, {
      everything: [getProgramPath(`${NPM}/mcp-server-everything`)],
      files: [getProgramPath(`${NPM}/mcp-server-filesystem`), repository],
      memory: ["env", `MEMORY_FILE_PATH=${folder}/memory.jsonl`, getProgramPath(`${NPM}/mcp-server-memory`)],
      git: [getProgramPath(`${PYPI}/mcp-server-git`), "--repository", repository],
      fetch: [getProgramPath(`${PYPI}/mcp-server-fetch`), "--ignore-robots-txt", "--allow-private-ips"],
    });
    await until(() => servers.getError("git") === "it is starting" && servers.getError("memory") === "it is starting");
    servers.openGate();
    await servers.waitForAll("ok");

    const url = `http://127.0.0.1:${pageServer.port}`;
    const entity = { name: "Ada", entityType: "person", observations: ["likes engines"] };
    await servers.call("memory", "create_entities", { entities: [entity] });
    const calls: readonly (readonly [server: string, tool: string, args: object, expected: string])[] = [
      ["everything", "get-sum", { a: 2, b: 3 }, "5"],
      ["files", "read_text_file", { path: join(repository, "notes.txt") }, "some notes"],
      ["memory", "read_graph", {}, "likes engines"],
      ["git", "git_status", { repo_path: repository }, "notes.txt"],
      ["fetch", "fetch", { url }, "a page of words"],
    ];
    for (const round of ["first", "after they were killed"]) {
      const answers = await Promise.all(
        calls.map(([server, tool, args]) =>
          servers.call(server, tool, args).catch((error: Error) => {
            // The call reached the program just before it was killed.
            expect(error.message).toContain("ended with code 137");
            return servers.call(server, tool, args);
          }),
        ),
      );
      for (const [index, [server, tool, , expected]] of calls.entries()) {
        expect(servers.listTools(server)).toContain(`${server}__${tool}`);
        expect([round, server, answers[index]?.is_error]).toEqual([round, server, false]);
        expect(JSON.stringify(answers[index]?.result)).toContain(expected);
      }
      if (round === "first") for (const [server] of calls) servers.kill(server);
    }

    // Progress every half second keeps a call of three seconds alive. A call without progress and a request for a page that does not load
    // time out.
    const callLongOperation = (duration: number, steps: number) =>
      servers.call("everything", "trigger-long-running-operation", { duration, steps }, 2_000);
    const silentCall = callLongOperation(60, 1).catch((error: Error) => error.message);
    const slowFetch = servers
      .call("fetch", "fetch", { url: `${url}/slow` }, 1_000)
      .catch((error: Error) => error.message);
    expect(JSON.stringify((await callLongOperation(3, 6)).result)).toContain("Long running operation completed");
    expect(await silentCall).toEndWith("it did not answer within 2 s");
    expect(await slowFetch).toEndWith("it did not answer within 1 s");
    gate.resolve();
    const echo = await servers.call("everything", "echo", { message: "still here" });
    expect(JSON.stringify(echo.result)).toContain("still here");
    const page = await servers.call("fetch", "fetch", { url });
    expect(JSON.stringify(page.result)).toContain("a page of words");
  },
);

/** A server that accepts connections immediately, and responds once the given file exists. */
const FASTMCP = `
import asyncio, os, socket, sys, time, uvicorn
from fastmcp import Context, FastMCP
server = FastMCP("counter")
@server.tool
def add(a: int, b: int) -> int:
    return a + b
@server.tool
async def slow(steps: int, ctx: Context) -> str:
    for step in range(steps):
        await asyncio.sleep(0.25)
        await ctx.report_progress(step, steps)
    return "slow but sure"
listening = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while not os.path.exists(sys.argv[2]):
    time.sleep(0.05)
uvicorn.Server(uvicorn.Config(server.http_app())).run(sockets=[listening])
`;

/** A server that can be killed, and restarted on the same port. */
const makeRestartableHost = (command: (port: number) => readonly string[]) => {
  const port = findFreePort();
  let child: Bun.Subprocess | undefined;
  const host = {
    port,
    async start(): Promise<void> {
      child = Bun.spawn([...command(port)], { env: { PATH, PORT: `${port}` }, stdout: "ignore", stderr: "ignore" });
      await until(() => isListening(port), { timeoutMs: 90_000 });
    },
    async kill(): Promise<void> {
      child?.kill("SIGKILL");
      await child?.exited;
    },
    [Symbol.asyncDispose]: () => host.kill(),
  };
  return host;
};

const isListening = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("error", () => resolve(false));
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
  });

testNeeding(
  [needs.mcpServers],
  "[MC-3][MC-4][MC-5][MC-11][MC-12] HTTP servers from npm and PyPI join a chat late and survive a restart; calls to a killed server fail",
  async () => {
    using directory = tempDirectory();
    const gate = join(directory.path, "gate");
    await using world = await openToolWorld({ env: { SLIPWAY_ALLOWED_PRIVATE_NETWORKS: "127.0.0.0/8" } });
    const everything = getProgramPath(`${NPM}/mcp-server-everything`);
    await using http = makeRestartableHost(() => [everything, "streamableHttp"]);
    await using legacy = makeRestartableHost(() => [everything, "sse"]);
    await using late = makeRestartableHost((port) => [
      getProgramPath(`${PYPI}/python`),
      "-c",
      FASTMCP,
      String(port),
      gate,
    ]);
    const hosts = [http, legacy, late];
    await Promise.all(hosts.map((host) => host.start()));

    const admin = await new Client(world.server.url).signIn(ADMIN.email, ADMIN.password);
    const base = `/api/v2/organizations/${world.organization_id}/mcp-servers`;
    const add = (slug: string, url: string, transport = "streamable_http") =>
      admin.post<McpServerConfig>(base, { slug, url, transport, availability: "force_on" });
    await add("everything", `http://127.0.0.1:${http.port}/mcp`);
    await add("old", `http://127.0.0.1:${legacy.port}/sse`, "sse");
    await add("fast", `http://127.0.0.1:${late.port}/mcp`);

    const { id, call } = await openChat(world);
    const listServers = ({ request }: typeof call) => new Set(request.tools.map(({ name }) => name.split("__")[0]));
    expect([...listServers(call)]).toEqual(expect.arrayContaining(["everything", "old"]));
    expect(listServers(call)).not.toContain("fast");
    const getWarnings = async () => (await world.owner.get<Chat>(`/api/v2/chats/${id}`)).warnings;
    expect(await getWarnings()).toEqual([expect.stringContaining('The MCP server "fast" is not available: ')]);
    writeFileSync(gate, "");
    let next = call;
    const callLongOperation = (duration: number) =>
      callTools(world, next, ["everything__trigger-long-running-operation", { duration, steps: 1 }]);
    await until(async () => {
      next = (await callLongOperation(0.5)).next;
      return listServers(next).has("fast");
    });
    expect(await getWarnings()).toEqual([]);

    const calls = [
      ["everything__get-sum", { a: 2, b: 3 }],
      ["old__get-sum", { a: 3, b: 3 }],
      ["fast__add", { a: 4, b: 3 }],
      ["fast__slow", { steps: 3 }],
    ] as const;
    const expectedOutputs = [/sum.*5/, /sum.*6/, /7/, /slow but sure/].map((words) => expect.stringMatching(words));
    const beforeRestart = await callTools(world, next, ...calls);
    expect(beforeRestart.results.map(({ output }) => output)).toEqual(expectedOutputs);
    await Promise.all(hosts.map((host) => host.kill()));
    await Promise.all(hosts.map((host) => host.start()));
    const afterRestart = await callTools(world, beforeRestart.next, ...calls);
    expect(afterRestart.results.map(({ output }) => output)).toEqual(expectedOutputs);

    next = afterRestart.next;
    const interruptedCall = callLongOperation(60);
    await until(async () => (await world.owner.get<Chat>(`/api/v2/chats/${id}`)).status === "running");
    await http.kill();
    const { results, next: lastCall } = await interruptedCall;
    expect(results[0]?.error).toBeString();
    lastCall.finish("stop");
  },
);
