// A commit that was refused because a name is taken, as the 409 that says which.
import { type AppError, conflict } from "#base/errors.ts";
import { CommitError } from "#db/engine/store.ts";

/** `names` maps what the store says (an index or a column) to the field of the request. Other errors are thrown as they are. */
export const takenOr = (error: unknown, names: Readonly<Record<string, string>>): AppError => {
  if (!(error instanceof CommitError) || error.reason !== "constraint") throw error;
  const field = Object.entries(names).find(([name]) => error.constraint.includes(name))?.[1];
  if (field === undefined) throw error;
  return conflict(`This ${field.replaceAll("_", " ")} is in use already.`, [
    { field, detail: "This value is already in use and must be unique." },
  ]);
};

/** The unique values of users. */
export const USER_NAMES = { users_username: "username", users_email: "email" } as const;
