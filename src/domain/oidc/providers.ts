// The OpenID Connect providers of this deployment by ID, and their redirect URIs.
import type { Clock } from "#base/clock.ts";
import type { OidcSetting } from "#base/config/oidc-settings.ts";
import { notFound } from "#base/errors.ts";
import { log } from "#base/log.ts";
import type { Outbound } from "#base/outbound.ts";
import { OidcClient } from "#src/authentication/oidc.ts";
import type { Identity } from "./identity.ts";

type Deps = { clock: Clock; settings: readonly OidcSetting[]; outbound: Outbound };

/** Returns the path of a provider's pages and routes. */
export const providerPath = (id: string): string => `/api/v2/users/oidc/${id}`;

/** Returns the redirect URI to register at the provider. */
export const redirectUri = (id: string, accessUrl: URL): URL => new URL(`${providerPath(id)}/callback`, accessUrl);

/** The same remark is logged at most once in this time, because every sign-in repeats it. */
const REMARK_INTERVAL_MS = 3_600_000;
const MAX_LOGGED = 1_000;

export class OidcProviders {
  readonly all: readonly OidcClient[];
  readonly #clock: Clock;
  readonly #loggedAt = new Map<string, number>();

  constructor({ clock, settings, outbound }: Deps) {
    this.#clock = clock;
    this.all = settings.map((one) => new OidcClient(one, { clock, fetch: (url, init) => outbound.open(url, init) }));
  }

  /** Returns the provider with this ID. Rejects with 404. */
  get(id: string): OidcClient {
    const found = this.find(id);
    if (!found) throw notFound();
    return found;
  }

  find(id: string): OidcClient | undefined {
    return this.all.find(({ setting }) => setting.id === id);
  }

  /** Logs group remarks that suggest a configuration mistake. */
  logRemarks({ setting: { id } }: Pick<OidcClient, "setting">, { remarks }: Identity): void {
    const now = this.#clock.monotonic();
    for (const remark of remarks) {
      const key = `${id} ${remark}`;
      if (now - (this.#loggedAt.get(key) ?? Number.NEGATIVE_INFINITY) < REMARK_INTERVAL_MS) continue;
      if (this.#loggedAt.size >= MAX_LOGGED) this.#loggedAt.clear();
      this.#loggedAt.set(key, now);
      log("http").warn("groups from the provider {provider}: {remark}", { provider: id, remark });
    }
  }
}
