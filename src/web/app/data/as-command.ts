// A call of the page as lines that do the same: curl for every call, our own command line where it has a verb. Pure.
import type { Route } from "./api.ts";

type Sent = { readonly method: string; readonly path: string; readonly route: Route; readonly body?: unknown };

/** Names of things by their ids, so that lines say `ada/web` and not an id. Filled by the lists. */
const names = new Map<string, string>();
export const nameFor = (id: string, name: string): void => void names.set(id, name);

const quoted = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** What stands for a secret (api.ts) is a variable of the shell, which single quotes would hide. */
const withVariables = (text: string): string => text.replace(/"(\$[A-Z_]+)"/g, `"'"$1"'"`);

/** `origin` is the server's address. */
export const curlOf = ({ method, path, body }: Sent, origin: string): string => {
  const parts = ["curl", '-H "Service-Session-Token: $SLIPWAY_TOKEN"'];
  if (method !== "GET") parts.push(`-X ${method}`);
  if (body !== undefined)
    parts.push("-H 'Content-Type: application/json'", `-d ${withVariables(quoted(JSON.stringify(body)))}`);
  return [...parts, quoted(`${origin}/api/v2${path}`)].join(" ");
};

const segment = (path: string, at: number): string => decodeURIComponent(path.split("?")[0]?.split("/")[at] ?? "");
const named = (path: string): string => names.get(segment(path, 2)) ?? segment(path, 2);

type BuildBody = {
  transition: string;
  template_version_id?: string;
  rich_parameter_values?: { name: string; value: string }[];
  orphan?: boolean;
};
type CreateBody = { name: string; template_id?: string; rich_parameter_values?: { name: string; value: string }[] };

const parameters = (values: readonly { name: string; value: string }[] = []): string[] =>
  values.map(({ name, value }) => `--parameter ${quoted(`${name}=${value}`)}`);

const VERBS: Partial<Record<Route, (sent: Sent) => string>> = {
  "GET /workspaces": ({ path }) => {
    const q = new URLSearchParams(path.split("?")[1]).get("q");
    return ["slipway workspaces list --all", q && quoted(q)].filter(Boolean).join(" ");
  },
  "GET /workspaces/:workspace": ({ path }) => `slipway workspaces show ${quoted(named(path))}`,
  "POST /workspaces/:workspace/builds": ({ path, body }) => {
    const { transition, template_version_id, rich_parameter_values, orphan } = body as BuildBody;
    return [
      `slipway workspaces ${transition} ${quoted(named(path))}`,
      template_version_id && "--update",
      ...parameters(rich_parameter_values),
      transition === "delete" && "--yes",
      orphan && "--orphan",
    ]
      .filter(Boolean)
      .join(" ");
  },
  "POST /workspaces/:workspace/restart": ({ path, body }) => {
    const { template_version_id, rich_parameter_values } = body as Omit<BuildBody, "transition">;
    const update = template_version_id ? ["--update"] : [];
    return [`slipway workspaces restart ${quoted(named(path))}`, ...update, ...parameters(rich_parameter_values)].join(
      " ",
    );
  },
  "POST /users/:user/workspaces": ({ body }) => {
    const { name, template_id = "", rich_parameter_values } = body as CreateBody;
    const template = `--template ${quoted(names.get(template_id) ?? template_id)}`;
    return [`slipway workspaces create ${quoted(name)}`, template, ...parameters(rich_parameter_values)].join(" ");
  },
  "GET /users": () => "slipway users list",
  "POST /users": ({ body }) => {
    const { username, email } = body as { username: string; email?: string };
    return ["slipway users create", quoted(username), email && `--email ${quoted(email)}`].filter(Boolean).join(" ");
  },
  "GET /debug/health": () => "slipway doctor --quick",
  "GET /deployment/config": () => "slipway config show",
  "POST /deployment/backups": () => "slipway backup",
  "POST /deployment/backups/:backup/check": ({ path }) => `slipway restore ${quoted(segment(path, 3))} --check`,
  "GET /templates": () => "slipway templates list",
  "GET /chats": () => "slipway chats list",
  "GET /tasks": () => "slipway tasks list",
  "POST /tasks/:user/:task/pause": ({ path }) => `slipway tasks pause ${quoted(segment(path, 3))}`,
  "POST /tasks/:user/:task/resume": ({ path }) => `slipway tasks resume ${quoted(segment(path, 3))}`,
  "DELETE /tasks/:user/:task": ({ path }) => `slipway tasks delete ${quoted(segment(path, 3))} --yes`,
  "GET /organizations/:organization/groups": ({ path }) =>
    `slipway groups list --organization ${quoted(segment(path, 2))}`,
};

/** Undefined where the command line has no verb for it. */
export const cliOf = (sent: Sent): string | undefined => VERBS[sent.route]?.(sent);
