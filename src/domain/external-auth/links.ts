// Linked accounts of users: their current tokens, refreshed when due. Only one refresh runs per user and provider, and every change is
// guarded by the row's version, so that a late refresh never restores an unlinked account (rules EA-7 to EA-10).
import type { Events } from "#actors/runtime/events.ts";
import type { Clock } from "#base/clock.ts";
import type { Encryption } from "#base/encryption.ts";
import { AppError, notFound } from "#base/errors.ts";
import { log } from "#base/log.ts";
import { runOutsideRequest } from "#base/network/current-request.ts";
import type { Topics } from "#base/topics.ts";
import type { Statement } from "#db/engine/sql.ts";
import { CommitError, type Store } from "#db/engine/store.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import {
  deleteLink,
  failLink,
  findLink,
  type LinkRow,
  listLinks,
  refreshLink,
  upsertLink,
} from "#db/users/external-auth.ts";
import { guardUser, updateUser } from "#db/users/users.ts";
import { type OAuthClient, ProviderError, type Tokens, type Validity } from "#src/git/oauth.ts";
import { coversAddress, type Provider } from "#src/git/provider.ts";

/** The version of the link to refresh. */
type LinkVersion = Pick<LinkRow, "user_id" | "provider_id" | "version">;
/** Has the link refreshed by another server, and resolves when it is; undefined if this server must do it. */
export type RefreshRemotely = (requested: LinkVersion) => Promise<void> | undefined;

export type LinksOptions = {
  store: Store;
  clock: Clock;
  encryption: Encryption;
  topics: Topics<Events>;
  providers: readonly Provider[];
  client: OAuthClient;
  refreshRemotely?: RefreshRemotely | undefined;
};

type TokenContent = Pick<Tokens, "access_token" | "refresh_token" | "token_extra"> & Pick<Provider, "place">;

/** A valid token. */
export type LiveToken = Omit<TokenContent, "refresh_token" | "place"> & { readonly expires_at: number | null };

type LinkKey = Pick<LinkRow, "user_id" | "provider_id">;

/** Audits linking and unlinking, but not token refreshes. */
const auditLink = ({ before, after }: { before?: LinkKey | undefined; after?: LinkKey }, now: number): Statement => {
  const { user_id, provider_id } = after ?? before ?? { user_id: "", provider_id: "" };
  return insertAudit({
    now,
    resource_type: "external_auth_link",
    resource_id: user_id,
    target: provider_id,
    before,
    after,
    action: after === undefined ? "delete" : before === undefined ? "create" : "write",
  });
};

/**
 * Returns whether the URL would get the token unencrypted although the provider's own host has TLS. A generic provider without a base URL
 * may allow this with a pattern that names http.
 */
const isWithoutTls = (url: string, { base_url, token_url, pattern }: Provider): boolean =>
  /^http:/i.test(url) &&
  (base_url === ""
    ? token_url.protocol === "https:" && !pattern?.source.includes("http:")
    : base_url.startsWith("https:"));

const isGithubCom = ({ type, base_url }: Provider): boolean => type === "github" && base_url === "https://github.com";

/** A token is refreshed this long before it expires, so that it does not expire on the way to the git host. */
const REFRESH_AHEAD_MS = 60_000;
/** Minimum interval between checks of a token with its provider. */
const VALIDITY_TTL_MS = 60_000;
const MAX_CHECKED = 10_000;

export class Links {
  readonly providers: ReadonlyMap<string, Provider>;
  readonly client: OAuthClient;
  readonly #options: LinksOptions;
  readonly #refreshes = new Map<string, Promise<LinkRow | undefined>>();
  /** Link and version to the time of the last check that did not find the token invalid. */
  readonly #checkedAt = new Map<string, number>();

  constructor(options: LinksOptions) {
    this.#options = options;
    this.client = options.client;
    this.providers = new Map(options.providers.map((provider) => [provider.id, provider]));
  }

  /** Returns the provider with this ID. Rejects with 404. */
  provider(id: string): Provider {
    const provider = this.providers.get(id);
    if (!provider) throw notFound();
    return provider;
  }

  /** Returns the first provider whose pattern matches the URL and whose tokens may be sent there; the scheme is optional. */
  providerFor(url: string): Provider | undefined {
    const providers = this.#findMatching(url);
    return providers.find((provider) => !isWithoutTls(url, provider));
  }

  /** Returns the provider whose tokens are not sent to the URL only because it has no TLS and the provider's host has. */
  providerWithTls(url: string): Provider | undefined {
    const providers = this.#findMatching(url);
    return providers.every((provider) => isWithoutTls(url, provider)) ? providers[0] : undefined;
  }

