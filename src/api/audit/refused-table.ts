// What each operation that changes something there is would have done, for the log of refused changes: the one table of it. An operation
// that is not here leaves no entry when it is refused; test/api/audit/refused-table.ts says of each of them why (rule AU-17).
import type { AuditAction } from "#schema/audit.ts";
import { fits, variables } from "./origin.ts";
import * as settings from "./refused-settings.ts";
import * as things from "./refused-things.ts";

export type { Asked } from "./refused-things.ts";

export type RefusedOperation = { readonly action: AuditAction; readonly find: things.Find };

const write = (find: things.Find): RefusedOperation => ({ action: "write", find });
const remove = (find: things.Find): RefusedOperation => ({ action: "delete", find });
const create = (find: things.Find): RefusedOperation => ({ action: "create", find });
const setting = (name: string): RefusedOperation => write(settings.settingOf("chat_settings", name));
const own = (name: string): RefusedOperation => write(settings.ownSettingOf(name));

const O = "/api/v2/organizations/:organization";
const U = "/api/v2/users/:user";
const T = "/api/v2/templates/:template";
const V = "/api/v2/templateversions/:templateversion";
const W = "/api/v2/workspaces/:workspace";
const B = "/api/v2/workspacebuilds/:workspacebuild";
const C = "/api/v2/chats/:chat";
const CHATS = "/api/v2/chats";
const CONFIG = `${CHATS}/config`;
const LIMITS = `${CHATS}/usage-limits`;

/** Method and route -> the action and the thing it is about. */
export const REFUSED: Readonly<Record<string, RefusedOperation>> = {
  [`DELETE ${U}`]: remove(things.user),
  [`PUT ${U}/profile`]: write(things.user),
  [`PUT ${U}/status/:status`]: write(things.user),
  [`PUT ${U}/password`]: write(things.user),
  [`PUT ${U}/roles`]: write(things.user),
  [`PUT ${U}/gitsshkey`]: write(things.gitSshKey),
  [`DELETE ${U}/keys/:key`]: remove(things.apiKey),
  [`PUT ${U}/keys/:key/expire`]: write(things.apiKey),
  [`PATCH ${U}/keys/tokens/:name`]: write(things.namedToken),
  [`DELETE ${U}/sessions`]: remove(things.sessions),
  [`DELETE ${U}/sessions/:session`]: remove(things.session),
  [`PATCH ${U}/skills/:skill`]: write(things.skill),
  [`DELETE ${U}/skills/:skill`]: remove(things.skill),
  "DELETE /api/v2/external-auth/:externalauth": remove(settings.linkIn("externalauth")),

  [`PATCH ${O}`]: write(things.organization),
  [`DELETE ${O}`]: remove(things.organization),
  [`PATCH ${O}/settings/workspace-sharing`]: write(things.organization),
  [`POST ${O}/members/:user`]: create(things.newMember),
  [`DELETE ${O}/members/:user`]: remove(things.member),
  [`PUT ${O}/members/:user/roles`]: write(things.member),
  [`PUT ${O}/members/:user/chats/model-overrides/:context`]: write(settings.memberModel),
  [`PUT ${O}/chats/model-overrides/:context`]: write(settings.organizationModel),
  [`PATCH ${O}/mcp-servers/:server`]: write(things.mcpServer),
  [`DELETE ${O}/mcp-servers/:server`]: remove(things.mcpServer),
  [`DELETE ${O}/mcp-servers/:server/oauth2`]: remove(settings.linkIn("server")),
  [`DELETE ${O}/provisionerkeys/:key`]: remove(things.provisionerKey),

  [`PATCH ${T}`]: write(things.template),
  [`DELETE ${T}`]: remove(things.template),
  [`PATCH ${T}/versions`]: write(things.template),
  [`POST ${T}/versions/archive`]: write(things.template),
  [`PATCH ${V}`]: write(things.templateVersion),
  [`PATCH ${V}/cancel`]: write(things.templateVersion),
  [`POST ${V}/archive`]: write(things.templateVersion),
  [`POST ${V}/unarchive`]: write(things.templateVersion),

  [`PATCH ${W}`]: write(things.workspace),
  [`PUT ${W}/favorite`]: write(things.workspace),
  [`DELETE ${W}/favorite`]: write(things.workspace),
  [`PATCH ${W}/acl`]: write(things.workspace),
  [`DELETE ${W}/acl`]: write(things.workspace),
  [`PUT ${W}/autoupdates`]: write(things.workspace),
  [`PUT ${W}/autostart`]: write(things.workspace),
  [`PUT ${W}/ttl`]: write(things.workspace),
  [`PUT ${W}/dormant`]: write(things.workspace),
  [`PUT ${W}/extend`]: write(things.workspace),
  [`POST ${W}/port-share`]: create(things.newPortShare),
  [`DELETE ${W}/port-share`]: remove(things.portShare),
  [`POST ${W}/builds`]: write(things.newBuild),
  [`PATCH ${B}/cancel`]: write(things.workspaceBuild),
  [`PUT ${B}/state`]: write(things.workspaceBuild),

  [`PATCH ${C}`]: write(things.chat),
  [`PATCH ${C}/acl`]: write(things.chat),
  [`DELETE ${C}`]: remove(things.chat),
  [`PATCH ${CHATS}/providers/:provider`]: write(settings.modelProvider),
  [`DELETE ${CHATS}/providers/:provider`]: remove(settings.modelProvider),
  [`PATCH ${CHATS}/model-configs/:model_config`]: write(settings.modelConfig),
  [`DELETE ${CHATS}/model-configs/:model_config`]: remove(settings.modelConfig),
  [`PUT ${CONFIG}/auto-archive-days`]: setting("auto_archive_days"),
  [`PUT ${CONFIG}/retention-days`]: setting("retention_days"),
  [`PUT ${CONFIG}/workspace-ttl`]: setting("workspace_ttl_ms"),
  [`PUT ${CONFIG}/debug-retention-days`]: setting("debug_retention_days"),
  [`PUT ${CONFIG}/personal-model-overrides`]: setting("allow_model_overrides"),
  [`PUT ${CONFIG}/plan-mode-instructions`]: setting("plan_mode_instructions"),
  [`PUT ${CONFIG}/system-prompt`]: setting("system_prompt"),
  [`PUT ${CONFIG}/debug-logging`]: setting("allow_debug_logging"),
  [`PUT ${CONFIG}/user-debug-logging`]: own("debug_logging"),
  [`PUT ${CONFIG}/user-prompt`]: own("prompt"),
  [`PUT ${CONFIG}/user-permissions`]: own("permissions"),
  [`PUT ${CONFIG}/user-compaction-thresholds/:model`]: write(settings.newThreshold),
  [`DELETE ${CONFIG}/user-compaction-thresholds/:model`]: write(settings.threshold),
  [`PUT ${LIMITS}`]: setting("usage_limit"),
  [`PUT ${LIMITS}/overrides/:user`]: write(settings.newUserLimit),
  [`DELETE ${LIMITS}/overrides/:user`]: write(settings.userLimit),
  [`PUT ${LIMITS}/group-overrides/:group`]: write(settings.newGroupLimit),
  [`DELETE ${LIMITS}/group-overrides/:group`]: write(settings.groupLimit),
  "PUT /api/v2/audit/retention": write(settings.settingOf("audit_settings", "retention")),
};

