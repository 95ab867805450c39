// Users' git key pairs. Created on first use and replaced through the API.
import { sql } from "drizzle-orm";
import { build, findBy, statement } from "../engine/sql.ts";
import { git_ssh_keys } from "../schema/git-ssh-keys.ts";

export type GitSshKeyRow = typeof git_ssh_keys.$inferSelect;

export const findGitSshKey = findBy(git_ssh_keys, git_ssh_keys.user_id);

const param = sql.placeholder;
const row = {
  user_id: param("user_id"),
  public_key: param("public_key"),
  sealed_private_key: param("sealed_private_key"),
  created_at: param("created_at"),
  updated_at: param("updated_at"),
};

/** Does nothing when the user already has a pair. The loser of a race reads the winner's. */
export const insertGitSshKey = statement<GitSshKeyRow>(build.insert(git_ssh_keys).values(row).onConflictDoNothing());

/** Replaces the pair and keeps `created_at` of the first one. */
export const replaceGitSshKey = statement<GitSshKeyRow>(
  build
    .insert(git_ssh_keys)
    .values(row)
    .onConflictDoUpdate({
      target: git_ssh_keys.user_id,
      set: {
        public_key: sql`excluded.public_key`,
        sealed_private_key: sql`excluded.sealed_private_key`,
        updated_at: sql`excluded.updated_at`,
      },
    }),
);
