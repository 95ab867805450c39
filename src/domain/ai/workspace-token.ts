// The token with which programs in a workspace call the gateway: `slipway-ai.<agent id>.<secret>`. The secret is derived from the server's
// key and not stored. It is valid as long as its agent: it ends with the build, the workspace and the account, and each start creates a new
// one.
import type { Encryption } from "#base/encryption.ts";
import { isSameDigest, isUuid, sha256 } from "#base/ids.ts";
import { WORKSPACE_TOKEN_PREFIX } from "#base/secrets/workspace-token.ts";

/** Returns the token for programs in this agent's workspace, always the same. */
export const makeWorkspaceToken = (encryption: Pick<Encryption, "deriveUuid">, agent_id: string): string =>
  `${WORKSPACE_TOKEN_PREFIX}${agent_id}.${encryption.deriveUuid(`ai_workspace_token:${agent_id}`)}`;

/** Returns the agent of a token, valid or not; undefined if the server did not issue the token. */
export const parseWorkspaceToken = (encryption: Pick<Encryption, "deriveUuid">, token: string): string | undefined => {
  const [agent_id = ""] = token.slice(WORKSPACE_TOKEN_PREFIX.length).split(".");
  if (!isUuid(agent_id)) return undefined;
  return isSameDigest(sha256(token), sha256(makeWorkspaceToken(encryption, agent_id))) ? agent_id : undefined;
};
