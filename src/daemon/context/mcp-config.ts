// Parses a `.mcp.json`: programs to start and addresses to call, by name (facts/chats 5.5). `${NAME}` expands to a variable of the
// workspace, `${NAME:-text}` has a default. Pure. An invalid server is reported and does not affect the others.

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
  for (const [name, given] of Object.entries(toRecord(toRecord(JSON.parse(text)).mcpServers)).slice(0, MAX_SERVERS)) {
    const parsedServer = parseSpec(name, toRecord(given), folder, env);
    if (typeof parsedServer === "string") problems.push({ name, problem: parsedServer });
    else if (parsedServer) servers.push(parsedServer);
  }
  return { servers, wrong: problems };
};

/** Returns undefined for a disabled server, and a text for an error. */
const parseSpec = (
  name: string,
  given: Record<string, unknown>,
  folder: string,
  env: Env,
): McpServerSpec | string | undefined => {
  if (!SERVER_NAME.test(name) || name.includes("__")) return "needs a name of letters, digits, dots and dashes";
  if (given.disabled === true) return undefined;
  const fillText = (text: unknown): string => (typeof text === "string" ? expandVariables(text, env) : "");
  const toEnv = (map: unknown): Env =>
    Object.fromEntries(Object.entries(toRecord(map)).map(([key, value]) => [key, fillText(value)]));
  if (typeof given.command === "string" && given.command !== "") {
    const args = Array.isArray(given.args) ? given.args.map(fillText) : [];
    return { name, kind: "stdio", command: fillText(given.command), args, env: toEnv(given.env), folder };
  }
  const url = fillText(given.url);
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) return "needs a command, or an http or https url";
  return { name, kind: given.type === "sse" ? "sse" : "http", url, headers: toEnv(given.headers) };
};

const toRecord = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};

const expandVariables = (text: string, env: Env): string =>
  text.replace(/\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}/g, (_, name: string, otherwise = "") => env[name] || otherwise);
