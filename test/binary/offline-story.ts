// offline.test.ts runs this program in its own network namespace. It starts the loopback interface, verifies that nothing else is reachable,
// and then performs a new user's steps with a real `serve` process. It prints the results as one line of JSON.
import { dlopen, FFIType, ptr } from "bun:ffi";
import type { AgentLog } from "#schema/agents/agent-log.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { Client } from "#src/client.ts";
import { startServe } from "#test/api/edge/serve-process.ts";
import { ADMIN, tempDirectory } from "#test/support/server.ts";
import { awaitWorkspace, createBuild, createWorkspace } from "#test/support/workspaces.ts";

const AF_INET = 2;
const SOCK_DGRAM = 2;
const SIOCSIFFLAGS = 0x8914;
const IFF_UP_RUNNING = 0x41;

/** Starts the loopback interface, like `ip link set lo up`. */
const startLoopback = (): void => {
  const { symbols } = dlopen("libc.so.6", {
    socket: { args: [FFIType.i32, FFIType.i32, FFIType.i32], returns: FFIType.i32 },
    ioctl: { args: [FFIType.i32, FFIType.u64, FFIType.ptr], returns: FFIType.i32 },
  });
  const request = Buffer.alloc(40);
  request.write("lo");
  request.writeInt16LE(IFF_UP_RUNNING, 16);
  const result = symbols.ioctl(symbols.socket(AF_INET, SOCK_DGRAM, 0), SIOCSIFFLAGS, ptr(request));
  if (result !== 0) throw new Error("the loopback interface does not start");
};

/** Returns true if a server outside of this machine responds. */
const canReach = async (url: string): Promise<boolean> => {
  try {
    await fetch(url);
    return true;
  } catch {
    return false;
  }
};

startLoopback();
const outside = [await canReach("http://192.0.2.1/"), await canReach("http://example.com/")];
using directory = tempDirectory();
await using serve = await startServe(directory.path);
const client = await new Client(serve.url).signIn(ADMIN.email, ADMIN.password);
const [template] = await client.get<{ id: string; name: string }[]>("/api/v2/templates");
const value = "for i in 1 2 3; do echo line $i; done";
const { id } = await createWorkspace(client, template?.id ?? "", "dev", {
  rich_parameter_values: [{ name: "startup_script", value }],
});
const getAgent = ({ latest_build }: Workspace) => latest_build.resources[0]?.agents?.[0];
try {
  const ready = await awaitWorkspace(client, id, (workspace) =>
    /ready|error|timeout/.test(getAgent(workspace)?.lifecycle_state ?? ""),
  );
  // The follower also receives earlier output. The last lines may arrive after the agent has reported that it is ready.
  const output: string[] = [];
  using follower = await client.socket(`/api/v2/workspaceagents/${getAgent(ready)?.id}/logs?follow=true`);
  while (!output.includes("line 3")) {
    const lines = (await follower.json<AgentLog[]>()).map(({ output }) => output);
    output.push(...lines.filter((line) => line.startsWith("line ")));
  }
  const page = await (await client.fetch("GET", "/swagger")).text();
  // Browsers send no request for a `data:` URL.
  const assets = [...page.matchAll(/(?:src|href)="(?!data:)([^"]+)"/g)].map(
    ([, path = ""]) => new URL(path, serve.url),
  );
  const statuses = await Promise.all(assets.map(async (url) => [url.origin, (await fetch(url)).status]));
  const areLocal = statuses.every(([origin, status]) => origin === serve.url.origin && status === 200);
  const state = getAgent(ready)?.lifecycle_state;
  process.stdout.write(`${JSON.stringify({ outside, state, output, assets: assets.length, areLocal })}\n`);
} finally {
  await createBuild(client, id, "delete");
  await awaitWorkspace(client, id, ({ latest_build }) => latest_build.status === "deleted");
}
