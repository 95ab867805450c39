// Watchers of a workspace are notified of everything it shows: each member is changed at its source and checked on both streams.
import { expect, test } from "bun:test";
import { type Workspace as Shown, Workspace } from "#schema/workspaces/workspace.ts";
import { Watchers } from "#src/api/workspaces/watchers.ts";
import type { Client } from "#src/client.ts";
import { testInside } from "#test/support/inside.ts";
import { readEvents } from "#test/support/net/event-reader.ts";
import { getContext, seedUser } from "#test/support/seed.ts";
import { seedMany } from "#test/support/seed-many.ts";
import { importVersion, makeTemplate, uniqueText } from "#test/support/templates.ts";
import { makeKey, openWorker } from "#test/support/worker.ts";
import { awaitBuild, awaitWorkspace, createBuild, createWorkspace, ECHO, openWorld } from "#test/support/workspaces.ts";

const MANY = 500;
const TOKEN = "7f2c1c1e-6f3e-4c55-8f05-1f1c1c1c1c1c";
const APP = { slug: "code", healthcheck: { url: "http://localhost:1", interval: 5, threshold: 3 } };
const MANIFEST = {
  provisioner: "echo",
  resources: [{ name: "main", agents: [{ name: "dev", token: TOKEN, apps: [APP] }] }],
};

/** The owner, hal, has a running workspace in an organization of the template; the first user makes all other changes. */
const open = async () => {
  const world = await openWorld({ env: { SLIPWAY_ALLOW_WORKSPACE_RENAMES: "true" } });
  const template = await makeTemplate(world.admin, JSON.stringify(MANIFEST));
  const { organization_id } = template;
  const hal = await seedUser(world.server, { username: "hal", organization_id });
  const owner = world.admin.withToken(hal.token);
  const { id } = await createWorkspace(owner, template.id);
  const running = await awaitBuild(owner, id);
  return { ...world, template, owner, hal, id, running };
};
type World = Awaited<ReturnType<typeof open>>;

/** Reads server-sent events until the workspace matches. */
const awaitEvent = async (client: Client, id: string, first: () => void, when: (shown: Shown) => boolean) => {
  const abort = new AbortController();
  const response = await client.fetch("GET", `/api/v2/workspaces/${id}/watch`, undefined, { signal: abort.signal });
  for await (const { data } of readEvents<Shown>(response)) {
    if (!data) continue;
    first();
    if (when(data)) break;
  }
  abort.abort();
};

/** Makes the change once both streams have started, and waits until both have shown the result. */
const changeAndAwait = async (
  { owner, id }: World,
  change: () => Promise<unknown>,
  when: (shown: Shown) => boolean,
) => {
  const started = Promise.withResolvers<void>();
  const events = awaitEvent(owner, id, started.resolve, when);
  using socket = await owner.socket(`/api/v2/workspaces/${id}/watch-ws`);
  const nextShown = async (): Promise<Shown> => {
    for (;;) {
      const { type, data } = await socket.json<{ type: string; data: Shown }>();
      if (type === "data") return data;
    }
  };
  const before = await nextShown();
  await started.promise;
  if (when(before)) throw new Error("the condition holds before the change");
  await change();
  while (!when(await nextShown()));
  await events;
};

const patchTemplate =
  (body: object) =>
  ({ admin, template }: World) =>
    admin.patch(`/api/v2/templates/${template.id}`, body);
const putWorkspace =
  (path: string, body: object) =>
  ({ owner, id }: World) =>
    owner.put<unknown>(`/api/v2/workspaces/${id}/${path}`, body);

type Story = readonly [change: (world: World) => Promise<unknown>, when: (shown: Shown, world: World) => boolean];

/** Creates a version of the same template that is not active yet. */
const importAnother = ({ admin, template }: World) =>
  importVersion(admin, uniqueText() + JSON.stringify(MANIFEST), { template_id: template.id });
const activate: Story[0] = async (world) => {
  const { id } = await importAnother(world);
  await world.admin.patch(`/api/v2/templates/${world.template.id}/versions`, { id });
};
const rename = (name: string, username: string) => (world: World) =>
  world.admin.put(`/api/v2/users/${name}/profile`, { username, name: "" });

/** Members that never change, or change only when a prebuilt workspace is claimed (PB-9). */
type FixedMember = "id" | "created_at" | "owner_id" | "organization_id" | "template_id" | "is_prebuild" | "task_id";
/** A process setting, and a URL that no operation sets. */
type Set = "allow_renames" | "owner_avatar_url";
/** Updated with every minute of use: watchers see it with the next change (README of the API). */
type DelayedMember = "last_used_at";

