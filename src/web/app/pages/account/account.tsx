// The account pages: profile, sign-in methods, keys, and chat defaults.
import lazy from "preact-iso/lazy";
import { useRoute } from "preact-iso/router";
import { call } from "../../data/api.ts";
import { loadCode } from "../../data/load-code.ts";
import { useResource } from "../../data/resource.ts";
import { needsEnrollment } from "../../data/session.ts";
import { Failed } from "../../parts/empty.tsx";
import { PermissionsEditor } from "../../parts/permissions-editor.tsx";
import { type Section, Sections } from "../../parts/sections.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { Frame } from "../../shell/frame.tsx";
import { Accounts } from "./accounts.tsx";
import { Applications } from "./applications.tsx";
import { ConfirmationDialog } from "./confirm.tsx";
import { Dotfiles } from "./dotfiles.tsx";
import { Notifications } from "./notifications.tsx";
import { Profile } from "./profile.tsx";
import { QuietHours } from "./quiet-hours.tsx";
import { Secrets } from "./secrets.tsx";
import { Security } from "./security.tsx";
import { SessionList } from "./sessions.tsx";
import { Skills } from "./skills.tsx";
import { Tokens } from "./tokens.tsx";
import { WorkspacePreferences } from "./workspaces.tsx";

// The default permissions of the user's new chats.
const Permissions = () => {
  const { state, reload } = useResource("permissions", () => call("GET /chats/config/user-permissions"));
  const { data, error } = state.value;
  if (error) return <Failed title="Can't load your permissions" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={6} />;
  return (
    <PermissionsEditor
      key={JSON.stringify(data)}
      title="Permissions for new chats"
      stored={data.permissions}
      noneLabel="Server default"
      askLabel="Ask me"
      save={async (permissions) => {
        await call("PUT /chats/config/user-permissions", { body: { permissions } });
        await reload();
      }}
    />
  );
};

const OwnAiUsage = lazy(() => loadCode(() => import("./ai-usage.tsx")));

const SECTIONS: readonly Section[] = [
  { name: "profile", label: "Profile", page: Profile },
  { name: "security", label: "Security", page: Security },
  { name: "sessions", label: "Sessions", page: SessionList },
  { name: "tokens", label: "API tokens", page: Tokens },
  { name: "applications", label: "Applications", page: Applications },
  { name: "accounts", label: "Git and linked accounts", page: Accounts },
  { name: "ai-usage", label: "AI usage", page: OwnAiUsage },
  { name: "secrets", label: "Secrets", page: Secrets },
  { name: "skills", label: "Skills", page: Skills },
  { name: "dotfiles", label: "Dotfiles", page: Dotfiles },
  { name: "workspaces", label: "Workspaces", page: WorkspacePreferences },
  { name: "quiet-hours", label: "Quiet hours", page: QuietHours },
  { name: "notifications", label: "Notifications", page: Notifications },
  { name: "permissions", label: "Permissions", page: Permissions },
];

export default function AccountPage() {
  const { params } = useRoute();
  const visibleSections = needsEnrollment.value ? SECTIONS.filter(({ name }) => name === "security") : SECTIONS;
  const section = visibleSections.find(({ name }) => name === (params.tab ?? "profile"));
  return (
    <Frame title={section?.label ?? "Account"} crumbs={[{ label: "Account", href: "/account" }]}>
      <Sections label="Account" path="/account" sections={visibleSections} open={section} />
      <ConfirmationDialog />
    </Frame>
  );
}
