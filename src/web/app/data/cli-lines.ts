// Formats calls of the pages as `slipway` commands, where an equivalent command exists. Pure, except for the names it looks up.

import { quoteArgument } from "./as-command.ts";
import { findName, getName } from "./names.ts";
import type { Route, Sent } from "./sent.ts";

type Body = Readonly<Record<string, unknown>>;
type Part = string | false | undefined;
type Line = (sent: { readonly path: string; readonly body: Body }) => string | undefined;

const line = (...parts: readonly Part[]): string => ["slipway", ...parts].filter(Boolean).join(" ");
const formatArgument = (value: unknown): string =>
  value === undefined || value === "" ? "" : quoteArgument(String(value));
const flag = (name: string, value: unknown): string =>
  value === undefined || value === null || value === "" ? "" : `--${name} ${quoteArgument(String(value))}`;
const flags = (name: string, values: unknown): string =>
  Array.isArray(values) ? values.map((one) => flag(name, one)).join(" ") : "";
const id = (path: string, at = 2): string => decodeURIComponent(path.split("?")[0]?.split("/")[at] ?? "");
const quoteName = (path: string, at = 2): string => quoteArgument(getName(id(path, at)));
const search = (path: string): string => formatArgument(new URLSearchParams(path.split("?")[1]).get("q") ?? "");

const organizationFlag = (name: string | undefined): string => (name === "default" ? "" : flag("organization", name));
const group = (path: string): readonly string[] => [
  quoteName(path),
  organizationFlag(findName(id(path))?.organization),
];
const groupFlags = ({ display_name, avatar_url, quota_allowance }: Body): string[] => [
  flag("display-name", display_name),
  flag("avatar-url", avatar_url),
  flag("quota", quota_allowance),
];

type Values = readonly { readonly name: string; readonly value: string }[];
const parameters = ({ rich_parameter_values: values = [] }: { rich_parameter_values?: Values }): string[] =>
  values.map(({ name, value }) => flag("parameter", `${name}=${value}`));

/** Passes the text as an argument, or through a pipe if it begins with a hyphen and would be parsed as a flag. */
const formatMessageCommand = (verb: string, text: string, ...more: readonly Part[]): string =>
  text.startsWith("-")
    ? `printf %s ${quoteArgument(text)} | ${line(verb, ...more)}`
    : line(verb, quoteArgument(text), ...more);

/** Returns the text of a message that has no other content. */
const extractText = (content: unknown): string | undefined => {
  const parts = Array.isArray(content) ? (content as { type?: string; text?: string }[]) : [];
  return parts.every(({ type }) => type === "text") ? parts.map(({ text }) => text).join("\n") : undefined;
};
/** True if the body has no other fields, so that the command can express all of it. */
const hasOnly = (body: Body, ...names: readonly string[]): boolean =>
  Object.entries(body).every(([name, value]) => value === undefined || names.includes(name));

/** Arguments that grant or revoke access. `roles` is keyed by user or group ID. */
const accessFlags = (kind: string, roles: unknown): string[] =>
  Object.entries((roles ?? {}) as Record<string, string>).map(([one, role]) => {
    const who = getName(one);
    return role === "" ? flag(`remove-${kind}`, who) : flag(kind, role === "admin" ? `${who}:admin` : who);
  });
const sharing = (path: string, { user_roles, group_roles }: Body): string | undefined => {
  const [user, of] = [user_roles, group_roles].map((roles) => Object.entries((roles ?? {}) as Record<string, string>));
  const [, role] = [...(user ?? []), ...(of ?? [])][0] ?? [];
  if (role === undefined) return undefined;
  const who = [
    ...(user ?? []).map(([one]) => flag("user", getName(one))),
    ...(of ?? []).map(([one]) => flag("group", getName(one))),
  ];
  return line(`share ${role === "" ? "remove" : "add"}`, quoteName(path), ...who, flag("role", role));
};

const application = ({ callback_url, icon }: Body): string[] => [
  flag("callback-url", callback_url),
  icon === "" ? "--icon none" : flag("icon", icon),
];
const toSecretFlags = ({ env_name, file_path, description }: Body): string[] => [
  flag("env", env_name),
  flag("file", file_path),
  flag("description", description),
];
const HOUR = 3_600_000;
const formatHours = (ms: number): string => (ms % HOUR === 0 ? `${ms / HOUR}h` : `${Math.round(ms / 60_000)}m`);
/** Formats the lifetime of a token, given as text or in nanoseconds. */
const formatLifetime = (value: unknown): unknown => (typeof value === "number" ? formatHours(value / 1e6) : value);

