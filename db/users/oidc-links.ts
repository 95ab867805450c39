// Accounts at OpenID Connect providers that sign users in.
import { deleteBy, findBy, insertInto } from "../engine/sql.ts";
import { oidc_links } from "../schema/oidc-links.ts";

/** {issuer, subject}. */
export const findOidcLink = findBy(oidc_links, oidc_links.issuer, oidc_links.subject);

/** Refused as `constraint` when somebody has this account already. */
export const insertOidcLink = insertInto(oidc_links);

export const deleteOidcLinksOf = deleteBy(oidc_links, oidc_links.user_id);
