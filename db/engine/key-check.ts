// Checks at the server's start, and for `doctor`, whether the key decrypts the database's secrets (src/base/encryption.ts). A server that
// has lost its key must not silently create a new one, because its operator would notice only when one secret after another fails.
import {
  type Encryption,
  EncryptionKeyError,
  getKeyPath,
  hasKey,
  openEncryption,
  parseEncryptionKey,
} from "#base/encryption.ts";
import { log } from "#base/log.ts";
import { findSetting, insertSetting } from "../settings.ts";
import type { Query } from "./sql.ts";
import type { Store } from "./store.ts";

const SEALED = {
  "keys of model providers": ["model_providers", "sealed_api_key"],
  "linked accounts": ["external_auth_links", "sealed_tokens"],
  "secrets of MCP servers": ["mcp_servers", "sealed_secrets"],
  "sessions at sign-in providers": ["oidc_sessions", "sealed_tokens"],
  "SSH keys": ["git_ssh_keys", "sealed_private_key"],
  "deploy keys": ["deploy_keys", "sealed_private_key"],
  "values of template variables": ["template_versions", "sealed_variable_values"],
  "secrets of people": ["user_secrets", "sealed_value"],
  "states of snapshots": ["workspace_snapshots", "sealed_state"],
  "secrets of authenticator apps": ["totp_factors", "sealed_secret"],
} as const;

/**
 * Counts the values that do not match the pattern, in the order of `SEALED`. The statement is handwritten, because every start runs it, and
 * building it would take longer than running it.
 */
const countUndecryptable = (pattern: string): Query<number[]> => ({
  sql: `select ${Object.values(SEALED)
    .map(([table, column]) => `(select count(*) from ${table} where ${column} <> '' and ${column} not like ?1)`)
    .join(", ")}`,
  params: [pattern],
  map: (row) => row.map(Number),
});

/** Describes the data that this key does not decrypt, such as `SSH keys (2)`; undefined if it decrypts everything. */
export const describeUndecryptable = async (
  encryption: Encryption | undefined,
  runQuery: (requested: Query<number[]>) => Promise<number[] | undefined>,
): Promise<string | undefined> => {
  const counts = (await runQuery(countUndecryptable(encryption ? `${encryption.prefix}%` : ""))) ?? [];
  const found = Object.keys(SEALED).flatMap((label, i) => (counts[i] ? `${label} (${counts[i]})` : []));
  return found.length > 0 ? found.join(", ") : undefined;
};

/** The source of the key: its digits if set, and otherwise the data directory. `shared`: nodes of a cluster must have the same key. */
export type KeyLocation = {
  readonly directory: string;
  readonly digits?: string | undefined;
  readonly shared?: boolean | undefined;
};

/**
 * Returns the key. If no key exists, creates one in the directory, but only if nothing was encrypted yet. Closes the store on any error;
 * throws `EncryptionKeyError` if the key is lost or is not the cluster's.
 */
export const openKey = async (store: Store, location: KeyLocation): Promise<Encryption> => {
  try {
    return await openCheckedKey(store, location);
  } catch (error) {
    await store.close();
    throw error;
  }
};

const openCheckedKey = async (
  store: Store,
  { directory, digits, shared = false }: KeyLocation,
): Promise<Encryption> => {
  const runQuery = (requested: Query<number[]>) => store.get(requested);
  const fingerprint = shared ? (await store.get(findSetting({ key: KEY_NAME })))?.value : undefined;
  if (fingerprint !== undefined) return loadSharedKey({ directory, digits }, fingerprint);
  if (digits === undefined && !hasKey(directory)) {
    const undecryptable = await describeUndecryptable(undefined, runQuery);
    if (undecryptable) throw new EncryptionKeyError(formatLostKey(directory, undecryptable));
  }
  const encryption = digits === undefined ? openEncryption(directory) : parseEncryptionKey(digits);
  if (shared) await store.commit([insertSetting({ key: KEY_NAME, value: encryption.prefix })]);
  const undecryptable = await describeUndecryptable(encryption, runQuery);
  if (undecryptable) log("server").error(WRONG_KEY, { sealed_with_another_key: undecryptable });
  return encryption;
};

/** Validates the key's format before anything is read or written. Throws `EncryptionKeyError`. */
export const checkKeyForm = ({ directory, digits }: KeyLocation): void => {
  if (digits !== undefined) parseEncryptionKey(digits);
  else if (hasKey(directory)) openEncryption(directory);
};

/** Returns a node's key, which must match the cluster's fingerprint. Throws `EncryptionKeyError`. */
export const loadSharedKey = ({ directory, digits }: KeyLocation, fingerprint: string): Encryption => {
  if (digits === undefined && !hasKey(directory)) throw new EncryptionKeyError(MISSING_HERE);
  const encryption = digits === undefined ? openEncryption(directory) : parseEncryptionKey(digits);
  if (fingerprint !== encryption.prefix) throw new EncryptionKeyError(OTHER_NODES);
  return encryption;
};

/** The row of `settings` with the fingerprint of the key that the nodes of a cluster share. */
export const KEY_NAME = "encryption_key";

const MISSING_HERE =
  "this node has no encryption key, but the cluster has one: set encryption_key, or copy encryption.key from another node into the data directory";

const OTHER_NODES =
  "this node's encryption key is not the cluster's: set the same encryption_key on every node, or copy the same encryption.key to every node";

const WRONG_KEY =
  "encryption.key is not the key that some secrets were encrypted with: restore the right key, or enter these secrets again";

const formatLostKey = (directory: string, lost: string): string =>
  `${getKeyPath(directory)} is missing, and the database has data encrypted with it: ${lost}. Restore the file from a backup. If it ` +
  `is lost, create a new key with \`openssl rand -hex 32 > ${getKeyPath(directory)}\` and enter these values again`;
