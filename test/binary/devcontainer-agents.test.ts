// Devcontainers with their own agent, with the real command-line tool, a real Docker Engine, the compiled daemon in a local workspace, and
// the same daemon inside the container.
import { expect } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { systemClock } from "#base/clock.ts";
import { uuid } from "#base/ids.ts";
import type { WorkspaceAgent } from "#schema/agents/agent.ts";
import type { ContainerListing, Devcontainer } from "#schema/workspaces/container.ts";
import type { ListeningPorts } from "#schema/workspaces/listening-port.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { Client } from "#src/client.ts";
import { startAgentProcess } from "#test/api/agents/reach.ts";
import { tempFolder } from "#test/daemon/support/daemon.ts";
import { createChat } from "#test/support/chats.ts";
import { IMAGE, runInTerminal } from "#test/support/docker/docker-world.ts";
import { ScriptedModels } from "#test/support/models/scripted-models.ts";
import { compiled, needs, testNeeding } from "#test/support/needs.ts";
import { getContext, seedAgent } from "#test/support/seed.ts";
import { startTestServer } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, createWorkspace, openWorld, seedTemplate } from "#test/support/workspaces.ts";
import { callTools } from "#test/tools/world.ts";

/** The folder that contains the devcontainer command-line tool. */
const TOOLS_FOLDER = join(dirname(fileURLToPath(import.meta.resolve("@devcontainers/cli/package.json"))), "../../.bin");

type DevcontainerPredicate = (devcontainer: Devcontainer | undefined) => boolean;

const isReady: DevcontainerPredicate = (devcontainer) =>
  devcontainer?.status === "running" && devcontainer.agent !== undefined;

/**
 * Starts a local workspace whose template names a devcontainer in the folder `shop`. `changes` are added to the devcontainer's settings,
 * and `files` are written next to them.
 */
const openWorkspace = async (changes: object = {}, files: Readonly<Record<string, string>> = {}) => {
  const models = new ScriptedModels();
  const server = await startTestServer({ clock: systemClock, models });
  const home = mkdtempSync(join(tmpdir(), "slipway-home-"));
  const config = join(home, "shop", ".devcontainer", "devcontainer.json");
  mkdirSync(dirname(config), { recursive: true });
  const image = "dockerComposeFile" in changes ? {} : { image: IMAGE };
  const settings = { ...image, updateRemoteUserUID: false, remoteEnv: { GREETING: "hello there" }, ...changes };
  writeFileSync(config, JSON.stringify(settings));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dirname(config), name), text);
  const seeded = await seedAgent(server, {
    agent: {
      environment_variables: { DOCKER_HOST: needs.docker.file, PATH: `${TOOLS_FOLDER}:$PATH` },
      devcontainers: [{ id: uuid(), name: "shop", workspace_folder: "shop", config_path: "" }],
    },
  });
  const owner = new Client(server.url, seeded.owner_token);
  const agentPath = (endpoint: string): string => `/api/v2/workspaceagents/${seeded.agent_id}/${endpoint}`;
  let daemon = await startAgentProcess(server, seeded, home);
  return {
    owner,
    models,
    path: agentPath,
    home,
    seeded,
    /** Returns the devcontainer once it matches. */
    until: async (matches: DevcontainerPredicate, mayFail = false): Promise<Devcontainer> => {
      using socket = await owner.socket(agentPath("containers/watch"));
      for (;;) {
        const frame = await socket.next();
        if (frame === undefined) throw new Error("the stream ended");
        const { devcontainers, warnings } = JSON.parse(String(frame)) as ContainerListing;
        const devcontainer = devcontainers.find(({ name }) => name === "shop");
        if (devcontainer?.status === "error" && !mayFail) {
          throw new Error(devcontainer.error);
        }
        if (warnings.length > 0) throw new Error(warnings.join(" "));
        if (matches(devcontainer)) return devcontainer as Devcontainer;
      }
    },
    agent: (id: string) => owner.get<WorkspaceAgent>(`/api/v2/workspaceagents/${id}`),
    /** Kills the daemon and starts another one. */
    restart: async (): Promise<void> => {
      daemon.process.kill("SIGKILL");
      await daemon.process.exited;
      daemon = await startAgentProcess(server, seeded, home);
    },
    stop: () => daemon[Symbol.asyncDispose](),
    async [Symbol.asyncDispose]() {
      await daemon[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
      rmSync(home, { recursive: true, force: true });
    },
  };
};

