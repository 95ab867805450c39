// A running workspace from a repository without Docker, with a real git host, a real clone and real commands.
import { expect } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Task } from "#schema/tasks/task.ts";
import type { RecentRepository } from "#schema/templates/repository.ts";
import type { Template } from "#schema/templates/template.ts";
import type { Workspace, Workspaces } from "#schema/workspaces/workspace.ts";
import type { Client } from "#src/client.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { requireSingleServer } from "#test/support/one-server.ts";
import { seedUser } from "#test/support/seed.ts";
import { awaitBuild, awaitWorkspace, createBuild, openWorld } from "#test/support/workspaces.ts";
import { openGitWorld, removeWorkspace } from "./world.ts";

const findAgent = ({ latest_build }: Workspace) => latest_build.resources[0]?.agents?.[0];
const isReady = (workspace: Workspace): boolean => findAgent(workspace)?.lifecycle_state === "ready";

const DEVCONTAINER = JSON.stringify({
  name: "Everything",
  image: "debian:13",
  initializeCommand: "touch /tmp/never",
  containerEnv: { COLOR: "blue" },
  remoteEnv: { WHERE: `\${containerWorkspaceFolder}/bin` },
  onCreateCommand: "echo create >>order",
  updateContentCommand: ["sh", "-c", "echo content >>order"],
  postCreateCommand: { first: "sleep 0.1; echo first >>side", second: "echo second >>side" },
  postStartCommand: 'echo "start $COLOR $WHERE" >>order',
  waitFor: "postStartCommand",
  forwardPorts: [3000],
  portsAttributes: { "3000": { label: "Web" } },
});

testNeeding(
  [needs.git, requireSingleServer("local")],
  "[RW-6] [RW-7] [RW-19] [ID-28] a workspace from a link has a clone with submodules, runs the commands in order, and shows ports as apps",
  async () => {
    using git = openGitWorld();
    await git.publish("lib", { "lib.txt": "lib" });
    const app = await git.publish("app", { "README.md": "app", ".devcontainer/devcontainer.json": DEVCONTAINER });
    app.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", git.getBareFolder("lib"), "lib");
    app.git("config", "-f", ".gitmodules", "submodule.lib.url", "../lib.git");
    app.git("add", ".gitmodules");
    app.git("commit", "-q", "-m", "with a submodule");
    app.git("push", "-q", "hosted", "main");
    await using world = await openWorld();
    const { admin } = world;
    const created = await admin.post<Workspace>("/api/v2/users/me/workspaces", {
      name: "app",
      repository: { url: git.link("app") },
    });
    expect(created.template_name).toBe("repository-local");
    const ready = await awaitWorkspace(admin, created.id, isReady);
    expect(findAgent(ready)?.apps.map(({ slug, display_name }) => [slug, display_name])).toEqual([
      ["port-3000", "Web"],
    ]);
    const home = join(world.server.directory, "workspaces", created.id, "home");
    const clone = join(home, "app");
    const readFile = (path: string): string => readFileSync(join(clone, path), "utf8");
    expect([readFile("README.md"), readFile("lib/lib.txt")]).toEqual(["app", "lib"]);
    expect(readFile("order").split("\n")).toEqual(["create", "content", `start blue ${clone}/bin`, ""]);
    expect(readFile("side").split("\n").sort()).toEqual(["", "first", "second"]);
    expect(existsSync("/tmp/never")).toBe(false);
    const logs = await admin.get<{ output: string }[]>(`/api/v2/workspacebuilds/${created.latest_build.id}/logs`);
    const output = logs.map(({ output }) => output).join("\n");
    for (const message of ["initializeCommand. Would run on the server's machine.", "image. Needs a container"]) {
      expect(output).toContain(message);
    }

    writeFileSync(join(clone, "README.md"), "changed");
    await createBuild(admin, created.id, "stop");
    await awaitBuild(admin, created.id);
    await createBuild(admin, created.id, "start");
    await awaitWorkspace(
      admin,
      created.id,
      (workspace) => workspace.latest_build.build_number === 3 && isReady(workspace),
    );
    expect(readFile("order").match(/create|content|start/g)).toEqual(["create", "content", "start", "start"]);
    expect(readFile("README.md")).toBe("changed");
    const templates = await admin.get<Template[]>("/api/v2/templates");
    expect(templates.filter(({ name }) => name.startsWith("repository")).length).toBe(1);
    const listRecent = () => admin.get<RecentRepository[]>("/api/v2/repositories");
    const workspace = { id: created.id, name: "app" };
    expect(await listRecent()).toMatchObject([{ repository: { url: git.link("app") }, name: "app", workspace }]);
    const { token } = await seedUser(world.server, { username: "ada", organization_id: created.organization_id });
    expect(await admin.withToken(token).get<RecentRepository[]>("/api/v2/repositories")).toEqual([]);
    await removeWorkspace(admin, created.id);
    const [recent] = await listRecent();
    expect([recent?.repository.url, recent?.workspace]).toEqual([git.link("app"), undefined]);

    // A task can also use a repository.
    const task = await admin.post<Task>("/api/v2/tasks/me", { input: "hello", repository: { url: git.link("lib") } });
    expect(task.template_name).toBe("repository-local");
    const { workspaces } = await admin.get<Workspaces>("/api/v2/workspaces");
    const built = await awaitBuild(admin, workspaces[0]?.id ?? "");
    const { key } = await admin.post<{ key: string }>(`/api/v2/workspaceagents/${findAgent(built)?.id}/keys`);
    const listWith = async (client: Client): Promise<string[]> =>
      (await client.get<RecentRepository[]>("/api/v2/repositories")).map(({ repository }) => repository.url);
    expect((await listWith(admin)).toSorted()).toEqual([git.link("app"), git.link("lib")]);
    expect(await listWith(admin.withToken(key))).toEqual([git.link("lib")]);
    for (const { id } of workspaces) await removeWorkspace(admin, id);
  },
);
