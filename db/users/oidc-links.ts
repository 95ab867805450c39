// Accounts at OpenID Connect providers that sign users in.
import { and, eq, sql } from "drizzle-orm";
import { build, deleteBy, insertInto, query } from "../engine/sql.ts";
import { oidc_links } from "../schema/oidc-links.ts";

/** {issuer, subject}. */
export const findOidcLink = query(
  build
    .select()
    .from(oidc_links)
    .where(and(eq(oidc_links.issuer, sql.placeholder("issuer")), eq(oidc_links.subject, sql.placeholder("subject")))),
);

/** Refused as `constraint` when somebody has this account already. */
export const insertOidcLink = insertInto(oidc_links);

export const deleteOidcLinksOf = deleteBy(oidc_links, oidc_links.user_id);
