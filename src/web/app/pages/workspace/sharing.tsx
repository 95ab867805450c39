// With whom a workspace is shared: people and groups of its organization.
import type { WorkspaceAcl } from "#schema/workspaces/acl.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { call, callNow, formatError, Problem } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { AccessAdd, AccessList, nameOfGroup, type Subject, unlessChanged } from "../../parts/access-list.tsx";
import { Empty, Failed } from "../../parts/empty.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { say } from "../../shell/toasts.tsx";

const ROLES = [
  { value: "use", label: "Use" },
  { value: "admin", label: "Manage" },
] as const;

const toSubjects = ({ users, groups }: WorkspaceAcl): Subject[] => [
  ...groups.map((one) => ({ id: one.id, kind: "group" as const, name: nameOfGroup(one), role: one.role })),
  ...users.map((one) => ({ id: one.id, kind: "user" as const, name: one.name || one.username, role: one.role })),
];

export const Sharing = ({ workspace }: { workspace: Workspace }) => {
  const { id } = workspace;
  const path = { workspace: id };
  const { state, again } = useResource(`acl ${id}`, () => call("GET /workspaces/:workspace/acl", { path }));
  const { data, error } = state.value;
  if (error instanceof Problem && error.status === 403)
    return <Empty icon="user" title="Sharing is disabled" text={formatError(error)} />;
  if (error && !data) return <Failed what="Can't load sharing" error={error} again={again} />;
  if (!data) return <Skeleton lines={4} />;
  const subjects = toSubjects(data);
  const set = async (subject: Pick<Subject, "id" | "kind" | "name">, role: string): Promise<void> => {
    const read = async () => toSubjects(await callNow("GET /workspaces/:workspace/acl", { path }));
    await unlessChanged({ subject, role, roles: ROLES, shown: subjects, read, again });
    const body = { [subject.kind === "group" ? "group_roles" : "user_roles"]: { [subject.id]: role } };
    await call("PATCH /workspaces/:workspace/acl", { path, body });
    await again();
    say(role === "" ? `No longer shared with ${subject.name}` : `Shared with ${subject.name}`);
  };
  return (
    <div class="split">
      <AccessList
        heading="Shared with"
        nobody="Only the owner and administrators can see this workspace. Choose who else can use it."
        subjects={subjects}
        roles={ROLES}
        set={set}
      />
      <AccessAdd
        title="Share with"
        verb="Share"
        note="People who lose access are disconnected immediately."
        organization_id={workspace.organization_id}
        taken={new Set([workspace.owner_id, ...subjects.map((one) => one.id)])}
        roles={ROLES}
        set={set}
      />
    </div>
  );
};
