// Administration: one section at a time, each with its own address.
import { useRoute } from "preact-iso";
import { isSiteOwner, me } from "../../data/session.ts";
import { Empty } from "../../parts/empty.tsx";
import { type Section, Sections } from "../../parts/sections.tsx";
import { Frame } from "../../shell/frame.tsx";
import { Appearance } from "./appearance.tsx";
import { Backups } from "./backups.tsx";
import { ChatRules } from "./chat-rules.tsx";
import { ExternalAccounts } from "./external-accounts.tsx";
import { Health } from "./health.tsx";
import { Hooks } from "./hooks.tsx";
import { Logs } from "./logs.tsx";
import { McpServers } from "./mcp-servers.tsx";
import { Models } from "./models.tsx";
import { Organizations } from "./organizations.tsx";
import { People } from "./people.tsx";
import { Settings } from "./settings.tsx";
import { Spending } from "./spending.tsx";
import { Workers } from "./workers.tsx";

/** Those that user administrators have, too. */
const OF_PEOPLE: readonly Section[] = [
  { name: "people", label: "People", page: People },
  { name: "organizations", label: "Organizations", page: Organizations },
];

const SECTIONS: readonly Section[] = [
  ...OF_PEOPLE,
  { name: "models", label: "Models", page: Models },
  { name: "mcp-servers", label: "MCP servers", page: McpServers },
  { name: "workers", label: "Workers", page: Workers },
  { name: "external-accounts", label: "External accounts", page: ExternalAccounts },
  { name: "permissions", label: "Permissions", page: ChatRules },
  { name: "spend-limits", label: "Spend limits", page: Spending },
  { name: "hooks", label: "Hooks", page: Hooks },
  { name: "health", label: "Health", page: Health },
  { name: "appearance", label: "Appearance", page: Appearance },
  { name: "settings", label: "Settings", page: Settings },
  { name: "backups", label: "Backups", page: Backups },
  { name: "logs", label: "Logs", page: Logs },
];

export default function AdminPage() {
  const { params } = useRoute();
  const sections = isSiteOwner.value ? SECTIONS : OF_PEOPLE;
  const section = sections.find(({ name }) => name === (params.tab ?? "people"));
  const isManager = isSiteOwner.value || me.value?.roles.some(({ name }) => name === "user-admin");
  return (
    <Frame title={section?.label ?? "Administration"} crumbs={[{ label: "Administration", href: "/admin" }]}>
      {isManager ? (
        <Sections label="Administration" path="/admin" sections={sections} open={section} />
      ) : (
        <Empty
          icon="shield"
          title="Not for this account"
          text="Owners and user administrators look after people and models here."
        />
      )}
    </Frame>
  );
}
