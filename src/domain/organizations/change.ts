// Creates, changes and deletes organizations, and enables or disables sharing.

import { revokeForbiddenChatShares } from "#actors/chat/background/sharing-limits.ts";
import { revokeForbiddenShares } from "#actors/workspace/sharing-limits.ts";
import { conflict, forbidden, invalid, invalidField } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import { deleteBudgetsOfOrganization } from "#db/budgets/budgets.ts";
import { CommitError } from "#db/engine/store.ts";
import { deleteMcpLinksOf } from "#db/models/mcp-servers.ts";
import { deleteRowsOf } from "#db/removal.ts";
import { type AuditedChange, insertAudit } from "#db/reports/audit/audit.ts";
import { listProvisionerKeys } from "#db/templates/provisioners.ts";
import {
  deleteOrganization,
  insertOrganization,
  type OrganizationRow,
  updateOrganization,
} from "#db/users/organizations.ts";
import { findSharingDisabled, storeSharingDisabled } from "#db/workspaces/sharing.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { canCreateOrganizations, canUpdateOrganization } from "../access.ts";
import type { DomainContext } from "../context.ts";
import { toTakenConflict } from "../users/name-conflicts.ts";
import { getOrganization } from "./find.ts";

const NAMES = { organizations_name: "name" };

type Input = {
  readonly name?: string | undefined;
  readonly display_name?: string | undefined;
  readonly description?: string | undefined;
  readonly icon?: string | undefined;
};

/** Rejects with 400, 403, or 409 for a name that is taken. */
export const createOrganization = async (
  { store, clock }: DomainContext,
  caller: UserCaller,
  { name, display_name, description = "", icon = "" }: Input & { readonly name: string },
): Promise<OrganizationRow> => {
  if (!canCreateOrganizations(caller)) throw forbidden("Only an owner may create organizations.");
  checkName(name, false);
  const now = clock.now();
  const row: OrganizationRow = {
    id: uuid(),
    name,
    display_name: display_name?.trim() || name,
    description,
    icon,
    is_default: false,
    created_at: now,
    updated_at: now,
    deleted: false,
  };
  await store
    .commit([insertOrganization(row), writeAuditEntry(row, { action: "create", after: row, now })])
    .catch((error) => Promise.reject(toTakenConflict(error, NAMES)));
  return row;
};

/** Omitted members are unchanged. Rejects with 400, 403, or 409 for a name that is taken. */
export const changeOrganization = async (
  { store, clock, topics }: DomainContext,
  row: OrganizationRow,
  caller: UserCaller,
  input: Input,
): Promise<OrganizationRow> => {
  if (!canUpdateOrganization(caller, row.id)) throw forbidden("You may not change this organization.");
  checkName(input.name, row.is_default);
  const { name = row.name, description = row.description, icon = row.icon } = input;
  const display_name = input.display_name === undefined ? row.display_name : input.display_name.trim() || name;
  const now = clock.now();
  const patch = { name, display_name, description, icon, updated_at: now };
  await store
    .commit([
      updateOrganization(row.id, patch),
      writeAuditEntry(row, { action: "write", before: row, after: { ...row, ...patch }, now }),
    ])
    .catch((error) => Promise.reject(toTakenConflict(error, NAMES)));
  topics.publish("shown_changed", row.id, {});
  return getOrganization(store, row.id);
};

/**
 * Deletes the organization, disconnects its workers, and stops its chats and image builds. Rejects with 400 for the default organization,
 * with 403, and with 409 while it has templates or workspaces.
 */
export const removeOrganization = async (
  { store, clock, topics, workers }: DomainContext,
  row: OrganizationRow,
  caller: UserCaller,
): Promise<void> => {
  if (!canCreateOrganizations(caller)) throw forbidden("Only an owner may delete organizations.");
  if (row.is_default) throw invalid("The default organization cannot be deleted.");
  const now = clock.now();
  const keys = await store.all(listProvisionerKeys({ organization_id: row.id }));
  await store
    .commit([
      deleteOrganization({ id: row.id, now }),
      deleteMcpLinksOf(row.id),
      ...deleteBudgetsOfOrganization(row.id),
      ...deleteRowsOf("organization", row.id),
      writeAuditEntry(row, { action: "delete", before: row, now }),
    ])
    .catch((error) => {
      if (!(error instanceof CommitError) || error.reason !== "stale") throw error;
      throw conflict("The organization still has templates or workspaces. Delete those first.");
    });
  topics.publish("access_changed", row.id, {});
  for (const { id } of keys) workers.closeKey(id);
};

/**
 * Enables or disables sharing. Disabling it revokes the shares of every workspace and chat of the organization (rule SH-12). Rejects with
 * 403.
 */
export const setSharingDisabled = async (
  { store, clock, workspaces, chats }: DomainContext,
  { id, name }: OrganizationRow,
  caller: UserCaller,
  sharing_disabled: boolean,
): Promise<void> => {
  if (!canUpdateOrganization(caller, id)) throw forbidden("You may not change this organization.");
  const wasDisabled = (await store.get(findSharingDisabled({ organization_id: id }))) !== undefined;
  const entry = insertAudit({
    now: clock.now(),
    action: "write",
    resource_type: "organization",
    resource_id: id,
    target: name,
    organization_id: id,
    before: { sharing_disabled: wasDisabled },
    after: { sharing_disabled },
  });
  await store.commit([storeSharingDisabled(id, sharing_disabled), entry]);
  if (!sharing_disabled) return;
  await revokeForbiddenShares(store, workspaces, id);
  await revokeForbiddenChatShares(store, chats, id);
};

/** `default` in a path always means the default organization, so no other one may have this name. */
const checkName = (name: string | undefined, isDefault: boolean): void => {
  if (name?.toLowerCase() === "default" && !isDefault) throw invalidField("name", "This name is reserved.");
};

const writeAuditEntry = ({ id, name, icon }: OrganizationRow, change: AuditedChange) =>
  insertAudit({
    ...change,
    resource_type: "organization",
    resource_id: id,
    organization_id: id,
    target: name,
    icon,
  });