const STORIES: Record<Exclude<keyof Shown, FixedMember | Set | DelayedMember>, readonly Story[]> = {
  updated_at: [
    [
      ({ owner, id }) => owner.patch(`/api/v2/workspaces/${id}`, { name: "newer" }),
      (w, { running }) => w.updated_at !== running.updated_at,
    ],
  ],
  name: [
    [({ owner, id }) => owner.patch(`/api/v2/workspaces/${id}`, { name: "other" }), ({ name }) => name === "other"],
  ],
  owner_name: [[rename("hal", "hall"), ({ owner_name }) => owner_name === "hall"]],
  organization_name: [
    [
      ({ admin, running }) => admin.patch(`/api/v2/organizations/${running.organization_id}`, { name: "acme" }),
      ({ organization_name }) => organization_name === "acme",
    ],
  ],
  template_name: [[patchTemplate({ name: "renamed" }), (w) => w.template_name === "renamed"]],
  template_display_name: [[patchTemplate({ display_name: "New" }), (w) => w.template_display_name === "New"]],
  template_icon: [
    [
      patchTemplate({ icon: "/icon/i.svg" }),
      (w) => w.template_icon === "/icon/i.svg" && w.latest_build.job.metadata.template_icon === "/icon/i.svg",
    ],
  ],
  template_allow_user_cancel_workspace_jobs: [
    [patchTemplate({ allow_user_cancel_workspace_jobs: false }), (w) => !w.template_allow_user_cancel_workspace_jobs],
  ],
  template_require_active_version: [
    [patchTemplate({ require_active_version: true }), (w) => w.template_require_active_version],
  ],
  template_use_classic_parameter_flow: [
    [patchTemplate({ use_classic_parameter_flow: false }), (w) => !w.template_use_classic_parameter_flow],
  ],
  template_active_version_id: [
    [activate, (w, { template }) => w.template_active_version_id !== template.active_version_id],
  ],
  outdated: [[activate, ({ outdated }) => outdated]],
  latest_build: [
    [({ owner, id }) => createBuild(owner, id, "stop"), ({ latest_build }) => latest_build.status === "stopped"],
    [
      ({ admin, template }) =>
        admin.patch(`/api/v2/templateversions/${template.active_version_id}`, { name: "second" }),
      ({ latest_build }) => latest_build.template_version_name === "second",
    ],
    [
      async ({ admin, id, owner }) => {
        await admin.post(`/api/v2/workspaces/${id}/builds`, { transition: "start" });
        await awaitBuild(owner, id);
        await admin.put("/api/v2/users/me/profile", { username: "chief", name: "" });
      },
      ({ latest_build }) => latest_build.initiator_name === "chief",
    ],
  ],
  latest_app_status: [
    [
      ({ admin }) =>
        admin.withToken(TOKEN).patch("/api/v2/workspaceagents/me/app-status", {
          app_slug: "code",
          state: "working",
          message: "m",
          uri: "",
        }),
      ({ latest_app_status }) => latest_app_status?.message === "m",
    ],
  ],
  health: [
    [
      async ({ running, server }) => {
        const [agent] = running.latest_build.resources.flatMap(({ agents }) => agents);
        await getContext(server).agents.ask(agent?.id ?? "", "reportLifecycle", { state: "start_error" });
      },
      ({ health }) => !health.healthy && health.failing_agents.length === 1,
    ],
  ],
  autostart_schedule: [
    [putWorkspace("autostart", { schedule: "CRON_TZ=UTC 30 9 * * 1-5" }), (w) => w.autostart_schedule !== undefined],
  ],
  next_start_at: [
    [putWorkspace("autostart", { schedule: "CRON_TZ=UTC 30 9 * * *" }), (w) => w.next_start_at !== undefined],
    [
      async (world) => {
        await putWorkspace("autostart", { schedule: "CRON_TZ=UTC 30 9 * * *" })(world);
        await patchTemplate({ autostart_requirement: { days_of_week: ["sunday"] } })(world);
      },
      (w) => w.next_start_at !== undefined && new Date(w.next_start_at).getUTCDay() === 0,
    ],
  ],
  ttl_ms: [
    [putWorkspace("ttl", { ttl_ms: 7_200_000 }), ({ ttl_ms }) => ttl_ms === 7_200_000],
    [patchTemplate({ allow_user_autostop: false, default_ttl_ms: 10_800_000 }), ({ ttl_ms }) => ttl_ms === 10_800_000],
  ],
  dormant_at: [[putWorkspace("dormant", { dormant: true }), ({ dormant_at }) => dormant_at !== undefined]],
  deleting_at: [
    [
      async (world) => {
        await putWorkspace("dormant", { dormant: true })(world);
        await patchTemplate({ time_til_dormant_autodelete_ms: 86_400_000, delete_ttl_ms: 86_400_000 })(world);
      },
      ({ deleting_at }) => deleting_at !== undefined,
    ],
  ],
  automatic_updates: [
    [putWorkspace("autoupdates", { automatic_updates: "always" }), (w) => w.automatic_updates === "always"],
  ],
  favorite: [[putWorkspace("favorite", {}), ({ favorite }) => favorite]],
  shared_with: [
    [
      async (world) => {
        const { user_id } = await seedUser(world.server, {
          username: "guest",
          organization_id: world.running.organization_id,
        });
        await world.owner.patch(`/api/v2/workspaces/${world.id}/acl`, { user_roles: { [user_id]: "use" } });
      },
      ({ shared_with }) => shared_with.some(({ name }) => name === "guest"),
    ],
  ],
};

