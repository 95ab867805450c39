// Defines which rows are deleted together with a user, an organization, a workspace or a chat. test/db/removal.test.ts requires that every
// column with such an ID is listed here, or listed in the test with the reason why its rows stay.
import type { AnySQLiteColumn } from "drizzle-orm/sqlite-core";
import { deleteBy, type Statement } from "./engine/sql.ts";
import {
  api_keys,
  chat_diffs,
  chat_files,
  chat_requests,
  chat_runs,
  chat_shares,
  deploy_keys,
  external_auth_links,
  git_ssh_keys,
  group_members,
  groups,
  invitations,
  known_addresses,
  mcp_servers,
  model_recordings,
  notification_preferences,
  notifications,
  oidc_links,
  organization_members,
  passkeys,
  port_shares,
  provisioner_keys,
  queued_messages,
  recovery_codes,
  repository_prebuilds,
  totp_factors,
  user_secrets,
  user_skills,
  webpush_subscriptions,
} from "./schema/index.ts";

export type Parent = "user" | "organization" | "workspace" | "chat";

/** Each column contains the ID of the entity with which its rows are deleted. In each list, rows precede the rows that they reference. */
export const DELETED_WITH: Readonly<Record<Parent, readonly AnySQLiteColumn[]>> = {
  user: [
    api_keys.user_id,
    known_addresses.user_id,
    git_ssh_keys.user_id,
    deploy_keys.user_id,
    totp_factors.user_id,
    passkeys.user_id,
    recovery_codes.user_id,
    oidc_links.user_id,
    external_auth_links.user_id,
    user_skills.user_id,
    user_secrets.user_id,
    model_recordings.user_id,
    notifications.user_id,
    notification_preferences.user_id,
    webpush_subscriptions.user_id,
    invitations.invited_by,
    organization_members.user_id,
    group_members.user_id,
  ],
  organization: [
    organization_members.organization_id,
    group_members.organization_id,
    groups.organization_id,
    provisioner_keys.organization_id,
    invitations.organization_id,
    mcp_servers.organization_id,
    repository_prebuilds.organization_id,
  ],
  /**
   * Deleted immediately, also if the workspace's files go to the trash. actors/workspace/trash.ts deletes the rows that stay with the
   * files.
   */
  workspace: [port_shares.workspace_id, api_keys.workspace_id],
  chat: [queued_messages.chat, chat_requests.chat, chat_files.chat, chat_shares.chat, chat_runs.chat, chat_diffs.chat],
};

const compile = (columns: readonly AnySQLiteColumn[]) => columns.map((column) => deleteBy(column.table, column));
const STATEMENTS = Object.fromEntries(
  Object.entries(DELETED_WITH).map(([parent, columns]) => [parent, compile(columns)]),
) as Record<Parent, ReturnType<typeof compile>>;

/** Deletes the rows that belong to this user, organization, workspace or chat (by its key). */
export const deleteRowsOf = (parent: Parent, id: string | number): Statement[] =>
  STATEMENTS[parent].map((remove) => remove(id));
