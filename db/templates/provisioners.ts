// Workers and their keys: written by the HTTP edge alone, when a key is made or removed and when a worker comes or goes.
import { and, asc, desc, eq, sql } from "drizzle-orm";
import { build, deleteBy, insertInto, query, updateBy } from "../engine/sql.ts";
import { provisioner_daemons, provisioner_keys } from "../schema/provisioners.ts";

export type ProvisionerKeyRow = typeof provisioner_keys.$inferSelect;
export type ProvisionerDaemonRow = typeof provisioner_daemons.$inferSelect;

/** Workers of one list. */
const DAEMON_LIMIT = 1_000;

export const findProvisionerKey = query(
  build
    .select()
    .from(provisioner_keys)
    .where(eq(provisioner_keys.id, sql.placeholder("id"))),
);

/** By the characters before the hyphen of the key itself. */
export const findProvisionerKeyByPrefix = query(
  build
    .select()
    .from(provisioner_keys)
    .where(eq(provisioner_keys.prefix, sql.placeholder("prefix"))),
);

/** By organization and name, whatever the letter case. */
export const findProvisionerKeyByName = query(
  build
    .select()
    .from(provisioner_keys)
    .where(
      and(
        eq(provisioner_keys.organization_id, sql.placeholder("organization_id")),
        sql`lower(${provisioner_keys.name}) = lower(${sql.placeholder("name")})`,
      ),
    ),
);

/** Those of an organization, oldest first. */
export const listProvisionerKeys = query(
  build
    .select()
    .from(provisioner_keys)
    .where(eq(provisioner_keys.organization_id, sql.placeholder("organization_id")))
    .orderBy(asc(provisioner_keys.created_at), asc(provisioner_keys.id))
    .limit(1_000),
);

export const insertProvisionerKey = insertInto(provisioner_keys);
export const deleteProvisionerKey = deleteBy(provisioner_keys, provisioner_keys.id);

/** By organization and name, whatever the letter case. */
export const findProvisionerDaemon = query(
  build
    .select()
    .from(provisioner_daemons)
    .where(
      and(
        eq(provisioner_daemons.organization_id, sql.placeholder("organization_id")),
        sql`lower(${provisioner_daemons.name}) = lower(${sql.placeholder("name")})`,
      ),
    ),
);

/** Those of an organization, the last seen first. */
export const listProvisionerDaemons = query(
  build
    .select()
    .from(provisioner_daemons)
    .where(eq(provisioner_daemons.organization_id, sql.placeholder("organization_id")))
    .orderBy(desc(provisioner_daemons.last_seen_at), asc(provisioner_daemons.id))
    .limit(DAEMON_LIMIT),
);

export const insertProvisionerDaemon = insertInto(provisioner_daemons);
export const updateProvisionerDaemon = updateBy(provisioner_daemons, provisioner_daemons.id);
