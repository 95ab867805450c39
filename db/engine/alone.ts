// Guards that look at other rows than they write. Two nodes that write at the same time do not see each other's rows, so both could succeed where
// on one server the second is refused. Statements of one name are therefore written by one node at a time; SQLite has one writer anyway.

/** The names, in the order in which their locks are taken. Their places are their numbers on every node of any version: new ones come last. */
export const ALONE = [
  /** A template is deleted while no workspace is of it; a workspace is made of one that is there. */
  "templates",
  /** The last owner stays. Two who take it from each other would otherwise each wait for the other. */
  "owners",
  /** What the workspaces of one owner cost together. They may be of several parts, since a claimed prebuild keeps its own. */
  "quota",
  /** So many secrets a person, so many skills, and so many ways of trials. */
  "personal",
  /** Nothing is shared where that is switched off; who switches it off looks for what is shared already. */
  "sharing",
  /** The keys of an application go with it, also those that are made in the meantime. */
  "grants",
  /** Contexts that nobody names are dropped; a chat is dirty when it has pinned another than its workspace tells now. */
  "contexts",
  /** A user is deleted while no workspace is theirs, and leaves nothing; anyone who makes something for them finds them there. */
  "users",
  /** An address links an account that has no link; anyone who links another one in the meantime looks for the first. */
  "links",
  /** What the open model calls of one person may cost together. */
  "spending",
] as const;

export type Alone = (typeof ALONE)[number];
