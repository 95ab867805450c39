// Who is signed in here.
import { computed, signal } from "@preact/signals";
import type { Organization } from "#schema/organization.ts";
import type { User } from "#schema/user.ts";
import { call, Problem } from "./api.ts";

/** Undefined until it is known, null when nobody is. */
export const me = signal<User | null | undefined>(undefined);
export const organizations = signal<readonly Organization[]>([]);

export const isSiteOwner = computed(() => me.value?.roles.some(({ name }) => name === "owner") ?? false);
/** Some part of the administration is theirs. */
export const isAdministrator = computed(() => (me.value?.roles.length ?? 0) > 0);

/** Asks once, beside the first lists. */
export const readSession = async (): Promise<void> => {
  try {
    const [user, of] = await Promise.all([call("GET /users/me"), call("GET /organizations")]);
    organizations.value = of;
    me.value = user;
  } catch (error) {
    if (error instanceof Problem && error.status === 401) me.value = null;
    else throw error;
  }
};

export const signOut = async (): Promise<void> => {
  await call("POST /users/logout").catch(() => {});
  location.assign("/login");
};
