// Who may be on the other end of a request, as plain data: handlers, actors and access rules all speak of it.

export type UserCaller = {
  readonly kind: "user";
  readonly user_id: string;
  readonly username: string;
  /** Site roles; `member` is implied. */
  readonly roles: readonly string[];
  /** Organization id -> roles there; `organization-member` is implied. */
  readonly organizations: Readonly<Record<string, readonly string[]>>;
  /** Ids of groups; the group of all members of an organization has the organization's. */
  readonly groups: readonly string[];
  readonly key_id: string;
  /** What the key may be used for (src/schema/users/scopes.ts). */
  readonly scopes: readonly string[];
  /** The one workspace the key is for; undefined: every workspace its user may open. */
  readonly only_workspace?: string | undefined;
  /** The key that this one was made from and ends with. */
  readonly parent_key_id?: string | undefined;
  /** True for clients of the upstream kind: 201 instead of 200, plain nullable UUIDs (docs/spec/design.md 6). */
  readonly compat: boolean;
};

export type AgentCaller = {
  readonly kind: "agent";
  readonly agent_id: string;
  /** Integer key of the agent. */
  readonly agent_key: number;
  readonly agent_name: string;
  readonly build_id: string;
  readonly workspace_id: string;
  readonly owner_id: string;
  /** all | no_user_data */
  readonly api_key_scope: string;
  readonly compat: boolean;
};

export type Caller = UserCaller | AgentCaller;