const requestEngine = (path: string): Promise<Response> =>
  fetch(`http://docker${path}`, { unix: needs.docker.file.replace("unix://", "") });

/** Resolves when the agent is shown as connected. */
const waitForConnection = (agent: () => Promise<WorkspaceAgent>): Promise<WorkspaceAgent> =>
  until(async () => {
    const found = await agent();
    return found.status === "connected" && found.lifecycle_state === "ready" && found;
  });

/** Creates a chat of the workspace, and returns the first call of its model. */
const openChat = async ({ owner, models, seeded }: Awaited<ReturnType<typeof openWorkspace>>) => {
  const { workspace_id, organization_id } = seeded;
  await createChat({ owner, organization_id }, "go", { workspace_id });
  return models.next();
};

testNeeding(
  [compiled, needs.docker, needs.node],
  "[CO-13][CO-14][TO-24] a template's devcontainer starts with an agent, supports terminal, ports and chat, and can be recreated",
  async () => {
    await using workspace = await openWorkspace();
    const { owner, path: agentPath, seeded } = workspace;
    const first = await workspace.until(isReady);
    expect(first.agent).toEqual({ id: expect.any(String), name: "shop", directory: "/workspaces/shop" });
    const innerAgent = await waitForConnection(() => workspace.agent(first.agent?.id ?? ""));
    expect(innerAgent).toMatchObject({
      parent_id: { uuid: seeded.agent_id, valid: true },
      directory: "/workspaces/shop",
    });

    const output = await runInTerminal(
      owner,
      innerAgent.id,
      'id -un; pwd; env | grep -c "AGENT_TOKEN="; echo kept > note || true',
    );
    expect(output.split(/\s+/).slice(0, 3)).toEqual(["dev", "/workspaces/shop", "0"]);
    expect(await runInTerminal(owner, innerAgent.id, 'echo "[$GREETING]"')).toContain("[hello there]");
    await runInTerminal(owner, innerAgent.id, "busybox httpd -p 3000 -h /home/dev");
    const { ports } = await owner.get<ListeningPorts>(`/api/v2/workspaceagents/${innerAgent.id}/listening-ports`);
    expect(ports.map(({ port }) => port)).toContain(3000);

    const chat = await callTools(
      workspace,
      await openChat(workspace),
      ["execute", { command: "id -un; pwd", agent: "shop", timeout: 60 }],
      ["write_file", { path: "~/by-chat.txt", content: "made inside\n", agent: "shop" }],
      ["execute", { command: "echo $HOME" }],
    );
    expect(chat.results[0]).toMatchObject({ success: true, output: "dev\n/workspaces/shop\n" });
    expect(chat.results[1]).toEqual({ ok: true });
    expect(chat.results[2]).toMatchObject({ success: true, output: `${workspace.home}\n` });
    expect(await runInTerminal(owner, innerAgent.id, "cat ~/by-chat.txt")).toContain("made inside");

    const recreated = await owner.fetch("POST", agentPath(`containers/devcontainers/${first.id}/recreate`));
    expect(recreated.status).toBe(202);
    const second = await workspace.until((found) => isReady(found) && found?.agent?.id !== first.agent?.id);
    expect(second.container?.id).not.toBe(first.container?.id);
    await waitForConnection(() => workspace.agent(second.agent?.id ?? ""));
    expect((await owner.fetch("GET", `/api/v2/workspaceagents/${first.agent?.id}`)).status).toBe(404);

    const repeated = await callTools(workspace, chat.next, [
      "execute",
      { command: "id -un; ls ~/by-chat.txt", agent: "shop", timeout: "60s" },
    ]);
    expect(repeated.results[0]).toMatchObject({
      success: false,
      output: expect.stringMatching(/^dev\n.*No such file/),
    });

    await workspace.stop();
    expect((await owner.fetch("GET", `/api/v2/workspaceagents/${second.agent?.id}`)).status).toBe(404);
    const afterStop = await callTools(workspace, repeated.next, ["execute", { command: "true", agent: "shop" }]);
    expect(afterStop.results[0]?.error).toBe('The workspace has no agent "shop". It has: main.');
    afterStop.next.finish("stop");
    expect((await requestEngine(`/containers/${second.container?.id}/json`)).status).toBe(404);
  },
);

