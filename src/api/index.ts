// Lists all resources of the API, one line each. New resources are added only here.
import type { AnyElysia } from "elysia";
import { administration } from "./administration/index.ts";
import { agents } from "./agents/index.ts";
import { initScripts } from "./agents/programs.ts";
import { agents as codingAgents } from "./ai/agents.ts";
import { ai } from "./ai/index.ts";
import { applications } from "./applications/index.ts";
import { audit } from "./audit/index.ts";
import { buildinfo } from "./buildinfo.ts";
import { builds } from "./builds/index.ts";
import { chats } from "./chats/index.ts";
import { modelOverrides } from "./chats/settings/model-overrides.ts";
import { organizationModels } from "./chats/settings/organization-models.ts";
import { connections } from "./connections/index.ts";
import type { ApiContext } from "./context.ts";
import { deployment } from "./deployment/index.ts";
import { externalAuth } from "./external-auth/index.ts";
import { files } from "./files.ts";
import { groups } from "./groups/index.ts";
import { hooks } from "./hooks/index.ts";
import { routes } from "./http/routes.ts";
import { insights } from "./insights/index.ts";
import { invitations } from "./invitations/index.ts";
import { mcp } from "./mcp/index.ts";
import { notifications } from "./notifications/index.ts";
import { notificationsOfUser } from "./notifications/preferences.ts";
import { oauth2Apps } from "./oauth2/apps.ts";
import { oauth2Authorize } from "./oauth2/authorize.ts";
import { oauth2Grants } from "./oauth2/grants.ts";
import { organizations } from "./organizations/index.ts";
import { provisionerDaemons } from "./provisioner-daemons/index.ts";
import { repositories } from "./repositories/index.ts";
import { derpMaps } from "./tailnet/derp-map.ts";
import { tailnet } from "./tailnet/tailnet.ts";
import { tasks } from "./tasks/index.ts";
import { templateVersions } from "./template-versions/index.ts";
import { templates } from "./templates/index.ts";
import { users } from "./users/index.ts";
import { authScopes } from "./users/scopes.ts";
import { userSecrets } from "./users/secrets.ts";
import { userSkills } from "./users/skills.ts";
import { workspacesByOwner } from "./workspaces/by-owner.ts";
import { workspaces } from "./workspaces/index.ts";
import { prebuilds } from "./workspaces/prebuilds.ts";

/** In the order of the document. */
const RESOURCES: readonly ((ctx: ApiContext) => AnyElysia)[] = [
  buildinfo,
  deployment,
  administration,
  organizations,
  groups,
  mcp,
  provisionerDaemons,
  agents,
  initScripts,
  derpMaps,
  tailnet,
  applications,
  authScopes,
  users,
  invitations,
  userSkills,
  userSecrets,
  oauth2Apps,
  oauth2Authorize,
  oauth2Grants,
  notifications,
  notificationsOfUser,
  externalAuth,
  files,
  insights,
  audit,
  connections,
  templates,
  templateVersions,
  repositories,
  workspacesByOwner,
  workspaces,
  prebuilds,
  builds,
  tasks,
  modelOverrides,
  organizationModels,
  chats,
  hooks,
  ai,
  codingAgents,
];

/**
 * Returns all routes under /api/v2. Handler types are dropped here, because nothing uses them and the combined chain is too deep for the
 * compiler.
 */
export const api = (ctx: ApiContext): AnyElysia =>
  RESOURCES.reduce((app: AnyElysia, resource) => app.use(resource(ctx)), routes({ prefix: "/api/v2" }));
