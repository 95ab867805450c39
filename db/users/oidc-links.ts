// Accounts at OpenID Connect providers that sign users in.
import { and, sql } from "drizzle-orm";
import { build, deleteBy, eqParam, findBy, insertInto, query, statement } from "../engine/sql.ts";
import { oidc_links } from "../schema/oidc-links.ts";

/** Parameters: {issuer, subject}. */
export const findOidcLink = findBy(oidc_links, oidc_links.issuer, oidc_links.subject);

export type OidcLink = typeof oidc_links.$inferSelect;

/** Rejected as `constraint` when a user already has this account. */
export const insertOidcLink = insertInto(oidc_links);

/** Stores the person's names at the provider. */
export const updateOidcLink = statement<{ issuer: string; subject: string; username: string; name: string }>(
  build
    .update(oidc_links)
    .set({ username: sql`${sql.placeholder("username")}`, name: sql`${sql.placeholder("name")}` })
    .where(and(eqParam(oidc_links.issuer), eqParam(oidc_links.subject))),
);

/** A row when the user has a link at any issuer. Parameters: {user_id}. */
export const findAnyOidcLink = query(
  build.select({ issuer: oidc_links.issuer }).from(oidc_links).where(eqParam(oidc_links.user_id)).limit(1),
);

/** A guard: rejects the batch as `stale` when the user was linked concurrently, also by another node. */
export const guardUnlinked = statement<{ user_id: string }>(
  build
    .update(oidc_links)
    .set({ subject: sql`${oidc_links.subject}` })
    .where(eqParam(oidc_links.user_id)),
  { expect: 0, alone: "links" },
);

export const deleteOidcLinksByUser = deleteBy(oidc_links, oidc_links.user_id);
