// The OpenID Connect providers of this deployment, by their ids, and where each sends the browser back to.
import type { Clock } from "#base/clock.ts";
import type { OidcSetting } from "#base/config/oidc-settings.ts";
import { notFound } from "#base/errors.ts";
import { Outbound } from "#base/outbound.ts";
import { OidcClient } from "#src/authentication/oidc.ts";

type Deps = { clock: Clock; settings: readonly OidcSetting[]; allowed: readonly string[] };

/** Where the pages and routes of one provider are. */
export const providerPath = (id: string): string => `/api/v2/users/oidc/${id}`;

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