/** Routes where only the body says what would have been done. */
export const NEEDS_BODY: ReadonlySet<string> = new Set([`${W}/builds`, `${W}/port-share`]);

type Route = { readonly segments: readonly string[]; readonly operation: RefusedOperation };

/** By method, those with the fewest variables first; made at the first refusal. */
let routes: Map<string, Route[]> | undefined;

const routesOf = (method: string): readonly Route[] => {
  routes ??= Object.entries(REFUSED)
    .map(([name, operation]) => ({ name: name.split(" "), operation }))
    .map(({ name: [of = "", path = ""], operation }) => ({ of, segments: path.split("/"), operation }))
    .sort((a, b) => variables(a.segments) - variables(b.segments))
    .reduce((all, { of, ...route }) => all.set(of, [...(all.get(of) ?? []), route]), new Map<string, Route[]>());
  return routes.get(method) ?? [];
};

/** What this request would have done, with the parameters of its path; undefined when that is not told of. */
export const refusedOperation = (
  method: string,
  path: string,
): { operation: RefusedOperation; params: Record<string, string> } | undefined => {
  const segments = path.replace("/api/experimental/", "/api/v2/").replace(/\/$/, "").split("/");
  const route = routesOf(method).find((one) => fits(one.segments, segments));
  if (!route) return undefined;
  const params: Record<string, string> = {};
  for (const [i, name] of route.segments.entries()) {
    if (name.startsWith(":")) params[name.slice(1)] = decoded(segments[i] ?? "");
  }
  return { operation: route.operation, params };
};

/** Text that cannot be decoded names nothing. */
const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
};
