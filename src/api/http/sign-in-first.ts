// Paths that a person opens in a browser and that require sign-in: anonymous visitors go to the sign-in page and return afterwards.
import { AppError } from "#base/errors.ts";
import { getUser } from "./caller.ts";

/** Returns whether the caller is signed in. Throws if they are, but their key lacks the scope or they must enroll a second factor first. */
export const isSignedIn = (request: Request): boolean => {
  try {
    return getUser(request) !== undefined;
  } catch (error) {
    if (error instanceof AppError && error.kind === "unauthenticated") return false;
    throw error;
  }
};

/** Redirects a browser to the sign-in page, and from there back. */
export const redirectToSignIn = ({ url }: Request): Response => {
  const { pathname, search } = new URL(url);
  return redirectTo(`/login?${new URLSearchParams({ redirect: `${pathname}${search}` })}`);
};

/** Returns a redirect that is not cached. */
export const redirectTo = (location: string): Response =>
  new Response(null, {
    status: 307,
    headers: { location, "cache-control": "no-store", "referrer-policy": "no-referrer" },
  });
