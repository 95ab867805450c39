// Workers and their keys: written only by the HTTP edge, when a key is created or deleted and when a worker connects or disconnects.
import { and, asc, desc, sql } from "drizzle-orm";
import { build, deleteBy, eqParam, findBy, insertInto, query, updateBy } from "../engine/sql.ts";
import { provisioner_daemons, provisioner_keys } from "../schema/provisioners.ts";

export type ProvisionerKeyRow = typeof provisioner_keys.$inferSelect;
export type ProvisionerDaemonRow = typeof provisioner_daemons.$inferSelect;

/** Maximum workers of a list. */
const MAX_WORKERS = 1_000;

export const findProvisionerKey = findBy(provisioner_keys, provisioner_keys.id);

/** By the characters before the key's hyphen. */
export const findProvisionerKeyByPrefix = findBy(provisioner_keys, provisioner_keys.prefix);

/** By organization and name, case-insensitive. */
export const findProvisionerKeyByName = query(
  build
    .select()
    .from(provisioner_keys)
    .where(
      and(
        eqParam(provisioner_keys.organization_id),
        sql`lower(${provisioner_keys.name}) = lower(${sql.placeholder("name")})`,
      ),
    ),
);

/** The keys of an organization, oldest first. */
export const listProvisionerKeys = query(
  build
    .select()
    .from(provisioner_keys)
    .where(eqParam(provisioner_keys.organization_id))
    .orderBy(asc(provisioner_keys.created_at), asc(provisioner_keys.id))
    .limit(1_000),
);

/** The keys that this person created, in all organizations. Parameters: {created_by}. */
export const listProvisionerKeysCreatedBy = query(
  build.select().from(provisioner_keys).where(eqParam(provisioner_keys.created_by)).limit(10_000),
);

export const insertProvisionerKey = insertInto(provisioner_keys);
export const deleteProvisionerKey = deleteBy(provisioner_keys, provisioner_keys.id);

/** By organization and name, case-insensitive. */
export const findProvisionerDaemon = query(
  build
    .select()
    .from(provisioner_daemons)
    .where(
      and(
        eqParam(provisioner_daemons.organization_id),
        sql`lower(${provisioner_daemons.name}) = lower(${sql.placeholder("name")})`,
      ),
    ),
);

/** The workers of an organization, most recently seen first. */
export const listProvisionerDaemons = query(
  build
    .select()
    .from(provisioner_daemons)
    .where(eqParam(provisioner_daemons.organization_id))
    .orderBy(desc(provisioner_daemons.last_seen_at), asc(provisioner_daemons.id))
    .limit(MAX_WORKERS),
);

export const insertProvisionerDaemon = insertInto(provisioner_daemons);
export const updateProvisionerDaemon = updateBy(provisioner_daemons, provisioner_daemons.id);
