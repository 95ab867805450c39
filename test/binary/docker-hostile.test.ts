// A server with container workspaces behind nginx, and two users. Mallory owns a workspace and a chat, and tries to access Bob's workspace,
// the server's data, and the machine. test/security/README.md lists the attempts.
import { expect } from "bun:test";
import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import type { MessagePage } from "#schema/chats/chat.ts";
import { Client } from "#src/client.ts";
import { createChat, Follower } from "#test/support/chats.ts";
import {
  awaitAgent,
  type DockerWorld,
  getDockerTemplate,
  IMAGE,
  openDockerWorld,
  runInTerminal,
} from "#test/support/docker/docker-world.ts";
import { compiled, needs, testNeeding } from "#test/support/needs.ts";
import { awaitStatus } from "#test/support/net/status.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { seedUser } from "#test/support/seed.ts";
import { tempDirectory } from "#test/support/server.ts";
import { importVersion, makeTemplate } from "#test/support/templates.ts";
import { awaitBuild, createBuild, createWorkspace } from "#test/support/workspaces.ts";

type ContainerInfo = {
  Id: string;
  NetworkSettings: { Networks: Record<string, { IPAddress: string }> };
  Mounts: { Type: string; Name?: string; Source: string }[];
  HostConfig: { Privileged: boolean; NetworkMode: string; PidMode: string; Binds: string[] | null };
  Config: { Env: string[]; Labels: Record<string, string> };
};

const findFreePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });

