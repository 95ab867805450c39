// A server with default settings as a separate process, and a workspace with its daemon, for load tests of apps.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { uuid } from "#base/ids.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { ServerSlot } from "#test/crash/server.ts";
import { toProgramCommand } from "#test/support/program.ts";
import { ADMIN } from "#test/support/server.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, createWorkspace } from "#test/support/workspaces.ts";
import type { Target } from "./load.ts";

export const openLoadWorld = async () => {
  const stack = new AsyncDisposableStack();
  const serverPlace = stack.use(await ServerSlot.make());
  const server = await serverPlace.start();
  const admin = await serverPlace.client.signIn(ADMIN.email, ADMIN.password);
  const token = uuid();
  const template = await makeTemplate(
    admin,
    JSON.stringify({ provisioner: "echo", resources: [{ name: "main", agents: [{ name: "main", token }] }] }),
    { name: "apps" },
  );
  const { id, owner_name } = await createWorkspace(admin, template.id, "dev");
  await awaitBuild(admin, id);
  const home = join(serverPlace.scratch, "home");
  mkdirSync(home);
  const daemon = Bun.spawn([...toProgramCommand(), "agent"], {
    env: {
      PATH: process.env.PATH ?? "",
      HOME: home,
      SHELL: "/bin/bash",
      TMPDIR: serverPlace.scratch,
      SLIPWAY_AGENT_TOKEN: token,
      SLIPWAY_AGENT_URL: `http://127.0.0.1:${serverPlace.port}`,
    },
    stdio: ["ignore", "ignore", "ignore"],
  });
  stack.defer(async () => {
    daemon.kill("SIGTERM");
    await daemon.exited;
  });
  await until(async () => {
    const { latest_build } = await admin.get<Workspace>(`/api/v2/workspaces/${id}`);
    return latest_build.resources[0]?.agents[0]?.status === "connected";
  });
  return {
    server,
    admin,
    home,
    daemon,
    pids: [server.child.pid, daemon.pid] as const,
    /**
     * Returns both routes to an app on a port of this machine: directly, and through the server. A default installation has hosts for apps
     * below apps.localhost.
     */
    sides: (port: number): { direct: Target; through: Target } => {
      const host = `${port}--main--dev--${owner_name}.apps.localhost:${serverPlace.port}`;
      return {
        // Both routes use the same host, as apps include it in their responses.
        direct: { origin: `http://127.0.0.1:${port}`, headers: { host } },
        through: {
          origin: `http://127.0.0.1:${serverPlace.port}`,
          headers: { host, "service-session-token": admin.token ?? "" },
        },
      };
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
};

/** Starts a program that prints the port on which it listens. */
export const startListening = async (command: string[]) => {
  const child = Bun.spawn(command, { stdout: "pipe", stderr: "inherit", stdin: "ignore" });
  let text = "";
  for await (const chunk of child.stdout) {
    text += new TextDecoder().decode(chunk);
    if (text.includes("\n")) break;
  }
  return {
    port: Number(/listening on (\d+)/.exec(text)?.[1]),
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
};
