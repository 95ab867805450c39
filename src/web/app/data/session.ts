// Who is signed in here.
import { computed, signal } from "@preact/signals";
import type { Organization } from "#schema/users/organization.ts";
import type { User } from "#schema/users/user.ts";
import { call, Problem } from "./api.ts";

/** Undefined until it is known, null when nobody is. */
export const me = signal<User | null | undefined>(undefined);
export const organizations = signal<readonly Organization[]>([]);

export const isSiteOwner = computed(() => me.value?.roles.some(({ name }) => name === "owner") ?? false);
/** They have some role of the whole site. */
export const isAdministrator = computed(() => (me.value?.roles.length ?? 0) > 0);
export const isUserAdministrator = computed(() => me.value?.roles.some(({ name }) => name === "user-admin") ?? false);

/** One's roles in organizations, by organization. */
const organizationRoles = signal<Readonly<Record<string, readonly string[]>>>({});

/** The organizations that one looks after: names, MCP servers, workers, members. */
export const ownOrganizations = computed((): readonly Organization[] =>
  organizations.value.filter(
    ({ id }) => isSiteOwner.value || organizationRoles.value[id]?.includes("organization-admin"),
  ),
);
/** Some section of the administration is theirs. */
export const mayAdminister = computed(
  () => isSiteOwner.value || isUserAdministrator.value || ownOrganizations.value.length > 0,
);

/** Who is looking: what pages are offered follows from it. */
export const viewer = computed(() => ({ hasRoles: isAdministrator.value, mayAdminister: mayAdminister.value }));

const HINT = "signed-in";

/** Somebody was signed in here last: the live lists need not wait until it is known that somebody still is. */
export const wasSignedIn = (): boolean => localStorage.getItem(HINT) !== null;

/** They must set up a second factor before anything else is theirs. */
export const mustEnrol = signal(false);

/** Asks once, beside the first lists. */
export const readSession = async (): Promise<void> => {
  try {
    const [user, of, { organization_roles }] = await Promise.all([
      call("GET /users/me"),
      call("GET /organizations"),
      call("GET /users/me/roles"),
    ]);
    organizations.value = of;
    organizationRoles.value = organization_roles;
    localStorage.setItem(HINT, "");
    me.value = user;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    if (error.status === 401) {
      localStorage.removeItem(HINT);
      me.value = null;
    } else if (error.names("second_factor")) {
      mustEnrol.value = true;
      me.value = await call("GET /users/me");
    } else throw error;
  }
};

export const signOut = async (): Promise<void> => {
  localStorage.removeItem(HINT);
  const { turnPushOff } = await import("./web-push.ts");
  await turnPushOff().catch(() => {});
  await call("POST /users/logout").catch(() => {});
  location.assign("/login");
};
