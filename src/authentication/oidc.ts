// Signs users in at one OpenID Connect provider: authorization code with PKCE, state and nonce, using `openid-client` with a guarded
// `fetch` from the caller. Errors have messages for users. A provider's responses are checked for their shape and not trusted further
// (rules OI-2, OI-3).

import type { Configuration, CustomFetch, IDToken } from "openid-client";
import type { Clock } from "#base/clock.ts";
import type { OidcSetting } from "#base/config/oidc-settings.ts";
import { findCostProblem } from "#base/json/cost.ts";
import { JsonProblem, readBytes } from "#base/json/read.ts";
import { OutboundError } from "#base/outbound.ts";

/** `denied`: the provider or the user refused. `invalid`: the response failed validation. `unavailable`: the provider is unreachable. */
export class OidcError extends Error {
  override readonly name = "OidcError";
  readonly kind: "denied" | "invalid" | "unavailable";
  /** The protocol's error code, such as `invalid_grant`; empty if the response has no code. */
  readonly code: string;

  constructor(kind: OidcError["kind"], message: string, cause?: unknown, code = "") {
    super(message, { cause });
    this.kind = kind;
    this.code = code;
  }
}

/** Values that must match when the browser returns. */
export type Checks = { readonly state: string; readonly nonce: string; readonly verifier: string };

/** The result of a sign-in: the claims, and the tokens that maintain and end the session. */
export type SignInResult = {
  readonly claims: Claims;
  readonly id_token: string;
  /** Undefined if the provider issues none. */
  readonly refresh_token: string | undefined;
};

/** The provider's claims about the user; `sub` is permanent. */
export type Claims = Readonly<Record<string, unknown>> & { readonly sub: string };

type Fetch = (url: URL, init: RequestInit) => Promise<Response>;
type Library = typeof import("openid-client");

export const SCOPES: readonly string[] = ["openid", "email", "profile"];
/** The provider's metadata is reloaded after this time. */
const METADATA_TTL_MS = 3_600_000;
const TIMEOUT_S = 10;

/** Returns the provider's display name. */
export const getProviderName = ({ id, display_name = id }: Pick<OidcSetting, "id" | "display_name">): string =>
  display_name;

/** Returns the claims of both sources. That an address is verified counts only for the address of the source that says so. */
export const mergeClaims = (idToken: Claims, userInfo: Readonly<Record<string, unknown>>): Claims => {
  const ofUserInfo =
    idToken.email === undefined || idToken.email === userInfo.email ? userInfo.email_verified : undefined;
  const ofIdToken = idToken.email === undefined ? undefined : idToken.email_verified;
  return { ...userInfo, ...idToken, email_verified: ofIdToken ?? ofUserInfo };
};

export class OidcClient {
  readonly setting: OidcSetting;
  readonly #clock: Clock;
  readonly #fetch: Fetch;
  #cachedConfig: { config: Promise<Configuration>; until: number } | undefined;

  constructor(setting: OidcSetting, { clock, fetch }: { clock: Clock; fetch: Fetch }) {
    this.setting = setting;
    this.#clock = clock;
    this.#fetch = fetch;
  }

  get name(): string {
    return getProviderName(this.setting);
  }

