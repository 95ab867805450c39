// Pending invitations: who has not accepted yet, with actions to renew or revoke each.
import type { Invitation, Invitations, Invited } from "#schema/users/invitation.ts";
import { call } from "../../data/api.ts";
import { confirmAction } from "../../parts/dialog.tsx";
import { Menu } from "../../parts/menu.tsx";
import { State } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";
import { showToast } from "../../shell/toasts.tsx";

type LoadedInvitations = { readonly data: Invitations | undefined };
type InvitationList = { readonly state: { readonly value: LoadedInvitations }; readonly reload: () => Promise<void> };
type PendingProps = { readonly list: InvitationList; readonly onInvited: (result: Invited) => void };

export const loadInvitations = () => call("GET /invitations");

/** Keeps only the invitations to one organization. */
export const filterByOrganization = ({ state, reload }: InvitationList, organization_id: string): InvitationList => {
  const { data } = state.value;
  const invitations = data?.invitations.filter((one) => one.organization_id === organization_id) ?? [];
  return { state: { value: { data: data && { ...data, invitations } } }, reload };
};

export const PendingInvitations = ({ list, onInvited }: PendingProps) => {
  const { data } = list.state.value;
  if (!data || data.invitations.length === 0) return null;
  return (
    <section class="stack" aria-labelledby="pending">
      <div class="head">
        <h2 id="pending">Pending invitations</h2>
        <span class="count">{data.invitations.length}</span>
      </div>
      <ul class="panel list">
        {data.invitations.map((one) => (
          <InvitationItem
            key={one.id}
            invitation={one}
            byEmail={data.by_email}
            reload={list.reload}
            onInvited={onInvited}
          />
        ))}
      </ul>
    </section>
  );
};

type ItemProps = {
  readonly invitation: Invitation;
  readonly byEmail: boolean;
  readonly reload: () => Promise<void>;
  readonly onInvited: (result: Invited) => void;
};

const InvitationItem = ({ invitation, byEmail, reload, onInvited }: ItemProps) => {
  const { id, email, name, expired, send_problem } = invitation;
  const renewInvitation = async (channel: "email" | "link"): Promise<void> => {
    const created = await call("POST /invitations/:invitation/resend", {
      path: { invitation: id },
      body: { by: channel },
    });
    if (channel === "email") showToast(`Sent to ${email}`);
    else onInvited({ invitations: [created], skipped: [], by_email: false, without_template: false });
    await reload();
  };
  const confirmRevoke = (): void =>
    confirmAction({
      title: `Revoke the invitation for ${email}`,
      text: "The link no longer works.",
      confirmLabel: "Revoke invitation",
      cancelLabel: "Keep it",
      isDanger: true,
      act: async () => {
        await call("DELETE /invitations/:invitation", { path: { invitation: id } });
        showToast(`Invitation for ${email} revoked`);
        await reload();
      },
    });
  return (
    <li class="item">
      <State kind={expired || send_problem ? "failed" : "stopped"}>
        <span class="med clip">{name || email}</span>
      </State>
      <span class="line">
        {[...invitation.roles, ...invitation.organization_roles].map((role) => (
          <span key={role} class="badge">
            {role}
          </span>
        ))}
        {expired && <span class="badge">Expired</span>}
        <Menu
          label={`More for ${email}`}
          small
          items={() => [
            ...(byEmail ? [{ icon: "out" as const, label: "Send again", act: () => renewInvitation("email") }] : []),
            { icon: "copy" as const, label: "New link…", act: () => renewInvitation("link") },
            { icon: "trash" as const, label: "Revoke…", isDanger: true, act: confirmRevoke },
          ]}
        />
      </span>
      <span class="sub clip">
        {send_problem ? (
          <span class="t-bad">{send_problem} </span>
        ) : (
          <>
            {name && `${email}, `}invited by {invitation.invited_by} to {invitation.organization_name}, expires{" "}
            <Time at={invitation.expires_at} />
          </>
        )}
      </span>
    </li>
  );
};
