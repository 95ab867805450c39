// Addresses where someone has signed in before. Guesses from elsewhere do not count there (rule ID-19).

import { normalizeEmail } from "#base/email-address.ts";
import type { Statement } from "#db/engine/sql.ts";
import { findKnownAddress, forgetAddresses, rememberAddress } from "#db/known-addresses.ts";
import type { DomainContext } from "../context.ts";
import { toNetwork } from "./throttle.ts";

const KNOWN_MS = 90 * 86_400_000;

/** Whether the account with this email address has been signed in to from there within 90 days. The same work when there is no account. */
export const isKnownAddress = async (
  { store, clock }: Pick<DomainContext, "store" | "clock">,
  email: string,
  address: string,
): Promise<boolean> => {
  const since = clock.now() - KNOWN_MS;
  return (
    (await store.get(findKnownAddress({ email: normalizeEmail(email), network: toNetwork(address), since }))) !==
    undefined
  );
};

/** For the batch of every sign-in, by whatever means. */
export const rememberedAddress = (user_id: string, address: string, now: number): Statement[] => [
  rememberAddress({ user_id, network: toNetwork(address), last_used: now }),
  forgetAddresses({ user_id, since: now - KNOWN_MS }),
];