  /** Returns the URL for the browser, and the values to check when it returns. Throws OidcError. */
  async begin(redirect_uri: string): Promise<{ url: URL; checks: Checks }> {
    return this.#withErrors(async (library, config) => {
      const verifier = library.randomPKCECodeVerifier();
      const checks = { state: library.randomState(), nonce: library.randomNonce(), verifier };
      const url = library.buildAuthorizationUrl(config, {
        redirect_uri,
        scope: (this.setting.scopes ?? SCOPES).join(" "),
        state: checks.state,
        nonce: checks.nonce,
        code_challenge: await library.calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
      });
      return { url, checks };
    });
  }

  /** Returns the result for `callback`, the redirect URI with its query. Throws OidcError. */
  async complete(callback: URL, { state, nonce, verifier }: Checks): Promise<SignInResult> {
    return this.#withErrors(async (library, config) => {
      const tokens = await library.authorizationCodeGrant(config, callback, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
      });
      const { id_token = "", refresh_token, access_token } = tokens;
      const claims = await this.#loadClaims(library, config, access_token, tokens.claims() as IDToken);
      return { claims, id_token, refresh_token };
    });
  }

  /**
   * Checks whether the session of this refresh token is still valid, and returns the provider's current data. The claims contain only `sub`
   * if the provider returns no others. Throws OidcError; its code is `invalid_grant` when the session has ended.
   */
  async refresh({ refresh_token, subject }: { refresh_token: string; subject: string }): Promise<SignInResult> {
    return this.#withErrors(async (library, config) => {
      const tokens = await library.refreshTokenGrant(config, refresh_token);
      const { id_token = "", access_token } = tokens;
      const claims = await this.#loadClaims(library, config, access_token, tokens.claims() ?? { sub: subject });
      return { claims, id_token, refresh_token: tokens.refresh_token ?? refresh_token };
    });
  }

  /** Returns the URL that ends the session at the provider and redirects back; undefined if the provider has no such URL. */
  async toEndSessionUrl(id_token: string, back: URL): Promise<URL | undefined> {
    return this.#withErrors(async (library, config) => {
      if (!config.serverMetadata().end_session_endpoint) return undefined;
      const parameters = new URLSearchParams({ post_logout_redirect_uri: back.href });
      if (id_token !== "") parameters.set("id_token_hint", id_token);
      return library.buildEndSessionUrl(config, parameters);
    });
  }

  /** Most providers return the email address and groups only from the userinfo endpoint. */
  async #loadClaims(library: Library, config: Configuration, access_token: string, claims: Claims): Promise<Claims> {
    if (!config.serverMetadata().userinfo_endpoint) return claims;
    const userInfo = await library.fetchUserInfo(config, access_token, claims.sub);
    return mergeClaims(claims, userInfo);
  }

  async #withErrors<T>(work: (library: Library, config: Configuration) => Promise<T>): Promise<T> {
    // Loaded with the first sign-in, so that the library does not delay the start.
    const library = await import("openid-client");
    try {
      return await work(library, await this.#loadConfiguration(library));
    } catch (error) {
      throw this.#toOidcError(library, error);
    }
  }

  #loadConfiguration(library: Library): Promise<Configuration> {
    const now = this.#clock.monotonic();
    if (this.#cachedConfig && now < this.#cachedConfig.until) return this.#cachedConfig.config;
    const { issuer, client_id, client_secret } = this.setting;
    const isUnencrypted = issuer.startsWith("http:");
    const config = library.discovery(
      new URL(issuer),
      client_id,
      client_secret,
      client_secret === undefined ? library.None() : undefined,
      {
        [library.customFetch]: this.#send,
        timeout: TIMEOUT_S,
        // Required even with TLS: a proxy that terminates TLS could forge the identity.
        execute: [library.enableNonRepudiationChecks, ...(isUnencrypted ? [library.allowInsecureRequests] : [])],
      },
    );
    const cached = { config, until: now + METADATA_TTL_MS };
    this.#cachedConfig = cached;
    config.catch(() => {
      // The next sign-in retries.
      if (this.#cachedConfig === cached) this.#cachedConfig = undefined;
    });
    return config;
  }

  readonly #send: CustomFetch = async (url, { body, headers, method, signal }) =>
    checkCost(
      await this.#fetch(new URL(url), {
        headers,
        method,
        ...(signal ? { signal } : {}),
        ...(body === undefined || body === null
          ? {}
          : { body: body instanceof URLSearchParams ? body.toString() : body }),
      } as RequestInit),
    );

  #toOidcError(library: Library, error: unknown): OidcError {
    if (error instanceof OidcError) return error;
    const cause = findRootCause(error);
    if (error instanceof library.AuthorizationResponseError) {
      const detail =
        error.error === "access_denied" ? "You denied access." : `It responded with ${toErrorCode(error.error)}.`;
      return new OidcError("denied", `${this.name} did not sign you in. ${detail}`, error);
    }
    if (error instanceof library.ResponseBodyError && error.status < 500) {
      return new OidcError(
        "denied",
        `${this.name} rejected the request (${toErrorCode(error.error)}).`,
        error,
        error.error,
      );
    }
    if (cause instanceof JsonProblem)
      return new OidcError("invalid", `The response of ${this.name} ${cause.message}`, cause);
    if (cause instanceof OutboundError) return new OidcError("unavailable", `${this.name} cannot be reached.`, cause);
    const { code } = error as { code?: unknown };
    if (code === "OAUTH_TIMEOUT") return new OidcError("unavailable", `${this.name} did not respond in time.`, error);
    return new OidcError("invalid", `The response of ${this.name} is not valid.`, error);
  }
}

const findRootCause = (error: unknown): unknown =>
  error instanceof Error && error.cause !== undefined && !(error instanceof OutboundError)
    ? findRootCause(error.cause)
    : error;

/** Accepts only protocol error codes, not arbitrary text from a provider. */
const toErrorCode = (code: unknown): string =>
  typeof code === "string" && /^[\w.-]{1,64}$/.test(code) ? code : "an error";

/** Maximum size of an answer. Answers with a person's groups are the largest. */
const MAX_ANSWER_BYTES = 1024 * 1024;
/** A part of a token that is long enough to be expensive to parse. */
const LONG_PART = /[\w-]{1024,}/g;

/** Returns the answer. Throws JsonProblem if the answer, or a token in it, is too expensive for the library to parse. */
const checkCost = async (response: Response): Promise<Response> => {
  const bytes = await readBytes(response, MAX_ANSWER_BYTES);
  const parts = new TextDecoder().decode(bytes).match(LONG_PART) ?? [];
  for (const text of [bytes, ...parts.map((part) => Buffer.from(part, "base64url"))]) {
    const problem = findCostProblem(text);
    if (problem !== undefined) throw new JsonProblem(problem, true);
  }
  const { status, statusText, headers } = response;
  return new Response(bytes.byteLength === 0 ? null : bytes, { status, statusText, headers });
};
