// The unchanged example of docs/templates-terraform.md, in which Terraform starts a workspace in a container with Docker's command line. Runs
// on a real engine, from the first start to the deletion.
import { expect } from "bun:test";
import { readFileSync } from "node:fs";
import { Client } from "#src/client.ts";
import { awaitAgent, BINARY, findAgent, IMAGE, runInTerminal } from "#test/support/docker/docker-world.ts";
import { compiled, needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { ADMIN } from "#test/support/server.ts";
import { makeTerraformTemplate, openTerraformWorld } from "#test/support/terraform.ts";
import { awaitWorkspace, createBuild, createWorkspace } from "#test/support/workspaces.ts";

const PAGE = new URL("../../docs/templates-terraform.md", import.meta.url);

/** Returns the page's first code block after this mark. */
const readExample = (mark: string): string => {
  const page = readFileSync(PAGE, "utf8");
  const block = page.slice(page.indexOf(mark)).match(/```hcl\n([\s\S]*?)```/)?.[1];
  if (!page.includes(mark) || !block) throw new Error(`the page has no example ${mark}`);
  return block;
};

/** The same image under another name. */
const OTHER_IMAGE = `${IMAGE}-other`;

testNeeding(
  [compiled, needs.docker, needs.terraform],
  "[TF-21] the documented container template runs a workspace, starts it with another image, keeps its home, and removes everything",
  async () => {
    const environment = { DOCKER_HOST: needs.docker.file };
    const env = { ...environment, SLIPWAY_ADDRESS: "0.0.0.0:0", SLIPWAY_AGENT_BINARY: BINARY };
    await using world = await openTerraformWorld({ environment, env });
    const url = new URL(world.server.url);
    url.hostname = "127.0.0.1";
    const admin = await new Client(url).signIn(ADMIN.email, ADMIN.password);
    const docker = async (...args: string[]): Promise<string[]> => {
      const child = Bun.spawn(["docker", ...args], { env: { PATH: process.env.PATH ?? "", ...environment } });
      return (await new Response(child.stdout).text()).split("\n").filter((line) => line !== "");
    };
    const countLeftovers = async (id: string): Promise<number[]> => [
      (await docker("ps", "--all", "--quiet", "--filter", `name=${id}`)).length,
      (await docker("volume", "ls", "--quiet", "--filter", `name=${id}`)).length,
    ];
    const mainFile = readExample("<!-- tried: containers by the docker command -->");
    const { template } = await makeTerraformTemplate(admin, { "main.tf": mainFile }, "containers");
    const withOption = {
      name: "rude",
      template_id: template.id,
      rich_parameter_values: [{ name: "image", value: "--privileged" }],
    };
    expect((await admin.fetch("POST", "/api/v2/users/me/workspaces", withOption)).status).toBe(400);
    const rich_parameter_values = [{ name: "image", value: IMAGE }];
    const { id } = await createWorkspace(admin, template.id, "boxed", { rich_parameter_values });
    const { agent_id, workspace } = await awaitAgent(admin, id);
    expect(await countLeftovers(id)).toEqual([1, 1]);
    const message = await runInTerminal(admin, agent_id, 'id -un; hostname; echo kept > "$HOME/kept"');
    expect(message.split(/\s+/)[0]).toBe("dev");
    // The output comes from the container, not from this machine.
    expect((await docker("ps", "--quiet", "--filter", `name=${id}`))[0]).toBe(message.split(/\s+/)[1] ?? "");
    const logs = await admin.get<{ output: string }[]>(`/api/v2/workspacebuilds/${workspace.latest_build.id}/logs`);
    const [token] = await docker("exec", `workspace-${id}`, "sh", "-c", "tr '\\0' '\\n' < /proc/1/environ");
    expect(JSON.stringify(logs)).not.toContain(token?.match(/[0-9a-f-]{36}/)?.[0] ?? "none");

    const buildAndWait = async (transition: "stop" | "start" | "delete", options: object = {}) => {
      await createBuild(admin, id, transition, options);
      return awaitWorkspace(admin, id, ({ latest_build }) => !["pending", "running"].includes(latest_build.job.status));
    };
    const stopped = await buildAndWait("stop");
    expect([stopped.latest_build.status, await countLeftovers(id)]).toEqual(["stopped", [0, 1]]);
    await docker("tag", IMAGE, OTHER_IMAGE);
    await buildAndWait("start", { rich_parameter_values: [{ name: "image", value: OTHER_IMAGE }] });
    const running = await docker("inspect", "--format", "{{.Config.Image}}", `workspace-${id}`);
    expect(running).toEqual([OTHER_IMAGE]);
    const second = await awaitAgent(admin, id);
    expect(second.agent_id).not.toBe(agent_id);
    expect(findAgent(second.workspace)?.name).toBe("main");
    expect(await runInTerminal(admin, second.agent_id, 'cat "$HOME/kept"')).toBe("kept");
    const deleted = await buildAndWait("delete");
    expect([deleted.latest_build.status, deleted.latest_build.job.error, await countLeftovers(id)]).toEqual([
      "deleted",
      undefined,
      [0, 0],
    ]);
  },
  scaleTimeout(240_000),
);
