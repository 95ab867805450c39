// Wire shapes of git key pairs (specification "Git SSH key", facts/platform 9.2).
import { type Static, Type as t } from "@sinclair/typebox";
import { namedObject } from "../shape-names.ts";

const public_key = t.String({ description: "The public key, in the format of `authorized_keys`." });

/** Returned only to agents of the user's own workspaces. */
export const AgentGitSshKey = namedObject("AgentGitSshKey", {
  public_key,
  private_key: t.String({ description: "The private key, in OpenSSH format." }),
  is_deploy_key: t.Optional(
    t.Literal(true, { description: "Whether the key is the owner's deploy key for this remote." }),
  ),
});
export type AgentGitSshKey = Static<typeof AgentGitSshKey>;

/** The public view of a key pair. */
export const GitSshKey = namedObject("GitSshKey", {
  user_id: t.String({ format: "uuid" }),
  created_at: t.String({ format: "date-time" }),
  updated_at: t.String({ format: "date-time", description: "When the key pair was last regenerated." }),
  public_key,
});
export type GitSshKey = Static<typeof GitSshKey>;
