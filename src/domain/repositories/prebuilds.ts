// Repository prebuilds: adding, listing, and push events (rules IB-4 to IB-9). The keeper in actors/image-prebuilds runs the builds. A
// repository is read as the person who added it, with their current rights.
import { IMAGE_CHECK_TIMER, IMAGE_PREBUILD, type ImagePrebuildDeps } from "#actors/image-prebuilds/keeper.ts";
import { toRfc3339 } from "#base/clock.ts";
import { AppError, conflict, forbidden, invalidField, notFound } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import type { Statement } from "#db/engine/sql.ts";
import { CommitError } from "#db/engine/store.ts";
import { clearTimer, setTimer } from "#db/engine/timers.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import {
  countRepositoryPrebuilds,
  deleteRepositoryPrebuild,
  findRepositoryPrebuild,
  insertRepositoryPrebuild,
  listRepositoryPrebuilds,
  type RepositoryPrebuildRow,
} from "#db/templates/repository-prebuilds.ts";
import { findOrganization } from "#db/users/organizations.ts";
import type { RepositoryPlan } from "#schema/templates/repository.ts";
import {
  type CreatedRepositoryPrebuild,
  DEFAULT_KEPT_IMAGES,
  MAX_REPOSITORY_PREBUILDS,
  type NewRepositoryPrebuild,
  type RepositoryPrebuild,
} from "#schema/templates/repository-prebuild.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { isPush, isSigned } from "#src/git/push-events.ts";
import type { RepositoryImages } from "#src/provisioners/provisioner.ts";
import { canManageTemplates } from "../access.ts";
import type { DomainContext } from "../context.ts";
import { loadCaller } from "../users/as-caller.ts";
import { findRepositoryOrganization, findRepositoryProvisioner } from "./template.ts";

/** Minimum interval between checks after push events, so that repeated events cause no extra work. */
const MIN_PUSH_INTERVAL_MS = 10_000;

const DENIED = "Only people who manage templates of the organization can add repository prebuilds.";

/** Returns the prebuilds of organizations whose templates the caller manages. */
export const listVisiblePrebuilds = async (ctx: DomainContext, caller: UserCaller): Promise<RepositoryPrebuild[]> => {
  const rows = await ctx.store.all(listRepositoryPrebuilds());
  return rows
    .filter(({ prebuild }) => canManageTemplates(caller, prebuild.organization_id))
    .map(({ prebuild, owner_name }) => presentPrebuild(ctx, prebuild, owner_name));
};

/** Adds a repository and starts its first build. Rejects with 400, with 403, and with 409 for a duplicate or at the limit. */
export const addRepositoryPrebuild = async (
  ctx: DomainContext,
  caller: UserCaller,
  input: NewRepositoryPrebuild,
): Promise<CreatedRepositoryPrebuild> => {
  const { store, clock } = ctx;
  const organization_id = await resolveOrganization(ctx, caller, input.organization_id?.toLowerCase());
  if (!canManageTemplates(caller, organization_id)) throw forbidden(DENIED);
  if ((await findRepositoryProvisioner(ctx)) !== "docker") {
    throw new AppError("invalid", "Images are built by a Docker Engine, but this server can't reach one.", {
      detail: "Set docker_host, and check with `slipway doctor`.",
    });
  }
  const plan = await ctx.repositories.plan(caller.user_id, { requested: { url: input.url }, field: "url" });
  if (plan.ref_kind !== "default")
    throw invalidField("url", "must link to the repository itself: its default branch is built");
  const found = await store.get(countRepositoryPrebuilds());
  if ((found?.count ?? 0) >= MAX_REPOSITORY_PREBUILDS) {
    throw conflict(`The limit of ${MAX_REPOSITORY_PREBUILDS} repository prebuilds is reached. Remove some first.`);
  }
  const now = clock.now();
  const row = makeRow({ caller, organization_id, plan, input, now });
  const batch = [
    insertRepositoryPrebuild(row),
    setTimer(IMAGE_PREBUILD, row.id, IMAGE_CHECK_TIMER, now),
    writeAuditEntry(row, { now, action: "create", after: row }),
  ];
  await store.commit(batch, { of: "deployment" }).catch((error) => {
    if (!(error instanceof CommitError) || error.reason !== "constraint") throw error;
    throw conflict(`The organization already has a prebuild of ${plan.url}.`);
  });
  return { prebuild: presentPrebuild(ctx, row, caller.username), secret: deriveSecret(ctx, row.id) };
};

type NewRow = {
  readonly caller: UserCaller;
  readonly organization_id: string;
  readonly plan: RepositoryPlan;
  readonly input: NewRepositoryPrebuild;
  readonly now: number;
};

const makeRow = ({ caller, organization_id, plan, input, now }: NewRow): RepositoryPrebuildRow => ({
  id: uuid(),
  organization_id,
  owner_id: caller.user_id,
  url: plan.url,
  name: plan.name,
  interval_hours: input.interval_hours ?? 0,
  keep: input.keep ?? DEFAULT_KEPT_IMAGES,
  status: "waiting",
  error: "",
  commit: "",
  images: [],
  log: "",
  tries: 0,
  built_at: null,
  next_at: null,
  created_at: now,
});

