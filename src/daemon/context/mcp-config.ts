// Parses a `.mcp.json` file: programs to start and URLs to call, by name (facts/chats 5.5). `${NAME}` expands to a variable of the
// workspace; `${NAME:-text}` has a default. An invalid server is reported and does not affect the others. Pure.

export type McpServerSpec = { readonly name: string } & (
  | {
      readonly kind: "stdio";
      readonly command: string;
      readonly args: readonly string[];
      readonly env: Env;
      readonly folder: string;
    }
  | { readonly kind: "http" | "sse"; readonly url: string; readonly headers: Env }
);
type Env = Readonly<Record<string, string>>;

export type DeclaredServers = {
  readonly servers: readonly McpServerSpec[];
  readonly wrong: readonly { name: string; problem: string }[];
};

const SERVER_NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;
const MAX_SERVERS = 50;

/** `folder`: the folder of the file, in which programs start. */
export const parseDeclaredServers = (text: string, folder: string, env: Env): DeclaredServers => {
  const servers: McpServerSpec[] = [];
  const problems: { name: string; problem: string }[] = [];
  for (const [name, value] of Object.entries(toRecord(toRecord(JSON.parse(text)).mcpServers)).slice(0, MAX_SERVERS)) {
    const server = parseSpec(name, toRecord(value), folder, env);
    if (typeof server === "string") problems.push({ name, problem: server });
    else if (server) servers.push(server);
  }
  return { servers, wrong: problems };
};

/** Returns undefined for a disabled server, and a message for an invalid one. */
const parseSpec = (
  name: string,
  fields: Record<string, unknown>,
  folder: string,
  env: Env,
): McpServerSpec | string | undefined => {
  if (!SERVER_NAME.test(name) || name.includes("__")) return "needs a name of letters, digits, dots and dashes";
  if (fields.disabled === true) return undefined;
  const expandText = (text: unknown): string => (typeof text === "string" ? expandVariables(text, env) : "");
  const toEnv = (map: unknown): Env =>
    Object.fromEntries(Object.entries(toRecord(map)).map(([key, value]) => [key, expandText(value)]));
  if (typeof fields.command === "string" && fields.command !== "") {
    const args = Array.isArray(fields.args) ? fields.args.map(expandText) : [];
    return { name, kind: "stdio", command: expandText(fields.command), args, env: toEnv(fields.env), folder };
  }
  const url = expandText(fields.url);
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) return "needs a command, or an http or https url";
  return { name, kind: fields.type === "sse" ? "sse" : "http", url, headers: toEnv(fields.headers) };
};

const toRecord = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};

const expandVariables = (text: string, env: Env): string =>
  text.replace(/\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}/g, (_, name: string, otherwise = "") => env[name] || otherwise);