for (const [member, stories] of Object.entries(STORIES)) {
  for (const [i, [change, when]] of stories.entries()) {
    testInside(`[WK-28] watchers are notified of ${member}${i === 0 ? "" : `, case ${i + 1}`}`, async () => {
      await using world = await open();
      await changeAndAwait(
        world,
        () => change(world),
        (shown) => when(shown, world),
      );
    });
  }
}

testInside("[WK-28] watchers are notified when a person it is shared with is renamed or deleted", async () => {
  await using world = await open();
  const { admin, owner, id, server, running } = world;
  const { user_id } = await seedUser(server, { username: "guest", organization_id: running.organization_id });
  await owner.patch(`/api/v2/workspaces/${id}/acl`, { user_roles: { [user_id]: "use" } });
  const names = ({ shared_with }: Shown): string => shared_with.map(({ name }) => name).join();
  await changeAndAwait(
    world,
    () => rename("guest", "ghost")(world),
    (shown) => names(shown) === "ghost",
  );
  await changeAndAwait(
    world,
    () => admin.delete(`/api/v2/users/${user_id}`),
    (shown) => names(shown) === "",
  );
});

test("[WK-28] a waiting workspace shows its queue position and new workers, and its watchers are notified of both", async () => {
  await using world = await openWorld({ env: { SLIPWAY_PROVISIONER_SLOTS: "1" } });
  const { admin, server } = world;
  const hanging = await makeTemplate(admin, JSON.stringify({ ...ECHO, echo: { hang: true } }));
  const [first, second, third] = [
    await createWorkspace(admin, hanging.id, "first"),
    await createWorkspace(admin, hanging.id, "second"),
    await createWorkspace(admin, hanging.id, "third"),
  ];
  const awaitPosition = (at: number) =>
    awaitWorkspace(admin, third.id, (w) => w.latest_build.job.queue_position === at);
  await awaitPosition(2);
  const moved = awaitPosition(1);
  await admin.patch(`/api/v2/workspacebuilds/${first.latest_build.id}/cancel`);
  await moved;
  const thirdStarts = awaitWorkspace(admin, third.id, (w) => w.latest_build.status === "starting");
  await admin.patch(`/api/v2/workspacebuilds/${second.latest_build.id}/cancel`);
  await thirdStarts;
  await admin.patch(`/api/v2/workspacebuilds/${third.latest_build.id}/cancel`);
  const outside = { ...ECHO, provisioner: "external", external: { provisioner: "echo" } };
  const { id: elsewhere } = await makeTemplate(admin, JSON.stringify(outside));
  const { key } = await makeKey(admin);
  const farWorkspace = await createWorkspace(admin, elsewhere, "far");
  const workers = (count: number) =>
    awaitWorkspace(admin, farWorkspace.id, ({ latest_build: { job } }) => job.available_workers.length === count);
  await workers(0);
  const changes = workers(1);
  const { socket } = await openWorker(server.url, key, { name: "remote" });
  await changes;
  const withoutWorkers = workers(0);
  socket[Symbol.dispose]();
  await withoutWorkers;
});

testInside(
  "[WK-29] a change that hundreds of watched workspaces show reaches each of them without blocking the event loop",
  async () => {
    await using world = await openWorld();
    const { admin, server } = world;
    const context = getContext(server);
    const many = await seedMany(context.store, context.clock.now(), { workspaces: MANY, templates: 1 });
    const [template_id = ""] = many.templates;
    const watchers = new Watchers(context);
    const names = new Map<string, string>();
    const first = Promise.withResolvers<void>();
    const allRenamed = Promise.withResolvers<void>();
    const renamed = new Set<string>();
    const viewer = { user_id: template_id, compat: false };
    for (const id of many.workspaces) {
      watchers.watch(id, {
        viewer,
        onData: (json) => {
          names.set(id, (JSON.parse(json) as Shown).template_name);
          if (names.size === MANY) first.resolve();
          // Once a second, the clock checks the times of workspaces whose template has changed, and some are sent again.
          if (names.get(id) === "renamed" && renamed.add(id).size === MANY) allRenamed.resolve();
        },
        onError: () => allRenamed.reject(new Error(`${id} cannot be read`)),
      });
    }
    await first.promise;
    let turns = 0;
    let isOver = false;
    const turn = (): void => {
      turns += 1;
      if (!isOver) setImmediate(turn);
    };
    turn();
    await admin.patch(`/api/v2/templates/${template_id}`, { name: "renamed" });
    await allRenamed.promise;
    isOver = true;
    expect(turns).toBeGreaterThan(MANY / 2);
  },
);

test("[WK-28] every member of a workspace has its test here, or its reason", () => {
  const fixed: Record<FixedMember | Set | DelayedMember, true> = {
    id: true,
    created_at: true,
    owner_id: true,
    organization_id: true,
    template_id: true,
    is_prebuild: true,
    task_id: true,
    allow_renames: true,
    owner_avatar_url: true,
    last_used_at: true,
  };
  expect(Object.keys(Workspace.properties).sort()).toEqual([...Object.keys(STORIES), ...Object.keys(fixed)].sort());
});
