// Which key the secrets in the database were sealed with (src/base/encryption.ts), for the start of a server and for `doctor`. A server
// whose key is lost must not make a new one in silence: whoever runs it would learn of it from what fails, one secret after the other.
import { and, count, ne, sql } from "drizzle-orm";
import type { AnySQLiteColumn } from "drizzle-orm/sqlite-core";
import { type Encryption, EncryptionKeyError, hasKey, keyFile, openEncryption } from "#base/encryption.ts";
import { log } from "#base/log.ts";
import { external_auth_links } from "./schema/external-auth.ts";
import { git_ssh_keys } from "./schema/git-ssh-keys.ts";
import { mcp_servers } from "./schema/mcp.ts";
import { model_providers } from "./schema/models.ts";
import { build, type Query, query } from "./sql.ts";
import type { Store } from "./store.ts";

const countOf = (column: AnySQLiteColumn) =>
  query(
    build
      .select({ n: count() })
      .from(column.table)
      .where(and(ne(column, ""), sql`${column} not like ${sql.placeholder("known")}`)),
  ) as (values: { known: string }) => Query<{ n: number }>;

const SEALED = {
  "keys of model providers": countOf(model_providers.sealed_api_key),
  "linked accounts": countOf(external_auth_links.sealed_tokens),
  "secrets of MCP servers": countOf(mcp_servers.sealed_secrets),
  "SSH keys": countOf(git_ssh_keys.sealed_private_key),
} as const;

/** What stands in the database that this key does not open, in words such as `SSH keys (2)`; undefined: all of it is as usual. */
export const sealedElsewhere = async (
  encryption: Encryption | undefined,
  get: (asked: Query<{ n: number }>) => Promise<{ n: number } | undefined>,
): Promise<string | undefined> => {
  const known = encryption ? `${encryption.prefix}%` : "";
  const found: string[] = [];
  for (const [what, counted] of Object.entries(SEALED)) {
    const n = (await get(counted({ known })))?.n ?? 0;
    if (n > 0) found.push(`${what} (${n})`);
  }
  return found.length > 0 ? found.join(", ") : undefined;
};

/** The key of the data directory, made only where nothing was sealed yet. Without one it closes the store and throws `EncryptionKeyError`. */
export const openKeyOf = async (store: Store, directory: string): Promise<Encryption> => {
  try {
    return await openChecked(store, directory);
  } catch (error) {
    await store.close();
    throw error;
  }
};

const openChecked = async (store: Store, directory: string): Promise<Encryption> => {
  const get = (asked: Query<{ n: number }>) => store.get(asked);
  if (!hasKey(directory)) {
    const lost = await sealedElsewhere(undefined, get);
    if (lost) throw new EncryptionKeyError(lostKey(directory, lost));
  }
  const encryption = openEncryption(directory);
  const strange = await sealedElsewhere(encryption, get);
  if (strange) log("server").error(WRONG_KEY, { sealed_with_another_key: strange });
  return encryption;
};

const WRONG_KEY =
  "encryption.key is not the one that some secrets were sealed with: put the right one back, or enter them again";

const lostKey = (directory: string, lost: string): string =>
  `${keyFile(directory)} is missing, and it opens what the database holds: ${lost}. Put it back from a backup; where it is lost for ` +
  `good, \`openssl rand -hex 32 > ${keyFile(directory)}\` makes a new one, and these must be entered again`;
