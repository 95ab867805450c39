// A call of the page as a line of curl. The line of our own command line is in cli-lines.ts, which is loaded when someone asks. Pure.
import type { Sent } from "./sent.ts";

/** As one word of a shell. */
export const quoted = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

/** What stands for a secret (api.ts) is a variable of the shell, which single quotes would hide. */
const withVariables = (text: string): string => text.replace(/"(\$[A-Z_]+)"/g, `"'"$1"'"`);

/** `origin` is the server's address. */
export const toCurl = ({ method, path, body }: Sent, origin: string): string => {
  const parts = ["curl", '-H "Service-Session-Token: $SLIPWAY_TOKEN"'];
  if (method !== "GET") parts.push(`-X ${method}`);
  if (body !== undefined)
    parts.push("-H 'Content-Type: application/json'", `-d ${withVariables(quoted(JSON.stringify(body)))}`);
  return [...parts, quoted(`${origin}/api/v2${path}`)].join(" ");
};
