// Statements whose guards read other rows than they write. Two nodes that write concurrently do not see each other's rows, so both could
// succeed where a single server would reject the second. Statements with the same name are therefore written by one node at a time; SQLite
// has one writer anyway.

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
  /** There are no shares if sharing is disabled; disabling sharing looks for existing shares. */
  "sharing",
  /** Deleting an application also deletes keys that are being created for it. */
  "grants",
  /** Unreferenced contexts are deleted; a chat is dirty when its pinned context differs from its workspace's current one. */
  "contexts",
  /** A user is deleted only without workspaces, and leaves nothing behind; creating something for a user requires that they exist. */
  "users",
  /** An email address links an account only if it has no link; concurrent links must see each other. */
  "links",
  /** The total cost of one person's running model calls. */
  "spending",
] as const;

export type Alone = (typeof ALONE)[number];
