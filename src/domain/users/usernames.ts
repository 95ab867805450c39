// User names that would be mistaken for a path of the API.
import { invalidField } from "#base/errors.ts";

const RESERVED = new Set([
  ...["me", "first", "login", "logout", "authmethods", "validate-password", "otp", "roles", "oauth2", "oidc"],
]);

/** Throws 400 for a name that a path needs for itself. The form of the name is checked by the schema. */
export const checkUsername = (username: string): void => {
  if (RESERVED.has(username.toLowerCase())) throw invalidField("username", "This name is reserved.");
};
