// Self-registered applications (RFC 7591): editors register once per server. Only programs on users' own machines may register, and
// registrations without grants are deleted (rule OA-4).
import { uuid } from "#base/ids.ts";
import {
  countRegistered,
  deleteUnusedRegistered,
  insertOAuth2App,
  insertOAuth2Secret,
  type OAuth2AppRow,
} from "#db/oauth2/apps.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import { AUTH_METHODS, type AuthMethod, MAX_REDIRECTS, MAX_SCOPES } from "#schema/oauth2/app.ts";
import { toIcon, toLine } from "#schema/text.ts";
import type { DomainContext } from "../context.ts";
import { createSecret } from "./apps.ts";
import { OAuth2Problem } from "./problem.ts";
import { findRedirectUriProblem } from "./redirects.ts";
import { parseScopes } from "./scopes.ts";

const MAX_REGISTERED = 500;
/** How long an unused application is kept, normally and when there are too many. */
const UNUSED_TTL_MS = 30 * 24 * 3600 * 1000;
const UNUSED_TTL_WHEN_FULL_MS = 10 * 60 * 1000;

/** The received metadata; unknown members are ignored, as the standard requires. */
export type Metadata = Readonly<Record<string, unknown>>;

export type RegisteredApp = { readonly app: OAuth2AppRow; readonly secret: string | undefined };

/** `metadata` is null when nothing was sent. Throws OAuth2Problem. */
export const registerApp = async (
  { store, clock }: DomainContext,
  metadata: Metadata | null,
): Promise<RegisteredApp> => {
  if (metadata === null) throw invalidMetadata("Send metadata as a JSON object.");
  const now = clock.now();
  const app: OAuth2AppRow = {
    id: uuid(),
    name:
      toLine(readString(metadata, "client_name") ?? "")
        .slice(0, 64)
        .toWellFormed() || "A program without a name",
    icon: toIcon((readString(metadata, "logo_uri") ?? "").slice(0, 1024)),
    redirect_uris: readRedirects(metadata),
    scopes: readScopes(metadata),
    auth_method: readMethod(metadata),
    self_registered: true,
    created_at: now,
    updated_at: now,
  };
  requireKnown(metadata, "grant_types", ["authorization_code", "refresh_token"]);
  requireKnown(metadata, "response_types", ["code"]);
  const isFull = async (): Promise<boolean> => ((await store.get(countRegistered()))?.count ?? 0) >= MAX_REGISTERED;
  await store.commit([deleteUnusedRegistered({ before: now - UNUSED_TTL_MS })]);
  if (await isFull()) await store.commit([deleteUnusedRegistered({ before: now - UNUSED_TTL_WHEN_FULL_MS })]);
  if (await isFull()) throw new OAuth2Problem("temporarily_unavailable", "Too many programs have registered.");
  const secret = app.auth_method === "none" ? undefined : createSecret(app.id, now);
  await store.commit([
    insertOAuth2App(app),
    ...(secret ? [insertOAuth2Secret(secret.row)] : []),
    insertAudit({
      now,
      action: "register",
      resource_type: "oauth2_provider_app",
      resource_id: app.id,
      target: app.name,
      after: app,
    }),
  ]);
  return { app, secret: secret?.text };
};

const invalidMetadata = (description: string): OAuth2Problem =>
  new OAuth2Problem("invalid_client_metadata", description);

const readString = (metadata: Metadata, name: string): string | undefined => {
  const value = metadata[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "string") throw invalidMetadata(`${name} must be a string.`);
  return value;
};

const readStrings = (metadata: Metadata, name: string): string[] | undefined => {
  const value = metadata[name];
  if (value === undefined || value === null) return undefined;
  if (!Array.isArray(value) || value.some((one) => typeof one !== "string"))
    throw invalidMetadata(`${name} must be a list of strings.`);
  return value;
};

const readRedirects = (metadata: Metadata): string[] => {
  const uris = [...new Set(readStrings(metadata, "redirect_uris") ?? [])];
  if (uris.length === 0) throw new OAuth2Problem("invalid_redirect_uri", "redirect_uris is missing.");
  if (uris.length > MAX_REDIRECTS) {
    throw new OAuth2Problem("invalid_redirect_uri", `At most ${MAX_REDIRECTS} redirect_uris are allowed.`);
  }
  for (const one of uris) {
    const problem = one.length > 1024 ? "is too long" : findRedirectUriProblem(one, true);
    if (problem !== undefined) throw new OAuth2Problem("invalid_redirect_uri", `One of redirect_uris ${problem}.`);
  }
  return uris;
};

/** The default is the standard's. */
const readMethod = (metadata: Metadata): AuthMethod => {
  const requested = readString(metadata, "token_endpoint_auth_method") ?? "client_secret_basic";
  const method = AUTH_METHODS.find((one) => one === requested);
  if (method === undefined) throw invalidMetadata("This token_endpoint_auth_method is not supported.");
  return method;
};

const readScopes = (metadata: Metadata): string[] => {
  const text = readString(metadata, "scope");
  if (text === undefined || text.trim() === "") return [];
  if (text.length > MAX_SCOPES * 65) throw invalidMetadata("scope is too long.");
  try {
    return parseScopes(text, []);
  } catch (error) {
    throw error instanceof OAuth2Problem ? invalidMetadata(error.message) : error;
  }
};

const requireKnown = (metadata: Metadata, name: string, known: readonly string[]): void => {
  if (readStrings(metadata, name)?.some((one) => !known.includes(one)))
    throw invalidMetadata(`${name}: only ${known.join(", ")}.`);
};
