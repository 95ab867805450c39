// Linked accounts at external-auth providers. Written by src/domain/external-auth, which guards every change with the row's version.
import { and, asc, eq, sql } from "drizzle-orm";
import { build, deleteBy, eqParam, query, statement } from "../engine/sql.ts";
import { external_auth_links } from "../schema/external-auth.ts";
import { users } from "../schema/users.ts";

export type LinkRow = typeof external_auth_links.$inferSelect;

const param = sql.placeholder;
const isOfUser = eqParam(external_auth_links.user_id);
const isLink = and(isOfUser, eqParam(external_auth_links.provider_id));
const isKnownVersion = and(isLink, eq(external_auth_links.version, param("known_version")));

export const findLink = query(build.select().from(external_auth_links).where(isLink));
/** Everyone's links with their names: the first thousand by name. */
export const listAllLinks = query(
  build
    .select({ link: external_auth_links, username: users.username })
    .from(external_auth_links)
    .innerJoin(users, eq(users.id, external_auth_links.user_id))
    .where(eq(users.deleted, false))
    .orderBy(asc(users.username), asc(external_auth_links.provider_id))
    .limit(1_000),
);
export const listLinks = query(build.select().from(external_auth_links).where(isOfUser));

const tokens = {
  sealed_tokens: param("sealed_tokens") as never,
  expires_at: param("expires_at") as never,
  has_refresh_token: param("has_refresh_token") as never,
  updated_at: param("updated_at") as never,
};

/** Inserts a link, or replaces its tokens. New tokens always win. */
export const upsertLink = statement<Omit<LinkRow, "failure" | "version">>(
  build
    .insert(external_auth_links)
    .values({
      user_id: param("user_id"),
      provider_id: param("provider_id"),
      ...tokens,
      failure: "",
      version: 0,
      created_at: param("created_at") as never,
    })
    .onConflictDoUpdate({
      target: [external_auth_links.user_id, external_auth_links.provider_id],
      set: {
        sealed_tokens: sql`excluded.sealed_tokens`,
        expires_at: sql`excluded.expires_at`,
        has_refresh_token: sql`excluded.has_refresh_token`,
        failure: "",
        updated_at: sql`excluded.updated_at`,
        version: sql`${external_auth_links.version} + 1`,
      },
    }),
);

type KnownLink = { user_id: string; provider_id: string; known_version: number };

/** Stores refreshed tokens. Rejected as `stale` when the link was changed or deleted concurrently. */
export const refreshLink = statement<KnownLink & Omit<LinkRow, "failure" | "version" | "created_at">>(
  build
    .update(external_auth_links)
    .set({ ...tokens, failure: "", version: sql`${external_auth_links.version} + 1` })
    .where(isKnownVersion),
  { expect: 1 },
);

/** Marks the link as broken. Rejected as `stale` when it was changed or deleted concurrently. */
export const failLink = statement<KnownLink & { failure: string; updated_at: number }>(
  build
    .update(external_auth_links)
    .set({
      failure: param("failure") as never,
      updated_at: param("updated_at") as never,
      version: sql`${external_auth_links.version} + 1`,
    })
    .where(isKnownVersion),
  { expect: 1 },
);

/** Rejected as `stale` when none exists. */
export const deleteLink = statement<{ user_id: string; provider_id: string }>(
  build.delete(external_auth_links).where(isLink),
  { expect: 1 },
);

/** Deletes everyone's links at one provider. */
export const deleteLinksAt = deleteBy(external_auth_links, external_auth_links.provider_id);
