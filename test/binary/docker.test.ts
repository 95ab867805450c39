// Workspaces in containers of a real Docker Engine, created by the compiled program from the built-in template.
import { expect } from "bun:test";
import type { MessagePage } from "#schema/chats/chat.ts";
import { Client } from "#src/client.ts";
import { createChat, Follower } from "#test/support/chats.ts";
import {
  awaitAgent,
  deleteCompletely,
  findAgent,
  getDockerTemplate,
  IMAGE,
  openDockerWorld,
  runInTerminal,
} from "#test/support/docker/docker-world.ts";
import { compiled, needs, testNeeding } from "#test/support/needs.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { awaitWorkspace, createBuild, createWorkspace } from "#test/support/workspaces.ts";

/** Returns a container's output. */
const readContainerLog = async (id: string): Promise<string> =>
  (
    await fetch(`http://docker/containers/${id}/logs?stdout=1&stderr=1`, {
      unix: needs.docker.file.replace("unix://", ""),
    })
  ).text();

testNeeding(
  [compiled, needs.docker],
  "[TP-29][PV-15][PV-6] a workspace of the built-in template supports terminal, chat and ports, and keeps its files over a stop",
  async () => {
    await using world = await openDockerWorld();
    const { admin, url, countResources } = world;
    const template = await getDockerTemplate(admin);
    const { id, organization_id } = await createWorkspace(admin, template.id, "box", {
      rich_parameter_values: [{ name: "startup_script", value: "echo begun >> ~/starts" }],
    });
    const first = await awaitAgent(admin, id);
    expect(await countResources(id)).toEqual([1, 1, 0]);

    expect(await runInTerminal(admin, first.agent_id, "id -un; pwd; echo kept > ~/note")).toMatch(
      /^dev\s+\/home\/dev$/,
    );

    const chat = await createChat({ owner: admin, organization_id }, "run: echo $((6 * 7)) from $(id -un)", {
      workspace_id: id,
    });
    using follower = await Follower.open(admin, chat.id);
    await follower.until(({ status }) => status === "waiting");
    const { messages } = await admin.get<MessagePage>(`/api/v2/chats/${chat.id}/messages`);
    expect(JSON.stringify(messages)).toContain("42 from dev");

    await runInTerminal(
      admin,
      first.agent_id,
      "mkdir ~/web; echo served > ~/web/index.html; busybox httpd -p 3000 -h ~/web",
    );
    const page = await admin.fetch("GET", "/@admin/box/apps/3000/");
    expect([page.status, await page.text()]).toEqual([200, "served\n"]);
    const outsider = await new Client(url).fetch("GET", "/@admin/box/apps/3000/", undefined, {
      headers: { accept: "*/*" },
    });
    expect(outsider.status).not.toBe(200);

    await createBuild(admin, id, "stop");
    await awaitWorkspace(admin, id, ({ latest_build }) => latest_build.status === "stopped");
    expect(await countResources(id)).toEqual([0, 1, 0]);

    await createBuild(admin, id, "start");
    const second = await awaitAgent(admin, id);
    expect(second.agent_id).not.toBe(first.agent_id);
    expect((await runInTerminal(admin, second.agent_id, "cat ~/note ~/starts")).split(/\s+/)).toEqual([
      "kept",
      "begun",
      "begun",
    ]);
    await deleteCompletely(world, id);
  },
);

testNeeding(
  [compiled, needs.docker],
  "[PV-15][PV-16] programs run as the image's user, and a workspace's containers find each other by name",
  async () => {
    await using world = await openDockerWorld();
    const { admin, countResources } = world;
    const template = await makeTemplate(
      admin,
      `
provisioner: docker
resources:
  - name: dev
    docker: {image: "${IMAGE}"}
    agents: [{name: main}]
  - name: db
    docker: {image: "${IMAGE}", stop_grace: 0, command: [sh, -c, "while true; do echo rows | nc -l -p 5432; done"]}
`,
    );
    const { id } = await createWorkspace(admin, template.id, "two");
    const { agent_id } = await awaitAgent(admin, id);
    expect(await countResources(id)).toEqual([2, 0, 1]);
    expect(
      await runInTerminal(admin, agent_id, "id -un; timeout 5 bash -c 'read line < /dev/tcp/db/5432; echo $line'"),
    ).toMatch(/^dev\s+rows$/);
    await deleteCompletely(world, id);
  },
);

testNeeding(
  [compiled, needs.docker],
  "[CF-18] a container's log reports an unreachable server; the health page warns about a loopback address in advance",
  async () => {
    await using loopback = await openDockerWorld({ SLIPWAY_ADDRESS: "127.0.0.1:0" });
    const problem =
      /Containers cannot reach the server, which listens only on 127\.0\.0\.1:\d+\. Set address to 0\.0\.0\.0/;
    expect(JSON.stringify(await loopback.admin.get<unknown>("/api/v2/debug/health"))).toMatch(problem);

    await using world = await openDockerWorld({ SLIPWAY_DOCKER_ACCESS_URL: "http://host.docker.internal:9" });
    const { admin, engine } = world;
    const agent = { name: "main", connection_timeout: 2 };
    const resources = [{ name: "box", docker: { image: IMAGE, stop_grace: 0 }, agents: [agent] }];
    const template = await makeTemplate(admin, JSON.stringify({ provisioner: "docker", resources }));
    const { id } = await createWorkspace(admin, template.id, "cut");
    await awaitWorkspace(admin, id, (workspace) => findAgent(workspace)?.status === "timeout");
    const query = { all: "true", filters: JSON.stringify({ label: [`slipway.workspace_id=${id}`] }) };
    const [box] = (await engine.json<{ Id: string }[]>("list", "GET", "/containers/json", { query })) ?? [];
    const message = await until(async () => {
      const text = await readContainerLog(box?.Id ?? "");
      return text.includes("is not reached") && text;
    });
    expect(message).toContain("http://host.docker.internal:9 is not reached: ");
    await deleteCompletely(world, id);
  },
);
