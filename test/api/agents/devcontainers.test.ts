// Devcontainers of a workspace: found, recreated, changed and deleted, with a program that simulates the real command line tool.
import { beforeEach, describe, expect, test } from "bun:test";
import { rmSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { updateWorkspace } from "#db/workspaces/workspaces.ts";
import type { Generic } from "#schema/generic.ts";
import type { ContainerListing, Devcontainer } from "#schema/workspaces/container.ts";
import type { ClientSocket } from "#src/client.ts";
import { forFile } from "#test/support/for-file.ts";
import { contextOf, seedUser } from "#test/support/seed.ts";
import { until } from "#test/support/until.ts";
import { startContainerWorld } from "./containers-world.ts";

const at = await forFile(startContainerWorld());
beforeEach(() => {
  at.docker.containers.clear();
  at.docker.hold = () => undefined;
  at.docker.refuse = () => undefined;
});

const path = (rest: string): string => at.world.path(rest);
const listed = async (): Promise<Devcontainer[]> =>
  (await at.world.owner.get<ContainerListing>(path("containers?label=none%3D"))).devcontainers;
const named = async (name: string): Promise<Devcontainer | undefined> =>
  (await listed()).find((one) => one.name === name);
const idOf = async (name: string): Promise<string> => (await named(name))?.id ?? "none";

const recreate = (id: string): Promise<Response> =>
  at.world.owner.fetch("POST", path(`containers/devcontainers/${id}/recreate`));
const remove = (id: string): Promise<Response> =>
  at.world.owner.fetch("DELETE", path(`containers/devcontainers/${id}`));

/** Reads listings until this devcontainer matches; undefined waits until it is gone. */
const listedUntil = async (
  socket: ClientSocket,
  id: string,
  wanted: (one: Devcontainer | undefined) => boolean,
): Promise<Devcontainer | undefined> => {
  for (;;) {
    const frame = await socket.next();
    if (frame === undefined) throw new Error("the stream ended");
    const found = (JSON.parse(String(frame)) as ContainerListing).devcontainers.find((one) => one.id === id);
    if (wanted(found)) return found;
  }
};

const labels = (folder: string, config: string) => ({
  "devcontainer.local_folder": folder,
  "devcontainer.config_file": config,
});

describe("devcontainers", () => {
  test("[CO-7] are found by their files in the agent's folder and by the labels of containers, each once, with their own names", async () => {
    const config = at.write("Shop Front/.devcontainer/devcontainer.json", "{}");
    at.write("other/.devcontainer.json", "{}");
    at.write("node_modules/.devcontainer.json", "{}");
    at.docker.put("mine", { labels: labels(join(at.world.home, "Shop Front"), config) });
    at.docker.put("far", { labels: labels("/elsewhere/shop-front", "/elsewhere/shop-front/.devcontainer.json") });
    const found = await listed();
    expect(found.map(({ name, status }) => [name, status]).sort()).toEqual([
      ["other", "stopped"],
      ["shop-front", "running"],
      ["shop-front-2", "running"],
    ]);
    expect(found.map(({ workspace_folder }) => workspace_folder)).toEqual(
      found.map(({ workspace_folder }) => workspace_folder).toSorted(),
    );
    expect(found.find(({ config_path }) => config_path === config)).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      name: expect.any(String),
      workspace_folder: join(at.world.home, "Shop Front"),
      config_path: config,
      status: "running",
      dirty: false,
      container: expect.objectContaining({ name: "mine" }),
      subagent_id: { uuid: "00000000-0000-0000-0000-000000000000", valid: false },
    });
    expect(await listed()).toEqual(found);
    rmSync(join(at.world.home, "Shop Front"), { recursive: true });
    rmSync(join(at.world.home, "other"), { recursive: true });
  });

  test("[CO-8] if a folder has two containers the running one is used, else the newest; one whose file has changed since is dirty", async () => {
    const config = at.write("twice/.devcontainer.json", "{}");
    const place = labels(join(at.world.home, "twice"), config);
    at.docker.put("newest", { created: 3_000, running: false, labels: place });
    const old = at.docker.put("old", { created: 1_000, labels: place });
    at.docker.put("older", { created: 500, running: false, labels: place });
    utimesSync(config, 900, 900);
    expect(await named("twice")).toMatchObject({ status: "running", dirty: false, container: { name: "old" } });
    utimesSync(config, 2_000, 2_000);
    expect(await named("twice")).toMatchObject({ dirty: true });
    old.running = false;
    expect(await named("twice")).toMatchObject({ status: "stopped", dirty: false, container: { name: "newest" } });
    rmSync(join(at.world.home, "twice"), { recursive: true });
  });

  test("[CO-9] are recreated by the workspace's own tool: starting, then running and clean; meanwhile everything else is 409", async () => {
    const config = at.write("app/.devcontainer.json", "{}");
    at.docker.put("before", { created: 1_000, labels: labels(join(at.world.home, "app"), config) });
    const before = await named("app");
    expect(before).toMatchObject({ status: "running", dirty: true });
    const gate = Promise.withResolvers<void>();
    at.docker.hold = (call) => (call === "POST /containers/create" ? gate.promise : undefined);
    using socket = await at.world.owner.socket(path("containers/watch"));
    const answer = await recreate(before?.id ?? "");
    expect([answer.status, await answer.json()]).toEqual([202, { message: expect.any(String) }]);
    expect(await named("app")).toMatchObject({ status: "starting" });
    const both = await Promise.all([recreate(before?.id ?? ""), remove(before?.id ?? "")]);
    expect(both.map(({ status }) => status)).toEqual([409, 409]);
    gate.resolve();
    const after = await listedUntil(socket, before?.id ?? "", (one) => one?.status === "running" && !one.dirty);
    expect(after?.container?.name).toMatch(/^made-/);
    expect(after).not.toHaveProperty("error");
  });

  test("[CO-9] two simultaneous requests create it once", async () => {
    at.write("race/.devcontainer.json", "{}");
    const id = await idOf("race");
    const gate = Promise.withResolvers<void>();
    at.docker.hold = (call) => (call === "POST /containers/create" ? gate.promise : undefined);
    const asked = await Promise.all([recreate(id), recreate(id), recreate(id)]);
    expect(asked.map(({ status }) => status).sort()).toEqual([202, 409, 409]);
    using socket = await at.world.owner.socket(path("containers/watch"));
    gate.resolve();
    await listedUntil(socket, id, (one) => one?.status === "running");
    expect(at.docker.containers.size).toBe(1);
  });

  test("[CO-10] a failure is reported in the tool's own words, and the next attempt may succeed", async () => {
    at.write("broken/.devcontainer.json", "{}");
    const flag = at.write("broken/fail", "");
    const id = await idOf("broken");
    using socket = await at.world.owner.socket(path("containers/watch"));
    await recreate(id);
    const failed = await listedUntil(socket, id, (one) => one?.status === "error");
    expect(failed?.error).toBe("The image could not be built. no space left");
    rmSync(flag);
    await recreate(id);
    expect(await listedUntil(socket, id, (one) => one?.status === "running")).not.toHaveProperty("error");
  });

  test("[CO-17] a failing lifecycle command keeps the container, and its output is in the workspace's log", async () => {
    at.write("late/.devcontainer.json", "{}");
    at.write("late/lifecycle", "");
    const id = await idOf("late");
    using socket = await at.world.owner.socket(path("containers/watch"));
    await recreate(id);
    const failed = await listedUntil(socket, id, (one) => one?.status === "error");
    expect(failed?.error).toBe("Command failed: exit 7 postCreateCommand failed.");
    expect(failed?.container?.running).toBe(true);
    const printed = async () => {
      const logs = await at.world.owner.get<{ output: string; level: string }[]>(path("logs"));
      return logs.map(({ level, output }) => `${level} ${output}`);
    };
    const last = "error Devcontainer late: Command failed: exit 7 postCreateCommand failed.";
    await until(async () => (await printed()).includes(last));
    const lines = await printed();
    expect(lines).toContain("info Devcontainer late: OOPS-reason");
    expect(lines.join("\n")).not.toContain("hidden");
  });

  test("[CO-11] a deleted one is stopped, removed and not listed, until its file changes; a failure leaves it in error", async () => {
    const config = at.write("waste/.devcontainer.json", "{}");
    const made = at.docker.put("made", { labels: labels(join(at.world.home, "waste"), config) });
    const id = await idOf("waste");
    at.docker.refuse = (call) => (call.startsWith("DELETE") ? { status: 500, message: "device busy" } : undefined);
    const failed = await remove(id);
    expect([failed.status, ((await failed.json()) as Generic).message]).toEqual([
      500,
      expect.stringMatching(/device busy/),
    ]);
    expect(await named("waste")).toMatchObject({ status: "error", error: expect.stringMatching(/device busy/) });
    at.docker.refuse = () => undefined;
    made.running = true;
    expect((await remove(id)).status).toBe(204);
    expect(at.docker.calls.slice(-3)).toContain(`DELETE /containers/${made.id}`);
    expect(await named("waste")).toBeUndefined();
    expect((await remove(id)).status).toBe(404);
    const later = Date.now() / 1000 + 5;
    utimesSync(config, later, later);
    expect(await named("waste")).toMatchObject({ status: "stopped" });
  });

  test("[CO-12] can be changed only by people who may change the workspace; a missing one is 404, an invalid ID 400", async () => {
    const member = await seedUser(at.world.server, { organization_id: at.world.seeded.organization_id });
    const id = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
    const calls = (client: typeof at.world.owner, devcontainer = id) =>
      Promise.all([
        client.fetch("POST", path(`containers/devcontainers/${devcontainer}/recreate`)),
        client.fetch("DELETE", path(`containers/devcontainers/${devcontainer}`)),
      ]).then((all) => all.map(({ status }) => status));
    expect(await calls(at.world.owner.as(member.token))).toEqual([404, 404]);
    expect(await calls(at.world.owner)).toEqual([404, 404]);
    expect(await calls(at.world.owner, "..%2F..%2Fcontainers")).toEqual([400, 400]);
    const { store } = contextOf(at.world.server);
    await store.commit([updateWorkspace(at.world.seeded.workspace_id, { user_acl: { [member.user_id]: "use" } })]);
    expect(await calls(at.world.owner.as(member.token))).toEqual([403, 403]);
  });
});
