// Credentials for an organization's MCP server: its secrets, decrypted only here, and the tokens of the person it is called for (rules
// MC-7, MC-8). Tokens are stored and refreshed like other linked accounts.
import type { McpAccess } from "#actors/chat/turn/mcp.ts";
import { type Encryption, UnsealError } from "#base/encryption.ts";
import { sha256 } from "#base/ids.ts";
import type { McpServerRow } from "#db/models/mcp-servers.ts";
import type { Provider } from "#src/git/provider.ts";
import { McpError } from "#src/mcp/failure.ts";
import type { McpTarget } from "#src/mcp/pool.ts";
import type { Links } from "../external-auth/links.ts";

export type McpSecrets = {
  readonly api_key?: string;
  readonly custom_headers?: Readonly<Record<string, string>>;
  readonly client_secret?: string;
};

type Deps = { readonly encryption: Encryption; readonly links: Links };

const toSealContext = (id: string): string => `mcp_server:${id}`;

/** Returns an empty string when there are no secrets. */
export const sealSecrets = (encryption: Encryption, id: string, secrets: McpSecrets): string =>
  Object.keys(secrets).length === 0 ? "" : encryption.seal(JSON.stringify(secrets), toSealContext(id));

export const openSecrets = (encryption: Encryption, { id, sealed_secrets }: McpServerRow): McpSecrets =>
  sealed_secrets === "" ? {} : (JSON.parse(encryption.open(sealed_secrets, toSealContext(id))) as McpSecrets);

/** Returns the provider ID under which users' sign-ins at the server are stored. */
export const toProviderId = ({ id }: Pick<McpServerRow, "id">): string => `mcp:${id}`;

/** Returns the server as an OAuth provider; undefined when it requires no sign-in. */
export const toOAuthProvider = (encryption: Encryption, server: McpServerRow): Provider | undefined => {
  const { oauth2, auth_type, display_name, icon, url } = server;
  if (auth_type !== "oauth2" || !oauth2) return undefined;
  return {
    id: toProviderId(server),
    place: sha256(JSON.stringify([new URL(url).origin, oauth2.client_id, oauth2.auth_url, oauth2.token_url])),
    type: "generic",
    base_url: "",
    client_id: oauth2.client_id,
    client_secret: openSecrets(encryption, server).client_secret ?? "",
    auth_url: new URL(oauth2.auth_url),
    token_url: new URL(oauth2.token_url),
    validate_url: undefined,
    revocation: undefined,
    device_code_url: undefined,
    scopes: oauth2.scopes,
    pattern: undefined,
    display_name,
    display_icon: icon,
    device_flow: false,
    no_refresh: false,
    credentials: "body",
  };
};

export const makeMcpAccess =
  ({ encryption, links }: Deps): McpAccess =>
  async (server, user_id) => {
    const headers = await loadHeaders({ encryption, links }, server, user_id).catch((error) => {
      if (error instanceof UnsealError) throw new McpError("its secrets cannot be opened: they must be entered again.");
      throw error;
    });
    if (!headers) return undefined;
    const provider = toOAuthProvider(encryption, server);
    if (!provider) return toTarget(server, headers);
    const renew = async () => {
      const token = await links.renew(user_id, provider, headers.authorization?.replace(/^Bearer /, "") ?? "");
      return token && toTarget(server, toBearer(token.access_token));
    };
    return { ...toTarget(server, headers), renew };
  };

const toTarget = (
  { id, version, url, transport }: McpServerRow,
  headers: Readonly<Record<string, string>>,
): McpTarget => ({
  key: `${id}:${version}:${sha256(JSON.stringify(headers))}`,
  url: new URL(url),
  kind: transport === "sse" ? "sse" : "http",
  headers,
});

const toBearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });

/** Returns undefined while the user has not signed in there. */
const loadHeaders = async (
  { encryption, links }: Deps,
  server: McpServerRow,
  user_id: string,
): Promise<Record<string, string> | undefined> => {
  const { auth_type, api_key_header } = server;
  if (auth_type === "none") return {};
  const provider = toOAuthProvider(encryption, server);
  if (provider) {
    const token = await links.getLiveToken(user_id, provider);
    return token && toBearer(token.access_token);
  }
  const { api_key = "", custom_headers = {} } = openSecrets(encryption, server);
  return auth_type === "api_key" ? { [api_key_header || "authorization"]: api_key } : { ...custom_headers };
};
