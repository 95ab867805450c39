// Lists the external accounts that a template version requires, and whether the caller has linked them (rule EA-15). Calls no provider.
import { findLink } from "#db/users/external-auth.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { VersionExternalAuth } from "#schema/users/external-auth.ts";
import type { DomainContext } from "../context.ts";

/** Returns one entry per provider in the manifest, including unknown ones, so that people see what is missing. */
export const listVersionExternalAuth = (
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
