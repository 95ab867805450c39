// The sender of a request as plain data, shared by handlers, actors and access rules.

export type UserCaller = {
  readonly kind: "user";
  readonly user_id: string;
  readonly username: string;
  /** Site roles; `member` is implied. */
  readonly roles: readonly string[];
  /** Organization ID to roles there; `organization-member` is implied. */
  readonly organizations: Readonly<Record<string, readonly string[]>>;
  /** Group IDs; the group of all members of an organization has the organization's ID. */
  readonly groups: readonly string[];
  readonly key_id: string;
  /** The scopes of the key (src/schema/users/scopes.ts). */
  readonly scopes: readonly string[];
  /** The only workspace for which the key is valid; undefined means all workspaces that its user can open. */
  readonly only_workspace?: string | undefined;
  /** True for a token that was granted to an application (src/domain/oauth2). */
  readonly is_application?: boolean;
  /** The key from which this one was derived. This key expires together with it. */
  readonly parent_key_id?: string | undefined;
  /** True for upstream clients: 201 instead of 200, plain nullable UUIDs (docs/spec/design.md 6). */
  readonly compat: boolean;
};

export type AgentCaller = {
  readonly kind: "agent";
  readonly agent_id: string;
  /** Integer key of the agent. */
  readonly agent_key: number;
  readonly agent_name: string;
  readonly build_id: string;
  /** How often the agent's token has been replaced. */
  readonly token_generation: number;
  readonly workspace_id: string;
  readonly owner_id: string;
  /** Either `all` or `no_user_data`. */
  readonly api_key_scope: string;
  readonly compat: boolean;
};

export type Caller = UserCaller | AgentCaller;
