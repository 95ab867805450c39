// The template's maximum share level limits the share levels of apps, whether the template or a program in the workspace declares them.

import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sha256, uuid } from "#base/ids.ts";
import type { WorkspaceAgent } from "#schema/agents/agent.ts";
import { forFile } from "#test/support/for-file.ts";
import { getContext } from "#test/support/seed.ts";
import { startAgentProcess } from "../agents/reach.ts";
import { SUFFIX, startAppWorld } from "./app-world.ts";

const world = await forFile(
  startAppWorld({ apps: (port) => [{ slug: "declared", url: `http://localhost:${port}`, share: "public" }] }),
);

/** Starts the agent of a dev container with a public app, and waits until it has connected. */
const startChild = async () => {
  const [id, agent_token] = [uuid(), uuid()];
  const appDefaults = {
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
  await getContext(world.server).agents.ask(world.agent_id, "createSubAgent", {
    id,
    token_hash: sha256(agent_token),
    name: "child",
    directory: "",
    architecture: "amd64",
    operating_system: "linux",
    display_apps: [],
    apps: [
      {
        ...appDefaults,
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

const setMaxShareLevel = (max_port_share_level: string) =>
  world.shared.clients["site owner"].patch<unknown>(`/api/v2/templates/${world.shared.template_id}`, {
    max_port_share_level,
  });

test("[AX-19] lowering the template's maximum restricts the template's app and ends open connections", async () => {
  const fetchStatuses = async (): Promise<number[]> => {
    const onHost = await world.get("/", { headers: { host: `declared--dev--dev--ada.${SUFFIX}` } });
    return [(await world.get(world.path("declared"))).status, onHost.status];
  };
  const getSharingLevel = async () =>
    (await world.owner.get<WorkspaceAgent>(`/api/v2/workspaceagents/${world.agent_id}`)).apps[0]?.sharing_level;
  const reader = (await world.get(world.path("declared", "/events"))).body?.getReader();
  await reader?.read();
  expect([await fetchStatuses(), await getSharingLevel()]).toEqual([[200, 200], "public"]);
  await setMaxShareLevel("authenticated");
  expect([await fetchStatuses(), await getSharingLevel()]).toEqual([[401, 401], "authenticated"]);
  expect(await readToEnd(reader)).toBe("cut");
  await setMaxShareLevel("public");
  expect([await fetchStatuses(), await getSharingLevel()]).toEqual([[200, 200], "public"]);
});

/** Returns how a stream ends. */
const readToEnd = async (reader: { read(): Promise<{ done: boolean }> } | undefined): Promise<string> => {
  try {
    while (!(await reader?.read())?.done);
    return "ended";
  } catch {
    return "cut";
  }
};

test("[AX-19] lowering the template's maximum restricts a dev container's app by host and by path", async () => {
  const { member } = world.shared.clients;
  // Otherwise the workspace's daemon would delete dev container agents that it does not know.
  await world.daemon[Symbol.asyncDispose]();
  await using child = await startChild();
  const fetchStatuses = async (): Promise<number[]> => {
    const statuses: number[] = [];
    for (const token of [undefined, member.token, world.token]) {
      const byPath = await world.get("/@ada/dev.child/apps/web/", { token });
      const host = `web--child--dev--ada.${SUFFIX}`;
      const onHost = await world.get("/", { token, headers: { host } });
      expect(byPath.status).toBe(onHost.status);
      statuses.push(byPath.status);
    }
    return statuses;
  };
  const getSharingLevel = async () =>
    (await world.owner.get<WorkspaceAgent>(`/api/v2/workspaceagents/${child.id}`)).apps[0]?.sharing_level;
  expect([await fetchStatuses(), await getSharingLevel()]).toEqual([[200, 200, 200], "public"]);
  const eventsResponse = await world.get("/@ada/dev.child/apps/web/events");
  const reader = eventsResponse.body?.getReader();
  await reader?.read();
  await setMaxShareLevel("authenticated");
  expect([await fetchStatuses(), await getSharingLevel()]).toEqual([[401, 200, 200], "authenticated"]);
  expect(await readToEnd(reader)).toBe("cut");
  await setMaxShareLevel("owner");
  expect([await fetchStatuses(), await getSharingLevel()]).toEqual([[401, 404, 200], "owner"]);
  await setMaxShareLevel("public");
  expect([await fetchStatuses(), await getSharingLevel()]).toEqual([[200, 200, 200], "public"]);
});
