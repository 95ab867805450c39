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
import { into, sets } from "../../parts/handlers.ts";
import { Menu } from "../../parts/menu.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { showToast } from "../../shell/toasts.tsx";
import { filterByOrganization, Pending, readInvitations } from "./invitations.tsx";
import { Invite, InviteResult } from "./invite.tsx";
import { OrganizationFields, readOrganizations } from "./organization-fields.tsx";
import { OrganizationGroups } from "./organization-groups.tsx";

type Open =
  | { readonly form: "rename" | "add" | "invite" }
  | { readonly form: "roles"; readonly member: Member }
  | undefined;

export const OrganizationPage = ({ organization }: { organization: Organization }) => {
  const path = { organization: organization.id };
  // By the name in the address, so that the request does not wait for the list of organizations.
  const named = { organization: organization.name };
  const { route } = useLocation();
  const open = useSignal<Open>(undefined);
  const { state, reload } = useResource(`organization ${organization.id}`, async () => {
    const [{ members }, roles, sharing] = await Promise.all([
      call("GET /organizations/:organization/paginated-members", { path: named, query: { limit: 500 } }),
      call("GET /organizations/:organization/members/roles", { path: named }),
      call("GET /organizations/:organization/settings/workspace-sharing", { path: named }),
    ]);
    return { members, roles, sharing };
  });
  const invited = useResource("invitations", readInvitations);
  const result = useSignal<Invited | undefined>(undefined);
  const close = (): void => {
    open.value = undefined;
    void reload();
  };
  const { data, error } = state.value;
  if (error) return <Failed what="Can't load the organization" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={6} />;
  const shown = organization.display_name || organization.name;
  const here = filterByOrganization(invited, organization.id);
  const remove = (): void =>
    confirmAction({
      title: `Delete ${shown}`,
      text: "You can only delete an organization without templates and workspaces. Its members keep their accounts.",
      yes: "Delete organization",
      no: "Keep it",
      isDanger: true,
      typed: organization.name,
      act: async () => {
        await call("DELETE /organizations/:organization", { path });
        await readOrganizations();
        route("/admin/organizations");
        showToast(`${shown} deleted`);
      },
    });
  return (
    <>
      <div class="head">
        <h2>{shown}</h2>
        <span class="push line">
          <Button onPress={sets(open, { form: "rename" })}>Rename…</Button>
          {isSiteOwner.value && !organization.is_default && (
            <Button look="ghost danger" onPress={remove}>
              Delete…
            </Button>
          )}
        </span>
      </div>
      <Switch
        label="Allow sharing workspaces and chats"
        note="If you turn this off, existing shares are revoked."
        checked={!data.sharing.sharing_disabled}
        onSwitch={async (on) => {
          const body = { sharing_disabled: !on };
          await call("PATCH /organizations/:organization/settings/workspace-sharing", { path, body });
          await reload();
        }}
      />
      <section class="stack" aria-labelledby="members">
        <div class="head">
          <h2 id="members">Members</h2>
          <span class="push line">
            <Button icon="plus" onPress={sets(open, { form: "add" })}>
              Add member
            </Button>
            <Button look="primary" icon="plus" onPress={sets(open, { form: "invite" })}>
              Invite people
            </Button>
          </span>
        </div>
        <Pending listed={here} onInvited={into(result)} />
        <ul class="panel list">
          {data.members.map((one) => (
            <MemberRow
              key={one.user_id}
              member={one}
              organization={organization}
              reload={reload}
              edit={sets(open, { form: "roles", member: one })}
            />
          ))}
        </ul>
      </section>
      <OrganizationGroups organization={organization} members={data.members.length} />
      {open.value?.form === "rename" && (
        <FormDialog
          title={`Rename ${shown}`}
          thing={shown}
          submit="Save names"
          onClose={close}
          act={async ({ name = "", display_name = "", description = "" }) => {
            const body = { name, display_name, description };
            const now = await call("PATCH /organizations/:organization", { path, body });
            await readOrganizations();
            route(`/admin/organizations/${encodeURIComponent(now.name)}`, true);
          }}
        >
          {(problems) => <OrganizationFields problems={problems} {...organization} />}
        </FormDialog>
      )}
      {open.value?.form === "invite" && (
        <Invite
          byEmail={invited.state.value.data?.by_email ?? false}
          organization={organization.id}
          onClose={sets(open, undefined)}
          onInvited={(created) => {
            result.value = created;
            void invited.reload();
          }}
        />
      )}
      {result.value && <InviteResult result={result.value} onClose={sets(result, undefined)} />}
      {open.value?.form === "add" && (
        <FormDialog
          title={`Add a member to ${shown}`}
          submit="Add member"
          onClose={close}
          act={async ({ user = "" }) => {
            await call("POST /organizations/:organization/members/:user", { path: { ...path, user: user.trim() } });
            showToast(`${user.trim()} added`);
          }}
        >
          {() => <NameField label="Username" name="user" hint="Must already have an account on this server." />}
        </FormDialog>
      )}
      {open.value?.form === "roles" && (
        <MemberRoles member={open.value.member} roles={data.roles} organization={organization} onClose={close} />
      )}
    </>
  );
};

type RowProps = {
  readonly member: Member;
  readonly organization: Organization;
  readonly reload: () => Promise<void>;
  readonly edit: () => void;
};

const MemberRow = ({ member, organization, reload, edit }: RowProps) => {
  const remove = (): void =>
    confirmAction({
      title: `Remove ${member.username}`,
      text: "Their workspaces are kept, but they lose access to this organization.",
      yes: "Remove member",
      no: "Keep them",
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
              { icon: "shield", label: "Roles…", act: edit },
              { icon: "trash", label: "Remove…", isDanger: true, act: remove },
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
      submit="Set roles"
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
