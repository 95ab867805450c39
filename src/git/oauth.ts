// The OAuth 2.0 client for external-auth providers: authorization code with PKCE (RFC 6749, 7636), device grant (RFC 8628), refresh,
// validation and revocation (RFC 7009). Distinguishes refusals (`denied`: retrying is pointless) from failures (`unavailable`). Responses
// are checked for their shape and not trusted further (rules EA-5 to EA-9).

import { createHash } from "node:crypto";
import { tryParseJson } from "#base/json/read.ts";
import { type Outbound, type OutboundAnswer, OutboundError, type OutboundRequest } from "#base/outbound.ts";
import type { Provider } from "./provider.ts";

/** `code` is the provider's own error code, such as `invalid_grant`; empty if it sent none. */
export class ProviderError extends Error {
  override readonly name = "ProviderError";
  readonly kind: "denied" | "unavailable";
  readonly code: string;

  constructor(kind: ProviderError["kind"], message: string, code = "") {
    super(message);
    this.kind = kind;
    this.code = code;
  }
}

export type Tokens = {
  readonly access_token: string;
  /** Empty if the provider sent none. */
  readonly refresh_token: string;
  /** Seconds from now; undefined if the token does not expire. */
  readonly expires_in: number | undefined;
  /** Additional fields of the token response. */
  readonly token_extra: Readonly<Record<string, unknown>>;
};

export type DeviceCode = {
  readonly device_code: string;
  readonly user_code: string;
  readonly verification_uri: string;
  readonly expires_in: number;
  /** Seconds between two polls. */
  readonly interval: number;
};

export type Account = { readonly login: string; readonly name: string; readonly profile_url: string };

/** `unknown`: the provider gave no definite answer. */
export type Validity = {
  readonly state: "valid" | "invalid" | "unknown";
  readonly account: Account | undefined;
  /** The account's numeric ID, if the provider returns one. */
  readonly account_id?: number | undefined;
};

const ERROR_CODE = /^[\w.:-]{1,64}$/;
const MAX_TOKEN_LENGTH = 16_384;
const MAX_EXTRA_LENGTH = 16_384;
const MAX_LIFETIME_S = 10 * 365 * 86_400;

/** Returns the provider's URL for the browser. */
export const authorizeUrl = (provider: Provider, options: { redirect: URL; state: string; verifier: string }): URL => {
  if (!provider.auth_url) throw new Error(`${provider.id} has no sign-in page`);
  const url = new URL(provider.auth_url);
  const fields = {
    response_type: "code",
    client_id: provider.client_id,
    redirect_uri: options.redirect.href,
    state: options.state,
    code_challenge: createHash("sha256").update(options.verifier).digest("base64url"),
    code_challenge_method: "S256",
    ...(provider.scopes.length > 0 ? { scope: provider.scopes.join(" ") } : {}),
  };
  for (const [name, value] of Object.entries(fields)) url.searchParams.set(name, value);
  return url;
};

export class OAuthClient {
  readonly #outbound: Outbound;

  constructor(outbound: Outbound) {
    this.#outbound = outbound;
  }

