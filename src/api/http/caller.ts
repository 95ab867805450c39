// Who is asking. Each request is identified once, before it is routed; routes then say which kind of caller they take
// (`{ user: true }`, `{ agent: true }`), and hand-written checks of roles are in src/domain/access.ts.
import { Elysia } from "elysia";
import { AppError } from "#base/errors.ts";
import type { AgentCaller, Caller, UserCaller } from "#schema/users/caller.ts";

export type { AgentCaller, Caller, UserCaller };

/** The outcome of identifying a request: a caller, or why there is none. */
export type Identity = Caller | AppError;

/** Someone who must enrol a second factor before anything else: nobody for routes that do not say `enrolling`. */
export class EnrolmentNeeded extends AppError {
  readonly caller: UserCaller;

  constructor(caller: UserCaller) {
    super("forbidden", "A second factor must be enrolled first.", {
      detail: "Do so on the page /account/security.",
      validations: [{ field: "second_factor", detail: "is required of this user" }],
    });
    // Whatever they may do otherwise, until then they are only themselves.
    this.caller = { ...caller, roles: [], organizations: {}, groups: [] };
  }
}

/** Someone whose key may not be used for this: nobody for every route that needs someone. */
export class ScopeRefused extends AppError {
  readonly caller: UserCaller;

  constructor(caller: UserCaller, needed: string) {
    super("forbidden", `The scope of this key is ${caller.scopes.join(", ")}.`, {
      detail: `This takes ${needed}.`,
    });
    this.caller = caller;
  }
}

/** Who sent the request, whatever they may do; undefined: nobody we know. */
export const somebodyIn = (identity: Identity): Caller | undefined => {
  if (identity instanceof EnrolmentNeeded || identity instanceof ScopeRefused) return identity.caller;
  return identity instanceof AppError ? undefined : identity;
};

const identities = new WeakMap<Request, Identity>();

/** Remembers who sent this request; called once by src/server.ts before routing. */
export const remember = (request: Request, identity: Identity): void => void identities.set(request, identity);

const NOBODY = new AppError("unauthenticated", "You are signed out or your session has expired. Please sign in again.");

/** The caller, or the 401 that says why there is none. */
export const getCaller = (request: Request): Caller => {
  const identity = identities.get(request) ?? NOBODY;
  if (identity instanceof AppError) throw identity;
  return identity;
};

/** The user who sent it, for routes that anyone may ask; undefined for strangers, agents and keys that may not. */
export const userIn = (request: Request): UserCaller | undefined => {
  const identity = identities.get(request);
  return identity && !(identity instanceof AppError) && identity.kind === "user" ? identity : undefined;
};

/** Whether the sender signs in under the upstream names; false for strangers. */
export const isCompat = (request: Request): boolean => {
  const identity = identities.get(request) ?? NOBODY;
  return !(identity instanceof AppError) && identity.compat;
};
/** Throws the 401 of strangers; anyone who is known passes, whatever they may do, which the route says once the body is read. */
export const mustBeKnown = (request: Request): void => {
  if (!somebodyIn(identities.get(request) ?? NOBODY)) getCaller(request);
};

/** The caller, also when it is someone who has to enrol a second factor first. */
const getSender = (request: Request): Caller => {
  const identity = identities.get(request);
  return identity instanceof EnrolmentNeeded ? identity.caller : getCaller(request);
};

/** The signed-in user; an agent token is as good as none here (facts/platform 3.8). */
export const getUser = (request: Request): UserCaller => asUser(getCaller(request));

/** The same for what people may do who have to enrol a second factor first. */
const getEnrollingUser = (request: Request): UserCaller => asUser(getSender(request));

const asUser = (caller: Caller): UserCaller => {
  if (caller.kind !== "user") throw NOBODY;
  return caller;
};

/** The workspace agent whose token was sent; a user token is as good as none here. */
export const getAgent = (request: Request): AgentCaller => {
  const caller = getCaller(request);
  if (caller.kind !== "agent") throw NOBODY;
  return caller;
};

type WithRequest = { request: Request };

/**
 * Route options: `user: true`, `enrolling: true` (also users who have to enrol a second factor first), `agent: true` or `anyone: true`
 * (either), each giving the handler a typed `caller`.
 * The check runs before parameters and bodies are validated, so a stranger always gets 401.
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
