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
import { audited } from "#db/reports/audit/audit.ts";
import { AUTH_METHODS, type AuthMethod, MAX_REDIRECTS, MAX_SCOPES } from "#schema/oauth2/app.ts";
import { asIcon, asLine } from "#schema/text.ts";
import type { DomainContext } from "../context.ts";
import { newSecret } from "./apps.ts";
import { OAuth2Problem } from "./problem.ts";
import { redirectProblem } from "./redirects.ts";
import { scopesAsked } from "./scopes.ts";

const MOST = 500;
/** How long an unused application is kept, normally and when there are too many. */
const UNUSED_MS = 30 * 24 * 3600 * 1000;
const UNUSED_WHEN_FULL_MS = 10 * 60 * 1000;

/** The received metadata; unknown members are ignored, as the standard requires. */
export type Metadata = Readonly<Record<string, unknown>>;

export type Registered = { readonly app: OAuth2AppRow; readonly secret: string | undefined };

/** `metadata` is null when nothing was sent. Throws OAuth2Problem. */
export const registerApp = async ({ store, clock }: DomainContext, metadata: Metadata | null): Promise<Registered> => {
  if (metadata === null) throw refused("Send metadata as a JSON object.");
  const now = clock.now();
  const app: OAuth2AppRow = {
    id: uuid(),
    name:
      asLine(textIn(metadata, "client_name") ?? "")
        .slice(0, 64)
        .toWellFormed() || "A program without a name",
    icon: asIcon((textIn(metadata, "logo_uri") ?? "").slice(0, 1024)),
    redirect_uris: redirectsIn(metadata),
    scopes: scopesIn(metadata),
    auth_method: methodIn(metadata),
    self_registered: true,
    created_at: now,
    updated_at: now,
  };
  mustBeAmong(metadata, "grant_types", ["authorization_code", "refresh_token"]);
  mustBeAmong(metadata, "response_types", ["code"]);
  const isFull = async (): Promise<boolean> => ((await store.get(countRegistered()))?.count ?? 0) >= MOST;
  await store.commit([deleteUnusedRegistered({ before: now - UNUSED_MS })]);
  if (await isFull()) await store.commit([deleteUnusedRegistered({ before: now - UNUSED_WHEN_FULL_MS })]);
  if (await isFull()) throw new OAuth2Problem("temporarily_unavailable", "Too many programs have registered.");
  const secret = app.auth_method === "none" ? undefined : newSecret(app.id, now);
  await store.commit([
    insertOAuth2App(app),
    ...(secret ? [insertOAuth2Secret(secret.row)] : []),
    audited({
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

const refused = (description: string): OAuth2Problem => new OAuth2Problem("invalid_client_metadata", description);

const textIn = (metadata: Metadata, name: string): string | undefined => {
  const value = metadata[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "string") throw refused(`${name} must be a text.`);
  return value;
};

const textsIn = (metadata: Metadata, name: string): string[] | undefined => {
  const value = metadata[name];
  if (value === undefined || value === null) return undefined;
  if (!Array.isArray(value) || value.some((one) => typeof one !== "string")) throw refused(`${name} must be texts.`);
  return value;
};

const redirectsIn = (metadata: Metadata): string[] => {
  const all = [...new Set(textsIn(metadata, "redirect_uris") ?? [])];
  if (all.length === 0) throw new OAuth2Problem("invalid_redirect_uri", "redirect_uris is missing.");
  if (all.length > MAX_REDIRECTS) {
    throw new OAuth2Problem("invalid_redirect_uri", `${MAX_REDIRECTS} redirect_uris are the most.`);
  }
  for (const one of all) {
    const problem = one.length > 1024 ? "is too long" : redirectProblem(one, true);
    if (problem !== undefined) throw new OAuth2Problem("invalid_redirect_uri", `One of redirect_uris ${problem}.`);
  }
  return all;
};

/** Uses the standard's default. */
const methodIn = (metadata: Metadata): AuthMethod => {
  const asked = textIn(metadata, "token_endpoint_auth_method") ?? "client_secret_basic";
  const known = AUTH_METHODS.find((one) => one === asked);
  if (known === undefined) throw refused("This token_endpoint_auth_method is not supported.");
  return known;
};

const scopesIn = (metadata: Metadata): string[] => {
  const text = textIn(metadata, "scope");
  if (text === undefined || text.trim() === "") return [];
  if (text.length > MAX_SCOPES * 65) throw refused("scope is too long.");
  try {
    return scopesAsked(text, []);
  } catch (error) {
    throw error instanceof OAuth2Problem ? refused(error.message) : error;
  }
};

const mustBeAmong = (metadata: Metadata, name: string, known: readonly string[]): void => {
  if (textsIn(metadata, name)?.some((one) => !known.includes(one))) throw refused(`${name}: only ${known.join(", ")}.`);
};