testNeeding(
  [compiled, needs.docker, needs.node],
  "[CO-17] a devcontainer whose postCreateCommand fails has an error, and its agent accepts connections for a repair",
  async () => {
    await using workspace = await openWorkspace({ postCreateCommand: "echo OOPS-reason >&2; exit 7" });
    const { owner, path: agentPath } = workspace;
    const failedDevcontainer = await workspace.until(
      (found) => found?.status === "error" && found.agent !== undefined,
      true,
    );
    expect(failedDevcontainer.error).toContain("exit 7");
    await waitForConnection(() => workspace.agent(failedDevcontainer.agent?.id ?? ""));
    expect(await runInTerminal(owner, failedDevcontainer.agent?.id ?? "", "id -un")).toContain("dev");
    const logs = await owner.get<{ output: string }[]>(agentPath("logs"));
    expect(logs.map(({ output }) => output).join("\n")).toContain("Devcontainer shop: OOPS-reason");
  },
);

const COMPOSE = `
services:
  app:
    image: ${IMAGE}
    command: sleep 3600
    environment: { FROM_COMPOSE: "yes" }
    volumes: ["..:/workspaces/shop"]
  db:
    image: ${IMAGE}
    command: sh -c "while true; do echo rows | nc -l -p 5432; done"
`;

testNeeding(
  [compiled, needs.docker, needs.node, needs.compose],
  "[CO-18] a devcontainer from a compose file has an agent in its service, which reaches other services; a delete removes all",
  async () => {
    const settings = { dockerComposeFile: "compose.yaml", service: "app", workspaceFolder: "/workspaces/shop" };
    await using workspace = await openWorkspace(settings, { "compose.yaml": COMPOSE });
    const { owner, path: agentPath } = workspace;
    const first = await workspace.until(isReady);
    const innerAgent = await waitForConnection(() => workspace.agent(first.agent?.id ?? ""));
    expect(innerAgent.directory).toBe("/workspaces/shop");
    const command =
      'id -un; pwd; ls -a; echo "[$FROM_COMPOSE $GREETING]"; timeout 9 bash -c "read l < /dev/tcp/db/5432; echo \\$l"';
    const output = await runInTerminal(owner, innerAgent.id, command);
    expect(output).toMatch(/^dev\s+\/workspaces\/shop\s[\s\S]*\.devcontainer[\s\S]*\[yes hello there\]\s+rows$/);
    const project = first.container?.labels["com.docker.compose.project"];
    const filters = encodeURIComponent(JSON.stringify({ label: [`com.docker.compose.project=${project}`] }));
    const listLeftovers = async (kind: string): Promise<unknown[]> =>
      (await (await requestEngine(`/${kind}?all=true&filters=${filters}`)).json()) as unknown[];
    expect(
      [await listLeftovers("containers/json"), await listLeftovers("networks")].map(({ length }) => length),
    ).toEqual([2, 1]);
    expect((await owner.fetch("DELETE", agentPath(`containers/devcontainers/${first.id}`))).status).toBe(204);
    expect([await listLeftovers("containers/json"), await listLeftovers("networks")]).toEqual([[], []]);
  },
);

