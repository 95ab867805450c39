// The daemon's HTTP API, as the server calls it: ports, files and processes of a real workspace.
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { WorkspaceAgent } from "#actors/chat/turn/tool-agent.ts";
import { systemClock } from "#base/clock.ts";
import { uuid } from "#base/ids.ts";
import { configureLogging, resetLogging } from "#base/log.ts";
import { MemoryShare } from "#base/system/memory-share.ts";
import type { DirectoryListing, FileLines, ProcessInfo, ProcessOutput } from "#schema/agents/agent-files.ts";
import type { ListeningPorts } from "#schema/workspaces/listening-port.ts";
import { dialAgentSocket, reserveAnswer } from "#src/api/http/dial-agent.ts";
import { errorResponse } from "#src/api/http/errors.ts";
import { Requests } from "#src/api/http/requests.ts";
import { ApiError, Client } from "#src/client.ts";
import type { ToolServices } from "#src/tools/services.ts";
import { type AgentHttp, WireError } from "#src/wire/index.ts";
import { isAlive } from "#test/daemon/support/daemon.ts";
import { forFile } from "#test/support/for-file.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { getContext, seedAgent, seedUser } from "#test/support/seed.ts";
import { until } from "#test/support/until.ts";
import { startReachableAgent, TestTerminal } from "./reach.ts";

const APP_PORT = 43_117;
const world = await forFile(startReachableAgent({ apps: [{ url: `http://localhost:${APP_PORT}/` }] }));

type ParsedResponse<T> = { status: number; body: T };

const request = async <T>(
  method: string,
  path: string,
  content: { json?: unknown; body?: Uint8Array } = {},
): Promise<ParsedResponse<T>> => {
  const { agentHttp } = getContext(world.server);
  const response = await agentHttp.request(world.seeded.agent_id, { method, path: `/api/v0/${path}`, ...content });
  return { status: response.status, body: await response.json<T>() };
};

const toHomePath = (name: string): string => join(world.home, name);

/** Starts a program in the workspace that listens on these ports until it is killed. */
const startListener = async (ports: readonly number[]): Promise<TestTerminal> => {
  writeFileSync(
    toHomePath("listen.mjs"),
    `import net from "node:net"; let n = 0; const ports = ${JSON.stringify(ports)};
     for (const [i, port] of ports.entries()) net.createServer().listen(port, i % 2 ? "::1" : "127.0.0.1", () => { if (++n === ports.length) console.log("listening"); });`,
  );
  const terminal = await TestTerminal.open(world, { command: `exec ${process.execPath} listen.mjs` });
  await terminal.until(/listening/);
  return terminal;
};

describe("listening ports", () => {
  test("[PT-1][PT-2] include those of the workspace's programs, without apps, the server and common services", async () => {
    using program = await startListener([43_111, 43_112, APP_PORT, 27_017]);
    using foreignListener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    const { ports } = await world.owner.get<ListeningPorts>(world.path("listening-ports"));
    const numbers = ports.map(({ port }) => port);
    expect(ports.filter(({ port }) => port === 43_111 || port === 43_112)).toEqual([
      { network: "tcp", port: 43_111, process_name: expect.stringMatching(/bun/), is_own: true },
      { network: "tcp", port: 43_112, process_name: expect.stringMatching(/bun/), is_own: true },
    ]);
    expect(numbers).not.toContain(APP_PORT);
    expect(numbers).not.toContain(27_017);
    expect(numbers).not.toContain(Number(world.server.url.port));
    expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
    // The listener runs as the same user on the same machine, but does not belong to the workspace.
    expect(ports.find(({ port }) => port === foreignListener.port)).toMatchObject({ is_own: false });
    program.sendInput({ data: "\x03" });
    await program.socket.closed;
    const after = await world.owner.get<ListeningPorts>(world.path("listening-ports"));
    expect(after.ports.map(({ port }) => port)).not.toContain(43_111);
  });

  test("[PT-3] require a connected agent and permission to work in the workspace", async () => {
    const fetchStatus = async (client: Client, path = world.path("listening-ports")) =>
      (await client.fetch("GET", path)).status;
    const member = await seedUser(world.server, { organization_id: world.seeded.organization_id });
    const owner = await seedUser(world.server, { roles: ["owner"] });
    expect(await fetchStatus(world.owner.withToken(member.token))).toBe(404);
    expect(await fetchStatus(world.owner.withToken(owner.token))).toBe(200);
    expect(await fetchStatus(world.owner.withToken(undefined))).toBe(401);
    const neverConnected = await seedAgent(world.server);
    const listing = new Client(world.server.url, neverConnected.owner_token).get(
      `/api/v2/workspaceagents/${neverConnected.agent_id}/listening-ports`,
    );
    const error = (await listing.catch((thrown: unknown) => thrown)) as ApiError;
    expect(error).toBeInstanceOf(ApiError);
    expect([error.status, error.body.message]).toEqual([400, 'The agent is not connected: its state is "connecting".']);
  });
});

