// Whether the addresses of an MCP server may be called from here: what would be refused with every turn is refused when it is entered
// (rule MC-10).
import { invalidField } from "#base/errors.ts";
import type { Outbound } from "#base/outbound.ts";
import type { McpServerRow } from "#db/models/mcp-servers.ts";

type Deps = { readonly mcpOutbound: Outbound; readonly outbound: Outbound };

/** 400 by the field. A name that leads nowhere now is let through: it may tomorrow. */
export const checkReachable = async (
  { mcpOutbound, outbound }: Deps,
  { url, oauth2 }: Pick<McpServerRow, "url" | "oauth2">,
): Promise<void> => {
  const refused = await mcpOutbound.refusalOf(new URL(url));
  if (refused !== undefined) throw invalidField("url", refused);
  const unsigned = oauth2 && (await outbound.refusalOf(new URL(oauth2.token_url)));
  if (unsigned) throw invalidField("oauth2.token_url", unsigned);
};
