// A fake OAuth 2 provider that speaks the real protocol over real HTTP: authorization codes with PKCE, the device grant, refresh with
// rotation, validation, revocation. It rejects what the protocol rejects, and misbehaves on request.
import { createHash, randomBytes } from "node:crypto";

export const CLIENT = { id: "slipway-client", secret: "the client's s3cret/+&" } as const;

type Grant = { challenge: string; redirect: string; used: boolean };
type Device = { agreed: boolean; denied: boolean };

/** Answers the next request to this path instead of the provider; `silence` never responds. */
type Mishap = { path: string; answer: (() => Response) | "silence" };

export class FakeProvider implements Disposable {
  readonly url: URL;
  /** Requests as `METHOD path`, in order. */
  readonly requests: string[] = [];
  /** Lifetime of access tokens in seconds. */
  life = 3600;
  /** Seconds between two polls for a device code. */
  interval = 5;
  /** New tokens have no expiry. */
  neverExpires = false;
  /** A refresh returns a new refresh token and invalidates the old one. */
  rotates = true;
  /** Token requests wait until this resolves. */
  gate: Promise<void> = Promise.resolve();
  readonly failures: Mishap[] = [];
  readonly #server: Bun.Server<undefined>;
  readonly #codes = new Map<string, Grant>();
  readonly #devices = new Map<string, Device>();
  readonly #access = new Set<string>();
  readonly #refresh = new Set<string>();