/** Starts nginx in front of the server, for people and for containers. */
const startProxy = async (folder: string, port: number, upstream: number) => {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${folder};`);
  const file = join(folder, "nginx.conf");
  writeFileSync(
    file,
    `user root; worker_processes 1; pid ${folder}/pid; error_log ${folder}/errors; events {}
    http { access_log off; ${temporary.join(" ")} client_max_body_size 0;
      map $http_upgrade $connection_upgrade { default upgrade; '' ''; }
      server { listen 0.0.0.0:${port}; location / {
        proxy_pass http://127.0.0.1:${upstream}; proxy_http_version 1.1; proxy_buffering off;
        proxy_set_header Host $http_host; proxy_set_header X-Forwarded-For $remote_addr; proxy_set_header X-Forwarded-Proto http;
        proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_upgrade; } } }`,
  );
  const runNginx = async (...args: string[]): Promise<void> => {
    const child = Bun.spawn([needs.nginx.file, "-c", file, "-e", join(folder, "errors"), ...args], {
      stdout: "ignore",
    });
    expect(await child.exited).toBe(0);
  };
  await runNginx();
  return { [Symbol.asyncDispose]: () => runNginx("-s", "stop") };
};

const inspectContainer = async ({ engine }: DockerWorld, id: string): Promise<ContainerInfo> => {
  const query = { all: "true", filters: JSON.stringify({ label: [`slipway.workspace_id=${id}`] }) };
  const [container] = (await engine.json<{ Id: string }[]>("list", "GET", "/containers/json", { query })) ?? [];
  return (await engine.json<ContainerInfo>("inspect", "GET", `/containers/${container?.Id}/json`)) as ContainerInfo;
};

testNeeding(
  [compiled, needs.docker, needs.nginx],
  "[SC-7] behind a proxy, a hostile member's container, chat and parameters give access only to her own data",
  async () => {
    using temp = tempDirectory();
    const [public_port, server_port] = [await findFreePort(), await findFreePort()];
    await using _proxy = await startProxy(temp.path, public_port, server_port);
    const access_url = `http://127.0.0.1:${public_port}`;
    await using world = await openDockerWorld({
      SLIPWAY_ADDRESS: `127.0.0.1:${server_port}`,
      SLIPWAY_ACCESS_URL: access_url,
      SLIPWAY_TRUSTED_PROXIES: "127.0.0.1",
    });
    const { admin, server } = world;
    const { id: template_id, organization_id } = await getDockerTemplate(admin);
    const signUp = async (username: string): Promise<Client> =>
      new Client(access_url, (await seedUser(server, { username, organization_id })).token);
    const [bob, mallory] = [await signUp("bob"), await signUp("mallory")];
    const settings = {
      rich_parameter_values: [
        {
          name: "startup_script",
          value: "echo bobs > ~/secret; (while true; do echo taken | nc -l -p 8000; done) > /dev/null 2>&1 &",
        },
      ],
    };
    const bobsWorkspace = await createWorkspace(bob, template_id, "box", settings);
    const bobsAgent = await awaitAgent(bob, bobsWorkspace.id);
    const mallorysWorkspace = await createWorkspace(mallory, template_id, "lair");
    const { agent_id } = await awaitAgent(mallory, mallorysWorkspace.id);
    const [bobsContainer, mallorysContainer] = [
      await inspectContainer(world, bobsWorkspace.id),
      await inspectContainer(world, mallorysWorkspace.id),
    ];
    const parseToken = ({ Config }: ContainerInfo): string =>
      Config.Env.find((line) => line.startsWith("SLIPWAY_AGENT_TOKEN="))?.split("=")[1] ?? "";
    const address = Object.values(bobsContainer.NetworkSettings.Networks)[0]?.IPAddress ?? "";
    expect(address).not.toBe("");

    // From her container, she tries Bob's ports, the machine's files and engine, other processes, and capabilities.
    const output = await runInTerminal(
      mallory,
      agent_id,
      [
        `timeout 3 bash -c 'cat < /dev/tcp/${address}/8000' 2>/dev/null || echo no-port`,
        `ls ${server.directory} ${needs.docker.file.replace("unix://", "")} /var/run/docker.sock 2>/dev/null || echo no-files`,
        "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -c SLIPWAY_ADMIN_PASSWORD",
        "grep CapBnd /proc/self/status",
        "id -u",
        `timeout 3 bash -c 'echo > /dev/tcp/127.0.0.1/${server_port}' 2>/dev/null || echo no-loopback`,
        `timeout 3 bash -c 'echo > /dev/tcp/host.docker.internal/${server_port}' 2>/dev/null || echo no-back-door`,
      ].join("; "),
    );
    expect(output).toContain("no-port");
    expect(output).not.toContain("taken");
    expect(output).toContain("no-files");
    expect(output).toMatch(/no-files\s+0\s/);
    const [, capabilities = "0"] = /CapBnd:\s+([0-9a-f]+)/.exec(output) ?? [];
    // NET_ADMIN, NET_RAW, SYS_MODULE, SYS_PTRACE, SYS_ADMIN.
    for (const bit of [12n, 13n, 16n, 19n, 21n]) expect((BigInt(`0x${capabilities}`) >> bit) & 1n).toBe(0n);
    expect(output).toMatch(/\n?1000\s/);
    expect(output).toContain("no-loopback");
    expect(output).toContain("no-back-door");

    // With her agent's token and her own, she tries Bob's agent, its metadata, terminal, containers, apps and builds.
    const paths = [
      `/api/v2/workspaceagents/${bobsAgent.agent_id}`,
      `/api/v2/workspaceagents/${bobsAgent.agent_id}/watch-metadata`,
      `/api/v2/workspaceagents/${bobsAgent.agent_id}/containers?label=a%3Db`,
      `/api/v2/workspaceagents/${bobsAgent.agent_id}/logs`,
      `/api/v2/workspaces/${bobsWorkspace.id}`,
      `/api/v2/workspacebuilds/${bobsWorkspace.latest_build.id}/state`,
      "/@bob/box/apps/8000/",
    ];
    const agent = new Client(access_url, parseToken(mallorysContainer));
    for (const path of paths) {
      const responses = await Promise.all([mallory.fetch("GET", path), agent.fetch("GET", path)]);
      for (const { status } of responses) expect(`${path} ${status}`).toMatch(/ (401|403|404)$/);
    }
    const terminal = mallory.socket(
      `/api/v2/workspaceagents/${bobsAgent.agent_id}/pty?reconnect=${crypto.randomUUID()}`,
    );
    await expect(terminal).rejects.toThrow("404");
    expect(await awaitStatus(createBuild(mallory, bobsWorkspace.id, "delete", { permanent: true }))).toBe(404);
    // Her own agent lists no containers, because her workspace has no engine that could create a container with the machine's files.
    const listing = await mallory.get<{ containers: unknown[] }>(
      `/api/v2/workspaceagents/${agent_id}/containers?label=a%3D`,
    );
    expect(listing.containers).toEqual([]);

    // In her chat, the demo model runs commands in her own container, where the server's files are not readable.
    const chat = await createChat(
      { owner: mallory, organization_id },
      `run: cat ${server.directory}/encryption.key || echo nothing-there`,
      {
        workspace_id: mallorysWorkspace.id,
      },
    );
    using follower = await Follower.open(mallory, chat.id);
    await follower.until(({ status }) => status === "waiting");
    const { messages } = await mallory.get<MessagePage>(`/api/v2/chats/${chat.id}/messages`);
    expect(JSON.stringify(messages)).toContain("nothing-there");
    expect(
      await awaitStatus(createChat({ owner: mallory, organization_id }, "run: id", { workspace_id: bobsWorkspace.id })),
    ).toBeOneOf([400, 403, 404]);

    // She cannot create templates. A template that uses parameters everywhere gives her no access to the machine or to Bob's workspace.
    await expect(
      importVersion(mallory, "provisioner: docker\nresources: [{name: a, docker: {image: b}}]\n"),
    ).rejects.toThrow("403");
    const openTemplate = await makeTemplate(
      admin,
      `
provisioner: docker
parameters: [{name: image, default: "${IMAGE}"}, {name: network, default: ""}, {name: user, default: ""}, {name: label, default: ""}]
resources:
  - name: dev
    docker:
      image: "{{ parameters.image }}"
      network: "{{ parameters.network }}"
      user: "{{ parameters.user }}"
      labels: {team: "{{ parameters.label }}"}
      volumes: [{name: home, path: "/{{ parameters.label }}"}]
    agents: [{name: main}]
`,
    );
    const attempts: Record<string, string>[] = [
      { image: `../containers/${bobsContainer.Id}/json?` },
      { image: `x/../../containers/${bobsContainer.Id}` },
      { network: `container:${bobsContainer.Id}` },
      { network: "host" },
      { user: "0:0", label: bobsWorkspace.id },
    ];
    for (const [index, values] of attempts.entries()) {
      const rich_parameter_values = Object.entries(values).map(([name, value]) => ({ name, value }));
      const attempt = await createWorkspace(mallory, openTemplate.id, `try-${index}`, { rich_parameter_values });
      const { latest_build } = await awaitBuild(mallory, attempt.id);
      if (!("label" in values)) {
        expect([values, latest_build.status]).toEqual([values, "failed"]);
        continue;
      }
      expect([latest_build.status, latest_build.job.error]).toEqual(["running", undefined]);
      const { HostConfig, Mounts, Config } = await inspectContainer(world, attempt.id);
      expect(HostConfig).toMatchObject({ Privileged: false, NetworkMode: "slipway", PidMode: "", Binds: null });
      expect(Mounts.map(({ Type, Name }) => [Type, Name])).toEqual([["volume", `slipway-${attempt.id}-home`]]);
      expect(Config.Labels["slipway.workspace_id"]).toBe(attempt.id);
      await createBuild(mallory, attempt.id, "delete", { permanent: true });
      expect((await awaitBuild(mallory, attempt.id)).latest_build.status).toBe("deleted");
    }

    // Bob's workspace is not affected.
    expect((await inspectContainer(world, bobsWorkspace.id)).Id).toBe(bobsContainer.Id);
    expect(await runInTerminal(bob, bobsAgent.agent_id, "cat ~/secret")).toBe("bobs");
    for (const [owner, id] of [
      [bob, bobsWorkspace.id],
      [mallory, mallorysWorkspace.id],
    ] as const) {
      await createBuild(owner, id, "delete", { permanent: true });
      expect((await awaitBuild(owner, id)).latest_build.status).toBe("deleted");
      expect(await world.countResources(id)).toEqual([0, 0, 0]);
    }
  },
  scaleTimeout(180_000),
);
