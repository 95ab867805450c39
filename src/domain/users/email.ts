// Addresses of accounts as they are stored and found: one form of each, whichever way it is written (rule ID-30).
import { EMAIL_MISTAKE, isEmailAddress, normalizeEmail } from "#base/email-address.ts";
import { invalidField } from "#base/errors.ts";
import type { Store } from "#db/engine/store.ts";
import { findUserByEmail, type User } from "#db/users/users.ts";

/** Returns the address as it is stored; empty stays empty. 400 when its usual form is no address. */
export const storedEmail = (email: string, field = "email"): string => {
  const normalized = normalizeEmail(email);
  if (email !== "" && !isEmailAddress(normalized)) throw invalidField(field, EMAIL_MISTAKE);
  return normalized;
};

/** Returns who has this address. An account from before addresses had one form is found as it was written. */
export const findAccountByEmail = async (store: Store, email: string): Promise<User | undefined> => {
  const normalized = normalizeEmail(email);
  const found = await store.get(findUserByEmail({ email: normalized }));
  return found || normalized === email ? found : await store.get(findUserByEmail({ email }));
};
