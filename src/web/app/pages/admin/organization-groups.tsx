// The groups of an organization: their members, and the daily cost limit of the members' workspaces.
import { useSignal } from "@preact/signals";
import type { CreateGroup, Group } from "#schema/users/group.ts";
import type { Organization } from "#schema/users/organization.ts";
import { call } from "../../data/api.ts";
import { useChange, useResource } from "../../data/resource.ts";
import { formatGroupName, formatPersonName } from "../../parts/access-list.tsx";
import { Button, IconButton } from "../../parts/button.tsx";
import { confirmAction } from "../../parts/dialog.tsx";
import { Failed } from "../../parts/empty.tsx";
import { Field, NameField } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { setTo } from "../../parts/handlers.ts";
import { Menu, type MenuItem } from "../../parts/menu.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { showToast } from "../../shell/toasts.tsx";

type FormState = { readonly form: "add" } | { readonly form: "change" | "members"; readonly id: string } | undefined;

const isEveryone = (group: Group): boolean => group.id === group.organization_id;

type GroupsProps = {
  readonly organization: Organization;
  /** Number of members of the organization. When it changes, the groups are reloaded. */
  readonly memberCount: number;
};

export const OrganizationGroups = ({ organization, memberCount }: GroupsProps) => {
  const path = { organization: organization.id };
  const openForm = useSignal<FormState>(undefined);
  const { state, reload } = useResource(`groups of ${organization.id}`, () =>
    call("GET /organizations/:organization/groups", { path: { organization: organization.name } }),
  );
  useChange(String(memberCount), reload);
  const { data, error } = state.value;
  if (error && !data) return <Failed title="Can't load the groups" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={3} />;
  const close = (): void => {
    openForm.value = undefined;
    void reload();
  };
  const { value: form } = openForm;
  const group = form && form.form !== "add" ? data.find(({ id }) => id === form.id) : undefined;
  return (
    <section class="stack" aria-labelledby="groups">
      <div class="head">
        <h2 id="groups">Groups</h2>
        <span class="push">
          <Button icon="plus" onPress={setTo(openForm, { form: "add" })}>
            Add group
          </Button>
        </span>
      </div>
      <ul class="panel list">
        {data.map((one) => (
          <GroupRow
            key={one.id}
            group={one}
            reload={reload}
            onEdit={setTo(openForm, { form: "change", id: one.id })}
            onMembers={setTo(openForm, { form: "members", id: one.id })}
          />
        ))}
      </ul>
      <p class="small mut">
        Share templates, workspaces and chats with a group. If any group has an allowance, workspaces in this
        organization start only while their owner's groups have credits left.
      </p>
      {form?.form === "add" && (
        <FormDialog
          title="Add group"
          submitLabel="Add group"
          onClose={close}
          act={async (values) => {
            const created = await call("POST /organizations/:organization/groups", { path, body: toBody(values) });
            showToast(`${formatGroupName(created)} added`);
          }}
        >
          {(problems) => <GroupFields problems={problems} />}
        </FormDialog>
      )}
      {form?.form === "change" && group && (
        <FormDialog
          title={`Edit ${formatGroupName(group)}`}
          thing={formatGroupName(group)}
          submitLabel="Save group"
          onClose={close}
          act={async (values) => {
            await call("PATCH /groups/:group", { path: { group: group.id }, body: toBody(values) });
          }}
        >
          {(problems) => <GroupFields problems={problems} group={group} />}
        </FormDialog>
      )}
      {form?.form === "members" && group && <MembersDialog group={group} reload={reload} onClose={close} />}
    </section>
  );
};

const toBody = ({ name = "", display_name = "", quota_allowance = "0" }: Record<string, string>): CreateGroup => ({
  name,
  display_name,
  quota_allowance: Number(quota_allowance || 0),
});

const GroupFields = ({ problems, group }: { problems: Readonly<Record<string, string>>; group?: Group }) => (
  <>
    <Field
      label="Name"
      name="name"
      required
      readOnly={group !== undefined && isEveryone(group)}
      defaultValue={group?.name ?? ""}
      error={problems.name}
    />
    <Field
      label="Display name"
      name="display_name"
      defaultValue={group?.display_name ?? ""}
      hint="Defaults to the name."
      error={problems.display_name}
    />
    <Field
      label="Allowance (credits per day)"
      name="quota_allowance"
      type="number"
      min={0}
      step={1}
      defaultValue={String(group?.quota_allowance ?? 0)}
      hint="What each member's workspaces may cost per day."
      error={problems.quota_allowance}
    />
  </>
);

type RowProps = {
  readonly group: Group;
  readonly reload: () => Promise<void>;
  readonly onEdit: () => void;
  readonly onMembers: () => void;
};

const GroupRow = ({ group, reload, onEdit, onMembers }: RowProps) => {
  const name = formatGroupName(group);
  const confirmDelete = (): void =>
    confirmAction({
      title: `Delete ${name}`,
      text: "Its members lose access to everything shared with it.",
      confirmLabel: "Delete group",
      cancelLabel: "Keep it",
      isDanger: true,
      act: async () => {
        await call("DELETE /groups/:group", { path: { group: group.id } });
        await reload();
        showToast(`${name} deleted`);
      },
    });
  const memberCount = `${group.total_member_count} ${group.total_member_count === 1 ? "member" : "members"}`;
  return (
    <li class="item">
      <span class="med clip">{name}</span>
      <span class="line">
        {group.quota_allowance > 0 && <span class="badge">{group.quota_allowance} credits per day</span>}
        <Menu
          label={`More for ${name}`}
          small
          items={(): MenuItem[] => {
            const editItem: MenuItem = { icon: "pen", label: "Edit…", act: onEdit };
            if (isEveryone(group)) return [editItem];
            return [
              { icon: "user", label: "Members…", act: onMembers },
              editItem,
              { icon: "trash", label: "Delete…", isDanger: true, act: confirmDelete },
            ];
          }}
        />
      </span>
      <span class="sub clip">
        {isEveryone(group) ? `${memberCount}: all members of the organization` : memberCount}
      </span>
    </li>
  );
};

type MembersProps = { readonly group: Group; readonly reload: () => Promise<void>; readonly onClose: () => void };

/** Each change takes effect immediately. The form adds one more member. */
const MembersDialog = ({ group, reload, onClose }: MembersProps) => {
  const changeMembers = async (body: { add_users?: string[]; remove_users?: string[] }): Promise<void> => {
    await call("PATCH /groups/:group", { path: { group: group.id }, body });
    await reload();
  };
  return (
    <FormDialog
      title={`Members of ${formatGroupName(group)}`}
      thing={formatGroupName(group)}
      submitLabel="Add to group"
      onClose={onClose}
      act={({ user = "" }) => changeMembers({ add_users: [user.trim()] })}
    >
      {(problems) => (
        <>
          {group.members.length === 0 ? (
            <p class="mut">No members yet.</p>
          ) : (
            <ul class="list">
              {group.members.map((one) => (
                <li key={one.id} class="item">
                  <span class="clip">{formatPersonName(one)}</span>
                  <IconButton
                    icon="x"
                    small
                    label={`Remove ${one.username}`}
                    onPress={() => changeMembers({ remove_users: [one.id] })}
                  />
                </li>
              ))}
            </ul>
          )}
          <NameField
            label="Username"
            name="user"
            hint="A member of the organization."
            error={problems["add_users[0]"] ?? problems.add_users}
          />
        </>
      )}
    </FormDialog>
  );
};
