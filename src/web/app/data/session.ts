// The signed-in user, and what they may do.
import { computed, signal } from "@preact/signals";
import type { Organization } from "#schema/users/organization.ts";
import type { User } from "#schema/users/user.ts";
import { peekAnswer } from "../../browser/early.ts";
import {
  assignOwner,
  clearTabData,
  clearUserData,
  getStoredOwner,
  OWNER_KEY,
  SIGNED_IN_KEY,
} from "../../browser/user-storage.ts";
import { showToast } from "../shell/toasts.tsx";
import { call, formatError, goToSignIn, onForbidden, Problem } from "./api.ts";
import { onRefused } from "./live-socket.ts";
import { reloadVisible } from "./resource.ts";
import { onAccessChange } from "./workspaces.ts";

/** Undefined until known, null if no user is signed in. */
export const me = signal<User | null | undefined>(undefined);
export const organizations = signal<readonly Organization[]>([]);

export const isSiteOwner = computed(() => me.value?.roles.some(({ name }) => name === "owner") ?? false);
/** True if the user has a site-wide role. */
export const isAdministrator = computed(() => (me.value?.roles.length ?? 0) > 0);
export const isUserAdministrator = computed(() => me.value?.roles.some(({ name }) => name === "user-admin") ?? false);

/** The user's roles, by organization. */
const organizationRoles = signal<Readonly<Record<string, readonly string[]>>>({});

/** The organizations that the user administers: names, MCP servers, workers, members. */
export const administeredOrganizations = computed((): readonly Organization[] =>
  organizations.value.filter(
    ({ id }) => isSiteOwner.value || organizationRoles.value[id]?.includes("organization-admin"),
  ),
);
/** True if the user can open at least one section of the administration. */
export const canAdminister = computed(
  () => isSiteOwner.value || isUserAdministrator.value || administeredOrganizations.value.length > 0,
);

/** The properties of the user that decide which pages are offered. */
export const viewer = computed(() => ({ hasRoles: isAdministrator.value, mayAdminister: canAdminister.value }));

// Runs before any page reads its cached data, which may belong to another user.
const embeddedUser = peekAnswer<User>("GET", "/users/me");
/** Assigns the browser to this user. Returns true if another user's data was removed, which the page may already show. */
const assignBrowser = (id: string): boolean => {
  const previous = getStoredOwner();
  const isOther = assignOwner(id);
  // The previous user of this browser enabled push notifications, not this user.
  if (previous !== null && previous !== id)
    void import("./browser-push.ts").then(({ unsubscribeHere }) => unsubscribeHere()).catch(() => undefined);
  return isOther;
};

if (embeddedUser) assignBrowser(embeddedUser.id);

/** True if the user must set up a second factor before doing anything else. */
export const needsEnrollment = signal(false);

/** Assigns the cached data to this user. A page that has already shown another user's data reloads. */
const assignStorage = ({ id }: User): void => {
  if (assignBrowser(id)) location.reload();
};

/** Loads the session once, in parallel with the first lists. */
export const loadSession = async (): Promise<void> => {
  try {
    const [user, allOrganizations, { organization_roles }] = await Promise.all([
      call("GET /users/me"),
      call("GET /organizations"),
      call("GET /users/me/roles"),
    ]);
    assignStorage(user);
    organizations.value = allOrganizations;
    organizationRoles.value = organization_roles;
    localStorage.setItem(SIGNED_IN_KEY, "");
    me.value = user;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    if (error.status === 401) {
      localStorage.removeItem(SIGNED_IN_KEY);
      me.value = null;
    } else if (error.hasErrorFor("second_factor")) {
      needsEnrollment.value = true;
      const user = await call("GET /users/me");
      assignStorage(user);
      me.value = user;
    } else throw error;
  }
};

/** The user's roles, as one comparable string. Organizations without a role are left out. */
const serializeRoles = (): string =>
  JSON.stringify([me.value?.roles, Object.entries(organizationRoles.value).filter(([, names]) => names.length > 0)]);
/** The user's memberships, and what they can see of other organizations. */
const serializeMemberships = (): string =>
  JSON.stringify([Object.keys(organizationRoles.value), organizations.value.map(({ id }) => id)]);
/** Several requests of a page can be refused together; permissions are reloaded once for all of them. */
const RELOAD_INTERVAL_MS = 5_000;

/**
 * Applies changes to roles and memberships immediately: the live list reports them, and so does a refused request. Redirects to the sign-in
 * page, which returns here afterwards, when the session ends elsewhere: immediately if in another tab, otherwise when a stream is refused.
 */
export const watchSession = (): (() => void) => {
  let isReloading = false;
  let hasChangedAgain = false;
  let requestedAt = 0;
  const reloadPermissions = (): void => {
    if (isReloading || !me.value) return;
    isReloading = true;
    hasChangedAgain = false;
    requestedAt = Date.now();
    const [rolesBefore, membershipsBefore] = [serializeRoles(), serializeMemberships()];
    // A call without a valid session redirects to the sign-in page.
    void loadSession()
      .then(() => {
        const haveRolesChanged = serializeRoles() !== rolesBefore;
        if (!me.value || (!haveRolesChanged && serializeMemberships() === membershipsBefore)) return;
        showToast(haveRolesChanged ? "Your roles have changed" : "Your organizations have changed");
        reloadVisible();
      })
      .catch(() => undefined)
      .finally(() => {
        isReloading = false;
        // A change arrived during the load.
        if (hasChangedAgain) reloadPermissions();
      });
  };
  const onAccessChanged = (): void => {
    hasChangedAgain = true;
    reloadPermissions();
  };
  const onRequestRefused = (): void => {
    if (Date.now() - requestedAt >= RELOAD_INTERVAL_MS) reloadPermissions();
  };
  const onStorage = ({ key, newValue }: StorageEvent): void => {
    if (key === SIGNED_IN_KEY && newValue === null) goToSignIn();
    if (key !== OWNER_KEY) return;
    if (newValue === null) clearTabData();
    else reloadIfOtherUser();
  };
  addEventListener("storage", onStorage);
  addEventListener("pageshow", reloadIfOtherUser);
  const stops = [onAccessChange(onAccessChanged), onRefused(onRequestRefused), onForbidden(onRequestRefused)];
  return () => {
    removeEventListener("storage", onStorage);
    removeEventListener("pageshow", reloadIfOtherUser);
    for (const stop of stops) stop();
  };
};

/** Reloads if another user has signed in, in another tab or while the browser kept this page asleep. */
const reloadIfOtherUser = (): void => {
  if (me.value && getStoredOwner() !== me.value.id) location.reload();
};

/** Signs out. Throws if the server could not be reached; the user is still signed in then. */
export const signOut = async (): Promise<void> => {
  const { disablePush } = await import("./web-push.ts");
  await disablePush();
  const answer = await call("POST /users/logout").catch((error: unknown) => {
    if (!(error instanceof Problem && error.status === 401))
      throw new Error(`You are still signed in. ${formatError(error)}`);
  });
  // This also notifies other tabs that the user signed out.
  clearUserData();
  location.assign(answer?.sign_out_url ?? "/login");
};
