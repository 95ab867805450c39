// Paths that a person opens in a browser and that need someone: who is not signed in goes to the sign-in page and returns.
import { AppError } from "#base/errors.ts";
import { getUser } from "./caller.ts";

/** Whether the request comes from someone; throws what is wrong with the key otherwise. */
export const isSomebody = (request: Request): boolean => {
  try {
    return getUser(request) !== undefined;
  } catch (error) {
    if (error instanceof AppError && error.kind === "unauthenticated") return false;
    throw error;
  }
};

/** Sends a browser to the sign-in page, and from there back to where it was. */
export const signInFirst = ({ url }: Request): Response => {
  const { pathname, search } = new URL(url);
  return redirectTo(`/login?${new URLSearchParams({ redirect: `${pathname}${search}` })}`);
};

/** A redirect that nobody keeps. */
export const redirectTo = (location: string): Response =>
  new Response(null, {
    status: 307,
    headers: { location, "cache-control": "no-store", "referrer-policy": "no-referrer" },
  });
