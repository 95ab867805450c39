// The administration pages, one section at a time, each with its own address.
import { useRoute } from "preact-iso/router";
import { administeredOrganizations, isSiteOwner, isUserAdministrator } from "../../data/session.ts";
import { Empty } from "../../parts/empty.tsx";
import { type Section, Sections } from "../../parts/sections.tsx";
import { Frame } from "../../shell/frame.tsx";
import { AiGatewayPage } from "./ai-gateway.tsx";
import { Appearance } from "./appearance.tsx";
import { Applications } from "./applications/applications.tsx";
import { Backups } from "./backups.tsx";
import { ChatRules } from "./chat-rules.tsx";
import { CodingAgentsPage } from "./coding-agents.tsx";
import { ExternalAccounts } from "./external-accounts.tsx";
import { Health } from "./health.tsx";
import { Hooks } from "./hooks.tsx";
import { Logs } from "./logs.tsx";
import { McpServers } from "./mcp-servers.tsx";
import { Models } from "./models.tsx";
import { Organizations } from "./organizations.tsx";
import { People } from "./people.tsx";
import { Settings } from "./settings.tsx";
import { SignIn } from "./sign-in.tsx";
import { Spending } from "./spending.tsx";
import { Workers } from "./workers.tsx";

const SECTIONS: readonly Section[] = [
  { name: "people", label: "People", page: People },
  { name: "organizations", label: "Organizations", page: Organizations },
  { name: "sign-in", label: "Sign-in", page: SignIn },
  { name: "models", label: "Models", page: Models },
  { name: "ai-gateway", label: "AI gateway", page: AiGatewayPage },
  { name: "coding-agents", label: "Coding agents", page: CodingAgentsPage },
  { name: "mcp-servers", label: "MCP servers", page: McpServers },
  { name: "workers", label: "Workers", page: Workers },
  { name: "external-accounts", label: "External accounts", page: ExternalAccounts },
  { name: "applications", label: "Applications", page: Applications },
  { name: "permissions", label: "Permissions", page: ChatRules },
  { name: "budgets", label: "Budgets", page: Spending },
  { name: "hooks", label: "Hooks", page: Hooks },
  { name: "health", label: "Health", page: Health },
  { name: "appearance", label: "Appearance", page: Appearance },
  { name: "settings", label: "Settings", page: Settings },
  { name: "backups", label: "Backups", page: Backups },
  { name: "logs", label: "Logs", page: Logs },
];

const PEOPLE_SECTIONS = new Set(["people", "organizations"]);
const ORGANIZATION_SECTIONS = new Set(["organizations", "mcp-servers", "workers"]);

/** True if a user who is not an owner can open the section. */
const canOpenSection = (name: string): boolean =>
  (isUserAdministrator.value && PEOPLE_SECTIONS.has(name)) ||
  (administeredOrganizations.value.length > 0 && ORGANIZATION_SECTIONS.has(name));

export default function AdminPage() {
  const { params } = useRoute();
  const sections = SECTIONS.filter(({ name }) => isSiteOwner.value || canOpenSection(name));
  const section = sections.find(({ name }) => name === (params.tab ?? sections[0]?.name));
  return (
    <Frame title={section?.label ?? "Administration"} crumbs={[{ label: "Administration", href: "/admin" }]}>
      {sections.length > 0 ? (
        <Sections label="Administration" path="/admin" sections={sections} open={section} />
      ) : (
        <Empty
          icon="shield"
          title="No access"
          text="Only owners, user administrators and organization administrators can open this page."
        />
      )}
    </Frame>
  );
}
