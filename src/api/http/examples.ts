// Bodies that the document shows for the calls people try first. Without them a page such as Swagger UI makes one up of every field,
// which fits the schema and is refused by the rules. Read by openapi.ts; test/api/edge/openapi.test.ts holds them to their schemas.

import { ANY_ID as ID } from "./example-ids.ts";

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

const workspace = { name: "first", template_id: ID, rich_parameter_values: [] };
const text = (words: string): Json => [{ type: "text", text: words }];
const permissions = { default: "allow", rules: [{ tool: "execute", command: "rm", action: "ask" }] };
const shared = { user_roles: { [ID]: "use" } };

/** By the id of the operation. */
export const BODY_EXAMPLES: Readonly<Record<string, { readonly [field: string]: Json }>> = {
  postUsersLogin: { email: "you@example.com", password: "your password" },
  postUsersFirst: {
    setup_token: "from the link that the server prints",
    email: "you@example.com",
    username: "you",
    password: "a long enough secret",
  },
  postUsers: { email: "ann@example.com", username: "ann", name: "Ann", password: "a long enough secret" },
  putUsersUserProfile: { username: "ann", name: "Ann" },
  putUsersUserPassword: { old_password: "your password", password: "a long enough secret" },
  postUsersUserKeysTokens: { token_name: "laptop", lifetime: "7d" },
  postUsersUserSkills: {
    name: "release-notes",
    description: "When release notes are to be written.",
    content: "Begin with what changes for users.",
  },
  postOrganizations: { name: "research", display_name: "Research" },
  postOrganizationsOrganizationProvisionerkeys: { name: "builders", tags: {} },
  postOrganizationsOrganizationMcpServers: { slug: "docs", url: "https://mcp.example.com/mcp", display_name: "Docs" },
  postOrganizationsOrganizationTemplateversions: { storage_method: "file", file_id: ID, message: "First version" },
  patchTemplateversionsTemplateversion: { message: "First version" },
  postOrganizationsOrganizationTemplates: { name: "hello", display_name: "Hello", template_version_id: ID },
  patchTemplatesTemplate: { display_name: "Hello", description: "Says hello.", default_ttl_ms: 28_800_000 },
  postUsersUserWorkspaces: workspace,
  postOrganizationsOrganizationMembersUserWorkspaces: workspace,
  patchWorkspacesWorkspace: { name: "second" },
  patchWorkspacesWorkspaceAcl: shared,
  postWorkspacesWorkspacePortShare: {
    agent_name: "main",
    port: 3000,
    protocol: "http",
    share_level: "authenticated",
  },
  deleteWorkspacesWorkspacePortShare: { agent_name: "main", port: 3000 },
  postWorkspacesWorkspaceUsage: {},
  putWorkspacesWorkspaceAutoupdates: { automatic_updates: "always" },
  putWorkspacesWorkspaceAutostart: { schedule: "CRON_TZ=Europe/Berlin 30 9 * * 1-5" },
  putWorkspacesWorkspaceDormant: { dormant: true },
  putWorkspacesWorkspaceTtl: { ttl_ms: 28_800_000 },
  postWorkspacesWorkspaceBuilds: { transition: "start" },
  postChats: { organization_id: ID, content: text("Hello! Who are you?") },
  patchChatsChat: { title: "Greetings" },
  patchChatsChatAcl: shared,
  postChatsChatMessages: { content: text("In one sentence, please.") },
  patchChatsChatMessagesMessage: { content: text("In two sentences, please.") },
  postChatsChatFork: {},
  postChatsChatPermissions: { answers: [{ tool_call_id: "call_1", decision: "allow", scope: "once" }] },
  putChatsConfigUserPermissions: { permissions },
  postChatsProviders: { provider: "openai-compat", base_url: "http://127.0.0.1:11434/v1" },
  postChatsModelConfigs: { provider: "openai-compat", model: "llama3.2", context_limit: 128_000 },
};