/** Formats milliseconds as a duration for the command line. */
const formatSpan = (ms: unknown): string | undefined => {
  if (typeof ms !== "number") return undefined;
  const [unit, size] = SPANS.find(([, size]) => ms % size === 0) ?? ["ms", 1];
  return ms === 0 ? "off" : `${ms / size}${unit}`;
};
const SPANS = [
  ["d", 24 * HOUR],
  ["h", HOUR],
  ["m", 60_000],
  ["s", 1_000],
] as const;
/** A flag whose value may be empty, which clears the setting. */
const text = (name: string, value: unknown): string =>
  value === undefined ? "" : `--${name} ${quoteArgument(String(value))}`;
const onOffFlag = (name: string, value: unknown): string =>
  value === undefined ? "" : `--${name} ${value ? "on" : "off"}`;
type Days = { readonly days_of_week: readonly string[]; readonly weeks?: number } | undefined;
const dayFlags = (name: string, days: Days): string =>
  days ? `--${name} ${days.days_of_week.join(",") || "none"}` : "";
/** The flags of `templates edit`. */
const templateFlags = (body: Body): string[] => [
  flag("name", body.name),
  text("display-name", body.display_name),
  text("description", body.description),
  text("icon", body.icon),
  flag("ttl", formatSpan(body.default_ttl_ms)),
  flag("activity-bump", formatSpan(body.activity_bump_ms)),
  flag("failure-ttl", formatSpan(body.failure_ttl_ms)),
  flag("dormant-after", formatSpan(body.time_til_dormant_ms)),
  flag("delete-dormant-after", formatSpan(body.time_til_dormant_autodelete_ms)),
  dayFlags("autostop-days", body.autostop_requirement as Days),
  flag("autostop-weeks", (body.autostop_requirement as Days)?.weeks),
  dayFlags("autostart-days", body.autostart_requirement as Days),
  onOffFlag("people-autostart", body.allow_user_autostart),
  onOffFlag("people-autostop", body.allow_user_autostop),
  onOffFlag("people-cancel", body.allow_user_cancel_workspace_jobs),
  onOffFlag("only-active", body.require_active_version),
  onOffFlag("dotfiles", body.allow_dotfiles),
  flag("port-sharing", body.max_port_share_level),
  flag("snapshots-on-stop", body.snapshots_on_stop),
  onOffFlag("home-backups", body.home_backups),
  flag("trash-days", body.trash_days),
  flag("wake-on-connect", body.wake_on_connect),
  flag("default-agent", body.default_coding_agent === "" ? "none" : body.default_coding_agent),
  body.deprecation_message === "" ? "--undeprecate" : flag("deprecate", body.deprecation_message),
];
const port = (path: string, { agent_name, port, share_level = "owner", protocol }: Body): string =>
  line(
    "share port",
    quoteArgument(`${getName(id(path))}.${agent_name}`),
    String(port),
    flag("to", share_level),
    protocol === "https" && "--https",
  );

const formatQuietHours = (schedule: string): string | undefined => {
  if (schedule === "") return line("schedule quiet off");
  const [, zone, minute = "", hour = ""] = /^(?:CRON_TZ=(\S+) )?(\d+) (\d+) \* \* \*$/.exec(schedule) ?? [];
  return hour === "" ? undefined : line("schedule quiet", `${hour}:${minute.padStart(2, "0")}`, formatArgument(zone));
};
const formatVersionCommand = (verb: string, path: string): string | undefined => {
  const { name, template } = findName(id(path)) ?? {};
  return name && template
    ? line(`templates ${verb}`, quoteArgument(getName(template)), quoteArgument(name))
    : undefined;
};

