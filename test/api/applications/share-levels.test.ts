// How openly apps are shared that a program inside a workspace declares: never more than the template allows.

import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sha256, uuid } from "#base/ids.ts";
import type { WorkspaceAgent } from "#schema/agents/agent.ts";
import { forFile } from "#test/support/for-file.ts";
import { contextOf } from "#test/support/seed.ts";
import { startAgentProcess } from "../agents/reach.ts";
import { SUFFIX, startAppWorld } from "./app-world.ts";

const world = await forFile(
  startAppWorld({ apps: (port) => [{ slug: "declared", url: `http://localhost:${port}`, share: "public" }] }),
);

/** A dev container's agent with a public app, connected. */
const startChild = async () => {
  const [id, agent_token] = [uuid(), uuid()];
  const app = {
    command: "",
    display_name: "",
    external: false,
    group: "",
    hidden: false,
    icon: "",
    open_in: "tab",
    order: 0,
  };
  const healthcheck = { url: "", interval: 0, threshold: 0 };
  await contextOf(world.server).agents.ask(world.agent_id, "createSubAgent", {
    id,
    token_hash: sha256(agent_token),
    name: "child",
    directory: "",
    architecture: "amd64",
    operating_system: "linux",
    display_apps: [],
    apps: [
      {
        ...app,
        healthcheck,
        slug: "web",
        url: `http://localhost:${world.app.port}`,
        sharing_level: "public",
        subdomain: true,
      },
    ],
  });
  const home = mkdtempSync(join(tmpdir(), "slipway-home-"));
  const daemon = await startAgentProcess(world.server, { agent_id: id, agent_token }, home);
  return {
    id,
    async [Symbol.asyncDispose]() {
      await daemon[Symbol.asyncDispose]();
      rmSync(home, { recursive: true, force: true });
    },
  };
};

test("[AX-19] the app of a dev container is shared by host and by path as the template allows at most, at once", async () => {
  const { member, "site owner": admin } = world.cast.clients;
  const allow = (max_port_share_level: string) =>
    admin.patch<unknown>(`/api/v2/templates/${world.cast.template_id}`, { max_port_share_level });
  // The template's own app is shared as the template says.
  await allow("owner");
  expect((await world.get(world.path("declared"))).status).toBe(200);
  await allow("public");
  // The workspace's own daemon removes agents of dev containers that it does not know when it has connected.
  await world.daemon[Symbol.asyncDispose]();
  await using child = await startChild();
  const statuses = async (): Promise<number[]> => {
    const all: number[] = [];
    for (const token of [undefined, member.token, world.token]) {
      const below = await world.get("/@ada/dev.child/apps/web/", { token });
      const host = `web--child--dev--ada.${SUFFIX}`;
      const onHost = await world.get("/", { token, headers: { host } });
      expect(below.status).toBe(onHost.status);
      all.push(below.status);
    }
    return all;
  };
  const shown = async () =>
    (await world.owner.get<WorkspaceAgent>(`/api/v2/workspaceagents/${child.id}`)).apps[0]?.sharing_level;
  expect([await statuses(), await shown()]).toEqual([[200, 200, 200], "public"]);
  const open = await world.get("/@ada/dev.child/apps/web/events");
  const reader = open.body?.getReader();
  await reader?.read();
  await allow("authenticated");
  expect([await statuses(), await shown()]).toEqual([[401, 200, 200], "authenticated"]);
  const cut = async (): Promise<string> => {
    try {
      while (!(await reader?.read())?.done);
      return "ended";
    } catch {
      return "cut";
    }
  };
  expect(await cut()).toBe("cut");
  await allow("owner");
  expect([await statuses(), await shown()]).toEqual([[401, 404, 200], "owner"]);
  await allow("public");
  expect([await statuses(), await shown()]).toEqual([[200, 200, 200], "public"]);
}, 30_000);
