// A server whose people sign in at a real provider (provider.ts), for the stories of this folder.
import type { User } from "#schema/users/user.ts";
import { Client } from "#src/client.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { ADMIN, startTestServer, type TestServer } from "#test/support/server.ts";
import { Browser, CLIENT, OidcServer, type Person } from "./provider.ts";

export const COOKIE = "service_session_token";

/** Where a sign-in ended, the message, and the session's user. */
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
  /** Follows redirects until one of our pages. */
  readonly isOurs: (url: URL) => boolean;
  /** Follows redirects until the provider's callback. */
  readonly isCallback: (url: URL) => boolean;
  /** Signs this person in with a new browser. */
  readonly signIn: (person: Person | undefined, id?: string, query?: string) => Promise<SignedIn>;
  /** Returns this client's user. */
  readonly me: (client: Client) => Promise<User>;
};

/** `providers`: entries of the setting without issuer and client, which all share. */
export const openOidcWorld = async (
  providers: readonly { id: string; [key: string]: unknown }[],
  env: Record<string, string> = {},
): Promise<OidcWorld> => {
  const clock = new ManualClock();
  const idp = await OidcServer.start();
  const settings = providers.map((one) => ({ issuer: idp.issuer, ...CLIENT, ...one }));
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
  const isOurs = (url: URL): boolean => url.host === server.url.host && !url.pathname.startsWith("/api/");
  const isCallback = (url: URL): boolean =>
    url.host === server.url.host && url.pathname.endsWith("/callback") && url.search !== "";
  const signIn = async (
    person: Person | undefined,
    id = providers[0]?.id ?? "",
    query: string | undefined = undefined,
  ): Promise<SignedIn> => {
    idp.person = person;
    const browser = new Browser();
    const { url, response } = await browser.followRedirects(start(id, query), isOurs);
    const token = browser.cookie(server.url, COOKIE);
    return { browser, url, text: (await response?.text()) ?? "", token, client: new Client(server.url, token) };
  };
  return {
    idp,
    server,
    clock,
    admin,
    start,
    isOurs,
    isCallback,
    signIn,
    me: (client) => client.get<User>("/api/v2/users/me"),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await idp[Symbol.asyncDispose]();
    },
  };
};
