// Maps errors of a provider sign-in to responses (rule OI-8).
import { AppError } from "#base/errors.ts";
import { log } from "#base/log.ts";
import { CommitError } from "#db/engine/store.ts";
import { OidcError } from "#src/authentication/oidc.ts";

/** Rethrows other errors. */
export const toSignInError = (error: unknown): AppError => {
  if (error instanceof AppError) return error;
  if (error instanceof CommitError && error.reason === "constraint") {
    return new AppError("conflict", "Someone else signed up with the same name at the same time. Sign in again.");
  }
  if (error instanceof CommitError && error.reason === "stale") {
    return new AppError("conflict", "Your account was changed at the same time. Sign in again.");
  }
  if (!(error instanceof OidcError)) throw error;
  if (error.kind !== "denied")
    log("http").warn("a sign-in at a provider failed: {error}", { error: error.cause ?? error });
  return new AppError(error.kind === "unavailable" ? "overloaded" : "unauthenticated", error.message);
};
