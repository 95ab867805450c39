// OAuth 2 applications created by owners, and their secrets (rules OA-1 to OA-3). Self-registered applications are in register.ts.
import { conflict, forbidden, invalidField, notFound } from "#base/errors.ts";
import { isUuid, linkToken, sha256, uuid } from "#base/ids.ts";
import { CommitError } from "#db/engine/store.ts";
import {
  countOAuth2Apps,
  deleteOAuth2App,
  deleteOAuth2Secret,
  findOAuth2App,
  findOAuth2Secret,
  insertOAuth2App,
  insertOAuth2Secret,
  listOAuth2Secrets,
  type OAuth2AppRow,
  type OAuth2SecretRow,
  updateOAuth2App,
} from "#db/oauth2/apps.ts";
import { deleteKeysOfApp, listKeysOfApp } from "#db/oauth2/grants.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import { markLossesOfApp } from "#db/workspaces/sharing.ts";
import { type CreateOAuth2App, MAX_REDIRECTS, type UpdateOAuth2App } from "#schema/oauth2/app.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { isOwner } from "../access.ts";
import type { DomainContext } from "../context.ts";
import { requireOwnKey } from "../factors/proof.ts";
import { parseScopeNames } from "../users/api-key.ts";
import { toTakenConflict } from "../users/name-conflicts.ts";
import { findRedirectUriProblem } from "./redirects.ts";

const MAX_APPS = 500;
const MAX_SECRETS = 10;
const VISIBLE_CHARACTERS = 6;

/** Rejects with 403 for everyone but owners. */
export const requireAppManager = (caller: UserCaller): void => {
  if (!isOwner(caller)) throw forbidden("Only an owner may manage applications.");
};

/** Rejects with 403 for everyone but owners, and for applications, because a new application would outlive their own grant. */
export const requireAppChange = async (ctx: DomainContext, caller: UserCaller): Promise<void> => {
  requireAppManager(caller);
  await requireOwnKey(ctx, caller, "create or change applications");
};

/** Returns an application that the caller can change. Rejects with 403 or 404. */
export const findAppToChange = async (ctx: DomainContext, id: string, caller: UserCaller): Promise<OAuth2AppRow> => {
  await requireAppChange(ctx, caller);
  return findApp(ctx, id, caller);
};

/** Rejects with 403 or 404. */
export const findApp = async ({ store }: DomainContext, id: string, caller: UserCaller): Promise<OAuth2AppRow> => {
  requireAppManager(caller);
  const row = isUuid(id) ? await store.get(findOAuth2App({ id: id.toLowerCase() })) : undefined;
  if (!row) throw notFound();
  return row;
};

/** Rejects with 400 for a redirect URI that is not allowed. */
const parseRedirects = (first: string, more: readonly string[], isSelfRegistered: boolean): string[] => {
  const uris = [...new Set([first, ...more])].slice(0, MAX_REDIRECTS + 1);
  for (const one of uris) {
    const problem = findRedirectUriProblem(one, isSelfRegistered);
    if (problem !== undefined) throw invalidField(one === first ? "callback_url" : "redirect_uris", problem);
  }
  return uris;
};

const parseAllowedScopes = (scopes: readonly string[] | undefined): string[] =>
  scopes === undefined || scopes.length === 0 ? [] : parseScopeNames(undefined, scopes);

const toAuditTarget = ({ id, name, icon }: OAuth2AppRow, now: number) =>
  ({ now, resource_type: "oauth2_provider_app", resource_id: id, target: name, icon }) as const;

/** Rejects with 400, and with 409 when the name is taken or there are too many applications. */
export const createApp = async ({ store, clock }: DomainContext, input: CreateOAuth2App): Promise<OAuth2AppRow> => {
  const now = clock.now();
  const row: OAuth2AppRow = {
    id: uuid(),
    name: input.name,
    icon: input.icon ?? "",
    redirect_uris: parseRedirects(input.callback_url, input.redirect_uris ?? [], false),
    scopes: parseAllowedScopes(input.scopes),
    auth_method: input.token_endpoint_auth_method ?? "client_secret_basic",
    self_registered: false,
    created_at: now,
    updated_at: now,
  };
  const { count = 0 } = (await store.get(countOAuth2Apps())) ?? {};
  if (count >= MAX_APPS) throw conflict(`There can be at most ${MAX_APPS} applications.`);
  await store
    .commit([insertOAuth2App(row), insertAudit({ ...toAuditTarget(row, now), action: "create", after: row })])
    .catch((error) => Promise.reject(toTakenConflict(error, { oauth2_apps_name: "name" })));
  return row;
};

