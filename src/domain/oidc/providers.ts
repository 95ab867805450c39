// The OpenID Connect providers of this deployment, by their ids, and where each sends the browser back to.
import type { Clock } from "#base/clock.ts";
import type { OidcSetting } from "#base/config/oidc-settings.ts";
import type { Config } from "#base/config.ts";
import { notFound } from "#base/errors.ts";
import { Outbound } from "#base/outbound.ts";
import { OidcClient, providerName } from "#src/authentication/oidc.ts";
import type { Provider } from "./identity.ts";

type Deps = { clock: Clock; settings: readonly OidcSetting[]; allowed: readonly string[] };

/** Where the pages and routes of one provider are. */
export const providerPath = (id: string): string => `/api/v2/users/oidc/${id}`;

/** What there is of a provider without asking it; undefined when no provider has this id. */
export const providerIn = ({ oidc_providers }: Pick<Config, "oidc_providers">, id: string): Provider | undefined => {
  const setting = oidc_providers.find((one) => one.id === id);
  return setting && { setting, name: providerName(setting) };
};

export class OidcProviders {
  readonly all: readonly OidcClient[];

  constructor({ clock, settings, allowed }: Deps) {
    const outbound = new Outbound({ clock, allowed });
    this.all = settings.map((one) => new OidcClient(one, { clock, fetch: (url, init) => outbound.open(url, init) }));
  }

  /** The provider with this id. 404 when there is none. */
  at(id: string): OidcClient {
    const found = this.all.find(({ setting }) => setting.id === id);
    if (!found) throw notFound();
    return found;
  }
}
