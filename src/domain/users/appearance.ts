// A user's appearance settings and last parameter values; only for oneself (rules ID-40, ID-41).
import { forbidden } from "#base/errors.ts";
import { updateUser } from "#db/users/users.ts";
import { listLastParameters } from "#db/workspaces/builds.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { UpdateUserPreferences, UserPreferences } from "#schema/users/quiet-hours.ts";
import type { DomainContext } from "../context.ts";
import { loadTemplate } from "../templates/find.ts";
import { findUserInPath, type KnownUser } from "./find.ts";

/** Returns the user in the path, who must be the caller. Rejects with 404 for an invisible user and with 403 for another user. */
export const findSelf = async ({ store }: DomainContext, text: string, caller: UserCaller): Promise<KnownUser> => {
  const user = await findUserInPath(store, text, caller);
  if (user.id !== caller.user_id) throw forbidden("You can change this only for yourself.");
  return user;
};

export type AppearanceSettings = { readonly theme_preference: string; readonly terminal_font: string };

export const setAppearance = async (
  { store, clock }: DomainContext,
  { id }: Pick<KnownUser, "id">,
  { theme_preference, terminal_font }: AppearanceSettings,
): Promise<AppearanceSettings> => {
  await store.commit([updateUser(id, { theme_preference, terminal_font, updated_at: clock.now() }, { expect: 1 })]);
  return { theme_preference, terminal_font };
};

export const setPreferences = async (
  { store, clock }: DomainContext,
  user: KnownUser,
  { task_notification_alert_dismissed, wake_on_connect = user.wake_on_connect }: UpdateUserPreferences,
): Promise<UserPreferences> => {
  const preferences = { task_notification_alert_dismissed, wake_on_connect };
  await store.commit([updateUser(user.id, { ...preferences, updated_at: clock.now() }, { expect: 1 })]);
  return preferences;
};

/** Returns the user's app preferences. */
export const toPreferences = ({ task_notification_alert_dismissed, wake_on_connect }: KnownUser): UserPreferences => ({
  task_notification_alert_dismissed,
  wake_on_connect,
});

/** Returns the parameter values of the user's newest workspace from a template. Rejects with 404 for an invisible template. */
export const loadLastParameters = async (
  ctx: DomainContext,
  owner_id: string,
  template: string,
  caller: UserCaller,
): Promise<{ name: string; value: string }[]> => {
  const { template: row } = await loadTemplate(ctx, template, caller);
  return ctx.store.all(listLastParameters({ owner_id, template_id: row.id }));
};
