// Formats calls of the pages as `slipway` commands, where an equivalent command exists. Pure, except for the names it looks up.

import { quoteArgument } from "./as-command.ts";
import { findName, getName } from "./names.ts";
import type { Route, SentRequest } from "./sent.ts";

type Body = Readonly<Record<string, unknown>>;
type Part = string | false | undefined;
type CommandFormatter = (sent: { readonly path: string; readonly body: Body }) => string | undefined;

const formatCommand = (...parts: readonly Part[]): string => ["slipway", ...parts].filter(Boolean).join(" ");
const formatArgument = (value: unknown): string =>
  value === undefined || value === "" ? "" : quoteArgument(String(value));
const flag = (name: string, value: unknown): string =>
  value === undefined || value === null || value === "" ? "" : `--${name} ${quoteArgument(String(value))}`;
const flags = (name: string, values: unknown): string =>
  Array.isArray(values) ? values.map((one) => flag(name, one)).join(" ") : "";
const getSegment = (path: string, index = 2): string => decodeURIComponent(path.split("?")[0]?.split("/")[index] ?? "");
const quoteName = (path: string, index = 2): string => quoteArgument(getName(getSegment(path, index)));
const formatSearch = (path: string): string => formatArgument(new URLSearchParams(path.split("?")[1]).get("q") ?? "");

const organizationFlag = (name: string | undefined): string => (name === "default" ? "" : flag("organization", name));
const groupArguments = (path: string): readonly string[] => [
  quoteName(path),
  organizationFlag(findName(getSegment(path))?.organization),
];
const groupFlags = ({ display_name, avatar_url, quota_allowance }: Body): string[] => [
  flag("display-name", display_name),
  flag("avatar-url", avatar_url),
  flag("quota", quota_allowance),
];

type Values = readonly { readonly name: string; readonly value: string }[];
const parameterFlags = ({ rich_parameter_values: values = [] }: { rich_parameter_values?: Values }): string[] =>
  values.map(({ name, value }) => flag("parameter", `${name}=${value}`));

/** Passes the text as an argument, or through a pipe if it begins with a hyphen and would be parsed as a flag. */
const formatMessageCommand = (verb: string, text: string, ...more: readonly Part[]): string =>
  text.startsWith("-")
    ? `printf %s ${quoteArgument(text)} | ${formatCommand(verb, ...more)}`
    : formatCommand(verb, quoteArgument(text), ...more);

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
  Object.entries((roles ?? {}) as Record<string, string>).map(([id, role]) => {
    const name = getName(id);
    return role === "" ? flag(`remove-${kind}`, name) : flag(kind, role === "admin" ? `${name}:admin` : name);
  });
const formatShareCommand = (path: string, { user_roles, group_roles }: Body): string | undefined => {
  const [users, groups] = [user_roles, group_roles].map((roles) =>
    Object.entries((roles ?? {}) as Record<string, string>),
  );
  const [, role] = [...(users ?? []), ...(groups ?? [])][0] ?? [];
  if (role === undefined) return undefined;
  const targets = [
    ...(users ?? []).map(([one]) => flag("user", getName(one))),
    ...(groups ?? []).map(([one]) => flag("group", getName(one))),
  ];
  return formatCommand(`share ${role === "" ? "remove" : "add"}`, quoteName(path), ...targets, flag("role", role));
};

const applicationFlags = ({ callback_url, icon }: Body): string[] => [
  flag("callback-url", callback_url),
  icon === "" ? "--icon none" : flag("icon", icon),
];
const secretFlags = ({ env_name, file_path, description }: Body): string[] => [
  flag("env", env_name),
  flag("file", file_path),
  flag("description", description),
];
const HOUR_MS = 3_600_000;
const formatHours = (ms: number): string => (ms % HOUR_MS === 0 ? `${ms / HOUR_MS}h` : `${Math.round(ms / 60_000)}m`);
/** Formats the lifetime of a token, given as text or in nanoseconds. */
const formatLifetime = (value: unknown): unknown => (typeof value === "number" ? formatHours(value / 1e6) : value);

/** Formats milliseconds as a duration for the command line. */
const formatDuration = (ms: unknown): string | undefined => {
  if (typeof ms !== "number") return undefined;
  const [unit, unitMs] = UNITS.find(([, size]) => ms % size === 0) ?? ["ms", 1];
  return ms === 0 ? "off" : `${ms / unitMs}${unit}`;
};
const UNITS = [
  ["d", 24 * HOUR_MS],
  ["h", HOUR_MS],
  ["m", 60_000],
  ["s", 1_000],
] as const;
/** A flag whose value may be empty, which clears the setting. */
const clearableFlag = (name: string, value: unknown): string =>
  value === undefined ? "" : `--${name} ${quoteArgument(String(value))}`;
