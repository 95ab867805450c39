// Presents external account providers and links. Pure.
import { toOptionalRfc3339, toRfc3339 } from "#base/clock.ts";
import type { LinkRow } from "#db/users/external-auth.ts";
import type { ExternalAuthLink, ExternalAuthProvider } from "#schema/users/external-auth.ts";
import type { Provider } from "#src/git/provider.ts";

export const presentProvider = (provider: Provider): ExternalAuthProvider => ({
  id: provider.id,
  type: provider.type,
  display_name: provider.display_name,
  display_icon: provider.display_icon,
  device: provider.device_flow,
  allow_refresh: !provider.no_refresh,
  allow_validate: provider.validate_url !== undefined,
  supports_revocation: provider.revocation !== undefined,
});

/** `now`: milliseconds since 1970. */
export const presentLink = (row: LinkRow, provider: Provider | undefined, now: number): ExternalAuthLink => {
  const canRenew = row.has_refresh_token && provider?.no_refresh === false;
  const hasEnded = !canRenew && row.expires_at !== null && row.expires_at <= now;
  return {
    provider_id: row.provider_id,
    created_at: toRfc3339(row.created_at),
    updated_at: toRfc3339(row.updated_at),
    expires: toOptionalRfc3339(row.expires_at),
    has_refresh_token: row.has_refresh_token,
    authenticated: row.failure === "" && !hasEnded,
    validate_error: row.failure || (hasEnded ? "The token has expired." : ""),
  };
};
