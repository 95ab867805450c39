// Finding, recreating and deleting devcontainers of a workspace. A program simulates the real command line tool.
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

const toPath = (suffix: string): string => setup.world.path(suffix);
const listDevcontainers = async (): Promise<Devcontainer[]> =>
  (await setup.world.owner.get<ContainerListing>(toPath("containers?label=none%3D"))).devcontainers;
const findDevcontainer = async (name: string): Promise<Devcontainer | undefined> =>
  (await listDevcontainers()).find((devcontainer) => devcontainer.name === name);
const findId = async (name: string): Promise<string> => (await findDevcontainer(name))?.id ?? "none";

const recreate = (id: string): Promise<Response> =>
  setup.world.owner.fetch("POST", toPath(`containers/devcontainers/${id}/recreate`));
const deleteDevcontainer = (id: string): Promise<Response> =>
  setup.world.owner.fetch("DELETE", toPath(`containers/devcontainers/${id}`));

/** Reads listings until this devcontainer matches. `matches` gets undefined if a listing does not contain it. */
const awaitListing = async (
  socket: ClientSocket,
  id: string,
  matches: (devcontainer: Devcontainer | undefined) => boolean,
): Promise<Devcontainer | undefined> => {
  for (;;) {
    const frame = await socket.next();
    if (frame === undefined) throw new Error("the stream ended");
    const devcontainer = (JSON.parse(String(frame)) as ContainerListing).devcontainers.find(
      (candidate) => candidate.id === id,
    );
    if (matches(devcontainer)) return devcontainer;
  }
};

const createLabels = (folder: string, config: string) => ({
  "devcontainer.local_folder": folder,
  "devcontainer.config_file": config,
});