const onOffFlag = (name: string, value: unknown): string =>
  value === undefined ? "" : `--${name} ${value ? "on" : "off"}`;
type DaySchedule = { readonly days_of_week: readonly string[]; readonly weeks?: number } | undefined;
const dayFlags = (name: string, schedule: DaySchedule): string =>
  schedule ? `--${name} ${schedule.days_of_week.join(",") || "none"}` : "";
/** The flags of `templates edit`. */
const templateFlags = (body: Body): string[] => [
  flag("name", body.name),
  clearableFlag("display-name", body.display_name),
  clearableFlag("description", body.description),
  clearableFlag("icon", body.icon),
  flag("ttl", formatDuration(body.default_ttl_ms)),
  flag("activity-bump", formatDuration(body.activity_bump_ms)),
  flag("failure-ttl", formatDuration(body.failure_ttl_ms)),
  flag("dormant-after", formatDuration(body.time_til_dormant_ms)),
  flag("delete-dormant-after", formatDuration(body.time_til_dormant_autodelete_ms)),
  dayFlags("autostop-days", body.autostop_requirement as DaySchedule),
  flag("autostop-weeks", (body.autostop_requirement as DaySchedule)?.weeks),
  dayFlags("autostart-days", body.autostart_requirement as DaySchedule),
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
const formatPortCommand = (path: string, { agent_name, port, share_level = "owner", protocol }: Body): string =>
  formatCommand(
    "share port",
    quoteArgument(`${getName(getSegment(path))}.${agent_name}`),
    String(port),
    flag("to", share_level),
    protocol === "https" && "--https",
  );

const formatQuietHours = (schedule: string): string | undefined => {
  if (schedule === "") return formatCommand("schedule quiet off");
  const [, zone, minute = "", hour = ""] = /^(?:CRON_TZ=(\S+) )?(\d+) (\d+) \* \* \*$/.exec(schedule) ?? [];
  return hour === ""
    ? undefined
    : formatCommand("schedule quiet", `${hour}:${minute.padStart(2, "0")}`, formatArgument(zone));
};
const formatVersionCommand = (verb: string, path: string): string | undefined => {
  const { name, template } = findName(getSegment(path)) ?? {};
  return name && template
    ? formatCommand(`templates ${verb}`, quoteArgument(getName(template)), quoteArgument(name))
    : undefined;
};

const COMMANDS: Partial<Record<Route, CommandFormatter>> = {
  "GET /workspaces": ({ path }) => formatCommand("workspaces list", formatSearch(path), "--all"),
  "GET /workspaces/:workspace": ({ path }) => formatCommand("workspaces show", quoteName(path)),
  "POST /workspaces/:workspace/builds": ({ path, body }) =>
    formatCommand(
      `workspaces ${body.transition}`,
      quoteName(path),
      Boolean(body.template_version_id) && "--update",
      ...parameterFlags(body),
      body.transition === "delete" && "--yes",
      body.orphan === true && "--orphan",
      body.permanent === true && "--permanent",
    ),
  "POST /workspaces/:workspace/restart": ({ path, body }) =>
    formatCommand(
      "workspaces restart",
      quoteName(path),
      Boolean(body.template_version_id) && "--update",
      ...parameterFlags(body),
    ),
  "POST /users/:user/workspaces": ({ body }) =>
    formatCommand(
      "workspaces create",
      formatArgument(body.name),
      flag("template", getName(String(body.template_id))),
      ...parameterFlags(body),
    ),
  "PUT /workspaces/:workspace/favorite": ({ path }) => formatCommand("workspaces favorite", quoteName(path)),
  "DELETE /workspaces/:workspace/favorite": ({ path }) => formatCommand("workspaces unfavorite", quoteName(path)),
  "PUT /workspaces/:workspace/ttl": ({ path, body }) =>
    formatCommand(
      "schedule stop",
      quoteName(path),
      typeof body.ttl_ms === "number" && body.ttl_ms > 0 ? formatHours(body.ttl_ms) : "off",
    ),
  "GET /workspaces/:workspace/acl": ({ path }) => formatCommand("share status", quoteName(path)),
  "PATCH /workspaces/:workspace/acl": ({ path, body }) => formatShareCommand(path, body),
  "GET /workspaces/:workspace/port-share": ({ path }) => formatCommand("share ports", quoteName(path)),
  "POST /workspaces/:workspace/port-share": ({ path, body }) => formatPortCommand(path, body),
  "DELETE /workspaces/:workspace/port-share": ({ path, body }) => formatPortCommand(path, body),
  "GET /workspaces/trash": () => formatCommand("trash list"),
  "POST /workspaces/:workspace/restore": ({ path, body }) =>
    formatCommand(
      "workspaces restore",
      quoteArgument(getSegment(path)),
      body.name !== undefined && clearableFlag("as", body.name),
    ),
  "POST /workspaces/:workspace/forks": ({ path, body }) =>
    formatCommand(
      "fork",
      quoteName(path),
      flag("count", body.count),
      flags("name", body.names),
      body.chats === false && "--no-chats",
      body.start === true && "--start",
    ),
  "GET /workspaces/:workspace/snapshots": ({ path }) => formatCommand("snapshots list", quoteName(path)),
  "POST /workspaces/:workspace/snapshots": ({ path, body }) =>
    formatCommand("snapshots create", quoteName(path), body.name !== undefined && clearableFlag("name", body.name)),
  "POST /workspaces/:workspace/snapshots/:snapshot/restore": ({ path }) =>
    formatCommand("snapshots restore", quoteName(path), quoteArgument(getSegment(path, 4)), "--yes"),
  "GET /workspaces/:workspace/home-backups": ({ path }) => formatCommand("home-backups list", quoteName(path)),
  "POST /workspaces/:workspace/home-backups": ({ path }) => formatCommand("home-backups create", quoteName(path)),
  "POST /workspaces/:workspace/home-backups/:backup/fetch": ({ path }) =>
    formatCommand("home-backups restore", quoteName(path), quoteArgument(getSegment(path, 4)), "--yes"),
  "DELETE /workspaces/:workspace/home-backups/:backup": ({ path }) =>
    formatCommand("home-backups delete", quoteName(path), quoteArgument(getSegment(path, 4)), "--yes"),
  "DELETE /workspaces/:workspace/snapshots/:snapshot": ({ path }) =>
    formatCommand("snapshots delete", quoteName(path), quoteArgument(getSegment(path, 4)), "--yes"),
  "GET /users": () => formatCommand("users list"),
  "POST /users": ({ body }) => formatCommand("users create", formatArgument(body.username), flag("email", body.email)),
  "DELETE /users/:user": ({ path }) => formatCommand("users delete", quoteName(path), "--yes"),
  "PUT /users/:user/status/:status": ({ path }) => formatCommand(`users ${getSegment(path, 4)}`, quoteName(path)),
  "PUT /users/:user/roles": ({ path, body }) =>
    formatCommand("users roles", quoteName(path), flag("set", (body.roles as string[]).join(",") || "none")),
  "GET /users/me/keys/tokens": () => formatCommand("tokens list"),
  "POST /users/me/keys/tokens": ({ body }) =>
    formatCommand(
      "tokens create",
      formatArgument(body.token_name),
      flag("lifetime", formatLifetime(body.lifetime)),
      flags("scope", body.scopes),
      flags("address", body.allowed_addresses),
    ),
  "DELETE /users/me/keys/:key": ({ path }) => formatCommand("tokens remove", quoteArgument(getSegment(path, 4))),
  "GET /users/:user/secrets": () => formatCommand("secrets list"),
  "POST /users/:user/secrets": ({ body }) =>
    `printf %s "$VALUE" | ${formatCommand("secrets create", formatArgument(body.name), ...secretFlags(body))}`,
  "PATCH /users/:user/secrets/:secret": ({ path, body }) => {
    const command = formatCommand("secrets change", quoteArgument(getSegment(path, 4)), ...secretFlags(body));
    return body.value === undefined ? command : `printf %s "$VALUE" | ${command} --value-file /dev/stdin`;
  },
  "DELETE /users/:user/secrets/:secret": ({ path }) =>
    formatCommand("secrets remove", quoteArgument(getSegment(path, 4))),
  "GET /users/:user/deploy-keys": () => formatCommand("account deploy-keys list"),
  "POST /users/:user/deploy-keys": ({ body }) =>
    formatCommand("account deploy-keys create", quoteArgument(String(body.url))),
  "GET /users/:user/dotfiles": () => formatCommand("account dotfiles"),
  "PUT /users/:user/dotfiles": ({ body }) =>
    formatCommand(
      "account dotfiles",
      quoteArgument(String(body.url)),
      body.branch ? clearableFlag("branch", body.branch) : "",
      body.install_command ? clearableFlag("install-command", body.install_command) : "",
    ),
  "DELETE /users/:user/dotfiles": () => formatCommand("account dotfiles --remove"),
  "GET /users/:user/quiet-hours": () => formatCommand("schedule quiet"),
  "PUT /users/:user/quiet-hours": ({ body }) => formatQuietHours(String(body.schedule)),
  "GET /repositories/prebuilds": () => formatCommand("repositories list"),
  "POST /repositories/prebuilds": ({ body }) =>
    formatCommand(
      "repositories add",
      formatArgument(body.url),
      flag("every", body.interval_hours || undefined),
      flag("keep", body.keep),
    ),
  "POST /repositories/prebuilds/:prebuild/build": ({ path }) =>
    formatCommand("repositories build", quoteArgument(getSegment(path, 3))),
  "DELETE /repositories/prebuilds/:prebuild": ({ path }) =>
    formatCommand("repositories remove", quoteArgument(getSegment(path, 3))),
  "GET /prebuilds/settings": () => formatCommand("prebuilds status"),
  "PUT /prebuilds/settings": ({ body }) =>
    formatCommand(`prebuilds ${body.reconciliation_paused ? "pause" : "resume"}`),
  "GET /debug/health": () => formatCommand("doctor --quick"),
  "GET /deployment/config": () => formatCommand("config show"),
  "POST /deployment/backups": () => formatCommand("backup"),
  "POST /deployment/backups/:backup/check": ({ path }) =>
    formatCommand("restore", quoteArgument(getSegment(path, 3)), "--check"),
  "GET /templates": () => formatCommand("templates list"),
  "PATCH /templates/:template": ({ path, body }) =>
    formatCommand("templates edit", quoteName(path), ...templateFlags(body)),
  "DELETE /templates/:template": ({ path }) => formatCommand("templates delete", quoteName(path), "--yes"),
  "GET /templates/:template/versions": ({ path }) => formatCommand("templates versions", quoteName(path)),
  "PATCH /templates/:template/versions": ({ path, body }) =>
    formatCommand("templates promote", quoteName(path), quoteArgument(getName(String(body.id)))),
  "POST /templateversions/:templateversion/archive": ({ path }) => formatVersionCommand("archive", path),
  "POST /templateversions/:templateversion/unarchive": ({ path }) => formatVersionCommand("unarchive", path),
  "GET /templates/:template/acl": ({ path }) => formatCommand("templates access", quoteName(path)),
  "PATCH /templates/:template/acl": ({ path, body }) =>
    formatCommand(
      "templates access",
      quoteName(path),
      ...accessFlags("user", body.user_perms),
      ...accessFlags("group", body.group_perms),
    ),
  "GET /chats": () => formatCommand("chat list"),
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
    const isExpressible = hasOnly(body, ...supportedFields);
    const mode = body.permission_mode === undefined ? "" : flag("mode", String(body.permission_mode));
    const workspace = body.workspace_id === undefined ? "" : flag("workspace", getName(String(body.workspace_id)));
    return text === undefined || !isExpressible
      ? undefined
      : formatMessageCommand("chat new", text, workspace, flag("agent", body.coding_agent), mode);
  },
  "POST /chats/:chat/messages": ({ path, body }) => {
    const text = extractText(body.content);
    const isExpressible = hasOnly(body, "content");
    return text === undefined || !isExpressible || text.startsWith("-")
      ? undefined
      : formatCommand("chat send", getSegment(path), quoteArgument(text));
  },
  "PATCH /chats/:chat": ({ path, body }) =>
    hasOnly(body, "permission_mode")
      ? formatCommand("chat mode", getSegment(path), String(body.permission_mode))
      : undefined,
  "POST /chats/:chat/trials": ({ path, body }) => {
    const ways = (body.ways ?? []) as readonly Body[];
    const models = ways.flatMap(({ model_config_id }) => model_config_id ?? []);
    // The command takes one prompt for all ways and no coding agents.
    const isExpressible = ways.every(({ prompt, coding_agent }) => prompt === undefined && !coding_agent);
    const prompt = String(body.prompt ?? "");
    if (!isExpressible || prompt.startsWith("-") || (models.length > 0 && models.length < ways.length))
      return undefined;
    const count = flag("ways", ways.length > 0 ? ways.length : body.count);
    const seconds = body.check_timeout_seconds;
    return formatCommand(
      ...["chat try", getSegment(path), quoteArgument(prompt), count, flags("model", models)],
      body.check_command !== undefined && clearableFlag("check", body.check_command),
      typeof seconds === "number" && flag("check-timeout", formatDuration(seconds * 1_000)),
    );
  },
  "GET /chats/:chat/trials": ({ path }) => formatCommand("chat ways", getSegment(path)),
  "GET /chats/:chat/trials/:trial/ways/:way/diff": ({ path }) =>
    formatCommand("chat ways", getSegment(path), `--diff ${getSegment(path, 6)}`),
  "POST /chats/:chat/trials/:trial/stop": ({ path }) => formatCommand("chat ways", getSegment(path), "--stop"),
  "POST /chats/:chat/trials/:trial/keep": ({ path, body }) =>
    formatCommand("chat keep", getSegment(path), String(body.way), "--yes"),
  "POST /chats/:chat/trials/:trial/discard": ({ path }) =>
    formatCommand("chat keep", getSegment(path), "none", "--yes"),
  "POST /chats/:chat/clear": ({ path }) => formatCommand("chat clear", getSegment(path)),
  "GET /tasks": () => formatCommand("tasks list"),
  "POST /tasks/:user": ({ body }) => {
    const { input, template_id, template_version_id, template_version_preset_id: preset, name } = body;
    const template = template_id ?? findName(String(template_version_id))?.template;
    if (template === undefined) return undefined;
    const templateArguments = [
      flag("template", getName(String(template))),
      preset ? flag("preset", getName(String(preset))) : "",
    ];
    const modelFlags = [
      flag("agent", body.coding_agent),
      body.model_config_id ? flag("model", getName(String(body.model_config_id))) : "",
    ];
    return formatMessageCommand("tasks create", String(input), ...templateArguments, flag("name", name), ...modelFlags);
  },
  "POST /tasks/:user/:task/pause": ({ path }) => formatCommand("tasks pause", quoteName(path, 3)),
  "POST /tasks/:user/:task/resume": ({ path }) => formatCommand("tasks resume", quoteName(path, 3)),
  "DELETE /tasks/:user/:task": ({ path }) => formatCommand("tasks delete", quoteName(path, 3), "--yes"),
  "GET /organizations/:organization/groups": ({ path }) =>
    formatCommand("groups list", organizationFlag(getName(getSegment(path)))),
  "POST /organizations/:organization/groups": ({ path, body }) =>
    formatCommand(
      "groups create",
      formatArgument(body.name),
      ...groupFlags(body),
      organizationFlag(getName(getSegment(path))),
    ),
  "PATCH /groups/:group": ({ path, body }) =>
    body.add_users === undefined && body.remove_users === undefined
      ? formatCommand("groups edit", ...groupArguments(path), flag("name", body.name), ...groupFlags(body))
      : formatCommand(
          "groups members",
          ...groupArguments(path),
          flags("add", ((body.add_users ?? []) as string[]).map(getName)),
          flags("remove", ((body.remove_users ?? []) as string[]).map(getName)),
        ),
  "DELETE /groups/:group": ({ path }) => formatCommand("groups delete", ...groupArguments(path), "--yes"),
  "GET /connectionlog": ({ path }) => formatCommand("connections list", formatSearch(path)),
  "GET /connectionlog/retention": () => formatCommand("connections retention"),
  "PUT /connectionlog/retention": ({ body }) => formatCommand("connections retention", formatArgument(body.days)),
  "GET /oauth2-provider/apps": () => formatCommand("oauth2 apps list"),
  "POST /oauth2-provider/apps": ({ body }) =>
    formatCommand("oauth2 apps create", formatArgument(body.name), ...applicationFlags(body)),
  "PUT /oauth2-provider/apps/:oauth2_app": ({ path, body }) =>
    formatCommand("oauth2 apps edit", getSegment(path, 3), flag("name", body.name), ...applicationFlags(body)),
  "DELETE /oauth2-provider/apps/:oauth2_app": ({ path }) =>
    formatCommand("oauth2 apps delete", getSegment(path, 3), "--yes"),
  "GET /oauth2-provider/apps/:oauth2_app/secrets": ({ path }) =>
    formatCommand("oauth2 apps secrets", getSegment(path, 3)),
  "POST /oauth2-provider/apps/:oauth2_app/secrets": ({ path }) =>
    formatCommand("oauth2 apps secrets", getSegment(path, 3), "--create"),
  "DELETE /oauth2-provider/apps/:oauth2_app/secrets/:oauth2_secret": ({ path }) =>
    formatCommand("oauth2 apps secrets", getSegment(path, 3), flag("delete", getSegment(path, 5))),
};

/** Returns the equivalent `slipway` command, or undefined if none exists. */
export const toCliLine = ({ route, path, body }: SentRequest): string | undefined =>
  COMMANDS[route]?.({ path, body: (body ?? {}) as Body });
