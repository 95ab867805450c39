// Formats a call of the page as a curl command. The equivalent `slipway` command is in cli-lines.ts, which is loaded on demand. Pure.
import type { SentRequest } from "./sent.ts";

/** Quotes the text as one shell word. */
export const quoteArgument = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

/** Placeholders for secrets (api.ts) are shell variables, which single quotes would not expand. */
const unquoteVariables = (text: string): string => text.replace(/"(\$[A-Z_]+)"/g, `"'"$1"'"`);

/** Formats the call as a curl command. `origin` is the server's address. */
export const toCurl = ({ method, path, body }: SentRequest, origin: string): string => {
  const parts = ["curl", '-H "Service-Session-Token: $SLIPWAY_TOKEN"'];
  if (method !== "GET") parts.push(`-X ${method}`);
  if (body !== undefined)
    parts.push("-H 'Content-Type: application/json'", `-d ${unquoteVariables(quoteArgument(JSON.stringify(body)))}`);
  return [...parts, quoteArgument(`${origin}/api/v2${path}`)].join(" ");
};
