// Starts twenty kinds of repositories as containers of a real Docker Engine, several at a time on one server.
import { expect } from "bun:test";
import { systemClock } from "#base/clock.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { Engine } from "#src/provisioners/docker/engine.ts";
import { FeatureHost } from "#test/repositories/feature-host.ts";
import { LANGUAGE_IMAGES, listShapes, type Shape } from "#test/repositories/shapes.ts";
import { openGitWorld } from "#test/repositories/world.ts";
import { awaitAgent, findAgent, openDockerWorld, runInTerminal } from "#test/support/docker/docker-world.ts";
import { ALLOW_PRIVATE_NETWORKS, findGateway, makeGitImage, tagGitImage } from "#test/support/docker/git-image.ts";
import { compiled, needs, testNeeding } from "#test/support/needs.ts";
import { requireSingleServer } from "#test/support/one-server.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { awaitBuild, createBuild } from "#test/support/workspaces.ts";

/** The number of workspaces that are created in parallel, because the server reads at most this many repositories at a time. */
const MAX_PARALLEL = 4;

testNeeding(
  [needs.docker, needs.git, requireSingleServer("engine"), compiled],
  "[RW-2] [RW-7] [RW-13] twenty kinds of repositories start as containers with the configuration that they request",
  async () => {
    const engine = new Engine(needs.docker.file, systemClock);
    await engine.connect();
    await makeGitImage(engine);
    await using _names = await tagGitImage(engine, LANGUAGE_IMAGES);
    using git = openGitWorld(undefined, await findGateway(engine));
    using features = new FeatureHost();
    const metadata = { id: "tool", options: { color: { type: "string", default: "red" } } };
    const tool = await features.publish("acme/tool", metadata, '#!/bin/sh\necho "$COLOR" >/tool\n');
    await using world = await openDockerWorld({
      ...ALLOW_PRIVATE_NETWORKS,
      SLIPWAY_PROVISIONER_SLOTS: String(MAX_PARALLEL),
    });
    const { admin } = world;
    const allShapes = listShapes(tool);
    expect(allShapes.length).toBe(20);
    const results: Record<string, unknown> = {};
    const runShape = async ({ name, files, request, command, app }: Shape): Promise<void> => {
      await git.publish(name, files);
      const repository = { url: git.link(name), ...request };
      const { id } = await admin.post<Workspace>("/api/v2/users/me/workspaces", { name, repository });
      const { agent_id, workspace } = await awaitAgent(admin, id);
      const apps = findAgent(workspace)?.apps.map(({ display_name }) => display_name) ?? [];
      results[name] = [
        await runInTerminal(admin, agent_id, command),
        ...(app === undefined ? [] : [apps.includes(app)]),
      ];
      await createBuild(admin, id, "delete", { permanent: true });
      await awaitBuild(admin, id);
    };
    const pending = [...allShapes];
    const runShapes = async (): Promise<void> => {
      for (let shape = pending.shift(); shape; shape = pending.shift()) {
        const { name } = shape;
        await runShape(shape).catch((error) => {
          results[name] = (error as Error).message;
        });
      }
    };
    await Promise.all(Array.from({ length: MAX_PARALLEL }, runShapes));
    const expected = allShapes.map(({ name, output, app }) => [name, [output, ...(app === undefined ? [] : [true])]]);
    expect(results).toEqual(Object.fromEntries(expected));
  },
  scaleTimeout(300_000),
);
