// The git key pairs of users. Written by their own routes; the first one to need a pair makes it.
import { sql } from "drizzle-orm";
import { build, deleteBy, findBy, statement } from "../engine/sql.ts";
import { git_ssh_keys } from "../schema/git-ssh-keys.ts";

export type GitSshKeyRow = typeof git_ssh_keys.$inferSelect;

export const findGitSshKey = findBy(git_ssh_keys, git_ssh_keys.user_id);

const place = sql.placeholder;
const row = {
  user_id: place("user_id"),
  public_key: place("public_key"),
  sealed_private_key: place("sealed_private_key"),
  created_at: place("created_at"),
  updated_at: place("updated_at"),
};

/** Does nothing when the user has a pair already: anyone who lost the race reads the winner's. */
export const insertGitSshKey = statement<GitSshKeyRow>(build.insert(git_ssh_keys).values(row).onConflictDoNothing());

/** Puts this pair in the place of the one before; `created_at` stays that of the first. */
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

export const deleteGitSshKey = deleteBy(git_ssh_keys, git_ssh_keys.user_id);
