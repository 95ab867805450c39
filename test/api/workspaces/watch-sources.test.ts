// Watchers of a workspace are notified of everything that it shows: each test changes a member at its source and checks both streams.
import { expect, test } from "bun:test";
import { type Workspace as Shown, Workspace } from "#schema/workspaces/workspace.ts";
import { Watchers } from "#src/api/workspaces/watchers.ts";
import type { Client } from "#src/client.ts";
import { testInProcess } from "#test/support/in-process.ts";
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

/** Starts a server on which hal owns a running workspace; the first user makes all other changes. */
const openWatchWorld = async () => {
  const world = await openWorld({ env: { SLIPWAY_ALLOW_WORKSPACE_RENAMES: "true" } });
  const template = await makeTemplate(world.admin, JSON.stringify(MANIFEST));
  const { organization_id } = template;
  const hal = await seedUser(world.server, { username: "hal", organization_id });
  const owner = world.admin.withToken(hal.token);
  const { id } = await createWorkspace(owner, template.id);
  const running = await awaitBuild(owner, id);
  return { ...world, template, owner, hal, id, running };
};
type World = Awaited<ReturnType<typeof openWatchWorld>>;

/** Reads server-sent events until the workspace matches. */
const awaitEvent = async (client: Client, id: string, onFirst: () => void, matches: (shown: Shown) => boolean) => {
  const abort = new AbortController();
  const response = await client.fetch("GET", `/api/v2/workspaces/${id}/watch`, undefined, { signal: abort.signal });
  for await (const { data } of readEvents<Shown>(response)) {
    if (!data) continue;
    onFirst();
    if (matches(data)) break;
  }
  abort.abort();
};