  #findMatching(url: string): Provider[] {
    if (url.length > 2048) return [];
    // A username can look like a host: https://git.example.com@evil.example.
    const address = url.replace(/^(https?:\/\/)[^/?#]*@/i, "$1");
    return [...this.providers.values()].filter(({ pattern }) => pattern && coversAddress(pattern, address));
  }

  /** Stores the tokens of a newly linked account. Rejects with CommitError when a guard is stale. */
  async put(user_id: string, provider: Provider, tokens: Tokens, guards: readonly Statement[] = []): Promise<void> {
    const now = this.#options.clock.now();
    const before = await this.#find(user_id, provider);
    const after = { user_id, provider_id: provider.id, ...this.#columns(user_id, provider, tokens), created_at: now };
    const entry = auditLink({ before, after }, now);
    await this.#options.store.commit([guardUser({ id: user_id }), ...guards, upsertLink(after), entry]);
    this.#options.topics.publish("external_auth", user_id, { provider_id: provider.id });
    if (isGithubCom(provider)) await this.#noteGithubAccount(user_id, provider, tokens.access_token);
  }

  /** Records the account name so that people can be found by it. A failure does not affect the link. */
  async #noteGithubAccount(user_id: string, provider: Provider, access_token: string): Promise<void> {
    const { account_id } = await this.client.validate(provider, access_token);
    if (account_id !== undefined) await this.#commit(updateUser(user_id, { github_com_user_id: account_id }));
  }

  /**
   * Returns a valid token; undefined means that the user must link (again). Rejects with 503 when it has expired and the provider cannot be
   * reached for a new one.
   */
  async getLiveToken(user_id: string, provider: Provider): Promise<LiveToken | undefined> {
    let row = await this.#find(user_id, provider);
    if (row?.failure === "" && this.#isDue(row)) row = await this.#refreshOnce(row, provider);
    if (row?.failure !== "") return undefined;
    if ((await this.#validity(row, provider)).state !== "invalid") return this.#open(row);
    // Revoked at the provider, but the refresh token may still be valid.
    row =
      row.has_refresh_token && !provider.no_refresh
        ? await this.#refreshOnce(row, provider)
        : await this.#recordFailure(row, "The provider reports that the token is no longer valid.");
    return row?.failure === "" ? this.#open(row) : undefined;
  }

  /** Returns a new token after one was rejected before its expiry; undefined if none exists. */
  async renew(user_id: string, provider: Provider, refused_token: string): Promise<LiveToken | undefined> {
    const row = await this.#find(user_id, provider);
    if (row?.failure !== "") return undefined;
    const current = this.#open(row);
    if (current.access_token !== refused_token) return current;
    if (!row.has_refresh_token) return undefined;
    const next = await this.#refreshOnce(row, provider);
    return next?.failure === "" ? this.#open(next) : undefined;
  }

  /** Returns the decrypted tokens of all accounts the user has linked, valid or not. Accounts that cannot be decrypted are left out. */
  async listSecrets(user_id: string): Promise<string[]> {
    const rows = await this.#options.store.all(listLinks({ user_id }));
    return rows.flatMap((row) => {
      try {
        const { access_token, refresh_token, token_extra } = this.#openAll(row);
        // Further tokens, such as an ID token: workspaces get them, too.
        return [access_token, refresh_token ?? "", JSON.stringify(token_extra ?? {})];
      } catch {
        return [];
      }
    });
  }

  /** Returns what the provider currently reports about the link; undefined if there is no working link. */
  async account(user_id: string, provider: Provider): Promise<Validity | undefined> {
    if (!(await this.getLiveToken(user_id, provider))) return undefined;
    const row = await this.#find(user_id, provider);
    return row && this.client.validate(provider, this.#open(row).access_token);
  }

  /** Removes the link, then asks the provider to revoke the token. Rejects with 404. */
  async unlink(user_id: string, provider: Provider): Promise<ProviderError | undefined> {
    const row = await this.#find(user_id, provider);
    if (!row) throw notFound();
    const writes = [
      deleteLink({ user_id, provider_id: provider.id }),
      ...(isGithubCom(provider) ? [updateUser(user_id, { github_com_user_id: null })] : []),
      auditLink({ before: row }, this.#options.clock.now()),
    ];
    await this.#options.store.commit(writes).catch((error) => {
      throw error instanceof CommitError && error.reason === "stale" ? notFound() : error;
    });
    try {
      await this.client.revoke(provider, this.#open(row).access_token);
      return undefined;
    } catch (error) {
      if (error instanceof ProviderError) return error;
      throw error;
    }
  }

  /** Refreshes the link on behalf of another node, unless its version has changed. */
  async refresh({ user_id, provider_id, version }: LinkVersion): Promise<void> {
    const provider = this.provider(provider_id);
    const row = await this.#find(user_id, provider);
    if (row?.version === version && row.failure === "") await this.#refreshOnce(row, provider);
  }

  /** Returns the link; undefined if its tokens were issued for another place, because the provider has been changed since. */
  async #find(user_id: string, provider: Provider): Promise<LinkRow | undefined> {
    const row = await this.#options.store.get(findLink({ user_id, provider_id: provider.id }));
    if (!row || provider.place === undefined) return row;
    // Links stored by earlier versions have no place.
    const { place = provider.place } = this.#openAll(row);
    return place === provider.place ? row : undefined;
  }

  #isDue({ expires_at }: LinkRow): boolean {
    return expires_at !== null && expires_at - REFRESH_AHEAD_MS <= this.#options.clock.now();
  }

  /** Returns the row after a refresh; concurrent callers share one refresh. */
  #refreshOnce(row: LinkRow, provider: Provider): Promise<LinkRow | undefined> {
    const key = `${row.user_id}:${row.provider_id}:${provider.place ?? ""}`;
    const running = this.#refreshes.get(key);
    if (running) return running;
    const { user_id, provider_id, version } = row;
    const refreshed = this.#options.refreshRemotely?.({ user_id, provider_id, version });
    // Not canceled with this request, because others wait for the result: the provider no longer accepts the previous token.
    const work = refreshed
      ? this.#waitForRefresh(refreshed, row, provider)
      : runOutsideRequest(() => this.#refresh(row, provider));
    const started = work.finally(() => this.#refreshes.delete(key));
    this.#refreshes.set(key, started);
    return started;
  }

  async #waitForRefresh(refreshed: Promise<void>, row: LinkRow, provider: Provider): Promise<LinkRow | undefined> {
    try {
      await refreshed;
    } catch (error) {
      if (row.expires_at === null || row.expires_at > this.#options.clock.now()) return row;
      if (error instanceof AppError) throw error;
      throw new AppError("overloaded", "The node that renews tokens cannot be reached.", { cause: error });
    }
    return this.#find(row.user_id, provider);
  }

  async #refresh(oldRow: LinkRow, provider: Provider): Promise<LinkRow | undefined> {
    // Another refresh may have finished since the caller's read.
    const row = await this.#find(oldRow.user_id, provider);
    if (!row || row.version !== oldRow.version) return row;
    if (!row.has_refresh_token || provider.no_refresh) return this.#recordFailure(row, "The token has expired.");
    const { user_id, provider_id, version: known_version } = row;
    try {
      const tokens = await this.client.refresh(provider, this.#openAll(row).refresh_token);
      await this.#commit(
        refreshLink({ user_id, provider_id, known_version, ...this.#columns(user_id, provider, tokens) }),
      );
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error;
      if (error.kind === "denied") return this.#recordFailure(row, error.message);
      if (row.expires_at === null || row.expires_at > this.#options.clock.now()) return row;
      log("external-auth").warn("{provider} did not refresh a token: {error}", {
        provider: provider_id,
        error: error.message,
      });
      throw new AppError("overloaded", `${provider.display_name} cannot be reached to renew the token.`);
    }
    return this.#find(user_id, provider);
  }

  async #validity(row: LinkRow, provider: Provider): Promise<Validity> {
    const key = `${row.user_id}:${row.provider_id}:${row.version}:${row.created_at}`;
    const now = this.#options.clock.now();
    const since = this.#checkedAt.get(key);
    if (since !== undefined && now - since < VALIDITY_TTL_MS) return { state: "valid", account: undefined };
    const validity = await this.client.validate(provider, this.#open(row).access_token);
    if (validity.state !== "invalid") {
      if (this.#checkedAt.size >= MAX_CHECKED) this.#checkedAt.clear();
      this.#checkedAt.set(key, now);
    }
    return validity;
  }

  /** Records that the link no longer works. */
  async #recordFailure(row: LinkRow, failure: string): Promise<LinkRow | undefined> {
    const { user_id, provider_id, version: known_version } = row;
    await this.#commit(
      failLink({ user_id, provider_id, known_version, failure, updated_at: this.#options.clock.now() }),
    );
    return this.#options.store.get(findLink({ user_id, provider_id }));
  }

  /** A link that was changed in the meantime stays unchanged. */
  #commit(write: Parameters<Store["commit"]>[0][number]): Promise<void> {
    return this.#options.store.commit([write]).catch((error) => {
      if (!(error instanceof CommitError) || error.reason !== "stale") throw error;
    });
  }

  #columns(user_id: string, provider: Provider, { expires_in, ...rest }: Tokens) {
    const now = this.#options.clock.now();
    const { access_token, refresh_token, token_extra } = rest;
    const { place } = provider;
    const sealed: TokenContent = {
      access_token,
      refresh_token,
      token_extra,
      ...(place === undefined ? {} : { place }),
    };
    return {
      sealed_tokens: this.#options.encryption.seal(JSON.stringify(sealed), toSealContext(user_id, provider.id)),
      expires_at: expires_in === undefined ? null : now + Math.floor(expires_in * 1000),
      has_refresh_token: refresh_token !== "",
      updated_at: now,
    };
  }

  #openAll({ user_id, provider_id, sealed_tokens }: LinkRow): TokenContent {
    return JSON.parse(
      this.#options.encryption.open(sealed_tokens, toSealContext(user_id, provider_id)),
    ) as TokenContent;
  }

  #open(row: LinkRow): LiveToken {
    const { access_token, token_extra } = this.#openAll(row);
    return { access_token, token_extra, expires_at: row.expires_at };
  }
}

const toSealContext = (user_id: string, provider_id: string): string => `external_auth:${user_id}:${provider_id}`;
