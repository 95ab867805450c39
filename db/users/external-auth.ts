// Linked accounts at external-auth providers. Written by src/api/external-auth, which guards every change with the row's version.
import { and, asc, eq, sql } from "drizzle-orm";
import { build, deleteBy, given, query, statement } from "../engine/sql.ts";
import { external_auth_links } from "../schema/external-auth.ts";
import { users } from "../schema/users.ts";

export type LinkRow = typeof external_auth_links.$inferSelect;

const place = sql.placeholder;
const ofUser = given(external_auth_links.user_id);
const oneLink = and(ofUser, given(external_auth_links.provider_id));
const known = and(oneLink, eq(external_auth_links.version, place("known_version")));

export const findLink = query(build.select().from(external_auth_links).where(oneLink));
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
export const listLinks = query(build.select().from(external_auth_links).where(ofUser));

const tokens = {
  sealed_tokens: place("sealed_tokens") as never,
  expires_at: place("expires_at") as never,
  has_refresh_token: place("has_refresh_token") as never,
  updated_at: place("updated_at") as never,
};

/** Inserts a link, or replaces its tokens. New tokens always win. */
export const putLink = statement<Omit<LinkRow, "failure" | "version">>(
  build
    .insert(external_auth_links)
    .values({
      user_id: place("user_id"),
      provider_id: place("provider_id"),
      ...tokens,
      failure: "",
      version: 0,
      created_at: place("created_at") as never,
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

type Known = { user_id: string; provider_id: string; known_version: number };

/** Stores refreshed tokens. Rejected as `stale` when the link was changed or deleted concurrently. */
export const refreshLink = statement<Known & Omit<LinkRow, "failure" | "version" | "created_at">>(
  build
    .update(external_auth_links)
    .set({ ...tokens, failure: "", version: sql`${external_auth_links.version} + 1` })
    .where(known),
  { expect: 1 },
);

/** Marks the link as broken. Rejected as `stale` when it was changed or deleted concurrently. */
export const failLink = statement<Known & { failure: string; updated_at: number }>(
  build
    .update(external_auth_links)
    .set({
      failure: place("failure") as never,
      updated_at: place("updated_at") as never,
      version: sql`${external_auth_links.version} + 1`,
    })
    .where(known),
  { expect: 1 },
);

/** Rejected as `stale` when none exists. */
export const deleteLink = statement<{ user_id: string; provider_id: string }>(
  build.delete(external_auth_links).where(oneLink),
  { expect: 1 },
);

export const deleteLinksByUser = deleteBy(external_auth_links, external_auth_links.user_id);

/** Deletes everyone's links at one provider. */
export const deleteLinksAt = deleteBy(external_auth_links, external_auth_links.provider_id);