testNeeding(
  [compiled, needs.docker, needs.node],
  "[CO-15] after a kill, the next daemon gives the running container a new agent; a delete removes container and agent",
  async () => {
    await using workspace = await openWorkspace();
    const { owner, path: agentPath } = workspace;
    const first = await workspace.until(isReady);
    await waitForConnection(() => workspace.agent(first.agent?.id ?? ""));
    await workspace.restart();
    const second = await workspace.until((found) => isReady(found) && found?.agent?.id !== first.agent?.id);
    expect(second.container?.id).toBe(first.container?.id ?? "");
    const innerAgent = await waitForConnection(() => workspace.agent(second.agent?.id ?? ""));
    expect((await owner.fetch("GET", `/api/v2/workspaceagents/${first.agent?.id}`)).status).toBe(404);
    expect(await runInTerminal(owner, innerAgent.id, "echo still here")).toContain("still here");

    expect((await owner.fetch("DELETE", agentPath(`containers/devcontainers/${second.id}`))).status).toBe(204);
    expect((await owner.fetch("GET", `/api/v2/workspaceagents/${innerAgent.id}`)).status).toBe(404);
    expect((await requestEngine(`/containers/${second.container?.id}/json`)).status).toBe(404);
  },
);

testNeeding(
  [compiled, needs.docker, needs.node],
  "[CO-13][SH-8][AG-28] a devcontainer's port is private until it is shared; after access is revoked, its agent gets a new token",
  async () => {
    using folder = tempFolder();
    const home = folder.path;
    const config = join(home, "shop", ".devcontainer", "devcontainer.json");
    mkdirSync(dirname(config), { recursive: true });
    writeFileSync(config, JSON.stringify({ image: IMAGE, updateRemoteUserUID: false }));
    const token = uuid();
    const env = { DOCKER_HOST: needs.docker.file, PATH: `${TOOLS_FOLDER}:$PATH` };
    const devcontainers = [{ name: "shop", workspace_folder: "shop" }];
    await using world = await openWorld({ clock: systemClock });
    const { admin, server } = world;
    const { template_id } = await seedTemplate(server, {
      provisioner: "echo",
      resources: [{ name: "main", agents: [{ name: "dev", token, env, devcontainers }] }],
    });
    const { id, owner_name } = await createWorkspace(admin, template_id);
    const loadAgents = async () =>
      (await admin.get<Workspace>(`/api/v2/workspaces/${id}`)).latest_build.resources.flatMap(
        (resource) => resource.agents,
      );
    await awaitBuild(admin, id);
    const [{ id: agent_id } = { id: "" }] = await loadAgents();
    await using _daemon = await startAgentProcess(server, { agent_id, agent_token: token }, home);
    const innerAgent = await until(async () => {
      const found = (await loadAgents()).find(({ name }) => name === "shop");
      return found?.status === "connected" && found.lifecycle_state === "ready" && found;
    });
    await runInTerminal(
      admin,
      innerAgent.id,
      "mkdir ~/web; echo from inside > ~/web/index.html; busybox httpd -p 3000 -h ~/web",
    );

    const openApp = async (client: Client): Promise<[number, string]> => {
      const address = `/@${owner_name}/dev.shop/apps/3000/`;
      const page = await client.fetch("GET", address, undefined, { headers: { accept: "*/*" } });
      return [page.status, await page.text()];
    };
    const outsider = admin.withToken(undefined);
    expect(await openApp(admin)).toEqual([200, "from inside\n"]);
    expect((await openApp(outsider))[1]).not.toContain("from inside");
    const share = { agent_name: "shop", port: 3000, protocol: "http", share_level: "public" };
    await admin.post<unknown>(`/api/v2/workspaces/${id}/port-share`, share);
    expect(await openApp(outsider)).toEqual([200, "from inside\n"]);
    const { key } = await admin.post<{ key: string }>("/api/v2/users/me/keys/tokens", { scopes: ["workspace:ssh"] });
    await admin.delete(`/api/v2/users/me/keys/${key.split("-")[0] ?? ""}`);
    await until(async () => {
      const generations = await getContext(server).store.all({
        sql: "select token_generation from agents",
        params: [],
        map: ([generation]) => Number(generation),
      });
      return generations.length === 2 && generations.every((generation) => generation === 1);
    });
    expect((await loadAgents()).find(({ name }) => name === "shop")?.id).toBe(innerAgent.id);
    await until(async () => (await openApp(admin))[0] === 200);
  },
);
