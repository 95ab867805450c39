// Statements whose guards read other rows than they write. Two nodes that write concurrently do not see each other's rows, so both could
// succeed where a single server would reject the second. Therefore, only one node at a time writes statements with the same name. SQLite
// has only one writer anyway.

/**
 * The names, in the order in which their locks are taken. Positions are lock numbers shared by nodes of all versions, so add new names at
 * the end.
 */
export const ALONE = [
  /** A template is deleted only without workspaces, and a workspace is created only from an existing template. */
  "templates",
  /** The deployment keeps at least one owner. Without this lock, two owners who demote each other would deadlock. */
  "owners",
  /** The total cost of an owner's workspaces. They may be in several shards, since a claimed prebuild keeps its shard. */
  "quota",
  /** Limits per person on secrets, skills, and ways of trials. */
  "personal",
  /** While sharing is disabled, nothing is shared; disabling sharing revokes existing shares. */
  "sharing",
  /** Deleting an application also deletes keys that are being created for it. */
  "grants",
  /** Contexts without references are deleted. A chat is dirty when its pinned context differs from its workspace's current one. */
  "contexts",
  /**
   * A user is deleted only without workspaces, together with all other data of the user. Creating data for a user requires an existing
   * user.
   */
  "users",
  /** An email address links an account only if it has no link; concurrent links must see each other. */
  "links",
  /** The total cost of one person's running model calls. */
  "spending",
] as const;

export type Alone = (typeof ALONE)[number];
