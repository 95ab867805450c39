// What an operation is alongside its handler, declared where the route is: `detail: operation({ tags, summary, example, limit, audit })`.
// The words go into the OpenAPI document; the rest is read from the routes by the server (./operations.ts). A route that needs none of
// it has a plain `detail`.
import type { TSchema } from "@sinclair/typebox";
import type { DocumentDecoration } from "elysia";
import type { ActionScope } from "#schema/users/scopes.ts";
import type { AuditTarget } from "../audit/targets.ts";
import type { Way } from "./placement/ways.ts";

/**
 * Who may, by relation to what the path names; the authorization matrix asks every kind of caller (rule SC-1). Anyone else gets 404 where the
 * thing is invisible to them, else 403.
 * - `anyone`: also without a token. `credentials`: the request itself carries the proof, as a sign-in does. `agent`: a workspace's agent.
 * - `users`: everyone who is signed in. `members`: of the organization.
 * - `owner`: whose thing it is, and owners of the deployment. `owner_only`: not even those.
 * - `organization_admins`, `user_admins`, `admins`: who administers the organization, the users, the deployment. `admins_hidden`: others do
 *   not learn that there is such a thing.
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
 * A scope, several of which a key needs all, or several of which one is enough to ask: the route then asks for the right one. `any`: each key
 * but one that opens apps only. `all`: a key for everything.
 */
export type ScopeNeed =
  | "any"
  | "all"
  | ActionScope
  | readonly ActionScope[]
  | { readonly oneOf: readonly ActionScope[] };

/** What the server does with an operation; members that are left away have their defaults. */
export type Declared = {
  /** A body that works, for pages that fill their fields with it. Without one they make one up of every field, which the rules refuse. */
  readonly example?: { readonly [field: string]: Json };
  /** The most bytes that a body may have; 4 MiB as a rule, 64 KiB for what strangers may call. */
  readonly limit?: number;
  /** `public`: a stranger's JSON is read, too, and there must be one. `stream`: the handler reads the body on its own, within the limit. */
  readonly reads?: "public" | "stream";
  /** Who may. An operation without it has a row of its own in test/api/edge/matrix-table.ts. */
  readonly access?: Access;
  /** What a key with scopes needs (rule ID-21); every operation for people declares it. */
  readonly scope?: ScopeNeed;
  /** The same where the path says `me` in place of a user, if that is another. */
  readonly scopeForSelf?: ScopeNeed;
  /**
   * Which node of a cluster does it (rule CP-20): by the thing that it names. Without it the first node does. Every operation whose path
   * names a thing that has a node of its own declares it.
   */
  readonly placement?: Way;
  /** What it would have changed, for the audit log of refusals. Left away: a refusal leaves no entry (rule AU-17). */
  readonly audit?: AuditTarget;
  /** `upload`: counted apart from other calls, and fewer of them a minute (facts/platform 3.1). */
  readonly rate?: "upload";
  /** Headers of a request that the handler reads on its own. */
  readonly headers?: { readonly [name: string]: Json };
  /** Content types of a body that is not JSON. */
  readonly accepts?: readonly string[];
  /** Content types of the answer, where it is not JSON alone. */
  readonly answers?: readonly string[];
  /** A WebSocket that lives by the store and by what is heard on every node (HEARD_EVERYWHERE): a node that only reads serves it, too. */
  readonly anywhere?: true;
  /** What each message of a stream holds, by WebSocket or as the `data` of an event. */
  readonly sends?: TSchema;
  /** What each message of a client holds, by WebSocket. */
  readonly takes?: TSchema;
};

/** Where a route keeps it. */
export const DECLARED = "x-operation";

const MEMBERS = [
  ...([
    "access",
    "scope",
    "scopeForSelf",
    "placement",
    "example",
    "limit",
    "reads",
    "audit",
    "rate",
    "headers",
  ] as const),
  ...(["accepts", "answers", "anywhere", "sends", "takes"] as const),
] satisfies readonly (keyof Declared)[];
const isDeclared = (member: string): boolean => (MEMBERS as readonly string[]).includes(member);

/** The `detail` of a route. */
export const operation = (given: DocumentDecoration & Declared): DocumentDecoration => {
  const members = Object.entries(given).filter(([, value]) => value !== undefined);
  const words = Object.fromEntries(members.filter(([member]) => !isDeclared(member)));
  const declared: Declared = Object.fromEntries(members.filter(([member]) => isDeclared(member)));
  return { ...words, [DECLARED]: declared } as DocumentDecoration;
};

const NOTHING: Declared = {};

/** What a route has declared, by its hooks. */
export const declaredBy = (hooks: object): Declared =>
  (hooks as { detail?: { [DECLARED]?: Declared } }).detail?.[DECLARED] ?? NOTHING;
