// Users and their permissions.
import { sql } from "drizzle-orm";
import {
  type AnySQLiteColumn,
  index,
  integer,
  primaryKey,
  sqliteTable,
  text,
  uniqueIndex,
} from "drizzle-orm/sqlite-core";
import { callerTable, declareTable, uncachedTable } from "./cache-dependencies.ts";

export const users = declareTable("callers", "workspaces")(
  "users",
  {
    id: text().primaryKey(),
    email: text().notNull(),
    username: text().notNull(),
    name: text().notNull().default(""),
    avatar_url: text().notNull().default(""),
    /** active | dormant | suspended */
    status: text().$type<"active" | "dormant" | "suspended">().notNull(),
    /** password | github | oidc | token | none */
    login_type: text().notNull(),
    /** argon2id; empty when the login type is not password. */
    password_hash: text().notNull().default(""),
    /** Site roles other than the implied `member`. */
    roles: text({ mode: "json" }).$type<string[]>().notNull().default([]),
    theme_preference: text().notNull().default(""),
    /** Font of terminals in the browser. */
    terminal_font: text().notNull().default(""),
    /** The preferred time of a required stop, such as `CRON_TZ=Europe/Paris 0 22 * * *`; empty: midnight UTC. */
    quiet_hours_schedule: text().notNull().default(""),
    /** Whether the user dismissed the hint that task notifications are off. */
    task_notification_alert_dismissed: integer({ mode: "boolean" }).notNull().default(false),
    /** Whether the user's connections start stopped workspaces, if the template allows it. */
    wake_on_connect: integer({ mode: "boolean" }).notNull().default(true),
    /** The repository with the user's dotfiles, which their workspaces install at each start; empty: none. */
    dotfiles_url: text().notNull().default(""),
    /** Empty: the repository's default branch. */
    dotfiles_branch: text().notNull().default(""),
    /** Runs in the clone; empty: runs the repository's install script, or else links its files. */
    dotfiles_install_command: text().notNull().default(""),
    /** Whether the user has ever started a chat. */
    has_ai_seat: integer({ mode: "boolean" }).notNull().default(false),
    /** The numeric ID of the linked github.com account. */
    github_com_user_id: integer(),
    /** Whether an administrator requires a second factor of this user, regardless of the deployment's setting. */
    second_factor_required: integer({ mode: "boolean" }).notNull().default(false),
    /** When an administrator last set the password; null: never. Turns of chats that the user began earlier are over. */
    password_reset_at: integer(),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
    last_seen_at: integer(),
    deleted: integer({ mode: "boolean" }).notNull().default(false),
  },
  (table) => [
    uniqueIndex("users_username").on(sql`lower(${table.username})`).where(sql`${table.deleted} = 0`),
    // For lists ordered by the owner's name.
    index("users_by_name").on(sql`lower(${table.username})`, table.id),
    uniqueIndex("users_email").on(sql`lower(${table.email})`).where(sql`${table.deleted} = 0 and ${table.email} <> ''`),
  ],
);

export const organizations = sqliteTable(
  "organizations",
  {
    id: text().primaryKey(),
    name: text().notNull(),
    display_name: text().notNull(),
    description: text().notNull().default(""),
    icon: text().notNull().default(""),
    is_default: integer({ mode: "boolean" }).notNull().default(false),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
    deleted: integer({ mode: "boolean" }).notNull().default(false),
  },
  (table) => [uniqueIndex("organizations_name").on(sql`lower(${table.name})`).where(sql`${table.deleted} = 0`)],
);

export const organization_members = declareTable("callers", "workspaces")(
  "organization_members",
  {
    organization_id: text()
      .notNull()
      .references(() => organizations.id),
    user_id: text()
      .notNull()
      .references(() => users.id),
    /** Organization roles other than the implied `organization-member`. */
    roles: text({ mode: "json" }).$type<string[]>().notNull().default([]),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.organization_id, table.user_id] }),
    index("organization_members_user").on(table.user_id),
  ],
);

/** Names that are held for their former users: host names of apps, and what browsers keep for them, contain usernames. */
export const former_usernames = uncachedTable("former_usernames", {
  /** In lower case. */
  name: text().primaryKey(),
  /** Who had it. */
  user_id: text().notNull(),
  until: integer().notNull(),
});

export const api_keys = callerTable(
  "api_keys",
  {
    /** The 10 characters before the hyphen of `<id>-<secret>`. */
    id: text().primaryKey(),
    user_id: text()
      .notNull()
      .references(() => users.id),
    /** SHA-256 of the secret, hex. */
    secret_hash: text().notNull(),
    token_name: text().notNull().default(""),
    /** password, oidc (a sign-in) | token (created on the tokens page) | oauth2_provider_app (granted to an application) */
    login_type: text().notNull(),
    /** all | application_connect | limited: see `scopes`. */
    scope: text().notNull(),
    /** What the key may be used for (src/schema/users/scopes.ts); empty if `scope` determines it. */
    scopes: text({ mode: "json" }).$type<string[]>().notNull().default([]),
    /** Networks in CIDR form from which the key is valid; empty: from everywhere. */
    allowed_addresses: text({ mode: "json" }).$type<string[]>().notNull().default([]),
    /** The recorded address and program of the key's last use. */
    ip_address: text().notNull().default(""),
    user_agent: text().notNull().default(""),
    lifetime_seconds: integer().notNull(),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
    last_used: integer().notNull(),
    expires_at: integer().notNull(),
    /** When the session's user last proved their identity with the password and any second factor; null: never. */
    password_proved_at: integer(),
    factor_proved_at: integer(),
    /** The key that it was created from, and is deleted with; null: none. */
    parent_id: text().references((): AnySQLiteColumn => api_keys.id, { onDelete: "cascade" }),
    /** The owner of the deployment who created it for its user; null: its user. */
    created_by: text(),
    /** Restricts the key to one workspace, even after that is deleted; null: every workspace that its user may open. */
    workspace_id: text(),
  },
  (table) => [
    index("api_keys_user").on(table.user_id),
    index("api_keys_parent").on(table.parent_id).where(sql`${table.parent_id} is not null`),
    index("api_keys_created_by").on(table.created_by).where(sql`${table.created_by} is not null`),
    uniqueIndex("api_keys_name").on(table.user_id, table.token_name).where(sql`${table.token_name} <> ''`),
  ],
);
