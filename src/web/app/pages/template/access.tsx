// The users who can use a template, and the users who can change it.

import type { Template } from "#schema/templates/template.ts";
import type { TemplateAcl } from "#schema/templates/template-acl.ts";
import { call, callServer } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import {
  AccessAdd,
  AccessList,
  formatGroupName,
  requireUnchangedRole,
  type Subject,
} from "../../parts/access-list.tsx";
import { Failed } from "../../parts/empty.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { showToast } from "../../shell/toasts.tsx";

const ROLES = [
  { value: "use", label: "Use" },
  { value: "admin", label: "Manage" },
] as const;

const toSubjects = ({ users, group }: TemplateAcl): Subject[] => [
  ...group.map((one) => ({ id: one.id, kind: "group" as const, name: formatGroupName(one), role: one.role })),
  ...users.map((one) => ({ id: one.id, kind: "user" as const, name: one.name || one.username, role: one.role })),
];

export const Access = ({ template }: { template: Template }) => {
  const path = { template: template.id };
  const { state, reload } = useResource(`template acl ${template.id}`, () =>
    call("GET /templates/:template/acl", { path }),
  );
  const { data, error } = state.value;
  if (error && !data) return <Failed title="Can't load the template's access list" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={4} />;
  const subjects = toSubjects(data);
  const setRole = async (subject: Pick<Subject, "id" | "kind" | "name">, role: string): Promise<void> => {
    const loadSubjects = async () => toSubjects(await callServer("GET /templates/:template/acl", { path }));
    await requireUnchangedRole({ subject, role, roles: ROLES, shown: subjects, load: loadSubjects, reload });
    const body = { [subject.kind === "group" ? "group_perms" : "user_perms"]: { [subject.id]: role } };
    await call("PATCH /templates/:template/acl", { path, body });
    await reload();
    showToast(role === "" ? `${subject.name} no longer has access` : `${subject.name} has access`);
  };
  return (
    <div class="split">
      <AccessList
        heading="Who has access"
        empty="Only template administrators can see this template. Choose who can create workspaces from it."
        subjects={subjects}
        roles={ROLES}
        setRole={setRole}
      />
      <AccessAdd
        title="Give access"
        verb="Give access"
        note="People who lose access keep their existing workspaces."
        organization_id={template.organization_id}
        excludedIds={new Set(subjects.map((one) => one.id))}
        roles={ROLES}
        setRole={setRole}
      />
    </div>
  );
};