/** Checks for a new commit now. Rejects with 404 if the prebuild does not exist or the caller may not manage it. */
export const buildRepositoryPrebuild = async (ctx: DomainContext, caller: UserCaller, id: string): Promise<void> => {
  const row = await findManageable(ctx, caller, id);
  await ctx.store.commit([setTimer(IMAGE_PREBUILD, row.id, IMAGE_CHECK_TIMER, ctx.clock.now())], { of: "deployment" });
};

/** Removes the prebuild and stops its build. Its images stay until the cleanup of old images removes them. Rejects with 404. */
export const removeRepositoryPrebuild = async (ctx: DomainContext, caller: UserCaller, id: string): Promise<void> => {
  const row = await findManageable(ctx, caller, id);
  const now = ctx.clock.now();
  const batch = [
    deleteRepositoryPrebuild(row.id),
    clearTimer(IMAGE_PREBUILD, row.id, IMAGE_CHECK_TIMER),
    writeAuditEntry(row, { now, action: "delete", before: row }),
  ];
  await ctx.store.commit(batch, { of: "deployment" });
  ctx.topics.publish("access_changed", row.id, {});
};

/**
 * Handles a push event of the host. Throws the same 404 for an unknown prebuild and a wrong signature, so the address reveals nothing.
 * Reads the body only for a prebuild that exists, because anybody can send one.
 */
export const receivePush = async (
  ctx: DomainContext,
  id: string,
  headers: { get(name: string): string | null },
  readBody: () => Promise<Uint8Array>,
): Promise<void> => {
  const row = await ctx.store.get(findRepositoryPrebuild({ id: id.toLowerCase() }));
  if (!row || !isSigned(headers, await readBody(), deriveSecret(ctx, row.id))) throw notFound();
  if (!isPush(headers)) return;
  const due = Math.max(ctx.clock.now(), (row.built_at ?? 0) + MIN_PUSH_INTERVAL_MS);
  await ctx.store.commit([setTimer(IMAGE_PREBUILD, row.id, IMAGE_CHECK_TIMER, due)], { of: "deployment" });
};

/** Returns the functions with which the prebuild keeper plans, builds and removes images. */
export const toImagePrebuildDeps = (ctx: DomainContext): Pick<ImagePrebuildDeps, "plan" | "build" | "remove"> => {
  const images = (): RepositoryImages => {
    const found = ctx.provisioners.get("docker")?.images;
    if (!found) throw new AppError("invalid", "This server can't reach a Docker Engine.");
    return found;
  };
  return {
    plan: (row) => loadPlan(ctx, row),
    build: (plan, owner_id, report, signal) => images().build(plan, owner_id, report, signal),
    remove: (names, signal) => images().remove(names, signal),
  };
};

/** Returns the plan for the newest commit of the default branch, read with the current rights of the prebuild's owner. Throws AppError. */
const loadPlan = async (ctx: DomainContext, row: RepositoryPrebuildRow): Promise<RepositoryPlan> => {
  const owner = await loadCaller(ctx.store, row.owner_id);
  const organization = await ctx.store.get(findOrganization({ id: row.organization_id }));
  if (!owner || !organization || !canManageTemplates(owner, row.organization_id)) {
    throw forbidden("The person who added the repository no longer manages templates of the organization.");
  }
  return await ctx.repositories.plan(row.owner_id, { requested: { url: row.url }, field: "url" });
};

const resolveOrganization = async (ctx: DomainContext, caller: UserCaller, id: string | undefined): Promise<string> => {
  if (id === undefined) return (await findRepositoryOrganization(ctx, caller)).id;
  const found = await ctx.store.get(findOrganization({ id }));
  if (!found || !canManageTemplates(caller, id)) {
    throw invalidField("organization_id", "is not an organization whose templates you manage");
  }
  return id;
};

const findManageable = async (
  { store }: DomainContext,
  caller: UserCaller,
  id: string,
): Promise<RepositoryPrebuildRow> => {
  const row = await store.get(findRepositoryPrebuild({ id: id.toLowerCase() }));
  if (!row || !canManageTemplates(caller, row.organization_id)) throw notFound();
  return row;
};

const deriveSecret = ({ encryption }: DomainContext, id: string): string =>
  encryption.deriveUuid(`repository_prebuild:${id}`);

const writeAuditEntry = (
  { id, organization_id, url }: RepositoryPrebuildRow,
  change: Pick<Parameters<typeof insertAudit>[0], "now" | "action" | "before" | "after">,
): Statement =>
  insertAudit({ ...change, resource_type: "repository_prebuild", resource_id: id, target: url, organization_id });

const presentPrebuild = (
  { accessUrl }: DomainContext,
  row: RepositoryPrebuildRow,
  owner_name: string,
): RepositoryPrebuild => ({
  id: row.id,
  organization_id: row.organization_id,
  owner_id: row.owner_id,
  owner_name,
  url: row.url,
  name: row.name,
  interval_hours: row.interval_hours,
  keep: row.keep,
  webhook_url: new URL(`/api/v2/repositories/prebuilds/${row.id}/push`, accessUrl).href,
  status: row.status,
  error: row.error,
  commit: row.commit,
  images: row.images.length,
  log: row.log,
  ...(row.built_at === null ? {} : { built_at: toRfc3339(row.built_at) }),
  ...(row.next_at === null ? {} : { next_at: toRfc3339(row.next_at) }),
  created_at: toRfc3339(row.created_at),
});
