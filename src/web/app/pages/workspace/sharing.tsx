// The users and groups of the organization with whom a workspace is shared.
import { useSignal } from "@preact/signals";
import type { WorkspaceAcl } from "#schema/workspaces/acl.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { WorkspaceSummary } from "#schema/workspaces/workspace-watch.ts";
import { call, callServer, formatError, Problem } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import * as actions from "../../data/workspace-actions.ts";
import {
  AccessAdd,
  AccessList,
  formatGroupName,
  requireUnchangedRole,
  type Subject,
} from "../../parts/access-list.tsx";
import { Button } from "../../parts/button.tsx";
import { Empty, Failed } from "../../parts/empty.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { showToast } from "../../shell/toasts.tsx";

const ROLES = [
  { value: "use", label: "Use" },
  { value: "admin", label: "Manage" },
] as const;

const toSubjects = ({ users, groups }: WorkspaceAcl): Subject[] => [
  ...groups.map((one) => ({ id: one.id, kind: "group" as const, name: formatGroupName(one), role: one.role })),
  ...users.map((one) => ({ id: one.id, kind: "user" as const, name: one.name || one.username, role: one.role })),
];

export const Sharing = ({ workspace, row }: { workspace: Workspace; row: WorkspaceSummary }) => {
  const { id } = workspace;
  const build_id = workspace.latest_build.id;
  /** The most recently removed user, and the build whose token they may have copied. */
  const lastRevoked = useSignal({ name: "", build_id: "" });
  const path = { workspace: id };
  const { state, reload } = useResource(`acl ${id}`, () => call("GET /workspaces/:workspace/acl", { path }));
  const { data, error } = state.value;
  if (error instanceof Problem && error.status === 403)
    return <Empty icon="user" title="Sharing is disabled" text={formatError(error)} />;
  if (error && !data) return <Failed title="Can't load sharing" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={4} />;
  const subjects = toSubjects(data);
  const setRole = async (subject: Pick<Subject, "id" | "kind" | "name">, role: string): Promise<void> => {
    const loadSubjects = async () => toSubjects(await callServer("GET /workspaces/:workspace/acl", { path }));
    await requireUnchangedRole({ subject, role, roles: ROLES, shown: subjects, load: loadSubjects, reload });
    const body = { [subject.kind === "group" ? "group_roles" : "user_roles"]: { [subject.id]: role } };
    await call("PATCH /workspaces/:workspace/acl", { path, body });
    if (role === "") lastRevoked.value = { name: subject.name, build_id };
    await reload();
    showToast(role === "" ? `No longer shared with ${subject.name}` : `Shared with ${subject.name}`);
  };
  return (
    <>
      {lastRevoked.value.build_id === build_id && row.status === "running" && (
        <div class="banner box attn" role="status">
          <span>
            {lastRevoked.value.name} may have copied the token with which this workspace uses the AI gateway. It works
            until the workspace stops.
          </span>
          <span class="push">
            <Button small icon="restart" onPress={() => actions.restartWorkspace(row)}>
              Restart
            </Button>
          </span>
        </div>
      )}
      <div class="split">
        <AccessList
          heading="Shared with"
          empty="Only the owner and administrators can see this workspace. Choose who else can use it."
          subjects={subjects}
          roles={ROLES}
          setRole={setRole}
        />
        <AccessAdd
          title="Share with"
          verb="Share"
          note="People with access can read the workspace's AI gateway token. If you revoke access, they are disconnected immediately, but the token works until the workspace stops."
          organization_id={workspace.organization_id}
          excludedIds={new Set([workspace.owner_id, ...subjects.map((one) => one.id)])}
          roles={ROLES}
          setRole={setRole}
        />
      </div>
    </>
  );
};
