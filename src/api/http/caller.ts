// Identifies the caller. Each request is identified before routing, and again after a slow body; routes declare which kind of caller they
// accept (`{ user: true }`, `{ agent: true }`), and explicit role checks are in src/domain/access.ts.
import { Elysia } from "elysia";
import type { Clock } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";
import type { AgentCaller, Caller, UserCaller } from "#schema/users/caller.ts";

export type { AgentCaller, Caller, UserCaller };

/** The result of identifying a request: a caller, or the reason none exists. */
export type Identity = Caller | AppError;

/** A user who must enroll a second factor first. Only routes that declare `enrolling` accept them. */
export class EnrollmentRequired extends AppError {
  readonly caller: UserCaller;

  constructor(caller: UserCaller) {
    super("forbidden", "A second factor must be enrolled first.", {
      detail: "Do so on the page /account/security.",
      validations: [{ field: "second_factor", detail: "is required of this user" }],
    });
    // Until they enroll, the user has no roles, organizations or groups.
    this.caller = { ...caller, roles: [], organizations: {}, groups: [] };
  }
}

/** A user whose API key lacks the scope. Every route that requires a caller rejects them. */
export class ScopeRefused extends AppError {
  readonly caller: UserCaller;

  constructor(caller: UserCaller, needed: string) {
    super("forbidden", `The scope of this key is ${caller.scopes.join(", ")}.`, {
      detail: `This operation requires ${needed}.`,
    });
    this.caller = caller;
  }
}

/** Returns the sender, whatever they may do; undefined if unknown. */
export const findSender = (identity: Identity): Caller | undefined => {
  if (identity instanceof EnrollmentRequired || identity instanceof ScopeRefused) return identity.caller;
  return identity instanceof AppError ? undefined : identity;
};

/** Looks up the current identity of a request's sender in the store. */
export type IdentitySource = { readonly clock: Pick<Clock, "monotonic">; readonly identify: () => Promise<Identity> };

type Sender = { readonly identity: Identity; readonly identifiedAt: number; readonly source: IdentitySource };

const senders = new WeakMap<Request, Sender>();

const getIdentity = (request: Request): Identity | undefined => senders.get(request)?.identity;

/** Identifies a request's sender; called by src/server.ts before routing. */
export const identifySender = async (request: Request, source: IdentitySource): Promise<Identity> => {
  const identifiedAt = source.clock.monotonic();
  const identity = await source.identify();
  senders.set(request, { identity, identifiedAt, source });
  return identity;
};

/** After a body that arrives more slowly than this, the caller is identified again, because their access may have ended. */
export const MAX_IDENTITY_AGE_MS = 250;

/**
 * Identifies the sender again if that was longer ago than `MAX_IDENTITY_AGE_MS`. Called after the body has been read, so that the handler
 * gets a caller with the rights of that moment (rule HT-50).
 */
export const refreshIdentity = async (request: Request): Promise<void> => {
  const sender = senders.get(request);
  if (sender && sender.source.clock.monotonic() - sender.identifiedAt > MAX_IDENTITY_AGE_MS)
    await identifySender(request, sender.source);
};

const SIGNED_OUT = new AppError(
  "unauthenticated",
  "You are signed out or your session has expired. Please sign in again.",
);

/** Returns the caller, or throws an error with the reason. */
export const getCaller = (request: Request): Caller => {
  const identity = getIdentity(request) ?? SIGNED_OUT;
  if (identity instanceof AppError) throw identity;
  return identity;
};

/** Returns the user, for routes open to anyone; undefined for anonymous callers, agents, and keys without the scope. */
export const findSignedInUser = (request: Request): UserCaller | undefined => {
  const identity = getIdentity(request);
  return identity && !(identity instanceof AppError) && identity.kind === "user" ? identity : undefined;
};

/** Returns whether the sender uses upstream's header and cookie names; false for anonymous callers. */
export const isCompat = (request: Request): boolean => {
  const identity = getIdentity(request) ?? SIGNED_OUT;
  return !(identity instanceof AppError) && identity.compat;
};
/** Throws 401 for anonymous callers. Known callers pass whatever they may do, because the route checks that once the body is read. */
export const requireKnownCaller = (request: Request): void => {
  if (!findSender(getIdentity(request) ?? SIGNED_OUT)) getCaller(request);
};

/** Returns the ID of the user or agent that sent a request; undefined if unknown. */
export const findSenderId = (request: Request): string | undefined => {
  const sender = findSender(getIdentity(request) ?? SIGNED_OUT);
  return sender && (sender.kind === "user" ? sender.user_id : sender.owner_id);
};

/** Returns the caller, including a user who must enroll a second factor first. */
const getSender = (request: Request): Caller => {
  const identity = getIdentity(request);
  return identity instanceof EnrollmentRequired ? identity.caller : getCaller(request);
};

/** Returns the signed-in user; an agent token is not accepted here (facts/platform 3.8). */
export const getUser = (request: Request): UserCaller => requireUser(getCaller(request));

/** Returns the signed-in user, including one who must enroll a second factor first. */
const getEnrollingUser = (request: Request): UserCaller => requireUser(getSender(request));

const requireUser = (caller: Caller): UserCaller => {
  if (caller.kind !== "user") throw SIGNED_OUT;
  return caller;
};

/** Returns the workspace agent whose token was sent; a user's token is not accepted here. */
export const getAgent = (request: Request): AgentCaller => {
  const caller = getCaller(request);
  if (caller.kind !== "agent") throw SIGNED_OUT;
  return caller;
};

type WithRequest = { request: Request };

/**
 * Route options: `user: true`, `enrolling: true` (also users who must enroll a second factor first), `agent: true` or `anyone: true`
 * (either). Each gives the handler a typed `caller`. The check runs before parameters and bodies are validated, so an anonymous caller
 * always gets 401.
 */
export const callers = new Elysia({ name: "callers" }).macro({
  user: {
    detail: { security: [{ session_token: [] }] },
    transform: ({ request }: WithRequest) => void getUser(request),
    resolve: ({ request }: WithRequest) => ({ caller: getUser(request) }),
  },
  enrolling: {
    detail: { security: [{ session_token: [] }] },
    transform: ({ request }: WithRequest) => void getEnrollingUser(request),
    resolve: ({ request }: WithRequest) => ({ caller: getEnrollingUser(request) }),
  },
  agent: {
    detail: { security: [{ agent_token: [] }] },
    transform: ({ request }: WithRequest) => void getAgent(request),
    resolve: ({ request }: WithRequest) => ({ caller: getAgent(request) }),
  },
  anyone: {
    detail: { security: [{ session_token: [] }, { agent_token: [] }] },
    transform: ({ request }: WithRequest) => void getCaller(request),
    resolve: ({ request }: WithRequest) => ({ caller: getCaller(request) }),
  },
});
