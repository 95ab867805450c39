// A real OpenID Connect provider (the package oidc-provider) on loopback. It signs people in without a page: the test chooses the person.
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import Provider from "oidc-provider";

/** The provider's data about a person; `sub` is their ID. */
export type Person = Readonly<Record<string, unknown>> & { readonly sub: string };

export const CLIENT = { client_id: "slipway", client_secret: "a-secret-of-the-client-canary-of-32-bytes" } as const;

type Forge = (id_token: string) => Promise<string>;

export class OidcServer implements AsyncDisposable {
  readonly issuer: string;
  readonly #server: Server;
  #provider: InstanceType<typeof Provider> | undefined;
  /** The person who signs in next; if undefined, the sign-in is denied. */
  person: Person | undefined;
  readonly #people = new Map<string, Person>();
  /** The `sub` of the person of each grant. */
  readonly #grants = new Map<string, string>();

  /** Changes the provider's data about a person without a sign-in. */
  set(person: Person): void {
    this.#people.set(person.sub, person);
  }

  /** Revokes all grants of this person, which makes their refresh tokens invalid. */
  async revoke(sub: string): Promise<void> {
    for (const [id, owner] of this.#grants) if (owner === sub) await (await this.#provider?.Grant.find(id))?.destroy();
  }

  /** If true, every response is 500. */
  isBroken = false;
  /** Modifies each ID token, as an attacker would. */
  forge: Forge | undefined;

  private constructor(server: Server) {
    this.#server = server;
    this.issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on("request", (request, response) => {
      if (this.isBroken || !this.#provider) {
        response.writeHead(500).end();
        return;
      }
      if (request.url === "/token" && this.forge) replaceIdToken(response, this.forge);
      if (request.url?.startsWith("/interaction/")) void this.#interact(this.#provider, request, response);
      else void this.#provider.callback()(request, response);
    });
  }

  static async start(): Promise<OidcServer> {
    const server = createServer();
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    return new OidcServer(server);
  }

  /** Registers the client. Its redirect URI is known only once the server under test listens. */
  register(redirect_uris: string[], post_logout_redirect_uris: string[] = []): void {
    this.#provider = new Provider(this.issuer, {
      clients: [
        {
          ...CLIENT,
          redirect_uris,
          post_logout_redirect_uris,
          response_types: ["code"],
          grant_types: ["authorization_code", "refresh_token"],
        },
      ],
      // Most providers do this for any scopes.
      issueRefreshToken: async () => true,
      scopes: ["openid", "offline_access", "email", "profile"],
      cookies: { keys: ["test"] },
      claims: {
        email: ["email", "email_verified"],
        profile: [
          "name",
          "preferred_username",
          "groups",
          "realm_access",
          "https://acme.example/groups",
          "_claim_names",
        ],
      },
      pkce: { required: () => true },
      features: { devInteractions: { enabled: false } },
      interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
      findAccount: (_context, sub) => ({ accountId: sub, claims: () => this.#people.get(sub) ?? { sub } }),
      loadExistingGrant: async (context) => {
        const { provider, client, session, params } = context.oidc;
        const grant = new provider.Grant({ clientId: client?.clientId ?? "", accountId: session?.accountId ?? "" });
        grant.addOIDCScope(`${String(params?.scope)} offline_access`);
        this.#grants.set(await grant.save(), session?.accountId ?? "");
        return grant;
      },
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((done) => this.#server.close(done));
  }

  async #interact(
    provider: InstanceType<typeof Provider>,
    ...[request, response]: Parameters<ReturnType<InstanceType<typeof Provider>["callback"]>>
  ): Promise<void> {
    if (!this.person) {
      await provider.interactionFinished(request, response, { error: "access_denied" });
      return;
    }
    this.#people.set(this.person.sub, this.person);
    await provider.interactionFinished(request, response, { login: { accountId: this.person.sub } });
  }
}

const replaceIdToken = (response: ServerResponse, forge: Forge): void => {
  const end = response.end.bind(response) as (body: string) => ServerResponse;
  const endForged = async (body: string): Promise<void> => {
    const tokens = JSON.parse(body) as { id_token: string };
    const text = JSON.stringify(Object.assign(tokens, { id_token: await forge(tokens.id_token) }));
    response.setHeader("content-length", Buffer.byteLength(text));
    end(text);
  };
  response.end = ((body: string) => {
    void endForged(body);
    return response;
  }) as typeof response.end;
};

/** A minimal browser with redirects and cookies per host. */
export class Browser {
  readonly #jar = new Map<string, Map<string, string>>();
  /** All visited URLs. */
  readonly visited: string[] = [];

  /** Follows redirects to the end, or to the first URL for which `until` returns true; that URL is not requested. */
  async followRedirects(
    address: string,
    until?: (url: URL) => boolean,
  ): Promise<{ url: URL; response: Response | undefined }> {
    let url = new URL(address);
    for (let i = 0; i < 20; i++) {
      this.visited.push(url.href);
      if (until?.(url)) return { url, response: undefined };
      const cookie = this.cookies(url);
      const response = await fetch(url, {
        redirect: "manual",
        headers: { accept: "text/html", ...(cookie ? { cookie } : {}) },
      });
      this.accept(url, response.headers);
      const location = response.headers.get("location");
      if (location === null) return { url, response };
      await response.body?.cancel();
      url = new URL(location, url);
    }
    throw new Error("too many redirects");
  }

  /** Stores the cookies of a response. */
  accept(url: URL, headers: Headers): void {
    const jar = this.#getJar(url);
    for (const line of headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === "") jar.delete(name);
      else jar.set(name, value);
    }
  }

  /** Returns the cookie header for this host. */
  cookies(url: URL): string {
    return [...this.#getJar(url)].map(([name, value]) => `${name}=${value}`).join("; ");
  }

  cookie(url: URL, name: string): string | undefined {
    return this.#getJar(url).get(name);
  }

  #getJar({ host }: URL): Map<string, string> {
    const jar = this.#jar.get(host) ?? new Map<string, string>();
    this.#jar.set(host, jar);
    return jar;
  }
}