  constructor() {
    this.#server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      idleTimeout: 0,
      fetch: (request) => this.#answer(request),
    });
    this.url = new URL(this.#server.url);
  }

  /** Returns an entry of the setting external_auth. */
  setting(id: string, overrides: Record<string, unknown> = {}): Record<string, unknown> {
    const toUrl = (path: string): string => new URL(path, this.url).href;
    return {
      id,
      type: "generic",
      client_id: CLIENT.id,
      client_secret: CLIENT.secret,
      display_name: `Git of ${id}`,
      auth_url: toUrl("/authorize?kept=1"),
      token_url: toUrl("/token"),
      validate_url: toUrl("/user"),
      revoke_url: toUrl("/revoke"),
      device_code_url: toUrl("/device/code"),
      regex: `^https?://${id}\\.example/`,
      scopes: ["read", "write"],
      ...overrides,
    };
  }

  /** Approves on the provider's page, as a person would, and returns the redirect with code and state. */
  approve(authorize: string): { callback: URL; code: string; state: string } {
    const { searchParams } = new URL(authorize);
    const code = secret("code");
    const redirect = searchParams.get("redirect_uri") ?? "";
    this.#codes.set(code, { challenge: searchParams.get("code_challenge") ?? "", redirect, used: false });
    const callback = new URL(redirect);
    const state = searchParams.get("state") ?? "";
    callback.searchParams.set("code", code);
    callback.searchParams.set("state", state);
    return { callback, code, state };
  }

  /** Enters the user code and approves or denies. */
  enterUserCode(user_code: string, answer: "agreed" | "denied" = "agreed"): void {
    const device = this.#devices.get(`device-${user_code}`);
    if (!device) throw new Error("unknown user code");
    device[answer] = true;
  }

  /** Revokes every access token, as a person can on the provider's page; optionally also refresh tokens. */
  revokeAll(refresh = false): void {
    this.#access.clear();
    if (refresh) this.#refresh.clear();
  }

  isActiveToken(token: string): boolean {
    return this.#access.has(token);
  }

  /** Returns the number of requests to a path. */
  countRequests(path: string): number {
    return this.requests.filter((line) => line.endsWith(` ${path}`)).length;
  }

  [Symbol.dispose](): void {
    void this.#server.stop(true);
  }

  async #answer(request: Request): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    this.requests.push(`${request.method} ${pathname}`);
    const mishap = this.failures.findIndex(({ path }) => path === pathname);
    if (mishap >= 0) {
      const [{ answer } = { answer: "silence" as const }] = this.failures.splice(mishap, 1);
      return answer === "silence" ? new Promise(() => {}) : answer();
    }
    if (pathname === "/authorize") return Response.redirect(this.#redirectApproved(request.url, searchParams), 302);
    if (pathname === "/user") return this.#user(request);
    if (pathname === "/device") {
      this.enterUserCode(searchParams.get("user_code") ?? "");
      return new Response("Thank you.");
    }
    const form = new URLSearchParams(await request.text());
    if (pathname === "/device/code") return this.#device(form);
    if (!isClient(request, form)) return toErrorResponse("invalid_client", 401);
    if (pathname === "/revoke") return this.#revoke(form);
    await this.gate;
    return pathname === "/token" ? this.#token(form) : new Response("no such page", { status: 404 });
  }

  /** Handles the authorization page in a browser: approves immediately and returns the redirect. */
  #redirectApproved(url: string, fields: URLSearchParams): string {
    if (fields.get("kept") !== "1") throw new Error("the query of auth_url was lost");
    return this.approve(url).callback.href;
  }

  #token(form: URLSearchParams): Response {
    const kind = form.get("grant_type");
    if (kind === "authorization_code") {
      const grant = this.#codes.get(form.get("code") ?? "");
      const challenge = createHash("sha256")
        .update(form.get("code_verifier") ?? "")
        .digest("base64url");
      const isValid =
        grant && !grant.used && grant.challenge === challenge && grant.redirect === form.get("redirect_uri");
      if (!isValid) return toErrorResponse("invalid_grant");
      grant.used = true;
      return this.#issueTokens();
    }
    if (kind === "refresh_token") {
      const refreshToken = form.get("refresh_token") ?? "";
      if (!this.#refresh.has(refreshToken)) return toErrorResponse("invalid_grant");
      if (this.rotates) this.#refresh.delete(refreshToken);
      return this.#issueTokens(this.rotates);
    }
    if (kind !== "urn:ietf:params:oauth:grant-type:device_code") return toErrorResponse("unsupported_grant_type");
    const device = this.#devices.get(form.get("device_code") ?? "");
    if (!device) return toErrorResponse("expired_token");
    if (device.denied) return toErrorResponse("access_denied");
    // As GitHub does: an error with status 200.
    if (!device.agreed) return toErrorResponse("authorization_pending", 200);
    return this.#issueTokens();
  }

  #issueTokens(withRefresh = true): Response {
    const access_token = secret("access");
    const refresh_token = secret("refresh");
    this.#access.add(access_token);
    if (withRefresh) this.#refresh.add(refresh_token);
    return Response.json({
      access_token,
      token_type: "bearer",
      scope: "read write",
      ...(withRefresh ? { refresh_token } : {}),
      ...(this.neverExpires ? {} : { expires_in: this.life }),
    });
  }

  #user(request: Request): Response {
    const token = (request.headers.get("authorization") ?? "").replace(/^Bearer /, "");
    if (!this.#access.has(token)) return new Response("", { status: 401 });
    return Response.json({
      id: 583231,
      login: "octo-ann",
      name: "Ann at the provider",
      html_url: "javascript:alert(1)",
    });
  }

  #device(form: URLSearchParams): Response {
    if (form.get("client_id") !== CLIENT.id) return toErrorResponse("invalid_client", 401);
    const user_code = randomBytes(4).toString("hex").toUpperCase();
    this.#devices.set(`device-${user_code}`, { agreed: false, denied: false });
    const verification_uri = new URL("/device", this.url).href;
    return Response.json({
      device_code: `device-${user_code}`,
      user_code,
      verification_uri,
      expires_in: 600,
      interval: this.interval,
    });
  }

  #revoke(form: URLSearchParams): Response {
    this.#access.delete(form.get("token") ?? "");
    return new Response("");
  }
}

const secret = (kind: string): string => `${kind}-canary-${randomBytes(18).toString("hex")}`;

const toErrorResponse = (error: string, status = 400): Response => Response.json({ error }, { status });

const isClient = (request: Request, form: URLSearchParams): boolean => {
  const [, basic] = /^Basic (.+)$/.exec(request.headers.get("authorization") ?? "") ?? [];
  if (basic === undefined) return form.get("client_id") === CLIENT.id && form.get("client_secret") === CLIENT.secret;
  const parts = Buffer.from(basic, "base64")
    .toString()
    .split(":")
    .map((part) => new URLSearchParams(`v=${part}`).get("v"));
  return parts[0] === CLIENT.id && parts[1] === CLIENT.secret;
};