  /** Exchanges the callback's code for tokens. */
  exchange(provider: Provider, options: { code: string; redirect: URL; verifier: string }): Promise<Tokens> {
    return this.#requestTokens(provider, {
      grant_type: "authorization_code",
      code: options.code,
      redirect_uri: options.redirect.href,
      code_verifier: options.verifier,
    });
  }

  /** Keeps the old refresh token if the provider does not rotate it. */
  async refresh(provider: Provider, refresh_token: string): Promise<Tokens> {
    const refreshed = await this.#requestTokens(provider, { grant_type: "refresh_token", refresh_token });
    return refreshed.refresh_token === "" ? { ...refreshed, refresh_token } : refreshed;
  }

  async startDevice(provider: Provider): Promise<DeviceCode> {
    if (!provider.device_code_url) throw new Error(`${provider.id} has no device flow`);
    const scope: Record<string, string> = provider.scopes.length > 0 ? { scope: provider.scopes.join(" ") } : {};
    const answer = await this.#post(provider.device_code_url, { client_id: provider.client_id, ...scope });
    const { device_code, user_code, verification_uri, verification_url, expires_in, interval } = parseFields(answer);
    const page = String(verification_uri ?? verification_url ?? "");
    const isPage = URL.canParse(page) && /^https?:$/.test(new URL(page).protocol);
    if (!isToken(device_code) || !isToken(user_code) || user_code.length > 64 || !isPage) throw invalidResponse();
    return {
      device_code,
      user_code,
      verification_uri: new URL(page).href,
      expires_in: parseSeconds(expires_in) ?? 900,
      interval: Math.min(parseSeconds(interval) ?? 5, 60),
    };
  }

  /** Returns tokens once the user has agreed; until then throws `denied` with the code authorization_pending or slow_down. */
  pollDevice(provider: Provider, device_code: string): Promise<Tokens> {
    return this.#requestTokens(provider, { grant_type: "urn:ietf:params:oauth:grant-type:device_code", device_code });
  }

  async validate(provider: Provider, access_token: string): Promise<Validity> {
    if (!provider.validate_url) return { state: "unknown", account: undefined };
    const headers = { accept: "application/json", authorization: `Bearer ${access_token}` };
    const answer = await this.#send(provider.validate_url, { headers }).catch(() => undefined);
    if (answer?.status === 200) {
      return { state: "valid", account: parseAccount(answer), account_id: parseId(answer) };
    }
    const isRateLimited = answer?.headers.get("x-ratelimit-remaining") === "0";
    const isRefused = answer?.status === 401 || (answer?.status === 403 && !isRateLimited);
    return { state: isRefused ? "invalid" : "unknown", account: undefined };
  }

  /** Throws ProviderError if the provider did not revoke the token. */
  async revoke(provider: Provider, access_token: string): Promise<void> {
    if (!provider.revocation) throw new ProviderError("denied", "The provider doesn't support token revocation.");
    const { url, way } = provider.revocation;
    const basic = toBasicAuth(provider);
    const request: OutboundRequest =
      way === "github"
        ? {
            method: "DELETE",
            headers: {
              accept: "application/vnd.github+json",
              "content-type": "application/json",
              authorization: basic,
            },
            body: JSON.stringify({ access_token }),
          }
        : toFormRequest(
            { token: access_token, token_type_hint: "access_token", ...listClientFields(provider) },
            provider,
          );
    const { status } = await this.#send(url, request);
    // 404: the token no longer exists.
    if (status >= 200 && status < 300) return;
    if (way === "github" && status === 404) return;
    throw new ProviderError("unavailable", `The provider answered ${status}.`);
  }

  async #requestTokens(provider: Provider, fields: Record<string, string>): Promise<Tokens> {
    const answer = await this.#post(provider.token_url, { ...fields, ...listClientFields(provider) }, provider);
    const { access_token, refresh_token = "", token_type: _, expires_in, ...token_extra } = parseFields(answer);
    if (!isToken(access_token) || (refresh_token !== "" && !isToken(refresh_token))) throw invalidResponse();
    const isSmall = JSON.stringify(token_extra).length <= MAX_EXTRA_LENGTH;
    return {
      access_token,
      refresh_token,
      expires_in: parseSeconds(expires_in),
      token_extra: isSmall ? token_extra : {},
    };
  }

  /**
   * Posts a form and parses the JSON response. A refusal is `denied` with the provider's code, whatever the status (GitHub returns 200).
   */
  async #post(url: URL, fields: Record<string, string>, provider?: Provider): Promise<OutboundAnswer> {
    const answer = await this.#send(url, toFormRequest(fields, provider));
    const { error } = parseFieldsLoosely(answer);
    if (typeof error === "string" && ERROR_CODE.test(error) && answer.status < 500) {
      throw new ProviderError("denied", `The provider refused (${error}).`, error);
    }
    if (answer.status === 200 || answer.status === 201) return answer;
    const kind = answer.status === 400 || answer.status === 401 || answer.status === 403 ? "denied" : "unavailable";
    throw new ProviderError(kind, `The provider answered ${answer.status}.`);
  }

  async #send(url: URL, request: OutboundRequest): Promise<OutboundAnswer> {
    try {
      return await this.#outbound.fetch(url, request);
    } catch (error) {
      if (error instanceof OutboundError) throw new ProviderError("unavailable", error.message);
      throw error;
    }
  }
}

const invalidResponse = (): ProviderError => new ProviderError("unavailable", "The provider's response is not valid.");

const isToken = (value: unknown): value is string =>
  typeof value === "string" && value.length <= MAX_TOKEN_LENGTH && /^[\x21-\x7e]+$/.test(value);

/** Parses a positive number of seconds, also from text; otherwise undefined. */
const parseSeconds = (value: unknown): number | undefined => {
  const number = typeof value === "number" ? value : typeof value === "string" ? Number(value) : Number.NaN;
  return number > 0 && number <= MAX_LIFETIME_S ? number : undefined;
};

const parseFieldsLoosely = ({ text, headers }: OutboundAnswer): Record<string, unknown> => {
  if (headers.get("content-type")?.startsWith("application/x-www-form-urlencoded")) {
    return Object.fromEntries(new URLSearchParams(text));
  }
  const value = tryParseJson(text);
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};
};

const parseFields = (answer: OutboundAnswer): Record<string, unknown> => {
  const fields = parseFieldsLoosely(answer);
  if (Object.keys(fields).length === 0) throw invalidResponse();
  return fields;
};

const listClientFields = ({ credentials, client_id, client_secret }: Provider): Record<string, string> => {
  if (client_secret === "") return { client_id };
  return credentials === "body" ? { client_id, client_secret } : {};
};

/** Form-encodes both parts first, as in RFC 6749, 2.3.1. */
const toBasicAuth = ({ client_id, client_secret }: Provider): string => {
  const encoded = [client_id, client_secret].map((part) => new URLSearchParams({ "": part }).toString().slice(1));
  return `Basic ${Buffer.from(encoded.join(":")).toString("base64")}`;
};

const toFormRequest = (fields: Record<string, string>, provider?: Provider): OutboundRequest => ({
  method: "POST",
  headers: {
    accept: "application/json",
    "content-type": "application/x-www-form-urlencoded",
    ...(provider?.credentials === "header" && provider.client_secret !== ""
      ? { authorization: toBasicAuth(provider) }
      : {}),
  },
  body: new URLSearchParams(fields).toString(),
});

const parseId = (answer: OutboundAnswer): number | undefined => {
  const { id } = parseFieldsLoosely(answer);
  return Number.isSafeInteger(id) && Number(id) > 0 ? Number(id) : undefined;
};

const parseAccount = (answer: OutboundAnswer): Account | undefined => {
  const fields = parseFieldsLoosely(answer);
  const toText = (...names: string[]): string => {
    const text = names.map((name) => fields[name]).find((value) => typeof value === "string" && value !== "");
    return typeof text === "string" ? text.slice(0, 256) : "";
  };
  const login = toText("login", "username", "preferred_username", "nickname");
  const page = toText("html_url", "web_url", "profile");
  const isPage = URL.canParse(page) && /^https?:$/.test(new URL(page).protocol);
  return login === ""
    ? undefined
    : { login, name: toText("name", "full_name", "display_name"), profile_url: isPage ? page : "" };
};
