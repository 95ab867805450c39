// The token with which a chat's coding agent calls the gateway, so that the calls are charged to the chat: `slipway-chat.<agent id>.<chat
// id>.<secret>`. Like the workspace's token, it is derived and not stored. It is valid while the chat keeps its owner and workspace and the
// workspace's agent is valid.
import type { Encryption } from "#base/encryption.ts";
import { isSameDigest, isUuid, sha256 } from "#base/ids.ts";

const PREFIX = "slipway-chat.";

/** A chat whose coding agent runs through this agent of its workspace. */
export type ChatAtAgent = { readonly agent_id: string; readonly chat_id: string; readonly owner_id: string };
type Derivation = Pick<Encryption, "deriveUuid">;

/** Returns the token for the coding agent of this chat, always the same. */
export const makeChatToken = (encryption: Derivation, { agent_id, chat_id, owner_id }: ChatAtAgent): string =>
  `${PREFIX}${agent_id}.${chat_id}.${encryption.deriveUuid(`ai_chat_token:${agent_id}:${chat_id}:${owner_id}`)}`;

export const isChatToken = (token: string): boolean => token.startsWith(PREFIX);

/** Returns the agent and chat that a token names. This proves nothing; see `matchesChatToken`. */
export const parseChatToken = (token: string): Pick<ChatAtAgent, "agent_id" | "chat_id"> | undefined => {
  const [agent_id = "", chat_id = ""] = token.slice(PREFIX.length).split(".");
  return isUuid(agent_id) && isUuid(chat_id) ? { agent_id, chat_id } : undefined;
};

export const matchesChatToken = (encryption: Derivation, token: string, chat: ChatAtAgent): boolean =>
  isSameDigest(sha256(token), sha256(makeChatToken(encryption, chat)));