describe("the daemon's HTTP API", () => {
  test("[PT-4] listens in a folder that only its own user can access", async () => {
    const agentFolders = readdirSync(tmpdir()).filter((name) => name.startsWith("slipway-agent-"));
    expect(agentFolders.length).toBeGreaterThan(0);
    for (const name of agentFolders) expect(statSync(join(tmpdir(), name)).mode & 0o777).toBe(0o700);
    expect((await request("GET", "nothing")).status).toBe(404);
    expect((await request("DELETE", "listening-ports")).status).toBe(404);
  });

  test("[PT-5] reads and lists files; missing paths and paths that are not regular files return errors", async () => {
    mkdirSync(toHomePath("folder"));
    writeFileSync(toHomePath("folder/b.txt"), "one\ntwo\nthree\n");
    writeFileSync(toHomePath("folder/a.bin"), new Uint8Array(200_000).fill(7));
    symlinkSync("b.txt", toHomePath("folder/link"));
    const { body } = await request<DirectoryListing>("POST", "list-directory", { json: { path: "folder" } });
    expect(body.absolute_path).toBe(toHomePath("folder"));
    expect(body.contents.map(({ name, is_dir, size }) => [name, is_dir, size])).toEqual([
      ["a.bin", false, 200_000],
      ["b.txt", false, 14],
      ["link", false, 14],
    ]);
    expect((await request("GET", "resolve-path?path=~/folder/link")).body).toEqual({
      resolved_path: toHomePath("folder/b.txt"),
    });
    symlinkSync("../absent/deep", toHomePath("folder/dangling"));
    expect((await request("GET", "resolve-path?path=folder/dangling")).body).toEqual({
      resolved_path: toHomePath("absent/deep"),
    });
    symlinkSync("loop", toHomePath("folder/loop"));
    const { body: lines } = await request<FileLines>("GET", "read-file-lines?path=folder/b.txt&offset=2&limit=1");
    expect(lines).toEqual({ content: "two", file_size: 14, lines_read: 1, total_lines: 3 });
    const { agentHttp } = getContext(world.server);
    const path = "/api/v0/read-file?path=folder/a.bin&offset=100000&limit=50000";
    const part = await agentHttp.request(world.seeded.agent_id, { method: "GET", path });
    expect(part.headers.get("x-file-size")).toBe("200000");
    expect((await part.text()).length).toBe(50_000);
    const invalidRequests: [string, string, number][] = [
      ["GET", "read-file?path=nothing", 404],
      ["GET", "read-file?path=folder", 400],
      ["GET", "read-file?path=/dev/zero", 400],
      ["GET", "read-file", 400],
      ["GET", "read-file-lines?path=folder/b.txt&limit=x", 400],
      ["GET", "resolve-path?path=nowhere", 404],
      ["GET", "resolve-path?path=folder/loop", 400],
    ];
    for (const [method, invalidPath, status] of invalidRequests)
      expect([invalidPath, (await request(method, invalidPath)).status]).toEqual([invalidPath, status]);
    expect((await request("POST", "list-directory", { json: { path: 7 } })).status).toBe(400);
  });

  test("[PT-6] replaces a whole file atomically, keeps its mode and follows links", async () => {
    const writeFile = (path: string, text: string) =>
      request("POST", `write-file?path=${path}`, { body: new TextEncoder().encode(text) });
    expect((await writeFile("new/deep/file.txt", "first")).status).toBe(200);
    writeFileSync(toHomePath("script.sh"), "old", { mode: 0o750 });
    symlinkSync("script.sh", toHomePath("by-link"));
    expect((await writeFile("by-link", "new")).status).toBe(200);
    expect(readFileSync(toHomePath("script.sh"), "utf8")).toBe("new");
    expect(statSync(toHomePath("script.sh")).mode & 0o777).toBe(0o750);
    expect(readFileSync(toHomePath("new/deep/file.txt"), "utf8")).toBe("first");
    expect((await writeFile("new", "not a file")).status).toBe(400);
    expect(readdirSync(world.home).filter((name) => name.endsWith(".tmp"))).toEqual([]);
  });

  test("[PT-6] validates all edits before it writes any file", async () => {
    writeFileSync(toHomePath("one.txt"), "a b a\n");
    writeFileSync(toHomePath("two.txt"), "x y z\n");
    const edit = (...files: unknown[]) =>
      request<{ validations: { field: string; detail: string }[] }>("POST", "edit-files", { json: { files } });
    const validEdit = { path: "one.txt", edits: [{ old_text: "b", new_text: "$& and b" }] };
    const invalidResponse = await edit(validEdit, { path: "two.txt", edits: [{ old_text: "nowhere", new_text: "" }] });
    expect(invalidResponse.status).toBe(400);
    expect(invalidResponse.body.validations).toEqual([
      { field: "files.1.edits.0.old_text", detail: "is not in the file." },
    ]);
    expect(readFileSync(toHomePath("one.txt"), "utf8")).toBe("a b a\n");
    const ambiguousResponse = await edit({ path: "one.txt", edits: [{ old_text: "a", new_text: "c" }] });
    expect(ambiguousResponse.body.validations[0]?.detail).toBe(
      "is in the file 2 times, in lines 1, 1; give more of the lines around it",
    );
    const replaceAll = {
      path: "two.txt",
      edits: [
        { old_text: " ", new_text: "-", replace_all: true },
        { old_text: "x-y", new_text: "q" },
      ],
    };
    expect((await edit(validEdit, replaceAll)).status).toBe(200);
    expect(readFileSync(toHomePath("one.txt"), "utf8")).toBe("a $& and b a\n");
    expect(readFileSync(toHomePath("two.txt"), "utf8")).toBe("q-z\n");
    expect((await edit()).status).toBe(400);
  });

  test("[PT-7] runs programs in their own process groups, returns their output and signals them", async () => {
    const startProcess = async (json: unknown) =>
      (await request<ProcessInfo>("POST", "processes/start", { json })).body;
    const loadOutput = async (id: string, query = "wait_ms=10000") =>
      (await request<ProcessOutput>("GET", `processes/${id}/output?${query}`)).body;
    mkdirSync(toHomePath("work"));
    const shortProcess = await startProcess({
      command: 'echo "$PWD $COLOR"; echo oops >&2; exit 4',
      directory: "work",
      env: { COLOR: "red" },
    });
    const shortOutput = await loadOutput(shortProcess.id);
    expect(shortOutput).toMatchObject({ running: false, exit_code: 4, from: 0, truncated: false });
    expect(shortOutput.output.split("\n").sort()).toEqual(["", `${toHomePath("work")} red`, "oops"]);
    expect(await loadOutput(shortProcess.id, `after=${shortOutput.next}`)).toMatchObject({
      output: "",
      from: shortOutput.next,
    });

    const longProcess = await startProcess({ command: "sleep 1000 & echo $! > child; echo started; wait" });
    for (let text = ""; text === ""; ) text = (await loadOutput(longProcess.id, "wait_ms=20")).output;
    expect(
      (await request<{ processes: ProcessInfo[] }>("GET", "processes/list")).body.processes.map(({ id, running }) => [
        id,
        running,
      ]),
    ).toEqual([
      [shortProcess.id, false],
      [longProcess.id, true],
    ]);
    const child = Number(readFileSync(toHomePath("child"), "utf8"));
    expect((await request("POST", `processes/${longProcess.id}/signal`, { json: { signal: "hangup" } })).status).toBe(
      400,
    );
    expect(
      (await request("POST", `processes/${longProcess.id}/signal`, { json: { signal: "terminate" } })).status,
    ).toBe(200);
    expect(await loadOutput(longProcess.id)).toMatchObject({ running: false });
    expect(isAlive(child)).toBe(false);
    expect((await request("POST", `processes/${longProcess.id}/signal`, { json: { signal: "kill" } })).status).toBe(
      409,
    );
    expect((await request("GET", "processes/unknown/output")).status).toBe(404);

    const verboseProcess = await startProcess({ command: "seq 1 400000" });
    const verboseOutput = await loadOutput(verboseProcess.id);
    expect(verboseOutput.truncated).toBe(true);
    expect(verboseOutput.output).toEndWith("399999\n400000\n");
    expect(verboseOutput.output.length).toBeLessThanOrEqual(1024 * 1024);
    const limitedProcess = await startProcess({ command: "sleep 1000", timeout_ms: 50 });
    expect(await loadOutput(limitedProcess.id)).toMatchObject({ running: false, timed_out: true });
    const failedStart = await startProcess({ command: "true", directory: "/nowhere/at/all" });
    expect(await loadOutput(failedStart.id)).toMatchObject({ exit_code: 126 });
    expect(existsSync(toHomePath("child"))).toBe(true);
  });
});

