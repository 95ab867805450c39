// The SSH key pair that a user's workspaces present to git servers (facts/platform 3.6 and 9.2, rules GK-1 to GK-5). Created on first use
// and stored encrypted.

import { notFound } from "#base/errors.ts";
import { makeSshKeyPair } from "#base/ssh-key.ts";
import type { Statement } from "#db/engine/sql.ts";
import { CommitError } from "#db/engine/store.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import { findGitSshKey, type GitSshKeyRow, insertGitSshKey, replaceGitSshKey } from "#db/users/git-ssh-keys.ts";
import { guardUser } from "#db/users/users.ts";
import type { DomainContext } from "../context.ts";

type Deps = Pick<DomainContext, "store" | "clock" | "encryption">;

/**
 * Returns the user's key pair; creates it if none exists. Concurrent callers get the same pair. Rejects with 404 when the user has been
 * deleted.
 */
export const readGitSshKey = async (deps: Deps, user_id: string): Promise<GitSshKeyRow> => {
  const existing = await deps.store.get(findGitSshKey({ user_id }));
  if (existing) return existing;
  const created = createPair(deps, user_id);
  // Only one of several concurrent creators succeeds; the others use its pair.
  const writes = [guardUser({ id: user_id }), { ...insertGitSshKey(created), expect: 1 }, writeAuditEntry(created)];
  await deps.store.commit(writes).catch((error) => {
    if (!(error instanceof CommitError) || error.reason !== "stale") throw error;
  });
  const stored = await deps.store.get(findGitSshKey({ user_id }));
  if (!stored) throw notFound();
  return stored;
};

/** Returns the private key in the format that ssh reads. */
export const openGitSshKey = (
  { encryption }: Pick<Deps, "encryption">,
  { user_id, sealed_private_key }: GitSshKeyRow,
): string => encryption.open(sealed_private_key, toSealContext(user_id));

/** Replaces the key pair with a new one. */
export const renewGitSshKey = async (deps: Deps, user_id: string): Promise<GitSshKeyRow> => {
  const created = createPair(deps, user_id);
  const before = await deps.store.get(findGitSshKey({ user_id }));
  await deps.store.commit([guardUser({ id: user_id }), replaceGitSshKey(created), writeAuditEntry(created, before)]);
  return readGitSshKey(deps, user_id);
};

const toSealContext = (user_id: string): string => `git_ssh_key:${user_id}`;

const createPair = ({ clock, encryption }: Deps, user_id: string): GitSshKeyRow => {
  const { public_key, private_key } = makeSshKeyPair();
  const now = clock.now();
  return {
    user_id,
    public_key,
    sealed_private_key: encryption.seal(private_key, toSealContext(user_id)),
    created_at: now,
    updated_at: now,
  };
};

const writeAuditEntry = (created: GitSshKeyRow, before?: GitSshKeyRow): Statement =>
  insertAudit({
    now: created.updated_at,
    action: before ? "write" : "create",
    resource_type: "git_ssh_key",
    resource_id: created.user_id,
    target: created.public_key,
    before,
    after: created,
  });
