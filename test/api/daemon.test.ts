// A workspace of the provisioner `local`, end to end: the real server as a process, its real daemon, a script whose output a client
// follows, and a server that restarts or is killed in between.

import { describe, expect } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { AgentLog } from "#schema/agents/agent-log.ts";
import type { Build } from "#schema/workspaces/build.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { Client, ClientSocket } from "#src/client.ts";
import { ServerSlot } from "#test/crash/server.ts";
import { isAlive } from "#test/daemon/support/daemon.ts";
import { testSingleServer } from "#test/support/one-server.ts";
import { ADMIN } from "#test/support/server.ts";
import { makeTemplate } from "#test/support/templates.ts";

const test = testSingleServer("needsLocalServerProcess");

type Agent = NonNullable<Workspace["latest_build"]["resources"][number]["agents"]>[number];

/** Resolves when the build has ended, which closes its log. */
const awaitEnd = async (admin: Client, build: Build): Promise<Build> => {
  using log = await admin.socket(`/api/v2/workspacebuilds/${build.id}/logs?follow`);
  await log.closed;
  return admin.get<Build>(`/api/v2/workspacebuilds/${build.id}`);
};

/** Creates a running local workspace whose agent runs this script at startup. */
const startWorkspace = async (serverPlace: ServerSlot, script: string) => {
  const admin = await serverPlace.client.signIn(ADMIN.email, ADMIN.password);
  const scripts = [{ display_name: "Count", script, run_on_start: true }];
  const manifest = { provisioner: "local", resources: [{ name: "main", agents: [{ name: "main", scripts }] }] };
  const template = await makeTemplate(admin, JSON.stringify(manifest));
  const created = await admin.post<Workspace>("/api/v2/users/me/workspaces", { name: "dev", template_id: template.id });
  const build = await awaitEnd(admin, created.latest_build);
  expect(build.job).toMatchObject({ status: "succeeded" });
  const agent = build.resources[0]?.agents?.[0] as Agent;
  const folder = join(serverPlace.directory, "workspaces", created.id);
  return {
    admin,
    workspace_id: created.id,
    agent_id: agent.id,
    folder,
    release: (name: string) => writeFileSync(join(folder, "home", name), ""),
    follow: (after = 0) => admin.socket(`/api/v2/workspaceagents/${agent.id}/logs?follow&after=${after}`),
    agent: () => admin.get<Agent>(`/api/v2/workspaceagents/${agent.id}`),
  };
};

/** Reads a follower's lines until `done` returns true. */
const readUntil = async (
  follower: ClientSocket,
  isDone: (lines: readonly AgentLog[]) => boolean,
): Promise<AgentLog[]> => {
  const lines: AgentLog[] = [];
  while (!isDone(lines)) lines.push(...(await follower.json<AgentLog[]>()));
  return lines;
};

const listOutputs = (lines: readonly AgentLog[]): string[] => lines.map(({ output }) => output);
const listNumbers = (from: number, to: number): string[] => Array.from({ length: to - from }, (_, i) => `${from + i}`);

const waitScript = (name: string): string => `until [ -e "$HOME/${name}" ]; do sleep 0.02; done`;
const countScript = (from: number, to: number): string =>
  `i=${from}; while [ $i -lt ${to} ]; do echo $i; [ $((i % 25)) -eq 0 ] && sleep 0.03; i=$((i+1)); done`;

describe("a local workspace", () => {
  test("[DM-17] sends a follower each line of a running script, across a clean restart, and stops the daemon", async () => {
    await using serverPlace = await ServerSlot.make();
    const server = await serverPlace.start();
    const script = `echo one; ${waitScript("a")}; echo two; ${waitScript("b")}; ${countScript(0, 300)}; ${waitScript("c")}; echo end`;
    const workspace = await startWorkspace(serverPlace, script);
    using follower = await workspace.follow();
    const received = await readUntil(follower, (lines) => lines.length > 0);
    expect(listOutputs(received)).toEqual(["one"]);
    workspace.release("a");
    received.push(...(await readUntil(follower, (lines) => lines.length > 0)));
    expect(listOutputs(received)).toEqual(["one", "two"]);
    expect(await workspace.agent()).toMatchObject({ status: "connected", lifecycle_state: "starting" });
    workspace.release("b");
    received.push(...(await readUntil(follower, (lines) => lines.length > 0)));
    server.kill("SIGTERM");
    expect((await server.ended).code).toBe(0);
    await serverPlace.start();
    workspace.release("c");
    using secondFollower = await workspace.follow(received.at(-1)?.id);
    received.push(...(await readUntil(secondFollower, (lines) => lines.at(-1)?.output === "end")));
    expect(listOutputs(received)).toEqual(["one", "two", ...listNumbers(0, 300), "end"]);

    const { pid } = JSON.parse(readFileSync(join(workspace.folder, "daemon.json"), "utf8")) as { pid: number };
    expect(isAlive(pid)).toBe(true);
    const path = `/api/v2/workspaces/${workspace.workspace_id}/builds`;
    const stop = await workspace.admin.post<Build>(path, { transition: "stop" });
    expect((await awaitEnd(workspace.admin, stop)).job).toMatchObject({ status: "succeeded" });
    expect(isAlive(pid)).toBe(false);
  });

  test("[DM-18] loses and duplicates no line when the server is killed repeatedly during a script", async () => {
    await using serverPlace = await ServerSlot.make();
    let server = await serverPlace.start();
    const workspace = await startWorkspace(serverPlace, `${countScript(0, 1500)}; ${waitScript("go")}; echo end`);
    const received: AgentLog[] = [];
    for (const target of [100, 300, 500, 900]) {
      using follower = await workspace.follow(received.at(-1)?.id);
      received.push(...(await readUntil(follower, (lines) => received.length + lines.length >= target)));
      server.kill("SIGKILL");
      await server.ended;
      server = await serverPlace.start();
    }
    workspace.release("go");
    using follower = await workspace.follow(received.at(-1)?.id);
    received.push(...(await readUntil(follower, (lines) => lines.at(-1)?.output === "end")));
    expect(listOutputs(received)).toEqual([...listNumbers(0, 1500), "end"]);
    expect(new Set(received.map(({ id }) => id)).size).toBe(1501);
    const path = `/api/v2/workspaces/${workspace.workspace_id}/builds`;
    await awaitEnd(workspace.admin, await workspace.admin.post<Build>(path, { transition: "stop" }));
  });
});
