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

export type Declared = {
  readonly servers: readonly McpServerSpec[];
  readonly wrong: readonly { name: string; problem: string }[];
};

const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;
const MOST = 50;

/** `folder`: the folder of the file, in which programs start. */
export const parseDeclaredServers = (text: string, folder: string, env: Env): Declared => {
  const servers: McpServerSpec[] = [];
  const wrong: { name: string; problem: string }[] = [];
  for (const [name, given] of Object.entries(toRecord(toRecord(JSON.parse(text)).mcpServers)).slice(0, MOST)) {
    const made = parseSpec(name, toRecord(given), folder, env);
    if (typeof made === "string") wrong.push({ name, problem: made });
    else if (made) servers.push(made);
  }
  return { servers, wrong };
};

/** Returns undefined for a disabled server, and a text for an error. */
const parseSpec = (
  name: string,
  given: Record<string, unknown>,
  folder: string,
  env: Env,
): McpServerSpec | string | undefined => {
  if (!NAME.test(name) || name.includes("__")) return "needs a name of letters, digits, dots and dashes";
  if (given.disabled === true) return undefined;
  const filled = (text: unknown): string => (typeof text === "string" ? fill(text, env) : "");
  const mapOf = (map: unknown): Env =>
    Object.fromEntries(Object.entries(toRecord(map)).map(([key, value]) => [key, filled(value)]));
  if (typeof given.command === "string" && given.command !== "") {
    const args = Array.isArray(given.args) ? given.args.map(filled) : [];
    return { name, kind: "stdio", command: filled(given.command), args, env: mapOf(given.env), folder };
  }
  const url = filled(given.url);
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) return "needs a command, or an http or https url";
  return { name, kind: given.type === "sse" ? "sse" : "http", url, headers: mapOf(given.headers) };
};

const toRecord = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};

const fill = (text: string, env: Env): string =>
  text.replace(/\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}/g, (_, name: string, otherwise = "") => env[name] || otherwise);
