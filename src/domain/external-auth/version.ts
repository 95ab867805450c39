// Which external accounts a template version asks for, and whether the caller has linked them (rule EA-15). Asks no provider.
import { findLink } from "#db/users/external-auth.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { VersionExternalAuth } from "#schema/users/external-auth.ts";
import type { DomainContext } from "../context.ts";

/** One entry for each provider in the manifest, also for one that this server does not know: a person sees what is missing. */
export const versionExternalAuth = (
  { links, store, accessUrl }: DomainContext,
  { user_id }: UserCaller,
  { external_auth = [] }: Manifest,
): Promise<VersionExternalAuth[]> =>
  Promise.all(
    external_auth.map(async ({ id, optional = false }) => {
      const provider = links.providers.get(id);
      const link = provider && (await store.get(findLink({ user_id, provider_id: id })));
      return {
        id,
        type: provider?.type ?? "",
        display_name: provider?.display_name ?? id,
        display_icon: provider?.display_icon ?? "",
        authenticate_url: new URL(`/external-auth/${id}`, accessUrl).href,
        authenticated: link?.failure === "",
        optional,
      };
    }),
  );
