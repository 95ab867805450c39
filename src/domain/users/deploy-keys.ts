// Deploy keys of users: an encrypted key pair for each of their repositories, used only for that repository by the server's git and by git
// in their workspaces (rules DK-1 to DK-4). At most 100.
import { toRfc3339 } from "#base/clock.ts";
import { conflict, invalidField, notFound } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import { CREDENTIALS_PROBLEM, hasCredentials } from "#base/links/repository-address.ts";
import { makeSshKeyPair } from "#base/ssh-key.ts";
import type { Statement } from "#db/engine/sql.ts";
import { CommitError } from "#db/engine/store.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import {
  type DeployKeyRow,
  deleteDeployKey,
  findDeployKey,
  findDeployKeyByRepository,
  insertDeployKey,
  listDeployKeysBySsh,
} from "#db/users/deploy-keys.ts";
import { guardUser } from "#db/users/users.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { DeployKey } from "#schema/users/deploy-key.ts";
import { findDeployKeyLocation, toDeploySettingsUrl, toRepositoryName } from "#src/git/deploy-key.ts";
import type { DomainContext } from "../context.ts";
import { findSelf } from "./appearance.ts";

const MAX_DEPLOY_KEYS = 100;
const SSH_PORT = "22";

type Sealing = Pick<DomainContext, "store" | "encryption">;
const toSealContext = ({ user_id, id }: Pick<DeployKeyRow, "user_id" | "id">): string => `deploy_key:${user_id}:${id}`;

/** The public view of a deploy key. */
export const presentDeployKey = ({ links }: Pick<DomainContext, "links">, row: DeployKeyRow): DeployKey => {
  const { id, url, ssh_url, public_key, created_at } = row;
  const settings_url = toDeploySettingsUrl(url, links.providerFor(url)?.type);
  return { id, url, ssh_url, public_key, ...(settings_url ? { settings_url } : {}), created_at: toRfc3339(created_at) };
};

/** Creates a key pair for the repository of the link. Throws 400 for an invalid link, and 409 for a duplicate and beyond the limit. */
export const createDeployKey = async (
  { store, clock, encryption }: Pick<DomainContext, "store" | "clock" | "encryption">,
  user_id: string,
  link: string,
): Promise<DeployKeyRow> => {
  if (hasCredentials(link)) throw invalidField("url", CREDENTIALS_PROBLEM);
  const location = findDeployKeyLocation(link);
  if (!location) throw invalidField("url", "is not a link to a Git repository, such as https://github.com/acme/app");
  const { url, ssh_url } = location;
  const { public_key, private_key } = makeSshKeyPair();
  const id = uuid();
  const row: DeployKeyRow = {
    id,
    user_id,
    url,
    ssh_url,
    repository: toRepositoryName(url),
    ssh_repository: toRepositoryName(ssh_url),
    public_key,
    sealed_private_key: encryption.seal(private_key, toSealContext({ user_id, id })),
    created_at: clock.now(),
  };
  const writes = [
    guardUser({ id: user_id }),
    insertDeployKey(row, MAX_DEPLOY_KEYS),
    writeAuditEntry("create", row, row.created_at),
  ];
  await store.commit(writes).catch((error) => {
    if (!(error instanceof CommitError)) throw error;
    if (error.reason === "constraint") throw conflict("You already have a deploy key for this repository.");
    throw error.reason === "stale" ? conflict(`You can have at most ${MAX_DEPLOY_KEYS} deploy keys.`) : error;
  });
  return row;
};

/** Returns a deploy key of the caller. Throws 403 for another user's key and 404 if it does not exist. */
export const getDeployKey = async (
  ctx: DomainContext,
  { user, deploy_key }: { readonly user: string; readonly deploy_key: string },
  caller: UserCaller,
): Promise<DeployKeyRow> => {
  const { id: user_id } = await findSelf(ctx, user, caller);
  const row = await ctx.store.get(findDeployKey({ user_id, id: deploy_key.toLowerCase() }));
  if (!row) throw notFound();
  return row;
};

/** Revokes a key: neither the server nor workspaces get it any more. Throws 404 when it no longer exists. */
export const revokeDeployKey = async (
  { store, clock }: Pick<DomainContext, "store" | "clock">,
  row: DeployKeyRow,
): Promise<void> => {
  const writes = [deleteDeployKey({ user_id: row.user_id, id: row.id }), writeAuditEntry("delete", row, clock.now())];
  await store.commit(writes).catch((error) => {
    throw error instanceof CommitError && error.reason === "stale" ? notFound() : error;
  });
};

/** Returns the user's key for a repository, if there is one. */
export const findKeyForRepository = ({ store }: Sealing, user_id: string, url: string) =>
  store.get(findDeployKeyByRepository({ user_id, repository: toRepositoryName(url) }));

/**
 * Returns the key for an SSH URL; undefined for an invalid one, too. Without a port, any port matches, because SSH's own settings define
 * it.
 */
export const findKeyForSsh = async ({ store }: Sealing, user_id: string, remote: string) => {
  if (!URL.canParse(remote) || new URL(remote).protocol !== "ssh:") return undefined;
  const { port } = new URL(remote);
  const rows = await store.all(listDeployKeysBySsh({ user_id, ssh_repository: toRepositoryName(remote) }));
  return rows.find(({ ssh_url }) => port === "" || port === (new URL(ssh_url).port || SSH_PORT));
};

/** Returns the private key in OpenSSH format. Never logged. */
export const openDeployKey = ({ encryption }: Pick<Sealing, "encryption">, row: DeployKeyRow): string =>
  encryption.open(row.sealed_private_key, toSealContext(row));

const writeAuditEntry = (action: "create" | "delete", row: DeployKeyRow, now: number): Statement =>
  insertAudit({
    now,
    action,
    resource_type: "deploy_key",
    resource_id: row.id,
    target: row.repository,
    ...(action === "create" ? { after: row } : { before: row }),
  });
