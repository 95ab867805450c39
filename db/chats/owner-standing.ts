// The data that decides whether the turns of a chat may continue: the owner's account and membership, and when a person last wrote.
import { and, desc, eq, exists, isNotNull, sql } from "drizzle-orm";
import { build, eqParam, query } from "../engine/sql.ts";
import { chats, messages } from "../schema/chats.ts";
import { organization_members, users } from "../schema/users.ts";
import { hasSecondFactor } from "../users/api-keys.ts";

const isMember = exists(
  build
    .select({ one: sql`1` })
    .from(organization_members)
    .where(
      and(eq(organization_members.user_id, users.id), eq(organization_members.organization_id, chats.organization_id)),
    ),
);

/** The owner of a chat, even if deleted, and whether the owner is a member of the chat's organization. Parameters: {id}. */
export const findOwnerStanding = query(
  build
    .select({
      key: chats.key,
      owner_id: chats.owner_id,
      deleted: users.deleted,
      status: users.status,
      login_type: users.login_type,
      roles: users.roles,
      second_factor_required: users.second_factor_required,
      has_second_factor: sql<boolean>`${hasSecondFactor}`.mapWith(Boolean).as("has_second_factor"),
      password_reset_at: users.password_reset_at,
      is_member: sql<boolean>`${isMember}`.mapWith(Boolean).as("is_member"),
    })
    .from(chats)
    .innerJoin(users, eq(users.id, chats.owner_id))
    .where(eqParam(chats.id)),
);

/** When a person last wrote a message in the chat. Parameters: {chat}, its key. */
export const findLastPromptTime = query(
  build
    .select({ created_at: messages.created_at })
    .from(messages)
    .where(
      and(
        eqParam(messages.chat),
        eq(messages.role, "user"),
        eq(messages.deleted, false),
        isNotNull(messages.created_by),
      ),
    )
    .orderBy(desc(messages.id))
    .limit(1),
);
