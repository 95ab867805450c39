// User secrets: encrypted, never returned, and given to the agents of the user's own workspaces. At most 50 of 16 KiB each (rules US-1 to
// US-7).
import { AppError, conflict, forbidden, invalidField, notFound } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import { log } from "#base/log.ts";
import type { Statement } from "#db/engine/sql.ts";
import { CommitError } from "#db/engine/store.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import {
  deleteUserSecret,
  findUserSecret,
  insertUserSecret,
  listUserSecrets,
  type UserSecretRow,
  updateUserSecret,
} from "#db/users/secrets.ts";
import { guardUser } from "#db/users/users.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { type CreateUserSecret, SECRET_BYTES, type UpdateUserSecret } from "#schema/users/user-secret.ts";
import type { DomainContext } from "../context.ts";
import { findUserInPath } from "./find.ts";
import { toTakenConflict } from "./name-conflicts.ts";

const MAX_SECRETS = 50;
/** Variables a workspace depends on. */
const RESERVED = new Set(["PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD"]);
/** Variables set by the server and its agents. */
const SYSTEM_VARIABLES = /^(?:SLIPWAY|CODER)(?:_|$)/;
const UNIQUE_FIELDS = {
  user_secrets_name: "name",
  user_secrets_env: "env_name",
  user_secrets_file: "file_path",
  "user_secrets.env_name": "env_name",
  "user_secrets.file_path": "file_path",
} as const;

type Deps = Pick<DomainContext, "store" | "encryption">;
const toSealContext = ({ user_id, id }: Pick<UserSecretRow, "user_id" | "id">): string =>
  `user_secret:${user_id}:${id}`;

/** Returns the user in the path, who must be the caller. Rejects with 404 for an invisible user and with 403 for another user. */
export const findSecretOwner = async ({ store }: DomainContext, text: string, caller: UserCaller): Promise<string> => {
  const { id } = await findUserInPath(store, text, caller);
  if (id !== caller.user_id) throw forbidden("You can manage only your own secrets.");
  return id;
};

/** Rejects with 404. */
export const findSecret = async (
  ctx: DomainContext,
  { user, secret }: { readonly user: string; readonly secret: string },
  caller: UserCaller,
): Promise<UserSecretRow> => {
  const user_id = await findSecretOwner(ctx, user, caller);
  const row = await ctx.store.get(findUserSecret({ user_id, name: secret }));
  if (!row) throw notFound();
  return row;
};

/** Rejects with 400, or 409 for a name or target that is taken and when there are too many. */
export const createSecret = async (
  { store, clock, encryption, topics }: DomainContext,
  user_id: string,
  input: CreateUserSecret,
): Promise<UserSecretRow> => {
  checkSecret(input);
  const now = clock.now();
  const id = uuid();
  const { name, description = "", env_name = "", file_path = "", value } = input;
  const sealed_value = encryption.seal(value, toSealContext({ user_id, id }));
  const fields = { name, description, env_name, file_path };
  const row: UserSecretRow = { id, user_id, ...fields, sealed_value, created_at: now, updated_at: now };
  const writes = [
    guardUser({ id: user_id }),
    insertUserSecret(row, MAX_SECRETS),
    writeAuditEntry("create", { after: row }, now),
  ];
  await store.commit(writes).catch((error) => {
    if (error instanceof CommitError && error.reason === "stale")
      throw conflict(`You can have at most ${MAX_SECRETS} secrets.`);
    throw toTakenConflict(error, UNIQUE_FIELDS);
  });
  topics.publish("secrets_changed", user_id, {});
  return row;
};

/** Rejects with 400, 404 when it no longer exists, or 409 for a name or target that is taken. */
export const changeSecret = async (
  { store, clock, encryption, topics }: DomainContext,
  before: UserSecretRow,
  { value, ...changes }: UpdateUserSecret,
): Promise<UserSecretRow> => {
  checkSecret({ ...changes, ...(value === undefined ? {} : { value }) });
  const now = clock.now();
  const after = { ...before, updated_at: now };
  if (changes.description !== undefined) after.description = changes.description;
  if (changes.env_name !== undefined) after.env_name = changes.env_name;
  if (changes.file_path !== undefined) after.file_path = changes.file_path;
  if (value !== undefined) after.sealed_value = encryption.seal(value, toSealContext(before));
  const { id: _id, user_id: _user, created_at: _made, ...patch } = after;
  const writes = [updateUserSecret(before.id, patch, { expect: 1 }), writeAuditEntry("write", { before, after }, now)];
  await store.commit(writes).catch((error) => {
    if (error instanceof CommitError && error.reason === "stale") throw notFound();
    throw toTakenConflict(error, UNIQUE_FIELDS);
  });
  topics.publish("secrets_changed", before.user_id, {});
  return after;
};

/** Rejects with 404 when it no longer exists. */
export const removeSecret = async ({ store, clock, topics }: DomainContext, row: UserSecretRow): Promise<void> => {
  const deletion = deleteUserSecret({ user_id: row.user_id, id: row.id });
  await store.commit([deletion, writeAuditEntry("delete", { before: row }, clock.now())]).catch((error) => {
    throw error instanceof CommitError && error.reason === "stale" ? notFound() : error;
  });
  topics.publish("secrets_changed", row.user_id, {});
};

export type OpenSecret = Pick<UserSecretRow, "env_name" | "file_path"> & { readonly value: string };

/**
 * Returns all decrypted secrets of a user, for their own workspaces and for masking. Never logged. A secret encrypted with another key is
 * left out, so that workspaces start without it.
 */
export const openSecrets = async ({ store, encryption }: Deps, user_id: string): Promise<OpenSecret[]> =>
  (await store.all(listUserSecrets({ user_id }))).flatMap((row) => {
    try {
      const value = encryption.open(row.sealed_value, toSealContext(row));
      return [{ env_name: row.env_name, file_path: row.file_path, value }];
    } catch (error) {
      log("users").error("cannot decrypt the secret {name} of {user_id}: {error}", {
        name: row.name,
        user_id,
        error,
      });
      return [];
    }
  });

const checkSecret = ({ value, env_name = "", file_path = "" }: UpdateUserSecret): void => {
  if (value !== undefined && Buffer.byteLength(value) > SECRET_BYTES) {
    throw invalidField("value", `must have at most ${SECRET_BYTES} bytes`);
  }
  if (RESERVED.has(env_name) || SYSTEM_VARIABLES.test(env_name)) {
    throw invalidField("env_name", "is a variable that workspaces set themselves");
  }
  const problem = findPathProblem(file_path);
  if (problem !== undefined) throw invalidField("file_path", problem);
};

const findPathProblem = (path: string): string | undefined => {
  if (path === "") return undefined;
  if (!path.startsWith("/") && !path.startsWith("~/")) return "must begin with / or ~/";
  const parts = path.split("/").slice(1);
  return parts.some((part) => part === "" || part === "." || part === "..")
    ? "must name a file without empty parts, . and .."
    : undefined;
};

type Change = { readonly before?: UserSecretRow; readonly after?: UserSecretRow };

const writeAuditEntry = (action: "create" | "write" | "delete", { before, after }: Change, now: number): Statement => {
  const row = after ?? before;
  if (!row) throw new AppError("internal", "An entry is of something.");
  return insertAudit({
    now,
    action,
    resource_type: "user_secret",
    resource_id: row.id,
    target: row.name,
    before,
    after,
  });
};
