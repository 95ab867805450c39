// A shard's activity while it moves between nodes: two contexts on one database, with shards that the test moves by hand.
import { expect } from "bun:test";
import { toShard } from "#base/shards.ts";
import { listOwnDueTimers } from "#db/due-timers.ts";
import { clearTimer, setTimer } from "#db/engine/timers.ts";
import { OwnRows } from "#db/own-rows.ts";
import { findDefaultOrganization } from "#db/users/organizations.ts";
import type { Build } from "#schema/workspaces/build.ts";
import { Client } from "#src/client.ts";
import { openContext } from "#src/context/open.ts";
import { createChat, Follower } from "#test/support/chats.ts";
import { MovableShards } from "#test/support/cluster/movable-shards.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { ScriptedModels } from "#test/support/models/scripted-models.ts";
import { getContext, seedUser } from "#test/support/seed.ts";
import { tempDirectory, testConfig } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { createWorkspace, ECHO, openWorld, seedTemplate } from "#test/support/workspaces.ts";

/** Opens a server with all shards, and the context of a second node without shards. */
const openNodes = async () => {
  const models = new ScriptedModels();
  const [firstShards, secondShards] = [new MovableShards(), new MovableShards([])];
  const world = await openWorld({ models, shards: firstShards });
  const first = getContext(world.server);
  const { store, clock } = first;
  await first.adoptShards(Array.from({ length: 256 }, (_, shard) => shard));
  const directory = tempDirectory();
  const second = await openContext({
    config: testConfig(directory.path),
    store,
    clock,
    models,
    shards: secondShards,
  });
  return {
    ...world,
    first,
    second,
    store,
    models,
    async move(shards: readonly number[]): Promise<void> {
      firstShards.drop(shards);
      await first.releaseShards(shards);
      secondShards.add(shards);
      await second.adoptShards(shards);
    },
    async [Symbol.asyncDispose]() {
      await second.drain();
      await world[Symbol.asyncDispose]();
      directory[Symbol.dispose]();
    },
  };
};

/** Creates a user in a shard that is neither the first nor one of these. */
const seedUserOutside = async (server: Parameters<typeof seedUser>[0], shards: readonly number[]) => {
  for (;;) {
    const user = await seedUser(server);
    if (![0, ...shards].includes(toShard(user.user_id))) return user;
  }
};

testInProcess(
  "[CP-50] when a shard moves, its work ends silently and continues on the new node; everything else is unaffected",
  async () => {
    await using nodes = await openNodes();
    const { admin, server, models, first, second } = nodes;
    const me = await admin.get<{ id: string }>("/api/v2/users/me");
    const organization = await nodes.store.get(findDefaultOrganization());
    const ownWorld = { owner: admin, organization_id: organization?.id ?? "" };
    const other = await seedUserOutside(server, [toShard(me.id)]);
    const otherWorld = { owner: new Client(server.url, other.token), organization_id: other.organization_id };

    const [stayingChat, movingChat] = [await createChat(otherWorld, "stay"), await createChat(ownWorld, "go")];
    const calls = [await models.next(), await models.next()];
    const { template_id } = await seedTemplate(server, { ...ECHO, echo: { hang: true } });
    const { latest_build } = await createWorkspace(admin, template_id);
    const getJob = async () => (await admin.get<Build>(`/api/v2/workspacebuilds/${latest_build.id}`)).job;
    await until(async () => (await getJob()).status === "running");
    using follower = await Follower.open(admin, movingChat.id);
    await follower.until(({ status }) => status === "running");

    await nodes.move([toShard(me.id)]);
    expect((await follower.closed).code).toBe(1001);
    expect(first.generations.hasActiveTurn(movingChat.id)).toBe(false);
    expect(first.jobs.has(latest_build.job.id)).toBe(false);
    expect(first.generations.hasActiveTurn(stayingChat.id)).toBe(true);
    expect(second.generations.hasActiveTurn(movingChat.id)).toBe(true);
    await until(() => second.jobs.has(latest_build.job.id));
    expect((await getJob()).status).toBe("running");

    const movedCall = await models.next();
    expect(movedCall.prompt).toBe("go");
    movedCall.say("there").finish();
    calls
      .find(({ prompt }) => prompt === "stay")
      ?.say("here")
      .finish();
    const isIdle = async (client: Client, id: string) =>
      (await client.get<{ status: string }>(`/api/v2/chats/${id}`)).status === "waiting";
    await until(async () => (await isIdle(admin, movingChat.id)) && (await isIdle(otherWorld.owner, stayingChat.id)));
  },
);

testInProcess(
  "[CP-51] a node delivers the timers of its own actors, and the first node also timers that belong to no shard",
  async () => {
    await using nodes = await openNodes();
    const { admin, server, store, models } = nodes;
    const { id: user_id } = await admin.get<{ id: string }>("/api/v2/users/me");
    const organization = await store.get(findDefaultOrganization());
    const chat = await createChat({ owner: admin, organization_id: organization?.id ?? "" });
    (await models.next()).finish();
    const { template_id, version_id } = await seedTemplate(server);
    const workspace = await createWorkspace(admin, template_id);
    const task = await admin.post<{ id: string; workspace_id: string }>("/api/v2/tasks/me", {
      template_version_id: version_id,
      input: "work",
    });
    const PAST = -1_000;
    // No scheduler runs timers here.
    nodes.first.scheduler.stop();
    const timers = [
      ["workspace", workspace.id],
      ["chat", chat.id],
      ["chat_diff", chat.id],
      ["task", task.id],
      ["template_version", version_id],
      ["prebuilds", template_id],
      ["workspace", "gone"],
    ] as const;
    await store.commit(timers.map(([actor, id]) => setTimer(actor, id, "tried", PAST)));
    const listDueTimers = async (shards?: readonly number[]) =>
      (await store.all(listOwnDueTimers({ now: PAST }, new OwnRows(shards))))
        .map(({ actor, actor_id }) => `${actor} ${actor_id}`)
        .sort();
    const formatTimers = (...indexes: number[]) =>
      indexes.map((index) => (timers[index] as readonly string[]).join(" ")).sort();
    expect(await listDueTimers()).toEqual(formatTimers(0, 1, 2, 3, 4, 5, 6));
    // IDs are random: the user's shard, and the version's, may be shard 0.
    const ownTimers = (await listDueTimers([toShard(user_id)])).filter(
      (timer) => !timer.startsWith("template_version"),
    );
    expect(ownTimers).toEqual(formatTimers(0, 1, 2, 3, ...(toShard(user_id) === 0 ? [5, 6] : [])));
    expect(await listDueTimers([0])).toContain(`prebuilds ${template_id}`);
    expect(await listDueTimers([0])).toContain("workspace gone");
    await store.commit(timers.map(([actor, id]) => clearTimer(actor, id, "tried")));
  },
);