const LINES: Partial<Record<Route, Line>> = {
  "GET /workspaces": ({ path }) => line("workspaces list", search(path), "--all"),
  "GET /workspaces/:workspace": ({ path }) => line("workspaces show", quoteName(path)),
  "POST /workspaces/:workspace/builds": ({ path, body }) =>
    line(
      `workspaces ${body.transition}`,
      quoteName(path),
      Boolean(body.template_version_id) && "--update",
      ...parameters(body),
      body.transition === "delete" && "--yes",
      body.orphan === true && "--orphan",
      body.permanent === true && "--permanent",
    ),
  "POST /workspaces/:workspace/restart": ({ path, body }) =>
    line("workspaces restart", quoteName(path), Boolean(body.template_version_id) && "--update", ...parameters(body)),
  "POST /users/:user/workspaces": ({ body }) =>
    line(
      "workspaces create",
      formatArgument(body.name),
      flag("template", getName(String(body.template_id))),
      ...parameters(body),
    ),
  "PUT /workspaces/:workspace/favorite": ({ path }) => line("workspaces favorite", quoteName(path)),
  "DELETE /workspaces/:workspace/favorite": ({ path }) => line("workspaces unfavorite", quoteName(path)),
  "PUT /workspaces/:workspace/ttl": ({ path, body }) =>
    line(
      "schedule stop",
      quoteName(path),
      typeof body.ttl_ms === "number" && body.ttl_ms > 0 ? formatHours(body.ttl_ms) : "off",
    ),
  "GET /workspaces/:workspace/acl": ({ path }) => line("share status", quoteName(path)),
  "PATCH /workspaces/:workspace/acl": ({ path, body }) => sharing(path, body),
  "GET /workspaces/:workspace/port-share": ({ path }) => line("share ports", quoteName(path)),
  "POST /workspaces/:workspace/port-share": ({ path, body }) => port(path, body),
  "DELETE /workspaces/:workspace/port-share": ({ path, body }) => port(path, body),
  "GET /workspaces/trash": () => line("trash list"),
  "POST /workspaces/:workspace/restore": ({ path, body }) =>
    line("workspaces restore", quoteArgument(id(path)), body.name !== undefined && text("as", body.name)),
  "POST /workspaces/:workspace/forks": ({ path, body }) =>
    line(
      "fork",
      quoteName(path),
      flag("count", body.count),
      flags("name", body.names),
      body.chats === false && "--no-chats",
      body.start === true && "--start",
    ),
  "GET /workspaces/:workspace/snapshots": ({ path }) => line("snapshots list", quoteName(path)),
  "POST /workspaces/:workspace/snapshots": ({ path, body }) =>
    line("snapshots create", quoteName(path), body.name !== undefined && text("name", body.name)),
  "POST /workspaces/:workspace/snapshots/:snapshot/restore": ({ path }) =>
    line("snapshots restore", quoteName(path), quoteArgument(id(path, 4)), "--yes"),
  "GET /workspaces/:workspace/home-backups": ({ path }) => line("home-backups list", quoteName(path)),
  "POST /workspaces/:workspace/home-backups": ({ path }) => line("home-backups create", quoteName(path)),
  "POST /workspaces/:workspace/home-backups/:backup/fetch": ({ path }) =>
    line("home-backups restore", quoteName(path), quoteArgument(id(path, 4)), "--yes"),
  "DELETE /workspaces/:workspace/home-backups/:backup": ({ path }) =>
    line("home-backups delete", quoteName(path), quoteArgument(id(path, 4)), "--yes"),
  "DELETE /workspaces/:workspace/snapshots/:snapshot": ({ path }) =>
    line("snapshots delete", quoteName(path), quoteArgument(id(path, 4)), "--yes"),
  "GET /users": () => line("users list"),
  "POST /users": ({ body }) => line("users create", formatArgument(body.username), flag("email", body.email)),
  "DELETE /users/:user": ({ path }) => line("users delete", quoteName(path), "--yes"),
  "PUT /users/:user/status/:status": ({ path }) => line(`users ${id(path, 4)}`, quoteName(path)),
  "PUT /users/:user/roles": ({ path, body }) =>
    line("users roles", quoteName(path), flag("set", (body.roles as string[]).join(",") || "none")),
  "GET /users/me/keys/tokens": () => line("tokens list"),
  "POST /users/me/keys/tokens": ({ body }) =>
    line(
      "tokens create",
      formatArgument(body.token_name),
      flag("lifetime", formatLifetime(body.lifetime)),
      flags("scope", body.scopes),
      flags("address", body.allowed_addresses),
    ),
  "DELETE /users/me/keys/:key": ({ path }) => line("tokens remove", quoteArgument(id(path, 4))),
  "GET /users/:user/secrets": () => line("secrets list"),
  "POST /users/:user/secrets": ({ body }) =>
    `printf %s "$VALUE" | ${line("secrets create", formatArgument(body.name), ...toSecretFlags(body))}`,
  "PATCH /users/:user/secrets/:secret": ({ path, body }) => {
    const changed = line("secrets change", quoteArgument(id(path, 4)), ...toSecretFlags(body));
    return body.value === undefined ? changed : `printf %s "$VALUE" | ${changed} --value-file /dev/stdin`;
  },
  "DELETE /users/:user/secrets/:secret": ({ path }) => line("secrets remove", quoteArgument(id(path, 4))),
  "GET /users/:user/deploy-keys": () => line("account deploy-keys list"),
  "POST /users/:user/deploy-keys": ({ body }) => line("account deploy-keys create", quoteArgument(String(body.url))),
  "GET /users/:user/dotfiles": () => line("account dotfiles"),
  "PUT /users/:user/dotfiles": ({ body }) =>
    line(
      "account dotfiles",
      quoteArgument(String(body.url)),
      body.branch ? text("branch", body.branch) : "",
      body.install_command ? text("install-command", body.install_command) : "",
    ),
  "DELETE /users/:user/dotfiles": () => line("account dotfiles --remove"),
  "GET /users/:user/quiet-hours": () => line("schedule quiet"),
  "PUT /users/:user/quiet-hours": ({ body }) => formatQuietHours(String(body.schedule)),
  "GET /repositories/prebuilds": () => line("repositories list"),
  "POST /repositories/prebuilds": ({ body }) =>
    line(
      "repositories add",
      formatArgument(body.url),
      flag("every", body.interval_hours || undefined),
      flag("keep", body.keep),
    ),
  "POST /repositories/prebuilds/:prebuild/build": ({ path }) => line("repositories build", quoteArgument(id(path, 3))),
  "DELETE /repositories/prebuilds/:prebuild": ({ path }) => line("repositories remove", quoteArgument(id(path, 3))),
  "GET /prebuilds/settings": () => line("prebuilds status"),
  "PUT /prebuilds/settings": ({ body }) => line(`prebuilds ${body.reconciliation_paused ? "pause" : "resume"}`),
  "GET /debug/health": () => line("doctor --quick"),
  "GET /deployment/config": () => line("config show"),
  "POST /deployment/backups": () => line("backup"),
  "POST /deployment/backups/:backup/check": ({ path }) => line("restore", quoteArgument(id(path, 3)), "--check"),
  "GET /templates": () => line("templates list"),
  "PATCH /templates/:template": ({ path, body }) => line("templates edit", quoteName(path), ...templateFlags(body)),
  "DELETE /templates/:template": ({ path }) => line("templates delete", quoteName(path), "--yes"),
  "GET /templates/:template/versions": ({ path }) => line("templates versions", quoteName(path)),
  "PATCH /templates/:template/versions": ({ path, body }) =>
    line("templates promote", quoteName(path), quoteArgument(getName(String(body.id)))),
  "POST /templateversions/:templateversion/archive": ({ path }) => formatVersionCommand("archive", path),
  "POST /templateversions/:templateversion/unarchive": ({ path }) => formatVersionCommand("unarchive", path),
  "GET /templates/:template/acl": ({ path }) => line("templates access", quoteName(path)),
  "PATCH /templates/:template/acl": ({ path, body }) =>
    line(
      "templates access",
      quoteName(path),
      ...accessFlags("user", body.user_perms),
      ...accessFlags("group", body.group_perms),
    ),
  "GET /chats": () => line("chat list"),
  "POST /chats": ({ body }) => {
    const text = extractText(body.content);
    const supportedFields = [
      "organization_id",
      "content",
      "client_type",
      "workspace_id",
      "permission_mode",
      "coding_agent",
    ];
    const isWhole = hasOnly(body, ...supportedFields);
    const mode = body.permission_mode === undefined ? "" : flag("mode", String(body.permission_mode));
    const workspace = body.workspace_id === undefined ? "" : flag("workspace", getName(String(body.workspace_id)));
    return text === undefined || !isWhole
      ? undefined
      : formatMessageCommand("chat new", text, workspace, flag("agent", body.coding_agent), mode);
  },
  "POST /chats/:chat/messages": ({ path, body }) => {
    const text = extractText(body.content);
    const isWhole = hasOnly(body, "content");
    return text === undefined || !isWhole || text.startsWith("-")
      ? undefined
      : line("chat send", id(path), quoteArgument(text));
  },
  "PATCH /chats/:chat": ({ path, body }) =>
    hasOnly(body, "permission_mode") ? line("chat mode", id(path), String(body.permission_mode)) : undefined,
  "POST /chats/:chat/trials": ({ path, body }) => {
    const ways = (body.ways ?? []) as readonly Body[];
    const models = ways.flatMap(({ model_config_id }) => model_config_id ?? []);
    // The command takes one prompt for all ways and no coding agents.
    const isWhole = ways.every(({ prompt, coding_agent }) => prompt === undefined && !coding_agent);
    const prompt = String(body.prompt ?? "");
    if (!isWhole || prompt.startsWith("-") || (models.length > 0 && models.length < ways.length)) return undefined;
    const count = flag("ways", ways.length > 0 ? ways.length : body.count);
    const seconds = body.check_timeout_seconds;
    return line(
      ...["chat try", id(path), quoteArgument(prompt), count, flags("model", models)],
      body.check_command !== undefined && text("check", body.check_command),
      typeof seconds === "number" && flag("check-timeout", formatSpan(seconds * 1_000)),
    );
  },
  "GET /chats/:chat/trials": ({ path }) => line("chat ways", id(path)),
  "GET /chats/:chat/trials/:trial/ways/:way/diff": ({ path }) => line("chat ways", id(path), `--diff ${id(path, 6)}`),
  "POST /chats/:chat/trials/:trial/stop": ({ path }) => line("chat ways", id(path), "--stop"),
  "POST /chats/:chat/trials/:trial/keep": ({ path, body }) => line("chat keep", id(path), String(body.way), "--yes"),
  "POST /chats/:chat/trials/:trial/discard": ({ path }) => line("chat keep", id(path), "none", "--yes"),
  "POST /chats/:chat/clear": ({ path }) => line("chat clear", id(path)),
  "GET /tasks": () => line("tasks list"),
  "POST /tasks/:user": ({ body }) => {
    const { input, template_id, template_version_id, template_version_preset_id: preset, name } = body;
    const template = template_id ?? findName(String(template_version_id))?.template;
    if (template === undefined) return undefined;
    const which = [flag("template", getName(String(template))), preset ? flag("preset", getName(String(preset))) : ""];
    const lead = [
      flag("agent", body.coding_agent),
      body.model_config_id ? flag("model", getName(String(body.model_config_id))) : "",
    ];
    return formatMessageCommand("tasks create", String(input), ...which, flag("name", name), ...lead);
  },
  "POST /tasks/:user/:task/pause": ({ path }) => line("tasks pause", quoteName(path, 3)),
  "POST /tasks/:user/:task/resume": ({ path }) => line("tasks resume", quoteName(path, 3)),
  "DELETE /tasks/:user/:task": ({ path }) => line("tasks delete", quoteName(path, 3), "--yes"),
  "GET /organizations/:organization/groups": ({ path }) => line("groups list", organizationFlag(getName(id(path)))),
  "POST /organizations/:organization/groups": ({ path, body }) =>
    line("groups create", formatArgument(body.name), ...groupFlags(body), organizationFlag(getName(id(path)))),
  "PATCH /groups/:group": ({ path, body }) =>
    body.add_users === undefined && body.remove_users === undefined
      ? line("groups edit", ...group(path), flag("name", body.name), ...groupFlags(body))
      : line(
          "groups members",
          ...group(path),
          flags("add", ((body.add_users ?? []) as string[]).map(getName)),
          flags("remove", ((body.remove_users ?? []) as string[]).map(getName)),
        ),
  "DELETE /groups/:group": ({ path }) => line("groups delete", ...group(path), "--yes"),
  "GET /connectionlog": ({ path }) => line("connections list", search(path)),
  "GET /connectionlog/retention": () => line("connections retention"),
  "PUT /connectionlog/retention": ({ body }) => line("connections retention", formatArgument(body.days)),
  "GET /oauth2-provider/apps": () => line("oauth2 apps list"),
  "POST /oauth2-provider/apps": ({ body }) =>
    line("oauth2 apps create", formatArgument(body.name), ...application(body)),
  "PUT /oauth2-provider/apps/:oauth2_app": ({ path, body }) =>
    line("oauth2 apps edit", id(path, 3), flag("name", body.name), ...application(body)),
  "DELETE /oauth2-provider/apps/:oauth2_app": ({ path }) => line("oauth2 apps delete", id(path, 3), "--yes"),
  "GET /oauth2-provider/apps/:oauth2_app/secrets": ({ path }) => line("oauth2 apps secrets", id(path, 3)),
  "POST /oauth2-provider/apps/:oauth2_app/secrets": ({ path }) => line("oauth2 apps secrets", id(path, 3), "--create"),
  "DELETE /oauth2-provider/apps/:oauth2_app/secrets/:oauth2_secret": ({ path }) =>
    line("oauth2 apps secrets", id(path, 3), flag("delete", id(path, 5))),
};

/** Returns the equivalent `slipway` command, or undefined if none exists. */
export const toCliLine = ({ route, path, body }: Sent): string | undefined =>
  LINES[route]?.({ path, body: (body ?? {}) as Body });
