// Presents invitations to administrators.
import { rfc3339, rfc3339OrAbsent } from "#base/clock.ts";
import type { InvitationRow } from "#db/users/invitations.ts";
import type { Invitation } from "#schema/users/invitation.ts";

export const presentInvitation = (
  row: InvitationRow,
  { inviter, organization }: { readonly inviter: string; readonly organization: string },
  now: number,
): Invitation => ({
  id: row.id,
  email: row.email,
  name: row.name,
  roles: row.roles,
  organization_id: row.organization_id,
  organization_name: organization,
  organization_roles: row.organization_roles,
  group_ids: row.group_ids,
  invited_by: inviter,
  created_at: rfc3339(row.created_at),
  expires_at: rfc3339(row.expires_at),
  expired: row.expires_at <= now,
  sent_at: rfc3339OrAbsent(row.sent_at),
  send_problem: row.send_problem,
});