describe("diagnostics", () => {
  test("[PT-9] show the route to the server, the interfaces, metrics, logs and the manifest, without secrets", async () => {
    const { body } = await request<Record<string, unknown>>("GET", "netcheck");
    expect(body).toMatchObject({ severity: "ok", dismissed: false, net_info: { UDP: false, PreferredDERP: 999 } });
    const { net_info, interfaces } = body as {
      net_info: { DERPLatency: Record<string, number> };
      interfaces: { interfaces: { name: string; mtu: number; addresses: string[] }[] };
    };
    expect(net_info.DERPLatency["999-v4"]).toBeGreaterThan(0);
    expect(interfaces.interfaces.find(({ name }) => name === "lo")?.addresses).toContain("127.0.0.1/8");
    const { agentHttp } = getContext(world.server);
    const loadText = async (path: string) =>
      (await agentHttp.request(world.seeded.agent_id, { method: "GET", path })).text(1_000_000);
    using _terminal = await TestTerminal.open(world);
    expect(await loadText("/debug/prometheus")).toContain("\nagent_terminal_clients 1\n");
    expect(await loadText("/debug/logs")).toMatch(/^\d{4}-\S+Z INFO daemon: /m);
    expect(await loadText("/debug/logs")).not.toContain(world.seeded.agent_token);
    expect(JSON.parse(await loadText("/debug/magicsock"))).toMatchObject({ region: 999, direct: false, peers: [] });
    const manifest = await loadText("/debug/manifest");
    const agentManifest = JSON.parse(manifest) as { agentName: string; environmentVariables: Record<string, string> };
    expect(agentManifest.agentName).not.toBe("");
    expect(Object.values(agentManifest.environmentVariables).filter((value) => value !== "")).toEqual([]);
    expect(manifest).not.toContain(world.seeded.agent_token);
  });
});

