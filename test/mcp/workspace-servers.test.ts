// MCP servers of a workspace that start late, exit, or change their tools. The daemon runs real programs and connects to real addresses.
import { afterAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import type { StoredResource } from "#schema/chats/chat-context.ts";
import { WorkspaceMcp } from "#src/daemon/context/mcp.ts";
import { ProcessGroups } from "#src/daemon/scripts/groups.ts";
import { tempDirectory } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { startSessionHost } from "./session-host.ts";

const temporary = tempDirectory();
afterAll(() => temporary[Symbol.dispose]());
const SERVER_SCRIPT = join(import.meta.dir, "support.ts");
const LIMITS = { silence_ms: 60_000, total_ms: 600_000 };
const neverAborted = new AbortController().signal;

/** Starts these servers in a workspace. */
const openServers = (mcpServers: Record<string, object>) => {
  const env = { PATH: process.env.PATH ?? "", HOME: temporary.path };
  const groups = new ProcessGroups({ clock: systemClock, agent_id: "t" });
  const mcp = new WorkspaceMcp({ clock: systemClock, groups, env });
  const reports: string[] = [];
  mcp.onChange(async () => {
    reports.push(...mcp.resources.map(({ source, status, error }) => `${source} ${status} ${error}`.trim()));
  });
  mcp.use([{ folder: temporary.path, text: JSON.stringify({ mcpServers }) }]);
  const find = (name: string): StoredResource | undefined => mcp.resources.find(({ source }) => source === name);
  return { mcp, reports, find, [Symbol.dispose]: () => mcp.end() };
};
const toShellServer = (script: string): object => ({ command: "sh", args: ["-c", script] });

test("[MC-6] reports a slow program as starting, and its tools once it has started", async () => {
  const gate = join(temporary.path, "gate");
  const waitingScript = `while [ ! -e '${gate}' ]; do sleep 0.1; done; exec '${process.execPath}' '${SERVER_SCRIPT}'`;
  using servers = openServers({ late: toShellServer(waitingScript) });
  await until(() => servers.find("late")?.error === "it is starting");
  expect(servers.find("late")?.status).toBe("unreadable");
  writeFileSync(gate, "");
  await until(() => servers.find("late")?.status === "ok");
  expect(servers.find("late")?.tools?.map(({ name }) => name)).toContain("late__add");
});

test("[MC-6] retries a server that is down at first, without waiting for a call", async () => {
  const host = startSessionHost();
  await host.stop();
  using servers = openServers({ web: { url: host.url } });
  await until(() => servers.find("web")?.status === "unreadable");
  host.start();
  await using _ = host;
  await until(() => servers.find("web")?.status === "ok");
  host.forget();
  expect((await servers.mcp.call("web", "hello", {}, neverAborted, LIMITS)).result).toEqual({ output: "hello 2" });
});

test("[MC-6] reports the last lines of a program that exits, without the values of its variables", async () => {
  const env = { TOKEN: "secret-value-1" };
  using servers = openServers({
    keyless: toShellServer("echo 'first line' >&2; echo 'GITHUB_TOKEN is not set' >&2; exit 3"),
    leaky: { ...toShellServer('echo "refused: $TOKEN" >&2; exit 1'), env },
    silent: toShellServer("exit 4"),
  });
  await until(() => ["keyless", "leaky", "silent"].every((name) => servers.find(name)?.error.includes("ended")));
  expect(servers.find("keyless")?.error).toBe("the program ended with code 3: first line / GITHUB_TOKEN is not set");
  expect(servers.find("leaky")?.error).toBe("the program ended with code 1: refused: ***");
  expect(servers.find("silent")?.error).toBe("the program ended with code 4");
});

test("[MC-6] ignores other lines that a program writes between its messages", async () => {
  const noise = "echo 'Server v1.0 starting'; echo '[1, 2'; echo '{\"level\":\"info\"}'; echo 17; echo null";
  using servers = openServers({ loud: toShellServer(`${noise}; exec '${process.execPath}' '${SERVER_SCRIPT}'`) });
  await until(() => servers.find("loud")?.status === "ok");
  expect((await servers.mcp.call("loud", "add", { a: 1, b: 2 }, neverAborted, LIMITS)).result).toEqual({ output: "3" });
});

test("[MC-13] reports the new list of tools after a call that changes it", async () => {
  await using host = startSessionHost();
  using servers = openServers({ web: { url: host.url } });
  await until(() => servers.find("web")?.status === "ok");
  await servers.mcp.call("web", "grow", {}, neverAborted, LIMITS);
  await until(() => servers.find("web")?.tools?.some(({ name }) => name === "web__late"));
});
