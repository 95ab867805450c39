// Normalizes email addresses of accounts so that each has only one stored form (rule ID-30).
import { EMAIL_PROBLEM, isEmailAddress, normalizeEmail } from "#base/email-address.ts";
import { invalidField } from "#base/errors.ts";
import type { Store } from "#db/engine/store.ts";
import { findUserByEmail, type User } from "#db/users/users.ts";

/** Returns the stored form of an address; empty stays empty. Rejects with 400 when the normalized form is invalid. */
export const toStoredEmail = (email: string, field = "email"): string => {
  const normalized = normalizeEmail(email);
  if (email !== "" && !isEmailAddress(normalized)) throw invalidField(field, EMAIL_PROBLEM);
  return normalized;
};

/** Returns the account with this address. Accounts created before normalization are found by their original form. */
export const findAccountByEmail = async (store: Store, email: string): Promise<User | undefined> => {
  const normalized = normalizeEmail(email);
  const found = await store.get(findUserByEmail({ email: normalized }));
  return found || normalized === email ? found : await store.get(findUserByEmail({ email }));
};
