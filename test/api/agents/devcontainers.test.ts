// Devcontainers of a workspace: found, recreated, changed and deleted, with a program that simulates the real command line tool.
import { beforeEach, describe, expect, test } from "bun:test";
import { rmSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { updateWorkspace } from "#db/workspaces/workspaces.ts";
import type { Generic } from "#schema/generic.ts";
import type { ContainerListing, Devcontainer } from "#schema/workspaces/container.ts";
import type { ClientSocket } from "#src/client.ts";
import { forFile } from "#test/support/for-file.ts";
import { getContext, seedUser } from "#test/support/seed.ts";
import { until } from "#test/support/until.ts";
import { startContainerWorld } from "./containers-world.ts";

const setup = await forFile(startContainerWorld());
beforeEach(() => {
  setup.docker.containers.clear();
  setup.docker.hold = () => undefined;
  setup.docker.refuse = () => undefined;
});

const path = (rest: string): string => setup.world.path(rest);
const listDevcontainers = async (): Promise<Devcontainer[]> =>
  (await setup.world.owner.get<ContainerListing>(path("containers?label=none%3D"))).devcontainers;
const findDevcontainer = async (name: string): Promise<Devcontainer | undefined> =>
  (await listDevcontainers()).find((one) => one.name === name);
const findId = async (name: string): Promise<string> => (await findDevcontainer(name))?.id ?? "none";

const recreate = (id: string): Promise<Response> =>
  setup.world.owner.fetch("POST", path(`containers/devcontainers/${id}/recreate`));
const remove = (id: string): Promise<Response> =>
  setup.world.owner.fetch("DELETE", path(`containers/devcontainers/${id}`));

/** Reads listings until this devcontainer matches; `wanted` gets undefined if the listing does not contain it. */
const awaitListing = async (
  socket: ClientSocket,
  id: string,
  wanted: (one: Devcontainer | undefined) => boolean,
): Promise<Devcontainer | undefined> => {
  for (;;) {
    const frame = await socket.next();
    if (frame === undefined) throw new Error("the stream ended");
    const devcontainer = (JSON.parse(String(frame)) as ContainerListing).devcontainers.find((one) => one.id === id);
    if (wanted(devcontainer)) return devcontainer;
  }
};

const labels = (folder: string, config: string) => ({
  "devcontainer.local_folder": folder,
  "devcontainer.config_file": config,
});

describe("devcontainers", () => {
  test("[CO-7] are found by their files in the agent's folder and by the labels of containers, each once, with their own names", async () => {
    const config = setup.write("Shop Front/.devcontainer/devcontainer.json", "{}");
    setup.write("other/.devcontainer.json", "{}");
    setup.write("node_modules/.devcontainer.json", "{}");
    setup.docker.put("mine", { labels: labels(join(setup.world.home, "Shop Front"), config) });
    setup.docker.put("far", { labels: labels("/elsewhere/shop-front", "/elsewhere/shop-front/.devcontainer.json") });
    const devcontainers = await listDevcontainers();
    expect(devcontainers.map(({ name, status }) => [name, status]).sort()).toEqual([
      ["other", "stopped"],
      ["shop-front", "running"],
      ["shop-front-2", "running"],
    ]);
    expect(devcontainers.map(({ workspace_folder }) => workspace_folder)).toEqual(
      devcontainers.map(({ workspace_folder }) => workspace_folder).toSorted(),
    );
    expect(devcontainers.find(({ config_path }) => config_path === config)).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      name: expect.any(String),
      workspace_folder: join(setup.world.home, "Shop Front"),
      config_path: config,
      status: "running",
      dirty: false,
      container: expect.objectContaining({ name: "mine" }),
      subagent_id: { uuid: "00000000-0000-0000-0000-000000000000", valid: false },
    });
    expect(await listDevcontainers()).toEqual(devcontainers);
    rmSync(join(setup.world.home, "Shop Front"), { recursive: true });
    rmSync(join(setup.world.home, "other"), { recursive: true });
  });

  test("[CO-8] if a folder has two containers the running one is used, else the newest; one whose file has changed since is dirty", async () => {
    const config = setup.write("twice/.devcontainer.json", "{}");
    const container = labels(join(setup.world.home, "twice"), config);
    setup.docker.put("newest", { created: 3_000, running: false, labels: container });
    const old = setup.docker.put("old", { created: 1_000, labels: container });
    setup.docker.put("older", { created: 500, running: false, labels: container });
    utimesSync(config, 900, 900);
    expect(await findDevcontainer("twice")).toMatchObject({
      status: "running",
      dirty: false,
      container: { name: "old" },
    });
    utimesSync(config, 2_000, 2_000);
    expect(await findDevcontainer("twice")).toMatchObject({ dirty: true });
    old.running = false;
    expect(await findDevcontainer("twice")).toMatchObject({
      status: "stopped",
      dirty: false,
      container: { name: "newest" },
    });
    rmSync(join(setup.world.home, "twice"), { recursive: true });
  });

  test("[CO-9] are recreated by the workspace's own tool: starting, then running and clean; until then other requests return 409", async () => {
    const config = setup.write("app/.devcontainer.json", "{}");
    setup.docker.put("before", { created: 1_000, labels: labels(join(setup.world.home, "app"), config) });
    const before = await findDevcontainer("app");
    expect(before).toMatchObject({ status: "running", dirty: true });
    const gate = Promise.withResolvers<void>();
    setup.docker.hold = (call) => (call === "POST /containers/create" ? gate.promise : undefined);
    using socket = await setup.world.owner.socket(path("containers/watch"));
    const answer = await recreate(before?.id ?? "");
    expect([answer.status, await answer.json()]).toEqual([202, { message: expect.any(String) }]);
    expect(await findDevcontainer("app")).toMatchObject({ status: "starting" });
    const both = await Promise.all([recreate(before?.id ?? ""), remove(before?.id ?? "")]);
    expect(both.map(({ status }) => status)).toEqual([409, 409]);
    gate.resolve();
    const after = await awaitListing(socket, before?.id ?? "", (one) => one?.status === "running" && !one.dirty);
    expect(after?.container?.name).toMatch(/^made-/);
    expect(after).not.toHaveProperty("error");
  });

  test("[CO-9] two simultaneous requests create it once", async () => {
    setup.write("race/.devcontainer.json", "{}");
    const id = await findId("race");
    const gate = Promise.withResolvers<void>();
    setup.docker.hold = (call) => (call === "POST /containers/create" ? gate.promise : undefined);
    const requested = await Promise.all([recreate(id), recreate(id), recreate(id)]);
    expect(requested.map(({ status }) => status).sort()).toEqual([202, 409, 409]);
    using socket = await setup.world.owner.socket(path("containers/watch"));
    gate.resolve();
    await awaitListing(socket, id, (one) => one?.status === "running");
    expect(setup.docker.containers.size).toBe(1);
  });

  test("[CO-10] a failure is reported in the tool's own words, and the next attempt may succeed", async () => {
    setup.write("broken/.devcontainer.json", "{}");
    const flag = setup.write("broken/fail", "");
    const id = await findId("broken");
    using socket = await setup.world.owner.socket(path("containers/watch"));
    await recreate(id);
    const failed = await awaitListing(socket, id, (one) => one?.status === "error");
    expect(failed?.error).toBe("The image could not be built. no space left");
    rmSync(flag);
    await recreate(id);
    expect(await awaitListing(socket, id, (one) => one?.status === "running")).not.toHaveProperty("error");
  });

  test("[CO-17] a failing lifecycle command keeps the container, and its output is in the workspace's log", async () => {
    setup.write("late/.devcontainer.json", "{}");
    setup.write("late/lifecycle", "");
    const id = await findId("late");
    using socket = await setup.world.owner.socket(path("containers/watch"));
    await recreate(id);
    const failed = await awaitListing(socket, id, (one) => one?.status === "error");
    expect(failed?.error).toBe("Command failed: exit 7 postCreateCommand failed.");
    expect(failed?.container?.running).toBe(true);
    const listLogLines = async () => {
      const logs = await setup.world.owner.get<{ output: string; level: string }[]>(path("logs"));
      return logs.map(({ level, output }) => `${level} ${output}`);
    };
    const last = "error Devcontainer late: Command failed: exit 7 postCreateCommand failed.";
    await until(async () => (await listLogLines()).includes(last));
    const lines = await listLogLines();
    expect(lines).toContain("info Devcontainer late: OOPS-reason");
    expect(lines.join("\n")).not.toContain("hidden");
  });

  test("[CO-11] a deleted one is stopped, removed and not listed, until its file changes; a failure leaves it in error", async () => {
    const config = setup.write("waste/.devcontainer.json", "{}");
    const built = setup.docker.put("made", { labels: labels(join(setup.world.home, "waste"), config) });
    const id = await findId("waste");
    setup.docker.refuse = (call) => (call.startsWith("DELETE") ? { status: 500, message: "device busy" } : undefined);
    const failed = await remove(id);
    expect([failed.status, ((await failed.json()) as Generic).message]).toEqual([
      500,
      expect.stringMatching(/device busy/),
    ]);
    expect(await findDevcontainer("waste")).toMatchObject({
      status: "error",
      error: expect.stringMatching(/device busy/),
    });
    setup.docker.refuse = () => undefined;
    built.running = true;
    expect((await remove(id)).status).toBe(204);
    expect(setup.docker.calls.slice(-3)).toContain(`DELETE /containers/${built.id}`);
    expect(await findDevcontainer("waste")).toBeUndefined();
    expect((await remove(id)).status).toBe(404);
    const later = Date.now() / 1000 + 5;
    utimesSync(config, later, later);
    expect(await findDevcontainer("waste")).toMatchObject({ status: "stopped" });
  });

  test("[CO-12] can be changed only by people who may change the workspace; a missing one is 404, an invalid ID 400", async () => {
    const member = await seedUser(setup.world.server, { organization_id: setup.world.seeded.organization_id });
    const id = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
    const calls = (client: typeof setup.world.owner, devcontainer = id) =>
      Promise.all([
        client.fetch("POST", path(`containers/devcontainers/${devcontainer}/recreate`)),
        client.fetch("DELETE", path(`containers/devcontainers/${devcontainer}`)),
      ]).then((all) => all.map(({ status }) => status));
    expect(await calls(setup.world.owner.withToken(member.token))).toEqual([404, 404]);
    expect(await calls(setup.world.owner)).toEqual([404, 404]);
    expect(await calls(setup.world.owner, "..%2F..%2Fcontainers")).toEqual([400, 400]);
    const { store } = getContext(setup.world.server);
    await store.commit([updateWorkspace(setup.world.seeded.workspace_id, { user_acl: { [member.user_id]: "use" } })]);
    expect(await calls(setup.world.owner.withToken(member.token))).toEqual([403, 403]);
  });
});
