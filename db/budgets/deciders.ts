// Finds the people who may raise a budget, and the display name of its scope.
import type { BudgetScope } from "#schema/ai/budget.ts";
import type { Query } from "../engine/sql.ts";

export type Decider = { readonly id: string; readonly name: string };

const MAX_DECIDERS = 10;

/**
 * Returns the people who may raise a budget with this scope ID: owners of the deployment, administrators of the scope's
 * organization, and for a chat its owner, who comes first.
 */
export const listDeciders = (scope_id: string): Query<Decider> => ({
  sql: `select u.id, coalesce(nullif(u.name, ''), u.username),
      case when u.id = (select owner_id from chats where id = ?1) then 0 else 1 end as rank
    from users u
    where u.deleted = 0 and u.status = 'active' and (
      exists (select 1 from json_each(u.roles) where value = 'owner')
      or exists (select 1 from organization_members m where m.user_id = u.id
        and m.organization_id in (
          select id from organizations where id = ?1
          union select organization_id from groups where id = ?1
          union select organization_id from templates where id = ?1)
        and exists (select 1 from json_each(m.roles) where value = 'organization-admin'))
      or u.id = (select owner_id from chats where id = ?1))
    order by rank, u.username limit ${MAX_DECIDERS}`,
  params: [scope_id],
  map: ([id, name]) => ({ id: String(id), name: String(name) }),
});

/** Returns the name of the person, group, organization, template or chat with this ID; empty if it does not exist. */
export const findScopeName = (scope_id: string): Query<string> => ({
  sql: `select coalesce(
      (select coalesce(nullif(name, ''), username) from users where id = ?1),
      (select coalesce(nullif(display_name, ''), name) from organizations where id = ?1),
      (select coalesce(nullif(display_name, ''), name) from groups where id = ?1),
      (select coalesce(nullif(display_name, ''), name) from templates where id = ?1),
      (select title from chats where id = ?1), '')`,
  params: [scope_id],
  map: ([name]) => String(name ?? ""),
});

/** The organization of a scope (of a group, template or chat, or the organization itself), and for a chat its owner. */
export type ScopeHome = {
  readonly organization_id: string;
  readonly owner_id: string;
  /** Whether the scope is a sub-chat, which cannot have a budget. */
  readonly is_sub_chat: boolean;
};

/** Returns the home of the entity with this ID in the scope. */
export const findScopeHome = (scope: BudgetScope, scope_id: string): Query<ScopeHome> => ({
  sql: SELECT_HOME[scope],
  params: [scope_id],
  map: ([organization_id, owner_id, parent]) => ({
    organization_id: String(organization_id),
    owner_id: String(owner_id),
    is_sub_chat: parent !== null,
  }),
});

const SELECT_HOME: Readonly<Record<BudgetScope, string>> = {
  everyone: "select '', '', null where ?1 = ''",
  user: "select '', '', null from users where id = ?1 and deleted = 0",
  group: "select organization_id, '', null from groups where id = ?1",
  organization: "select id, '', null from organizations where id = ?1 and deleted = 0",
  template: "select organization_id, '', null from templates where id = ?1 and deleted = 0",
  chat: "select organization_id, owner_id, parent_chat_id from chats where id = ?1",
};
