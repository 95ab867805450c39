// A server whose users sign in at a real provider (provider.ts).
import type { User } from "#schema/users/user.ts";
import { Client } from "#src/client.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { ADMIN, startTestServer, type TestServer } from "#test/support/server.ts";
import { Browser, CLIENT, OidcServer, type Person } from "./provider.ts";

export const COOKIE = "service_session_token";

/** The page and text at the end of a sign-in, and the session if there is one. */
export type SignedIn = {
  readonly browser: Browser;
  readonly url: URL;
  readonly text: string;
  readonly token: string | undefined;
  readonly client: Client;
};

export type OidcWorld = AsyncDisposable & {
  readonly idp: OidcServer;
  readonly server: TestServer;
  readonly clock: ManualClock;
  readonly admin: Client;
  readonly start: (id: string, query?: string) => string;
  /** Returns true for pages of the server. */
  readonly isServerPage: (url: URL) => boolean;
  /** Returns true for the callback after a sign-in at the provider. */
  readonly isCallback: (url: URL) => boolean;
  /** Signs this person in with a new browser. */
  readonly signIn: (person: Person | undefined, id?: string, query?: string) => Promise<SignedIn>;
  /** Returns this client's user. */
  readonly getUser: (client: Client) => Promise<User>;
};

/** `providers`: entries of the setting without issuer and client, which all share. */
export const openOidcWorld = async (
  providers: readonly { id: string; [key: string]: unknown }[],
  env: Record<string, string> = {},
): Promise<OidcWorld> => {
  const clock = new ManualClock();
  const idp = await OidcServer.start();
  const settings = providers.map((provider) => ({ issuer: idp.issuer, ...CLIENT, ...provider }));
  const server = await startTestServer({
    clock,
    env: {
      SLIPWAY_OIDC_PROVIDERS: JSON.stringify(settings),
      SLIPWAY_ALLOWED_PRIVATE_NETWORKS: "127.0.0.0/8",
      ...env,
    },
  });
  idp.register(
    providers.map(({ id }) => new URL(`/api/v2/users/oidc/${id}/callback`, server.url).href),
    [new URL("/login", server.url).href],
  );
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  const start = (id: string, query = ""): string => new URL(`/api/v2/users/oidc/${id}/start${query}`, server.url).href;
  const isServerPage = (url: URL): boolean => url.host === server.url.host && !url.pathname.startsWith("/api/");
  const isCallback = (url: URL): boolean =>
    url.host === server.url.host && url.pathname.endsWith("/callback") && url.search !== "";
  const signIn = async (
    person: Person | undefined,
    id = providers[0]?.id ?? "",
    query: string | undefined = undefined,
  ): Promise<SignedIn> => {
    idp.person = person;
    const browser = new Browser();
    const { url, response } = await browser.followRedirects(start(id, query), isServerPage);
    const token = browser.cookie(server.url, COOKIE);
    return { browser, url, text: (await response?.text()) ?? "", token, client: new Client(server.url, token) };
  };
  return {
    idp,
    server,
    clock,
    admin,
    start,
    isServerPage,
    isCallback,
    signIn,
    getUser: (client) => client.get<User>("/api/v2/users/me"),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await idp[Symbol.asyncDispose]();
    },
  };
};
