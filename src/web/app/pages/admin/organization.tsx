// One organization: its members and their roles, whether workspaces may be shared, its names, and its deletion.
import { useSignal } from "@preact/signals";
import { useLocation } from "preact-iso/router";
import type { Invited } from "#schema/users/invitation.ts";
import type { Member } from "#schema/users/member.ts";
import type { Organization } from "#schema/users/organization.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { isSiteOwner, me } from "../../data/session.ts";
import { Button } from "../../parts/button.tsx";
import { confirmAction } from "../../parts/dialog.tsx";
import { Failed } from "../../parts/empty.tsx";
import { NameField, Switch } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { setTo, writeTo } from "../../parts/handlers.ts";
import { Menu } from "../../parts/menu.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { showToast } from "../../shell/toasts.tsx";
import { filterByOrganization, loadInvitations, PendingInvitations } from "./invitations.tsx";
import { Invite, InviteResult } from "./invite.tsx";
import { OrganizationFields, reloadOrganizations } from "./organization-fields.tsx";
import { OrganizationGroups } from "./organization-groups.tsx";

type FormState =
  | { readonly form: "rename" | "add" | "invite" }
  | { readonly form: "roles"; readonly member: Member }
  | undefined;

export const OrganizationPage = ({ organization }: { organization: Organization }) => {
  const path = { organization: organization.id };
  // By the name in the address, so that the request does not wait for the list of organizations.
  const namedPath = { organization: organization.name };
  const { route } = useLocation();
  const openForm = useSignal<FormState>(undefined);
  const { state, reload } = useResource(`organization ${organization.id}`, async () => {
    const [{ members }, roles, sharing] = await Promise.all([
      call("GET /organizations/:organization/paginated-members", { path: namedPath, query: { limit: 500 } }),
      call("GET /organizations/:organization/members/roles", { path: namedPath }),
      call("GET /organizations/:organization/settings/workspace-sharing", { path: namedPath }),
    ]);
    return { members, roles, sharing };
  });
  const invitations = useResource("invitations", loadInvitations);
  const inviteResult = useSignal<Invited | undefined>(undefined);
  const close = (): void => {
    openForm.value = undefined;
    void reload();
  };
  const { data, error } = state.value;
  if (error) return <Failed title="Can't load the organization" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={6} />;
  const displayName = organization.display_name || organization.name;
  const ownInvitations = filterByOrganization(invitations, organization.id);
  const confirmDelete = (): void =>
    confirmAction({
      title: `Delete ${displayName}`,
      text: "You can only delete an organization without templates and workspaces. Its members keep their accounts.",
      confirmLabel: "Delete organization",
      cancelLabel: "Keep it",
      isDanger: true,
      confirmText: organization.name,
      act: async () => {
        await call("DELETE /organizations/:organization", { path });
        await reloadOrganizations();
        route("/admin/organizations");
        showToast(`${displayName} deleted`);
      },
    });
  return (
    <>
      <div class="head">
        <h2>{displayName}</h2>
        <span class="push line">
          <Button onPress={setTo(openForm, { form: "rename" })}>Rename…</Button>
          {isSiteOwner.value && !organization.is_default && (
            <Button look="ghost danger" onPress={confirmDelete}>
              Delete…
            </Button>
          )}
        </span>
      </div>
      <Switch
        label="Allow sharing workspaces and chats"
        note="If you turn this off, existing shares are revoked."
        checked={!data.sharing.sharing_disabled}
        onSwitch={async (isOn) => {
          const body = { sharing_disabled: !isOn };
          await call("PATCH /organizations/:organization/settings/workspace-sharing", { path, body });
          await reload();
        }}
      />
      <section class="stack" aria-labelledby="members">
        <div class="head">
          <h2 id="members">Members</h2>
          <span class="push line">
            <Button icon="plus" onPress={setTo(openForm, { form: "add" })}>
              Add member
            </Button>
            <Button look="primary" icon="plus" onPress={setTo(openForm, { form: "invite" })}>
              Invite people
            </Button>
          </span>
        </div>
        <PendingInvitations list={ownInvitations} onInvited={writeTo(inviteResult)} />
        <ul class="panel list">
          {data.members.map((one) => (
            <MemberRow
              key={one.user_id}
              member={one}
              organization={organization}
              reload={reload}
              onEdit={setTo(openForm, { form: "roles", member: one })}
            />
          ))}
        </ul>
      </section>
      <OrganizationGroups organization={organization} memberCount={data.members.length} />
      {openForm.value?.form === "rename" && (
        <FormDialog
          title={`Rename ${displayName}`}
          thing={displayName}
          submitLabel="Save names"
          onClose={close}
          act={async ({ name = "", display_name = "", description = "" }) => {
            const body = { name, display_name, description };
            const renamed = await call("PATCH /organizations/:organization", { path, body });
            await reloadOrganizations();
            route(`/admin/organizations/${encodeURIComponent(renamed.name)}`, true);
          }}
        >
          {(problems) => <OrganizationFields problems={problems} {...organization} />}
        </FormDialog>
      )}
      {openForm.value?.form === "invite" && (
        <Invite
          byEmail={invitations.state.value.data?.by_email ?? false}
          organization={organization.id}
          onClose={setTo(openForm, undefined)}
          onInvited={(created) => {
            inviteResult.value = created;
            void invitations.reload();
          }}
        />
      )}
      {inviteResult.value && <InviteResult result={inviteResult.value} onClose={setTo(inviteResult, undefined)} />}
      {openForm.value?.form === "add" && (
        <FormDialog
          title={`Add a member to ${displayName}`}
          submitLabel="Add member"
          onClose={close}
          act={async ({ user = "" }) => {
            await call("POST /organizations/:organization/members/:user", { path: { ...path, user: user.trim() } });
            showToast(`${user.trim()} added`);
          }}
        >
          {() => <NameField label="Username" name="user" hint="Must already have an account on this server." />}
        </FormDialog>
      )}
      {openForm.value?.form === "roles" && (
        <MemberRoles member={openForm.value.member} roles={data.roles} organization={organization} onClose={close} />
      )}
    </>
  );
};

