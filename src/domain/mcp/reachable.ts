// Checks whether the URLs of an MCP server may be called from here: a URL that every turn would reject is rejected when it is entered (rule
// MC-10).
import { invalidField } from "#base/errors.ts";
import type { Outbound } from "#base/outbound.ts";
import type { McpServerRow } from "#db/models/mcp-servers.ts";

type Deps = { readonly mcpOutbound: Outbound; readonly outbound: Outbound };

/** Rejects with 400 and names the field. A hostname that does not resolve now is accepted, because it may later. */
export const checkReachable = async (
  { mcpOutbound, outbound }: Deps,
  { url, oauth2 }: Pick<McpServerRow, "url" | "oauth2">,
): Promise<void> => {
  const refused = await mcpOutbound.refusalOf(new URL(url));
  if (refused !== undefined) throw invalidField("url", refused);
  const unsigned = oauth2 && (await outbound.refusalOf(new URL(oauth2.token_url)));
  if (unsigned) throw invalidField("oauth2.token_url", unsigned);
};
