// A workspace of the provisioner `local`, end to end: the real server as a process, its real daemon, a script with followed output, and a
// server that is restarted or killed in between.

import { describe, expect } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { AgentLog } from "#schema/agents/agent-log.ts";
import type { Build } from "#schema/workspaces/build.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { Client, ClientSocket } from "#src/client.ts";
import { ServerPlace } from "#test/crash/server.ts";
import { isAlive } from "#test/daemon/support/daemon.ts";
import { testSingleServer } from "#test/support/one-server.ts";
import { ADMIN } from "#test/support/server.ts";
import { makeTemplate } from "#test/support/templates.ts";

const test = testSingleServer("localOfProcess");

type Agent = NonNullable<Workspace["latest_build"]["resources"][number]["agents"]>[number];

/** Resolves when the build has ended, which closes its log. */
const awaitEnd = async (admin: Client, build: Build): Promise<Build> => {
  using log = await admin.socket(`/api/v2/workspacebuilds/${build.id}/logs?follow`);
  await log.closed;
  return admin.get<Build>(`/api/v2/workspacebuilds/${build.id}`);
};

/** Creates a running local workspace whose agent runs this script at startup. */
const runningWorkspace = async (place: ServerPlace, script: string) => {
  const admin = await place.client.signIn(ADMIN.email, ADMIN.password);
  const scripts = [{ display_name: "Count", script, run_on_start: true }];
  const manifest = { provisioner: "local", resources: [{ name: "main", agents: [{ name: "main", scripts }] }] };
  const template = await makeTemplate(admin, JSON.stringify(manifest));
  const created = await admin.post<Workspace>("/api/v2/users/me/workspaces", { name: "dev", template_id: template.id });
  const build = await awaitEnd(admin, created.latest_build);
  expect(build.job).toMatchObject({ status: "succeeded" });
  const agent = build.resources[0]?.agents?.[0] as Agent;
  const folder = join(place.directory, "workspaces", created.id);
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
const read = async (follower: ClientSocket, done: (lines: readonly AgentLog[]) => boolean): Promise<AgentLog[]> => {
  const lines: AgentLog[] = [];
  while (!done(lines)) lines.push(...(await follower.json<AgentLog[]>()));
  return lines;
};

const outputs = (lines: readonly AgentLog[]): string[] => lines.map(({ output }) => output);
const numbers = (from: number, to: number): string[] => Array.from({ length: to - from }, (_, i) => `${from + i}`);

const waitFor = (name: string): string => `until [ -e "$HOME/${name}" ]; do sleep 0.02; done`;
const count = (from: number, to: number): string =>
  `i=${from}; while [ $i -lt ${to} ]; do echo $i; [ $((i % 25)) -eq 0 ] && sleep 0.03; i=$((i+1)); done`;

describe("a local workspace", () => {
  test("[DM-17] shows a follower each line while the script runs, over a clean restart of the server, and stops in order", async () => {
    await using place = await ServerPlace.make();
    const first = await place.start();
    const script = `echo one; ${waitFor("a")}; echo two; ${waitFor("b")}; ${count(0, 300)}; ${waitFor("c")}; echo end`;
    const workspace = await runningWorkspace(place, script);
    using follower = await workspace.follow();
    const seen = await read(follower, (lines) => lines.length > 0);
    expect(outputs(seen)).toEqual(["one"]);
    workspace.release("a");
    seen.push(...(await read(follower, (lines) => lines.length > 0)));
    expect(outputs(seen)).toEqual(["one", "two"]);
    expect(await workspace.agent()).toMatchObject({ status: "connected", lifecycle_state: "starting" });
    workspace.release("b");
    seen.push(...(await read(follower, (lines) => lines.length > 0)));
    first.kill("SIGTERM");
    expect((await first.ended).code).toBe(0);
    await place.start();
    workspace.release("c");
    using later = await workspace.follow(seen.at(-1)?.id);
    seen.push(...(await read(later, (lines) => lines.at(-1)?.output === "end")));
    expect(outputs(seen)).toEqual(["one", "two", ...numbers(0, 300), "end"]);

    const { pid } = JSON.parse(readFileSync(join(workspace.folder, "daemon.json"), "utf8")) as { pid: number };
    expect(isAlive(pid)).toBe(true);
    const path = `/api/v2/workspaces/${workspace.workspace_id}/builds`;
    const stop = await workspace.admin.post<Build>(path, { transition: "stop" });
    expect((await awaitEnd(workspace.admin, stop)).job).toMatchObject({ status: "succeeded" });
    expect(isAlive(pid)).toBe(false);
  });

  test("[DM-18] loses and duplicates no line when the server is killed repeatedly while the script counts", async () => {
    await using place = await ServerPlace.make();
    let server = await place.start();
    const workspace = await runningWorkspace(place, `${count(0, 1500)}; ${waitFor("go")}; echo end`);
    const seen: AgentLog[] = [];
    for (const target of [100, 300, 500, 900]) {
      using follower = await workspace.follow(seen.at(-1)?.id);
      seen.push(...(await read(follower, (lines) => seen.length + lines.length >= target)));
      server.kill("SIGKILL");
      await server.ended;
      server = await place.start();
    }
    workspace.release("go");
    using follower = await workspace.follow(seen.at(-1)?.id);
    seen.push(...(await read(follower, (lines) => lines.at(-1)?.output === "end")));
    expect(outputs(seen)).toEqual([...numbers(0, 1500), "end"]);
    expect(new Set(seen.map(({ id }) => id)).size).toBe(1501);
    const path = `/api/v2/workspaces/${workspace.workspace_id}/builds`;
    await awaitEnd(workspace.admin, await workspace.admin.post<Build>(path, { transition: "stop" }));
  });
});