describe("large responses", () => {
  const FILES = 3_000;
  const HALF = 16 * 1024 * 1024;
  const NEVER = new AbortController().signal;
  const createFiles = (): void => {
    mkdirSync(toHomePath("many"), { recursive: true });
    for (let i = 0; i < FILES; i += 1) writeFileSync(toHomePath(`many/${i}-${"x".repeat(200)}`), "");
  };

  test("[PT-11] a large list waits for memory, and frees it after sending", async () => {
    createFiles();
    const share = getContext(world.server).callMemory;
    const reservation = await share.take("others", 64 * 1024 * HALF, NEVER);
    const listing = world.owner.get<DirectoryListing>(world.path("files?path=many"));
    await until(() => share.waiting === 1);
    // Small responses do not wait.
    await world.owner.get<ListeningPorts>(world.path("listening-ports"));
    reservation.release();
    expect((await listing).contents).toHaveLength(FILES);
    await until(() => share.used === 0);
  });

  test("[PT-11] a person can use half of the memory, and waits at most ten seconds for more", async () => {
    const clock = new ManualClock();
    const callMemory = new MemoryShare({ total: 2 * HALF, each: HALF });
    const requests = new Requests(clock, 10);
    const waitForMemory = async (user_id: string) =>
      reserveAnswer({ clock, callMemory, requests }, new Request("http://localhost/"), user_id).wait();
    using _ = await callMemory.take("eve", HALF, NEVER);
    const timedOutWait = waitForMemory("eve").catch((error: unknown) => error);
    await waitForMemory("bob");
    expect([callMemory.used, callMemory.waiting]).toEqual([2 * HALF, 1]);
    clock.advance(10_000);
    expect(await timedOutWait).toMatchObject({ kind: "overloaded", message: expect.stringContaining("Please retry.") });
    // No client reads the response to bob, so his memory is freed, too.
    await until(() => callMemory.used === HALF);
  });

  test("[PT-11] a request for a chat also waits for memory, although it does not belong to a tool", async () => {
    createFiles();
    const { store, agentHttp } = getContext(world.server);
    const memory = new MemoryShare({ total: 2 * HALF, each: HALF });
    const { workspace_id, organization_id } = world.seeded;
    const scope = { chat_id: uuid(), owner_id: uuid(), organization_id, workspace_id, run_id: "" };
    const toolServices = () => ({ canUseWorkspace: async () => true }) as unknown as ToolServices;
    const agent = new WorkspaceAgent({ memory, store, clock: systemClock, agentHttp, toolServices }, scope, true);
    const reservation = await memory.take(scope.owner_id, HALF, NEVER);
    const listing = agent.call<DirectoryListing>({ method: "POST", path: "/list-directory", json: { path: "many" } });
    await until(() => memory.waiting === 1);
    reservation.release();
    expect((await listing).contents).toHaveLength(FILES);
    expect(memory.used).toBe(0);
  });

  test("[PT-11] unfinished large messages of an agent occupy at most a person's half of the memory, each for a minute", async () => {
    const clock = new ManualClock();
    const callMemory = new MemoryShare({ total: 2 * HALF, each: HALF });
    const maxBytes = HALF / 4;
    const openSocket = async () => {
      const frame = Buffer.alloc(10 + maxBytes - 1);
      frame.set([0x81, 127]);
      frame.writeUInt32BE(maxBytes, 6);
      const chunks = [frame.subarray(0, 1_000), frame.subarray(1_000, 100_000), frame.subarray(100_000)];
      const endOfStream = Promise.withResolvers<undefined>();
      endOfStream.promise.catch(() => {});
      const reads = { count: 0 };
      const stream = {
        read: async () => {
          reads.count += 1;
          return chunks.shift() ?? endOfStream.promise;
        },
        reset: (reason: string) => {
          chunks.length = 0;
          endOfStream.reject(new WireError("closed", reason));
        },
      };
      const agentHttp = { upgrade: async () => ({ stream }) } as unknown as AgentHttp;
      const frames = await dialAgentSocket({ clock, agentHttp, callMemory }, uuid(), "/watch", maxBytes, "eve");
      const ended = frames.next().catch((error: unknown) => error);
      return { frames, reads, ended };
    };
    const first = await openSocket();
    await until(() => first.reads.count > 3);
    const otherStreams = await Promise.all(Array.from({ length: 20 }, openSocket));
    await until(() => callMemory.waiting === 20);
    expect(callMemory.used).toBe(HALF);
    // The server has stopped reading from the other sockets.
    expect(otherStreams.map(({ reads }) => reads.count)).toEqual(otherStreams.map(() => 2));
    clock.advance(60_000);
    expect(await first.ended).toMatchObject({ message: "The agent sends a large message too slowly." });
    first.frames.discard();
    await until(() => callMemory.waiting === 19);
    for (const { frames } of otherStreams) {
      frames.reset("The client has gone.");
      frames.discard();
    }
    await until(() => callMemory.used === 0 && callMemory.waiting === 0);
  });

  test("[PT-11] an invalid response of an agent is not logged as an error of the server", async () => {
    const lines: string[] = [];
    configureLogging({ level: "info", format: "text", write: (line) => lines.push(line) });
    try {
      const error = new WireError("protocol", "The agent's response is not a list of files.");
      expect(errorResponse(error, new Request("http://localhost/api/v2/workspaceagents/a/files")).status).toBe(502);
      expect(lines).toEqual([]);
    } finally {
      await resetLogging();
    }
  });
});
