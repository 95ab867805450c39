// Metadata of an operation, declared with its route: `detail: operation({ tags, summary, example, limit, audit })`. The texts go into the
// OpenAPI document; the server reads the rest from the routes (./operations.ts). A route that needs none of it has a plain `detail`.
import type { TSchema } from "@sinclair/typebox";
import type { DocumentDecoration } from "elysia";
import type { AccessScope, ActionScope } from "#schema/users/scopes.ts";
import type { AuditTarget } from "../audit/targets.ts";
import type { PlacementKind } from "./placement/strategies.ts";

/**
 * The allowed callers, in relation to the resource in the path; the authorization matrix test tries every kind of caller (rule SC-1).
 * Others get 404 if they cannot see the resource, and 403 otherwise.
 * - `anyone`: also without a token. `credentials`: the request itself carries the proof, as a sign-in does. `agent`: a workspace's agent.
 * - `users`: everyone who is signed in. `members`: of the organization.
 * - `owner`: the resource's owner, people it is shared with, and administrators, as the domain's check decides. `owner_only`: not even site owners.
 * - `organization_admins`, `user_admins`, `admins`: administrators of the organization, the users, the deployment. `admins_hidden`: hidden
 *   from others, who get 404.
 */
export type Access =
  | "anyone"
  | "credentials"
  | "agent"
  | "users"
  | "members"
  | "owner"
  | "owner_only"
  | "organization_admins"
  | "user_admins"
  | "admins"
  | "admins_hidden";

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/**
 * A scope; several scopes that a key needs together; or several of which one is enough, where the route then checks for the right one.
 * `any`: every key except one that only opens apps. `all`: a key with full access.
 */
export type ScopeNeed =
  | "any"
  | "all"
  | ActionScope
  | readonly ActionScope[]
  | { readonly oneOf: readonly ActionScope[] };

/** How the server handles an operation; omitted members have defaults. */
export type OperationOptions = {
  /** A valid body that pages can fill their fields with. Without one, pages generate values for every field, which validation rejects. */
  readonly example?: { readonly [field: string]: Json };
  /** Maximum bytes of the body; by default 4 MiB, or 64 KiB for anonymous routes. */
  readonly limit?: number;
  /**
   * `public`: JSON from anonymous callers is accepted too, and is required. `stream`: the handler reads the body itself, within the limit.
   */
  readonly reads?: "public" | "stream";
  /** The allowed callers. An operation without it has its own row in test/api/edge/matrix-table.ts. */
  readonly access?: Access;
  /** The scope a key needs (rule ID-21); required for every operation for users. */
  readonly scope?: ScopeNeed;
  /**
   * Set if the operation changes who has access to something, or ends or changes a sign-in, token or account: the scope that an
   * application's token must have by name. `never`: applications cannot do it (rule OA-22).
   */
  readonly changesAccess?: AccessScope | "never";
  /**
   * True if what it sets runs, instructs, deletes or silences something later, such as dotfiles, prompts and retention, or if it deletes such
   * a setting: applications cannot do it, because their authorization may have ended by then (rule OA-23).
   */
  readonly outlivesGrant?: true;
  /** Replaces `scope` when the path says `me` in place of a user. */
  readonly scopeForSelf?: ScopeNeed;
  /**
   * Which node of a cluster handles it (rule CP-20), determined by the resource it names. Defaults to the first node. Required for every
   * operation whose path names a resource that belongs to a node.
   */
  readonly placement?: PlacementKind;
  /** The attempted change, for the audit log of rejected requests. If omitted, rejections are not recorded (rule AU-17). */
  readonly audit?: AuditTarget;
  /** `upload`: counted separately, with a lower limit per minute (facts/platform 3.1). */
  readonly rate?: "upload";
  /** Request headers that the handler reads itself. */
  readonly headers?: { readonly [name: string]: Json };
  /** Content types of a body that is not JSON. */
  readonly accepts?: readonly string[];
  /** Content types of the response, unless it is only JSON. */
  readonly answers?: readonly string[];
  /** A WebSocket that needs only the store and events that every node receives (EVENTS_FOR_ALL_NODES), so read-only nodes serve it too. */
  readonly anywhere?: true;
  /** Schema of each message of a stream, over WebSocket or as the `data` of an event. */
  readonly sends?: TSchema;
  /** Schema of each message a client sends over the WebSocket. */
  readonly takes?: TSchema;
};

/** The key under which a route stores its declaration. */
export const DECLARED = "x-operation";

const OPTION_NAMES = [
  ...([
    "access",
    "scope",
    "scopeForSelf",
    "changesAccess",
    "outlivesGrant",
    "placement",
    "example",
    "limit",
    "reads",
    "audit",
    "rate",
    "headers",
  ] as const),
  ...(["accepts", "answers", "anywhere", "sends", "takes"] as const),
] satisfies readonly (keyof OperationOptions)[];
const isDeclared = (member: string): boolean => (OPTION_NAMES as readonly string[]).includes(member);

/** Returns the `detail` of a route. */
export const operation = (options: DocumentDecoration & OperationOptions): DocumentDecoration => {
  const members = Object.entries(options).filter(([, value]) => value !== undefined);
  const documentation = Object.fromEntries(members.filter(([member]) => !isDeclared(member)));
  const declared: OperationOptions = Object.fromEntries(members.filter(([member]) => isDeclared(member)));
  return { ...documentation, [DECLARED]: declared } as DocumentDecoration;
};

const NO_OPTIONS: OperationOptions = {};

/** Returns a route's declaration. */
export const getOptions = (hooks: object): OperationOptions =>
  (hooks as { detail?: { [DECLARED]?: OperationOptions } }).detail?.[DECLARED] ?? NO_OPTIONS;
