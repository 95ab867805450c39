// The command lines that pages show: each changing call has one, and the program accepts it.
import { expect, test } from "bun:test";
import { VERBS } from "#src/cli/verbs.ts";
import { toCliLine } from "#src/web/app/data/cli-lines.ts";
import { collectNames } from "#src/web/app/data/names.ts";
import type { Route } from "#src/web/app/data/sent.ts";

collectNames([
  { id: "w1", name: "web", owner_name: "ada" },
  { id: "u1", username: "grace", name: "Grace Hopper" },
  { id: "g1", name: "crew", organization_name: "sea" },
  { id: "t1", name: "harbour", active_version_id: "v1" },
  { id: "p1", name: "large one" },
  { id: "v2", name: "brave", template_id: "t1" },
]);

const LINES: readonly [Route, path: string, body: unknown, line: string | undefined][] = [
  ["GET /workspaces", "/workspaces?q=status%3Arunning", undefined, "slipway workspaces list status:running --all"],
  [
    "POST /workspaces/:workspace/builds",
    "/workspaces/w1/builds",
    { transition: "delete", orphan: true },
    "slipway workspaces delete ada/web --yes --orphan",
  ],
  [
    "POST /workspaces/:workspace/restart",
    "/workspaces/w1/restart",
    { template_version_id: "v1", rich_parameter_values: [{ name: "size", value: "very large" }] },
    "slipway workspaces restart ada/web --update --parameter 'size=very large'",
  ],
  ["PUT /workspaces/:workspace/favorite", "/workspaces/w1/favorite", undefined, "slipway workspaces favorite ada/web"],
  ["PUT /workspaces/:workspace/ttl", "/workspaces/w1/ttl", { ttl_ms: 28_800_000 }, "slipway schedule stop ada/web 8h"],
  ["PUT /workspaces/:workspace/ttl", "/workspaces/w1/ttl", { ttl_ms: null }, "slipway schedule stop ada/web off"],
  [
    "PATCH /workspaces/:workspace/acl",
    "/workspaces/w1/acl",
    { user_roles: { u1: "use" } },
    "slipway share add ada/web --user grace --role use",
  ],
  [
    "PATCH /workspaces/:workspace/acl",
    "/workspaces/w1/acl",
    { group_roles: { g1: "" } },
    "slipway share remove ada/web --group crew",
  ],
  [
    "PATCH /templates/:template/acl",
    "/templates/t1/acl",
    { user_perms: { u1: "admin" } },
    "slipway templates access harbour --user grace:admin",
  ],
  [
    "PATCH /templates/:template/acl",
    "/templates/t1/acl",
    { group_perms: { g1: "" } },
    "slipway templates access harbour --remove-group crew",
  ],
  [
    "PATCH /templates/:template/versions",
    "/templates/t1/versions",
    { id: "v2" },
    "slipway templates promote harbour brave",
  ],
  [
    "POST /templateversions/:templateversion/archive",
    "/templateversions/v2/archive",
    undefined,
    "slipway templates archive harbour brave",
  ],
  ["POST /templateversions/:templateversion/archive", "/templateversions/v9/archive", undefined, undefined],
  [
    "POST /tasks/:user",
    "/tasks/me",
    { input: "Fix it's login", template_id: "t1", name: "login", coding_agent: "codex" },
    "slipway tasks create 'Fix it'\\''s login' --template harbour --name login --agent codex",
  ],
  [
    "POST /tasks/:user",
    "/tasks/me",
    { input: "--help", template_version_id: "v1", template_version_preset_id: "p1" },
    "printf %s --help | slipway tasks create --template harbour --preset 'large one'",
  ],
  ["DELETE /tasks/:user/:task", "/tasks/me/login", undefined, "slipway tasks delete login --yes"],
  [
    "POST /organizations/:organization/groups",
    "/organizations/sea/groups",
    { name: "crew", display_name: "The crew", quota_allowance: 5 },
    "slipway groups create crew --display-name 'The crew' --quota 5 --organization sea",
  ],
  [
    "PATCH /groups/:group",
    "/groups/g1",
    { name: "crews", quota_allowance: 0 },
    "slipway groups edit crew --organization sea --name crews --quota 0",
  ],
  [
    "PATCH /groups/:group",
    "/groups/g1",
    { add_users: ["u1"], remove_users: [] },
    "slipway groups members crew --organization sea --add grace",
  ],
  ["DELETE /groups/:group", "/groups/g1", undefined, "slipway groups delete crew --organization sea --yes"],
  [
    "GET /connectionlog",
    "/connectionlog?q=type%3Assh+username%3Ame&limit=50",
    undefined,
    "slipway connections list 'type:ssh username:me'",
  ],
  ["PUT /connectionlog/retention", "/connectionlog/retention", { days: 0 }, "slipway connections retention 0"],
  [
    "POST /workspaces/:workspace/port-share",
    "/workspaces/w1/port-share",
    { agent_name: "main", port: 3000, protocol: "https", share_level: "public" },
    "slipway share port ada/web.main 3000 --to public --https",
  ],
  [
    "DELETE /workspaces/:workspace/port-share",
    "/workspaces/w1/port-share",
    { agent_name: "main", port: 3000 },
    "slipway share port ada/web.main 3000 --to owner",
  ],
  [
    "PATCH /templates/:template",
    "/templates/t1",
    {
      description: "",
      default_ttl_ms: 5_400_000,
      failure_ttl_ms: 0,
      deprecation_message: "",
      autostop_requirement: { days_of_week: ["monday", "friday"], weeks: 2 },
      autostart_requirement: { days_of_week: [] },
      allow_user_autostop: false,
      max_port_share_level: "public",
      default_coding_agent: "",
    },
    "slipway templates edit harbour --description '' --ttl 90m --failure-ttl off --autostop-days monday,friday --autostop-weeks 2 --autostart-days none --people-autostop off --port-sharing public --default-agent none --undeprecate",
  ],
  ["PUT /users/:user/status/:status", "/users/u1/status/suspend", undefined, "slipway users suspend grace"],
  ["PUT /users/:user/roles", "/users/u1/roles", { roles: [] }, "slipway users roles grace --set none"],
  [
    "POST /users/me/keys/tokens",
    "/users/me/keys/tokens",
    { token_name: "ci", lifetime: "168h", scopes: ["user:read"] },
    "slipway tokens create ci --lifetime 168h --scope user:read",
  ],
  [
    "POST /users/:user/secrets",
    "/users/me/secrets",
    { name: "npm", value: "$VALUE", env_name: "NPM", file_path: "", description: "" },
    'printf %s "$VALUE" | slipway secrets create npm --env NPM',
  ],
  [
    "PATCH /users/:user/secrets/:secret",
    "/users/me/secrets/npm",
    { file_path: "~/.npmrc" },
    "slipway secrets change npm --file '~/.npmrc'",
  ],
  ["DELETE /users/:user/secrets/:secret", "/users/me/secrets/npm", undefined, "slipway secrets remove npm"],
  [
    "PUT /users/:user/quiet-hours",
    "/users/me/quiet-hours",
    { schedule: "CRON_TZ=Europe/Paris 5 22 * * *" },
    "slipway schedule quiet 22:05 Europe/Paris",
  ],
  ["PUT /prebuilds/settings", "/prebuilds/settings", { reconciliation_paused: true }, "slipway prebuilds pause"],
  [
    "POST /repositories/prebuilds",
    "/repositories/prebuilds",
    { url: "https://github.com/acme/app", interval_hours: 24, keep: 3 },
    "slipway repositories add https://github.com/acme/app --every 24 --keep 3",
  ],
  [
    "DELETE /repositories/prebuilds/:prebuild",
    "/repositories/prebuilds/p1",
    undefined,
    "slipway repositories remove p1",
  ],
  [
    "POST /chats",
    "/chats",
    { organization_id: "o", content: [{ type: "text", text: "Hello you" }], workspace_id: "w1" },
    "slipway chat new 'Hello you' --workspace ada/web",
  ],
  [
    "POST /chats",
    "/chats",
    { organization_id: "o", content: [{ type: "text", text: "Go" }], workspace_id: "w1", coding_agent: "codex" },
    "slipway chat new Go --workspace ada/web --agent codex",
  ],
  ["POST /chats", "/chats", { content: [{ type: "file", file_id: "f" }] }, undefined],
  ["GET /chats", "/chats", undefined, "slipway chat list"],
  [
    "PUT /oauth2-provider/apps/:oauth2_app",
    "/oauth2-provider/apps/a1",
    { name: "Board", callback_url: "https://b.example/", icon: "" },
    "slipway oauth2 apps edit a1 --name Board --callback-url https://b.example/ --icon none",
  ],
  [
    "DELETE /oauth2-provider/apps/:oauth2_app/secrets/:oauth2_secret",
    "/oauth2-provider/apps/a1/secrets/s1",
    undefined,
    "slipway oauth2 apps secrets a1 --delete s1",
  ],
];

test.each(LINES)("[WB-32] %s of %s has its command line", (route, path, body, line) => {
  const method = route.slice(0, route.indexOf(" "));
  expect(toCliLine({ method, path, route, body })).toBe(line as string);
  if (line === undefined) return;
  // The verb and its subcommand exist, and accept every flag.
  const invocation = line.slice(line.indexOf("slipway ") + "slipway ".length);
  const verb = VERBS.find(({ name }) => invocation.startsWith(`${name} `));
  const subcommand = verb?.subcommands?.find(({ name }) => `${invocation} `.startsWith(`${verb.name} ${name} `));
  expect(subcommand?.name).toBeDefined();
  const knownFlags = subcommand?.usage.match(/--[a-z-]+/g) ?? [];
  for (const flag of invocation.match(/(?<= )--[a-z-]+/g) ?? []) expect(knownFlags).toContain(flag);
});
