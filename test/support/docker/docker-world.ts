// A server that listens on all interfaces, with a real Docker Engine started by `.ci/docker-engine`: shared by container tests.
import { expect } from "bun:test";
import { systemClock } from "#base/clock.ts";
import type { Template } from "#schema/templates/template.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { Client } from "#src/client.ts";
import { Engine } from "#src/provisioners/docker/engine.ts";
import { TestTerminal } from "#test/api/agents/reach.ts";
import { needs } from "../needs.ts";
import { ADMIN, startTestServer } from "../server.ts";
import { awaitWorkspace, createBuild } from "../workspaces.ts";

/** The compiled program: the server under test, and the agent for containers. */
export const BINARY = process.env.SLIPWAY_TEST_BINARY ?? "";

/** An image of `.ci/docker-engine` with busybox, bash, curl, and a non-root user `dev`. */
export const IMAGE = "slipway-test:1";

export const openDockerWorld = async (env: Record<string, string> = {}) => {
  const server = await startTestServer({
    env: {
      SLIPWAY_ADDRESS: "0.0.0.0:0",
      SLIPWAY_DOCKER_HOST: needs.docker.file,
      SLIPWAY_AGENT_BINARY: BINARY,
      ...env,
    },
  });
  const url = new URL(server.url);
  url.hostname = "127.0.0.1";
  const admin = await new Client(url).signIn(ADMIN.email, ADMIN.password);
  const engine = new Engine(needs.docker.file, systemClock);
  await engine.connect();
  const listObjects = async (kind: "containers/json" | "volumes" | "networks", id: string): Promise<unknown[]> => {
    const query = { all: "true", filters: JSON.stringify({ label: [`slipway.workspace_id=${id}`] }) };
    const found = await engine.json<unknown[] | { Volumes?: unknown[] | null }>("list", "GET", `/${kind}`, { query });
    return Array.isArray(found) ? found : (found?.Volumes ?? []);
  };
  return {
    server,
    url,
    admin,
    engine,
    /** Returns the number of containers, volumes and networks of a workspace. */
    countResources: async (id: string): Promise<number[]> => {
      const found = await Promise.all([
        listObjects("containers/json", id),
        listObjects("volumes", id),
        listObjects("networks", id),
      ]);
      return found.map(({ length }) => length);
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
};
export type DockerWorld = Awaited<ReturnType<typeof openDockerWorld>>;

/** Returns the built-in template once it exists. */
export const getDockerTemplate = async (client: Client): Promise<Template> => {
  const found = (await client.get<Template[]>("/api/v2/templates")).find(({ name }) => name === "docker");
  if (!found) throw new Error('the template "docker" does not exist');
  return found;
};

export const findAgent = ({ latest_build }: Workspace) =>
  latest_build.resources.flatMap(({ agents = [] }) => agents)[0];

/** Returns the workspace once its daemon is connected and its scripts have run. Throws the build's error. */
export const awaitAgent = async (client: Client, id: string): Promise<{ agent_id: string; workspace: Workspace }> => {
  const workspace = await awaitWorkspace(client, id, (current) => {
    if (current.latest_build.status === "failed") throw new Error(current.latest_build.job.error);
    return findAgent(current)?.lifecycle_state === "ready" && findAgent(current)?.status === "connected";
  });
  return { agent_id: findAgent(workspace)?.id ?? "", workspace };
};

/** Runs a shell line in a terminal of the workspace and returns its output. */
export const runInTerminal = async (owner: Client, agent_id: string, command: string): Promise<string> => {
  const path = (action: string): string => `/api/v2/workspaceagents/${agent_id}/${action}`;
  using terminal = await TestTerminal.open({ owner, path }, { command: `${command}; echo " end-$((40 + 2))"` });
  return (await terminal.until(/ end-42/)).replace(/ end-42[\s\S]*$/, "").trim();
};

/** Deletes a workspace and asserts that none of its resources are left in the engine. */
export const deleteCompletely = async ({ admin, countResources }: DockerWorld, id: string): Promise<void> => {
  await createBuild(admin, id, "delete", { permanent: true });
  const { latest_build } = await awaitWorkspace(admin, id, (workspace) =>
    ["deleted", "failed"].includes(workspace.latest_build.status),
  );
  expect([latest_build.status, latest_build.job.error]).toEqual(["deleted", undefined]);
  expect(await countResources(id)).toEqual([0, 0, 0]);
};
