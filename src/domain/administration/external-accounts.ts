// Lists external account providers and users' linked accounts, for site owners. Tokens stay encrypted.
import { listAllLinks } from "#db/users/external-auth.ts";
import type { ExternalAccounts } from "#schema/administration/external-accounts.ts";
import type { DomainContext } from "../context.ts";
import { presentLink, presentProvider } from "../external-auth/present.ts";

type Deps = Pick<DomainContext, "store" | "clock" | "links" | "accessUrl">;

export const listExternalAccounts = async ({ store, clock, links, accessUrl }: Deps): Promise<ExternalAccounts> => {
  const rows = (await store.scan(listAllLinks())).filter(({ link }) => links.providers.has(link.provider_id));
  return {
    providers: [...links.providers.values()].map((provider) => ({
      ...presentProvider(provider),
      host: provider.auth_url?.host ?? "",
      callback_url: new URL(`/external-auth/${provider.id}/callback`, accessUrl).href,
      link_count: rows.filter(({ link }) => link.provider_id === provider.id).length,
    })),
    links: rows.map(({ link, username }) => ({
      ...presentLink(link, links.providers.get(link.provider_id), clock.now()),
      user_id: link.user_id,
      username,
    })),
  };
};
