// Converts a commit that failed because a name is taken into a 409 that names the field.
import { type AppError, conflict } from "#base/errors.ts";
import { CommitError } from "#db/engine/store.ts";

/** `names` maps the store's index or column to the field of the request. Other errors are rethrown. */
export const toTakenConflict = (error: unknown, names: Readonly<Record<string, string>>): AppError => {
  if (!(error instanceof CommitError) || error.reason !== "constraint") throw error;
  const field = Object.entries(names).find(([name]) => error.constraint.includes(name))?.[1];
  if (field === undefined) throw error;
  return conflict(`This ${field.replaceAll("_", " ")} is already in use.`, [
    { field, detail: "This value is already in use and must be unique." },
  ]);
};

/** Maps the unique indexes of users to fields of the request. */
export const USER_UNIQUE_FIELDS = { users_username: "username", users_email: "email" } as const;
