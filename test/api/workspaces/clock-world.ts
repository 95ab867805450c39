// A server whose clock the test controls, with one owner whose session does not expire: for tests of automatic actions.
import { uuid } from "#base/ids.ts";
import { listDueTimers } from "#db/engine/timers.ts";
import type { insertTemplate } from "#db/templates/templates.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import type { WorkspaceActivity } from "#schema/workspaces/schedule.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { ApiError, type Client } from "#src/client.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { getContext, seedUser } from "#test/support/seed.ts";
import type { TestServerOptions } from "#test/support/server.ts";
import { awaitBuild, createBuild, createWorkspace, ECHO, openWorld, seedTemplate } from "#test/support/workspaces.ts";

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

type Columns = Partial<Parameters<typeof insertTemplate>[0] & { template_id: string }>;
type Options = TestServerOptions & { at?: string; template?: Columns; manifest?: Manifest; clock?: ManualClock };

/** Starts a server at the time `at`, with a template that has these settings and with its user ada. */
export const openClockWorld = async ({ at = "2030-01-01T12:00:00Z", template, manifest, ...options }: Options = {}) => {
  const clock = options.clock ?? new ManualClock(Date.parse(at));
  const world = await openWorld({ ...options, clock });
  const { server, admin } = world;
  const { store, scheduler, uses } = getContext(server);
  const seeded = await seedTemplate(server, manifest ?? ECHO, template);
  const { template_id, organization_id } = seeded;
  const ada = await seedUser(server, { username: "ada", organization_id });
  await store.commit([{ sql: "update api_keys set expires_at = 9e15", rows: [[]] }]);
  const owner = admin.withToken(ada.token);

  /** Processes everything that is due now. */
  const settle = async (): Promise<void> => {
    await uses.flush();
    for (let tries = 0; tries < 1000; tries++) {
      if ((await store.all(listDueTimers({ now: clock.now() }))).length === 0) return;
      await scheduler.tick();
      await nextTick();
    }
    throw new Error("some timers are still due after 1000 ticks");
  };
  return {
    ...seeded,
    world,
    server,
    clock,
    admin,
    owner,
    owner_id: ada.user_id,
    owner_token: ada.token,
    settle,
    /** Advances the clock and processes everything due. With a workspace ID, also waits for its build. */
    advance: async (ms: number, id?: string): Promise<Workspace | undefined> => {
      clock.leap(ms);
      await settle();
      return id === undefined ? undefined : awaitBuild(owner, id);
    },
    /** Creates a workspace of ada and waits for its first build. */
    make: async (more: object = {}): Promise<Workspace> => {
      const { id } = await createWorkspace(owner, template_id, `w-${uuid().slice(0, 8)}`, more);
      return awaitBuild(owner, id);
    },
    runBuild: async (id: string, transition: string): Promise<Workspace> => {
      await createBuild(owner, id, transition);
      return transition === "delete" ? awaitDeleted(owner, id) : awaitBuild(owner, id);
    },
    loadActivity: (id: string) => owner.get<WorkspaceActivity>(`/api/v2/workspaces/${id}/activity`),
    /** Returns the due times of the workspace's schedule timers. */
    listTimers: async (id: string): Promise<string[]> => {
      const timers = await store.all(listDueTimers({ now: 9e15 }));
      return timers
        .filter(({ actor_id, name }) => actor_id === id && name === "schedule")
        .map(({ due }) => new Date(due).toISOString());
    },
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  };
};
export type ClockWorld = Awaited<ReturnType<typeof openClockWorld>>;

/** Yields to other tasks. */
const nextTick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Polls until the workspace is deleted, because a deleted workspace cannot be watched. */
export const awaitDeleted = async (client: Client, id: string): Promise<Workspace> => {
  for (;;) {
    const workspace = await client.get<Workspace>(`/api/v2/workspaces/${id}?include_deleted=true`);
    if (workspace.latest_build.status === "deleted") return workspace;
    await nextTick();
  }
};

/** Returns "ok", or the status and the invalid fields of the error response. */
export const awaitOutcome = async (call: Promise<unknown>): Promise<string> => {
  try {
    await call;
    return "ok";
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const fields = (error.body.validations ?? []).map(({ field }) => field);
    return [error.status, ...fields].join(" ");
  }
};

export const toWorkspacePath = ({ id }: Pick<Workspace, "id">, suffix = ""): string =>
  `/api/v2/workspaces/${id}${suffix}`;
export const read = (client: Client, workspace: Pick<Workspace, "id">) =>
  client.get<Workspace>(toWorkspacePath(workspace));
/** Truncates a time to the minute. */
export const toMinute = (time: string | undefined): string | undefined => time?.slice(0, 16);