/** Existing grants are unchanged. Rejects with 400, 404 or 409. */
export const changeApp = async (
  { store, clock }: DomainContext,
  before: OAuth2AppRow,
  input: UpdateOAuth2App,
): Promise<OAuth2AppRow> => {
  const now = clock.now();
  const [first = "", ...more] = before.redirect_uris;
  const patch = {
    name: input.name ?? before.name,
    icon: input.icon ?? before.icon,
    redirect_uris: parseRedirects(input.callback_url ?? first, input.redirect_uris ?? more, before.self_registered),
    scopes: input.scopes === undefined ? before.scopes : parseAllowedScopes(input.scopes),
    updated_at: now,
  };
  const after = { ...before, ...patch };
  const entry = insertAudit({ ...toAuditTarget(after, now), action: "write", before, after });
  await store.commit([updateOAuth2App(before.id, patch, { expect: 1 }), entry]).catch((error) => {
    if (error instanceof CommitError && error.reason === "stale") throw notFound();
    throw toTakenConflict(error, { oauth2_apps_name: "name" });
  });
  return after;
};

/** Deletes an application and revokes its grants immediately. */
export const removeApp = async ({ store, clock, topics }: DomainContext, row: OAuth2AppRow): Promise<void> => {
  const keys = await store.all(listKeysOfApp({ app_id: row.id }));
  const now = clock.now();
  await store.commit([
    markLossesOfApp(row.id, now),
    deleteKeysOfApp({ app_id: row.id }),
    deleteOAuth2App(row.id),
    insertAudit({ ...toAuditTarget(row, now), action: "delete", before: row }),
  ]);
  for (const { key_id } of keys) topics.publish("key_gone", key_id, {});
};

const toSecretAuditTarget = (app: OAuth2AppRow, secret: OAuth2SecretRow, now: number) =>
  ({ ...toAuditTarget(app, now), resource_type: "oauth2_provider_app_secret", resource_id: secret.id }) as const;

/** Returns a new secret and the row that stores its hash. */
export const createSecret = (app_id: string, now: number): { readonly text: string; readonly row: OAuth2SecretRow } => {
  const text = linkToken();
  const hashes = { secret_hash: sha256(text), last_characters: text.slice(-VISIBLE_CHARACTERS) };
  return { text, row: { id: uuid(), app_id, ...hashes, created_at: now, last_used_at: null } };
};

/** Returns the secret, which is shown only once. Rejects with 409 for a public client, and when there are too many secrets. */
export const createAppSecret = async (
  { store, clock }: DomainContext,
  app: OAuth2AppRow,
): Promise<{ readonly id: string; readonly text: string }> => {
  if (app.auth_method === "none") throw conflict("This application has no client secret (public client).");
  const secrets = await store.all(listOAuth2Secrets({ app_id: app.id }));
  if (secrets.length >= MAX_SECRETS) throw conflict(`There can be at most ${MAX_SECRETS} secrets.`);
  const now = clock.now();
  const { text, row } = createSecret(app.id, now);
  await store.commit([
    insertOAuth2Secret(row),
    insertAudit({ ...toSecretAuditTarget(app, row, now), action: "create", after: row }),
  ]);
  return { id: row.id, text };
};

/** Rejects with 404. Grants made with the secret are unchanged. */
export const removeAppSecret = async (
  { store, clock }: DomainContext,
  app: OAuth2AppRow,
  id: string,
): Promise<void> => {
  const secret = isUuid(id) ? await store.get(findOAuth2Secret({ app_id: app.id, id: id.toLowerCase() })) : undefined;
  if (!secret) throw notFound();
  const entry = insertAudit({ ...toSecretAuditTarget(app, secret, clock.now()), action: "delete", before: secret });
  await store.commit([deleteOAuth2Secret(secret.id), entry]);
};
