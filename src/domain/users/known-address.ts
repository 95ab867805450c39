// Addresses where a user has signed in before. Guesses from elsewhere do not affect them there (rule ID-19).

import { normalizeEmail } from "#base/email-address.ts";
import type { Statement } from "#db/engine/sql.ts";
import { deleteOldAddresses, findKnownAddress, rememberAddress } from "#db/known-addresses.ts";
import type { DomainContext } from "../context.ts";
import { toNetwork } from "./throttle.ts";

const KNOWN_TTL_MS = 90 * 86_400_000;

/**
 * Returns whether the account with this email address was signed in to from this address within 90 days. Does the same work when there is
 * no account.
 */
export const isKnownAddress = async (
  { store, clock }: Pick<DomainContext, "store" | "clock">,
  email: string,
  address: string,
): Promise<boolean> => {
  const since = clock.now() - KNOWN_TTL_MS;
  return (
    (await store.get(findKnownAddress({ email: normalizeEmail(email), network: toNetwork(address), since }))) !==
    undefined
  );
};

/** Returns statements for the batch of every sign-in, by any method. */
export const rememberSignInAddress = (user_id: string, address: string, now: number): Statement[] => [
  rememberAddress({ user_id, network: toNetwork(address), last_used: now }),
  deleteOldAddresses({ user_id, since: now - KNOWN_TTL_MS }),
];