/** Makes the change when both streams have started, and waits until both have shown the result. */
const changeAndAwait = async (
  { owner, id }: World,
  change: () => Promise<unknown>,
  matches: (shown: Shown) => boolean,
) => {
  const started = Promise.withResolvers<void>();
  const events = awaitEvent(owner, id, started.resolve, matches);
  using socket = await owner.socket(`/api/v2/workspaces/${id}/watch-ws`);
  const nextShown = async (): Promise<Shown> => {
    for (;;) {
      const { type, data } = await socket.json<{ type: string; data: Shown }>();
      if (type === "data") return data;
    }
  };
  const before = await nextShown();
  await started.promise;
  if (matches(before)) throw new Error("the condition is already true before the change");
  await change();
  while (!matches(await nextShown()));
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

type ChangeCase = readonly [
  change: (world: World) => Promise<unknown>,
  matches: (shown: Shown, world: World) => boolean,
];

/** Imports a version of the same template without promoting it. */
const importNextVersion = ({ admin, template }: World) =>
  importVersion(admin, uniqueText() + JSON.stringify(MANIFEST), { template_id: template.id });
const promoteNextVersion: ChangeCase[0] = async (world) => {
  const { id } = await importNextVersion(world);
  await world.admin.patch(`/api/v2/templates/${world.template.id}/versions`, { id });
};
const rename = (name: string, username: string) => (world: World) =>
  world.admin.put(`/api/v2/users/${name}/profile`, { username, name: "" });

/** Members that never change, or change only when a prebuilt workspace is claimed (PB-9). */
type FixedMember = "id" | "created_at" | "owner_id" | "organization_id" | "template_id" | "is_prebuild" | "task_id";
/** A setting of the process, and a URL that no API call sets. */
type UnsetMember = "allow_renames" | "owner_avatar_url";
/** Updated with every minute of use: watchers see it with the next change (README of the API). */
type DelayedMember = "last_used_at";

const CASES: Record<Exclude<keyof Shown, FixedMember | UnsetMember | DelayedMember>, readonly ChangeCase[]> = {
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
    [promoteNextVersion, (w, { template }) => w.template_active_version_id !== template.active_version_id],
  ],
  outdated: [[promoteNextVersion, ({ outdated }) => outdated]],
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

for (const [member, cases] of Object.entries(CASES)) {
  for (const [i, [change, matches]] of cases.entries()) {
    testInProcess(`[WK-28] watchers are notified of ${member}${i === 0 ? "" : `, case ${i + 1}`}`, async () => {
      await using world = await openWatchWorld();
      await changeAndAwait(
        world,
        () => change(world),
        (shown) => matches(shown, world),
      );
    });
  }
}

testInProcess(
  "[WK-28] watchers are notified when a person with whom the workspace is shared is renamed or deleted",
  async () => {
    await using world = await openWatchWorld();
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
  },
);

test("[WK-28] watchers of a waiting workspace are notified of its queue position and of new workers", async () => {
  await using world = await openWorld({ env: { SLIPWAY_PROVISIONER_SLOTS: "1" } });
  const { admin, server } = world;
  const hanging = await makeTemplate(admin, JSON.stringify({ ...ECHO, echo: { hang: true } }));
  const [first, second, third] = [
    await createWorkspace(admin, hanging.id, "first"),
    await createWorkspace(admin, hanging.id, "second"),
    await createWorkspace(admin, hanging.id, "third"),
  ];
  const awaitPosition = (position: number) =>
    awaitWorkspace(admin, third.id, (w) => w.latest_build.job.queue_position === position);
  await awaitPosition(2);
  const firstInQueue = awaitPosition(1);
  await admin.patch(`/api/v2/workspacebuilds/${first.latest_build.id}/cancel`);
  await firstInQueue;
  const thirdStarts = awaitWorkspace(admin, third.id, (w) => w.latest_build.status === "starting");
  await admin.patch(`/api/v2/workspacebuilds/${second.latest_build.id}/cancel`);
  await thirdStarts;
  await admin.patch(`/api/v2/workspacebuilds/${third.latest_build.id}/cancel`);
  const externalManifest = { ...ECHO, provisioner: "external", external: { provisioner: "echo" } };
  const { id: externalTemplateId } = await makeTemplate(admin, JSON.stringify(externalManifest));
  const { key } = await makeKey(admin);
  const externalWorkspace = await createWorkspace(admin, externalTemplateId, "far");
  const awaitWorkers = (count: number) =>
    awaitWorkspace(admin, externalWorkspace.id, ({ latest_build: { job } }) => job.available_workers.length === count);
  await awaitWorkers(0);
  const oneWorker = awaitWorkers(1);
  const { socket } = await openWorker(server.url, key, { name: "remote" });
  await oneWorker;
  const noWorkers = awaitWorkers(0);
  socket[Symbol.dispose]();
  await noWorkers;
});

testInProcess(
  "[WK-29] a change to hundreds of watched workspaces reaches each watcher without blocking the event loop",
  async () => {
    await using world = await openWorld();
    const { admin, server } = world;
    const context = getContext(server);
    const seeded = await seedMany(context.store, context.clock.now(), { workspaces: MANY, templates: 1 });
    const [template_id = ""] = seeded.templates;
    const watchers = new Watchers(context);
    const names = new Map<string, string>();
    const allLoaded = Promise.withResolvers<void>();
    const allRenamed = Promise.withResolvers<void>();
    const renamed = new Set<string>();
    const viewer = { user_id: template_id, compat: false };
    for (const id of seeded.workspaces) {
      watchers.watch(id, {
        viewer,
        onData: (json) => {
          names.set(id, (JSON.parse(json) as Shown).template_name);
          if (names.size === MANY) allLoaded.resolve();
          // The server may send a workspace more than once, because it also recomputes times after a change of the template.
          if (names.get(id) === "renamed" && renamed.add(id).size === MANY) allRenamed.resolve();
        },
        onError: () => allRenamed.reject(new Error(`${id} cannot be read`)),
      });
    }
    await allLoaded.promise;
    let turns = 0;
    let isOver = false;
    const countTurn = (): void => {
      turns += 1;
      if (!isOver) setImmediate(countTurn);
    };
    countTurn();
    await admin.patch(`/api/v2/templates/${template_id}`, { name: "renamed" });
    await allRenamed.promise;
    isOver = true;
    expect(turns).toBeGreaterThan(MANY / 2);
  },
);

test("[WK-28] every member of a workspace has a test here or is listed as an exception", () => {
  const fixed: Record<FixedMember | UnsetMember | DelayedMember, true> = {
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
  expect(Object.keys(Workspace.properties).sort()).toEqual([...Object.keys(CASES), ...Object.keys(fixed)].sort());
});
