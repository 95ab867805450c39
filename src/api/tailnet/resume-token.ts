// Lets a reconnecting client keep its peer ID, so that its connections to agents continue (facts/wire 2, RefreshResumeToken). The token is
// encrypted and valid only for its holder and purpose, so a client cannot take over another's peer. [TL-14]
import { type Encryption, UnsealError } from "#base/encryption.ts";
import { isUuid } from "#base/ids.ts";

const TOKEN_TTL_MS = 24 * 3_600_000;
/** The client refreshes the token after half of its lifetime. */
const REFRESH_INTERVAL_SECONDS = TOKEN_TTL_MS / 2 / 1000;

export type ResumeToken = { token: string; refresh_in_seconds: number; expires_at: number };

/** `holder` says who may use it for what, such as `tailnet:<user id>`. */
export const makeResumeToken = (encryption: Encryption, peer_id: string, holder: string, now: number): ResumeToken => {
  const expires_at = now + TOKEN_TTL_MS;
  return {
    token: encryption.seal(`${peer_id} ${expires_at}`, toSealContext(holder)),
    refresh_in_seconds: REFRESH_INTERVAL_SECONDS,
    expires_at,
  };
};

/** Returns the peer ID in a token; undefined when it was altered, belongs to another holder or has expired. */
export const openResumeToken = (
  encryption: Encryption,
  token: string,
  holder: string,
  now: number,
): string | undefined => {
  try {
    const [id = "", expires_at = ""] = encryption.open(token, toSealContext(holder)).split(" ");
    return isUuid(id) && Number(expires_at) > now ? id : undefined;
  } catch (error) {
    if (error instanceof UnsealError) return undefined;
    throw error;
  }
};

const toSealContext = (holder: string): string => `tailnet_resume:${holder}`;
