// MCP servers of a workspace that are late, die, or change their tools, as the daemon runs them: real programs and real addresses.
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

const temp = tempDirectory();
afterAll(() => temp[Symbol.dispose]());
const SUPPORT = join(import.meta.dir, "support.ts");
const LIMITS = { silence_ms: 60_000, total_ms: 600_000 };
const neverAborted = new AbortController().signal;

/** Starts these servers in a workspace. */
const openServers = (mcpServers: Record<string, object>) => {
  const env = { PATH: process.env.PATH ?? "", HOME: temp.path };
  const groups = new ProcessGroups({ clock: systemClock, agent_id: "t" });
  const mcp = new WorkspaceMcp({ clock: systemClock, groups, env });
  const reports: string[] = [];
  mcp.onChange(async () => {
    reports.push(...mcp.resources.map(({ source, status, error }) => `${source} ${status} ${error}`.trim()));
  });
  mcp.use([{ folder: temp.path, text: JSON.stringify({ mcpServers }) }]);
  const find = (name: string): StoredResource | undefined => mcp.resources.find(({ source }) => source === name);
  return { mcp, reports, find, [Symbol.dispose]: () => mcp.end() };
};
const script = (text: string): object => ({ command: "sh", args: ["-c", text] });

test("[MC-6] a slow program is reported as starting, and its tools are available once it has started", async () => {
  const gate = join(temp.path, "gate");
  const wait = `while [ ! -e '${gate}' ]; do sleep 0.1; done; exec '${process.execPath}' '${SUPPORT}'`;
  using servers = openServers({ late: script(wait) });
  await until(() => servers.find("late")?.error === "it is starting");
  expect(servers.find("late")?.status).toBe("unreadable");
  writeFileSync(gate, "");
  await until(() => servers.find("late")?.status === "ok");
  expect(servers.find("late")?.tools?.map(({ name }) => name)).toContain("late__add");
});

test("[MC-6] a server that is down at first is retried without a call", async () => {
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

test("[MC-6] a program that dies reports its last lines, without the values of its variables", async () => {
  const env = { TOKEN: "secret-value-1" };
  using servers = openServers({
    keyless: script("echo 'first line' >&2; echo 'GITHUB_TOKEN is not set' >&2; exit 3"),
    leaky: { ...script('echo "refused: $TOKEN" >&2; exit 1'), env },
    silent: script("exit 4"),
  });
  await until(() => ["keyless", "leaky", "silent"].every((name) => servers.find(name)?.error.includes("ended")));
  expect(servers.find("keyless")?.error).toBe("the program ended with code 3: first line / GITHUB_TOKEN is not set");
  expect(servers.find("leaky")?.error).toBe("the program ended with code 1: refused: ***");
  expect(servers.find("silent")?.error).toBe("the program ended with code 4");
});

test("[MC-6] a program that writes other lines among its messages is understood", async () => {
  const noise = "echo 'Server v1.0 starting'; echo '[1, 2'; echo '{\"level\":\"info\"}'; echo 17; echo null";
  using servers = openServers({ loud: script(`${noise}; exec '${process.execPath}' '${SUPPORT}'`) });
  await until(() => servers.find("loud")?.status === "ok");
  expect((await servers.mcp.call("loud", "add", { a: 1, b: 2 }, neverAborted, LIMITS)).result).toEqual({ output: "3" });
});

test("[MC-13] a call that changes the list of tools is answered after the new list was reported", async () => {
  await using host = startSessionHost();
  using servers = openServers({ web: { url: host.url } });
  await until(() => servers.find("web")?.status === "ok");
  await servers.mcp.call("web", "grow", {}, neverAborted, LIMITS);
  await until(() => servers.find("web")?.tools?.some(({ name }) => name === "web__late"));
});
