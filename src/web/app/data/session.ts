// The signed-in user, and what they may do.
import { computed, signal } from "@preact/signals";
import type { Organization } from "#schema/users/organization.ts";
import type { User } from "#schema/users/user.ts";
import { peekAnswer } from "../../browser/early.ts";
import { assignOwner, forgetInTab, forgetPerson, HINT, keptOwner, OWNER } from "../../browser/kept.ts";
import { say } from "../shell/toasts.tsx";
import { call, formatError, onForbidden, Problem, toSignIn } from "./api.ts";
import { onRefused } from "./live-socket.ts";
import { readShown } from "./resource.ts";
import { onAccess } from "./workspaces.ts";

/** Undefined until known, null if no user is signed in. */
export const me = signal<User | null | undefined>(undefined);
export const organizations = signal<readonly Organization[]>([]);

export const isSiteOwner = computed(() => me.value?.roles.some(({ name }) => name === "owner") ?? false);
/** The user has a site-wide role. */
export const isAdministrator = computed(() => (me.value?.roles.length ?? 0) > 0);
export const isUserAdministrator = computed(() => me.value?.roles.some(({ name }) => name === "user-admin") ?? false);

/** The user's roles, by organization. */
const organizationRoles = signal<Readonly<Record<string, readonly string[]>>>({});

/** The organizations that the user administers: names, MCP servers, workers, members. */
export const ownOrganizations = computed((): readonly Organization[] =>
  organizations.value.filter(
    ({ id }) => isSiteOwner.value || organizationRoles.value[id]?.includes("organization-admin"),
  ),
);
/** The user can open at least one section of the administration. */
export const mayAdminister = computed(
  () => isSiteOwner.value || isUserAdministrator.value || ownOrganizations.value.length > 0,
);

/** The properties of the user that decide which pages are offered. */
export const viewer = computed(() => ({ hasRoles: isAdministrator.value, mayAdminister: mayAdminister.value }));

// Set before any page reads its cache: the cached data may belong to another user.
const came = peekAnswer<User>("GET", "/users/me");
if (came) assignOwner(came.id);

/** The user must set up a second factor before doing anything else. */
export const mustEnroll = signal(false);

/** Assigns the cached data to this user. A page that has already shown another user's data reloads. */
const takePlace = ({ id }: User): void => {
  if (assignOwner(id)) location.reload();
};

/** Loads the session once, in parallel with the first lists. */
export const readSession = async (): Promise<void> => {
  try {
    const [user, of, { organization_roles }] = await Promise.all([
      call("GET /users/me"),
      call("GET /organizations"),
      call("GET /users/me/roles"),
    ]);
    takePlace(user);
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
      mustEnroll.value = true;
      const user = await call("GET /users/me");
      takePlace(user);
      me.value = user;
    } else throw error;
  }
};

/** The user's roles, as one comparable string. Organizations without a role are left out. */
const roles = (): string =>
  JSON.stringify([me.value?.roles, Object.entries(organizationRoles.value).filter(([, names]) => names.length > 0)]);
/** The user's memberships, and what they can see of other organizations. */
const places = (): string =>
  JSON.stringify([Object.keys(organizationRoles.value), organizations.value.map(({ id }) => id)]);
/** Several requests of a page can be refused together; permissions are reloaded once for all of them. */
const REST_MS = 5_000;

/**
 * Applies changes to roles and memberships immediately: the live list reports them, and so does a refused request. Redirects to the sign-in
 * page, which returns here afterwards, when the session ends elsewhere: immediately if in another tab, otherwise when a stream is refused.
 */
export const watchSession = (): (() => void) => {
  let isAsking = false;
  let isHeard = false;
  let asked = 0;
  const look = (): void => {
    if (isAsking || !me.value) return;
    isAsking = true;
    isHeard = false;
    asked = Date.now();
    const [before, at] = [roles(), places()];
    // A call without a valid session redirects to the sign-in page.
    void readSession()
      .then(() => {
        const areOthers = roles() !== before;
        if (!me.value || (!areOthers && places() === at)) return;
        say(areOthers ? "Your roles have changed" : "Your organizations have changed");
        readShown();
      })
      .catch(() => undefined)
      .finally(() => {
        isAsking = false;
        // A change arrived during the load.
        if (isHeard) look();
      });
  };
  const heard = (): void => {
    isHeard = true;
    look();
  };
  const refused = (): void => {
    if (Date.now() - asked >= REST_MS) look();
  };
  const stored = ({ key, newValue }: StorageEvent): void => {
    if (key === HINT && newValue === null) toSignIn();
    if (key !== OWNER) return;
    if (newValue === null) forgetInTab();
    else lookWhose();
  };
  addEventListener("storage", stored);
  addEventListener("pageshow", lookWhose);
  const stops = [onAccess(heard), onRefused(refused), onForbidden(refused)];
  return () => {
    removeEventListener("storage", stored);
    removeEventListener("pageshow", lookWhose);
    for (const stop of stops) stop();
  };
};

/** Reloads if another user has signed in, in another tab or while the browser kept this page asleep. */
const lookWhose = (): void => {
  if (me.value && keptOwner() !== me.value.id) location.reload();
};

/** Signs out. Throws if the server could not be reached; the user is still signed in then. */
export const signOut = async (): Promise<void> => {
  const { forgetPushed } = await import("./web-push.ts");
  await forgetPushed();
  const answer = await call("POST /users/logout").catch((error: unknown) => {
    if (!(error instanceof Problem && error.status === 401))
      throw new Error(`You are still signed in. ${formatError(error)}`);
  });
  // This also notifies other tabs that the user signed out.
  forgetPerson();
  location.assign(answer?.sign_out_url ?? "/login");
};
