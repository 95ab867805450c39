// The form that invites people: addresses, roles, and the links to pass on if no email is sent.
import { useSignal } from "@preact/signals";
import { readPeople } from "#base/people-list.ts";
import type { Invited, NewInvitation } from "#schema/users/invitation.ts";
import { MAX_INVITATIONS_PER_REQUEST } from "#schema/users/invitation.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { isSiteOwner, organizations } from "../../data/session.ts";
import { copyText } from "../../parts/as-command.tsx";
import { Button, ButtonLink, IconButton } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Area, Select } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { writeTo } from "../../parts/handlers.ts";
import { showToast } from "../../shell/toasts.tsx";

const SITE_ROLES = [
  { value: "", label: "Member" },
  { value: "template-admin", label: "Template administrator" },
  { value: "user-admin", label: "User administrator" },
  { value: "auditor", label: "Auditor" },
  { value: "owner", label: "Owner" },
];

type InviteProps = {
  /** The only organization that the caller may invite to. */
  readonly organization?: string;
  /** Whether the server sends the links by email. */
  readonly byEmail: boolean;
  readonly onClose: () => void;
  readonly onInvited: (result: Invited) => void;
};

export const Invite = ({ organization, byEmail, onClose, onInvited }: InviteProps) => {
  const role = useSignal("");
  const offeredOrganizations = organizations.value.filter(
    ({ id }) => organization === undefined || id === organization,
  );
  const organizationId = useSignal(
    offeredOrganizations.find(({ is_default }) => is_default)?.id ?? offeredOrganizations[0]?.id ?? "",
  );
  const group = useSignal("");
  const groups = useResource(
    organizationId.value === "" ? undefined : `groups to invite to ${organizationId.value}`,
    () => call("GET /organizations/:organization/groups", { path: { organization: organizationId.value } }),
  );
  const offeredGroups = (groups.state.value.data ?? []).filter(({ id }) => id !== organizationId.value);
  return (
    <FormDialog
      title="Invite people"
      submitLabel={byEmail ? "Send invitations" : "Create links"}
      onClose={onClose}
      act={async ({ people: text = "" }) => {
        const { people, unreadable } = readPeople(text);
        const [invalid] = unreadable;
        if (invalid !== undefined) throw new Error(`"${invalid}" doesn't contain an email address.`);
        if (people.length === 0) throw new Error("Enter at least one email address.");
        if (people.length > MAX_INVITATIONS_PER_REQUEST) {
          throw new Error(
            `You can invite up to ${MAX_INVITATIONS_PER_REQUEST} people at a time. The list has ${people.length} addresses.`,
          );
        }
        const body = {
          people: [...people],
          organization_id: organizationId.value,
          ...(role.value === "" ? {} : { roles: [role.value] }),
          ...(group.value === "" ? {} : { group_ids: [group.value] }),
        };
        onInvited(await call("POST /invitations", { body }));
      }}
    >
      {(problems) => (
        <>
          {!byEmail && (
            <p class="mut">
              This server can't send email, because no SMTP server is configured (<code>smtp_host</code>). You get a
              link for each person, to pass on yourself.
            </p>
          )}
          <Area
            label="Email addresses"
            name="people"
            rows={4}
            required
            spellcheck={false}
            autocapitalize="none"
            placeholder={"ada@example.com\nGrace Hopper <grace@example.com>"}
            hint="Separate addresses with commas or new lines, or paste names and addresses from a spreadsheet."
            error={problems.people}
          />
          <FileField label="Upload a CSV file" name="people" />
          {offeredOrganizations.length > 1 && (
            <Select
              label="Organization"
              value={organizationId.value}
              choices={offeredOrganizations.map(({ id, name, display_name }) => ({
                value: id,
                label: display_name || name,
              }))}
              onPick={writeTo(organizationId)}
            />
          )}
          {isSiteOwner.value && <Select label="Role" value={role.value} choices={SITE_ROLES} onPick={writeTo(role)} />}
          {offeredGroups.length > 0 && (
            <Select
              label="Group"
              value={group.value}
              choices={[
                { value: "", label: "None" },
                ...offeredGroups.map(({ id, name, display_name }) => ({ value: id, label: display_name || name })),
              ]}
              onPick={writeTo(group)}
            />
          )}
        </>
      )}
    </FormDialog>
  );
};

/** Reads a file into the field of this name in the same form. */
const FileField = ({ label, name }: { label: string; name: string }) => (
  <label class="small line wrap">
    {label}
    <input
      type="file"
      accept=".csv,.txt,text/csv,text/plain"
      onChange={async ({ currentTarget }) => {
        const [file] = currentTarget.files ?? [];
        const field = currentTarget.form?.elements.namedItem(name);
        if (file && field instanceof HTMLTextAreaElement) field.value = await file.text();
      }}
    />
  </label>
);

/** Shows the result: links to pass on, addresses that were skipped, and anything still missing before people can start. */
export const InviteResult = ({ result, onClose }: { result: Invited; onClose: () => void }) => {
  const { invitations, skipped, by_email, without_template } = result;
  const links = invitations.flatMap(({ invitation, link }) => (link ? [`${invitation.email}\t${link}`] : []));
  return (
    <Dialog
      title={invitations.length === 1 ? "1 person invited" : `${invitations.length} people invited`}
      onClose={onClose}
      class="wide"
    >
      <div class="stack">
        {without_template && invitations.length > 0 && (
          <p class="banner box attn">
            <span>No template is available to members yet. The people you invite cannot create workspaces.</span>
            <ButtonLink href="/templates">Add a template</ButtonLink>
          </p>
        )}
        {by_email && invitations.length > 0 && <p>Each gets a link by email. It works once, for 7 days.</p>}
        {links.length > 0 && (
          <>
            <p>Send each person their link. It works once, for 7 days, and is not shown again.</p>
            <ul class="panel list">
              {invitations.map((one) => (
                <LinkItem key={one.invitation.id} invitation={one} />
              ))}
            </ul>
            {links.length > 1 && (
              <div>
                <Button icon="copy" onPress={() => copyText(links.join("\n"))}>
                  Copy all links
                </Button>
              </div>
            )}
          </>
        )}
        {skipped.map(({ email, reason }) => (
          <p key={email} class="t-attn">
            {email} was not invited. {reason}
          </p>
        ))}
      </div>
    </Dialog>
  );
};

const LinkItem = ({ invitation: { invitation, link = "" } }: { invitation: NewInvitation }) => (
  <li class="item">
    <span class="clip">
      <span class="med">{invitation.name || invitation.email}</span>
      {invitation.name && <span class="mut"> {invitation.email}</span>}
    </span>
    <IconButton
      icon="copy"
      label={`Copy the link for ${invitation.email}`}
      onPress={async () => {
        await copyText(link);
        showToast(`Link for ${invitation.email} copied`);
      }}
    />
    <span class="sub mono clip">{link}</span>
  </li>
);
