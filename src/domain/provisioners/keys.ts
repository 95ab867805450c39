// Keys of workers: `<prefix>-<secret>`, of which the prefix and a hash of the secret are stored (rule PV-13). For organization
// administrators.
import { AppError, forbidden, notFound } from "#base/errors.ts";
import { keyId, linkToken, sha256, uuid } from "#base/ids.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import {
  deleteProvisionerKey,
  findProvisionerKeyByName,
  insertProvisionerKey,
  listProvisionerKeysCreatedBy,
  type ProvisionerKeyRow,
} from "#db/templates/provisioners.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { canUpdateOrganization } from "../access.ts";
import type { DomainContext } from "../context.ts";
import { requireOwnKey } from "../factors/proof.ts";
import { loadOrganization } from "../organizations/find.ts";
import { loadCaller } from "../users/as-caller.ts";
import { toTakenConflict } from "../users/name-conflicts.ts";

/** Returns the organization whose keys the caller can manage. Rejects with 404 when it is not visible, otherwise with 403. */
export const findKeysOrganization = async (ctx: DomainContext, text: string, caller: UserCaller): Promise<string> => {
  const { id } = await loadOrganization(ctx.store, text, caller);
  if (!canUpdateOrganization(caller, id))
    throw forbidden("Only administrators of the organization can manage its worker keys.");
  return id;
};

type NewKey = { readonly organization_id: string; readonly name: string; readonly tags: Record<string, string> };

/** Returns the key, which is shown only once. Rejects with 403 for an application, and with 409 for a name that is taken. */
export const createProvisionerKey = async (
  ctx: DomainContext,
  caller: UserCaller,
  { organization_id, name, tags }: NewKey,
): Promise<{ readonly id: string; readonly name: string; readonly key: string }> => {
  const { store, clock } = ctx;
  await requireOwnKey(ctx, caller, "create worker keys");
  const prefix = keyId();
  const secret = linkToken();
  const row: ProvisionerKeyRow = {
    id: uuid(),
    prefix,
    organization_id,
    name,
    secret_hash: sha256(secret),
    tags,
    created_by: caller.user_id,
    created_at: clock.now(),
  };
  await store
    .commit([insertProvisionerKey(row), writeAuditEntry(row, "create", { after: row }, row.created_at)])
    .catch((error) => Promise.reject(toTakenConflict(error, { provisioner_keys_name: "name" })));
  return { id: row.id, name, key: `${prefix}-${secret}` };
};

type KeyName = { readonly organization_id: string; readonly name: string };

/** Rejects with 404. */
export const findKey = async ({ store }: Pick<DomainContext, "store">, key: KeyName): Promise<ProvisionerKeyRow> => {
  const row = await store.get(findProvisionerKeyByName(key));
  if (!row) throw notFound();
  return row;
};

/** Workers with this key are disconnected, and other workers take their jobs. Rejects with 404. */
export const removeProvisionerKey = async (ctx: DomainContext, key: KeyName): Promise<void> =>
  endProvisionerKey(ctx, await findKey(ctx, key));

/** Returns whether the person who created the key could still create it. A worker with the key gets secrets of workspace owners. */
const isCreatorAdmin = async (
  { store }: Pick<DomainContext, "store">,
  { created_by, organization_id }: ProvisionerKeyRow,
): Promise<boolean> => {
  const creator = await loadCaller(store, created_by);
  return creator !== undefined && canUpdateOrganization(creator, organization_id);
};

/** Rejects with 401 when the person who created the key could not create it any more (rule PV-19). */
export const requireCreatorAdmin = async (ctx: Pick<DomainContext, "store">, key: ProvisionerKeyRow): Promise<void> => {
  if (await isCreatorAdmin(ctx, key)) return;
  throw new AppError(
    "unauthenticated",
    "The person who created this provisioner key no longer manages the organization.",
    {
      detail: "Ask an administrator of the organization for a new key.",
    },
  );
};

/**
 * Deletes the keys that this person created and could not create any more, and disconnects their workers. Call it after each loss of
 * access.
 */
export const endProvisionerKeysCreatedBy = async (ctx: DomainContext, created_by: string): Promise<void> => {
  for (const row of await ctx.store.all(listProvisionerKeysCreatedBy({ created_by }))) {
    if (!(await isCreatorAdmin(ctx, row))) await endProvisionerKey(ctx, row);
  }
};

const endProvisionerKey = async ({ store, clock, workers }: DomainContext, row: ProvisionerKeyRow): Promise<void> => {
  await store.commit([deleteProvisionerKey(row.id), writeAuditEntry(row, "delete", { before: row }, clock.now())]);
  workers.closeKey(row.id);
};

const writeAuditEntry = (
  { id, name, organization_id }: ProvisionerKeyRow,
  action: "create" | "delete",
  change: { before?: ProvisionerKeyRow; after?: ProvisionerKeyRow },
  now: number,
) =>
  insertAudit({
    now,
    action,
    resource_type: "provisioner_key",
    resource_id: id,
    target: name,
    organization_id,
    ...change,
  });
