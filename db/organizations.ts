// Organizations.
import { and, asc, eq, sql } from "drizzle-orm";
import { organizations } from "./schema/users.ts";
import { build, insertInto, query, updateBy } from "./sql.ts";

export type OrganizationRow = typeof organizations.$inferSelect;

const alive = eq(organizations.deleted, false);

export const findOrganization = query(
  build
    .select()
    .from(organizations)
    .where(and(eq(organizations.id, sql.placeholder("id")), alive)),
);

export const findOrganizationByName = query(
  build
    .select()
    .from(organizations)
    .where(and(sql`lower(${organizations.name}) = lower(${sql.placeholder("name")})`, alive)),
);

export const findDefaultOrganization = query(
  build
    .select()
    .from(organizations)
    .where(and(eq(organizations.is_default, true), alive)),
);

/** All organizations by name; the caller leaves out what may not be seen. */
export const listOrganizations = query(
  build.select().from(organizations).where(alive).orderBy(asc(organizations.name)).limit(1000),
);

export const insertOrganization = insertInto(organizations);
export const updateOrganization = updateBy(organizations, organizations.id);