type RowProps = {
  readonly member: Member;
  readonly organization: Organization;
  readonly reload: () => Promise<void>;
  readonly onEdit: () => void;
};

const MemberRow = ({ member, organization, reload, onEdit }: RowProps) => {
  const confirmRemove = (): void =>
    confirmAction({
      title: `Remove ${member.username}`,
      text: "Their workspaces are kept, but they lose access to this organization.",
      confirmLabel: "Remove member",
      cancelLabel: "Keep them",
      isDanger: true,
      act: async () => {
        const path = { organization: organization.id, user: member.user_id };
        await call("DELETE /organizations/:organization/members/:user", { path });
        await reload();
      },
    });
  return (
    <li class="item">
      <span class="med clip">{member.name || member.username}</span>
      <span class="line">
        {member.roles.map(({ name, display_name }) => (
          <span key={name} class="badge">
            {display_name || name}
          </span>
        ))}
        {member.user_id !== me.value?.id && (
          <Menu
            label={`More for ${member.username}`}
            small
            items={() => [
              { icon: "shield", label: "Roles…", act: onEdit },
              { icon: "trash", label: "Remove…", isDanger: true, act: confirmRemove },
            ]}
          />
        )}
      </span>
      <span class="sub clip">{[member.username, member.email].filter(Boolean).join(", ")}</span>
    </li>
  );
};

type RolesProps = {
  readonly member: Member;
  readonly roles: readonly { name: string; display_name: string; assignable: boolean }[];
  readonly organization: Organization;
  readonly onClose: () => void;
};

const MemberRoles = ({ member, roles, organization, onClose }: RolesProps) => {
  const currentRoles = member.roles.map(({ name }) => name);
  const choices = roles.filter(({ name, assignable }) => assignable || currentRoles.includes(name));
  return (
    <FormDialog
      title={`Roles of ${member.username}`}
      thing={member.username}
      submitLabel="Set roles"
      onClose={onClose}
      act={async (values) => {
        const names = choices.flatMap(({ name }) => (values[name] === "on" ? [name] : []));
        const path = { organization: organization.id, user: member.user_id };
        await call("PUT /organizations/:organization/members/:user/roles", { path, body: { roles: names } });
        showToast(`Changed the roles of ${member.username}`);
      }}
    >
      {() =>
        choices.map(({ name, display_name }) => (
          <label key={name} class="line">
            <input type="checkbox" name={name} defaultChecked={currentRoles.includes(name)} />
            <span>{display_name || name}</span>
          </label>
        ))
      }
    </FormDialog>
  );
};