describe("devcontainers", () => {
  test("[CO-7] are found by files in the agent's folder and by labels of containers, each once and with a unique name", async () => {
    const config = setup.write("Shop Front/.devcontainer/devcontainer.json", "{}");
    setup.write("other/.devcontainer.json", "{}");
    setup.write("node_modules/.devcontainer.json", "{}");
    setup.docker.put("mine", { labels: createLabels(join(setup.world.home, "Shop Front"), config) });
    setup.docker.put("far", {
      labels: createLabels("/elsewhere/shop-front", "/elsewhere/shop-front/.devcontainer.json"),
    });
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

  test("[CO-8] use the running container of a folder, else the newest, and are dirty if their file is newer", async () => {
    const config = setup.write("twice/.devcontainer.json", "{}");
    const labels = createLabels(join(setup.world.home, "twice"), config);
    setup.docker.put("newest", { created: 3_000, running: false, labels });
    const oldContainer = setup.docker.put("old", { created: 1_000, labels });
    setup.docker.put("older", { created: 500, running: false, labels });
    utimesSync(config, 900, 900);
    expect(await findDevcontainer("twice")).toMatchObject({
      status: "running",
      dirty: false,
      container: { name: "old" },
    });
    utimesSync(config, 2_000, 2_000);
    expect(await findDevcontainer("twice")).toMatchObject({ dirty: true });
    oldContainer.running = false;
    expect(await findDevcontainer("twice")).toMatchObject({
      status: "stopped",
      dirty: false,
      container: { name: "newest" },
    });
    rmSync(join(setup.world.home, "twice"), { recursive: true });
  });

  test("[CO-9] are recreated by the workspace's tool; until they run, other requests return 409", async () => {
    const config = setup.write("app/.devcontainer.json", "{}");
    setup.docker.put("before", { created: 1_000, labels: createLabels(join(setup.world.home, "app"), config) });
    const before = await findDevcontainer("app");
    expect(before).toMatchObject({ status: "running", dirty: true });
    const gate = Promise.withResolvers<void>();
    setup.docker.hold = (call) => (call === "POST /containers/create" ? gate.promise : undefined);
    using socket = await setup.world.owner.socket(toPath("containers/watch"));
    const response = await recreate(before?.id ?? "");
    expect([response.status, await response.json()]).toEqual([202, { message: expect.any(String) }]);
    expect(await findDevcontainer("app")).toMatchObject({ status: "starting" });
    const conflicts = await Promise.all([recreate(before?.id ?? ""), deleteDevcontainer(before?.id ?? "")]);
    expect(conflicts.map(({ status }) => status)).toEqual([409, 409]);
    gate.resolve();
    const after = await awaitListing(
      socket,
      before?.id ?? "",
      (devcontainer) => devcontainer?.status === "running" && !devcontainer.dirty,
    );
    expect(after?.container?.name).toMatch(/^made-/);
    expect(after).not.toHaveProperty("error");
  });

  test("[CO-9] are created once by simultaneous requests", async () => {
    setup.write("race/.devcontainer.json", "{}");
    const id = await findId("race");
    const gate = Promise.withResolvers<void>();
    setup.docker.hold = (call) => (call === "POST /containers/create" ? gate.promise : undefined);
    const responses = await Promise.all([recreate(id), recreate(id), recreate(id)]);
    expect(responses.map(({ status }) => status).sort()).toEqual([202, 409, 409]);
    using socket = await setup.world.owner.socket(toPath("containers/watch"));
    gate.resolve();
    await awaitListing(socket, id, (devcontainer) => devcontainer?.status === "running");
    expect(setup.docker.containers.size).toBe(1);
  });

  test("[CO-10] report a failure with the tool's message, and can be created again", async () => {
    setup.write("broken/.devcontainer.json", "{}");
    const flag = setup.write("broken/fail", "");
    const id = await findId("broken");
    using socket = await setup.world.owner.socket(toPath("containers/watch"));
    await recreate(id);
    const failed = await awaitListing(socket, id, (devcontainer) => devcontainer?.status === "error");
    expect(failed?.error).toBe("The image could not be built. no space left");
    rmSync(flag);
    await recreate(id);
    expect(await awaitListing(socket, id, (devcontainer) => devcontainer?.status === "running")).not.toHaveProperty(
      "error",
    );
  });

  test("[CO-17] keep their container if a lifecycle command fails, and log its output", async () => {
    setup.write("late/.devcontainer.json", "{}");
    setup.write("late/lifecycle", "");
    const id = await findId("late");
    using socket = await setup.world.owner.socket(toPath("containers/watch"));
    await recreate(id);
    const failed = await awaitListing(socket, id, (devcontainer) => devcontainer?.status === "error");
    expect(failed?.error).toBe("Command failed: exit 7 postCreateCommand failed.");
    expect(failed?.container?.running).toBe(true);
    const listLogLines = async () => {
      const logs = await setup.world.owner.get<{ output: string; level: string }[]>(toPath("logs"));
      return logs.map(({ level, output }) => `${level} ${output}`);
    };
    const lastLine = "error Devcontainer late: Command failed: exit 7 postCreateCommand failed.";
    await until(async () => (await listLogLines()).includes(lastLine));
    const lines = await listLogLines();
    expect(lines).toContain("info Devcontainer late: OOPS-reason");
    expect(lines.join("\n")).not.toContain("hidden");
  });

  test("[CO-11] are removed from the list when deleted, until their file changes; a failed delete shows an error", async () => {
    const config = setup.write("waste/.devcontainer.json", "{}");
    const container = setup.docker.put("made", { labels: createLabels(join(setup.world.home, "waste"), config) });
    const id = await findId("waste");
    setup.docker.refuse = (call) => (call.startsWith("DELETE") ? { status: 500, message: "device busy" } : undefined);
    const failedResponse = await deleteDevcontainer(id);
    expect([failedResponse.status, ((await failedResponse.json()) as Generic).message]).toEqual([
      500,
      expect.stringMatching(/device busy/),
    ]);
    expect(await findDevcontainer("waste")).toMatchObject({
      status: "error",
      error: expect.stringMatching(/device busy/),
    });
    setup.docker.refuse = () => undefined;
    container.running = true;
    expect((await deleteDevcontainer(id)).status).toBe(204);
    expect(setup.docker.calls.slice(-3)).toContain(`DELETE /containers/${container.id}`);
    expect(await findDevcontainer("waste")).toBeUndefined();
    expect((await deleteDevcontainer(id)).status).toBe(404);
    const futureSeconds = Date.now() / 1000 + 5;
    utimesSync(config, futureSeconds, futureSeconds);
    expect(await findDevcontainer("waste")).toMatchObject({ status: "stopped" });
  });

  test("[CO-12] can be changed only by people who can change the workspace; a missing one returns 404, an invalid ID 400", async () => {
    const member = await seedUser(setup.world.server, { organization_id: setup.world.seeded.organization_id });
    const id = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
    const fetchStatuses = (client: typeof setup.world.owner, devcontainer = id) =>
      Promise.all([
        client.fetch("POST", toPath(`containers/devcontainers/${devcontainer}/recreate`)),
        client.fetch("DELETE", toPath(`containers/devcontainers/${devcontainer}`)),
      ]).then((responses) => responses.map(({ status }) => status));
    expect(await fetchStatuses(setup.world.owner.withToken(member.token))).toEqual([404, 404]);
    expect(await fetchStatuses(setup.world.owner)).toEqual([404, 404]);
    expect(await fetchStatuses(setup.world.owner, "..%2F..%2Fcontainers")).toEqual([400, 400]);
    const { store } = getContext(setup.world.server);
    await store.commit([updateWorkspace(setup.world.seeded.workspace_id, { user_acl: { [member.user_id]: "use" } })]);
    expect(await fetchStatuses(setup.world.owner.withToken(member.token))).toEqual([403, 403]);
  });
});
