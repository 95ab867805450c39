// Organizations.
import { and, asc, eq, notExists, sql } from "drizzle-orm";
import { build, eqParam, insertInto, query, statement, updateBy } from "../engine/sql.ts";
import { templates } from "../schema/templates.ts";
import { organizations } from "../schema/users.ts";
import { workspaces } from "../schema/workspaces.ts";

export type OrganizationRow = typeof organizations.$inferSelect;

const isNotDeleted = eq(organizations.deleted, false);

export const findOrganization = query(
  build
    .select()
    .from(organizations)
    .where(and(eqParam(organizations.id), isNotDeleted)),
);

export const findOrganizationByName = query(
  build
    .select()
    .from(organizations)
    .where(and(sql`lower(${organizations.name}) = lower(${sql.placeholder("name")})`, isNotDeleted)),
);

export const findDefaultOrganization = query(
  build
    .select()
    .from(organizations)
    .where(and(eq(organizations.is_default, true), isNotDeleted)),
);

/** All organizations by name. The caller must filter by access. */
export const listOrganizations = query(
  build.select().from(organizations).where(isNotDeleted).orderBy(asc(organizations.name)).limit(1000),
);

export const insertOrganization = insertInto(organizations);
export const updateOrganization = updateBy(organizations, organizations.id);

const oneColumn = { one: sql`1` };

/** Rejected as `stale` for the default organization and while it has templates or workspaces. */
export const deleteOrganization = statement<{ id: string; now: number }>(
  build
    .update(organizations)
    .set({ deleted: true, updated_at: sql.placeholder("now") as never })
    .where(
      and(
        eqParam(organizations.id),
        eq(organizations.is_default, false),
        isNotDeleted,
        notExists(
          build
            .select(oneColumn)
            .from(templates)
            .where(and(eq(templates.organization_id, organizations.id), eq(templates.deleted, false))),
        ),
        notExists(
          build
            .select(oneColumn)
            .from(workspaces)
            .where(and(eq(workspaces.organization_id, organizations.id), eq(workspaces.deleted, false))),
        ),
      ),
    ),
  { expect: 1 },
);
