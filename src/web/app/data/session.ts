// Who is signed in here.
import { computed, signal } from "@preact/signals";
import type { Organization } from "#schema/users/organization.ts";
import type { User } from "#schema/users/user.ts";
import { cameValue } from "../../browser/early.ts";
import { forgetInTab, forgetPerson, HINT, keepFor, keptOwner, OWNER } from "../../browser/kept.ts";
import { say } from "../shell/toasts.tsx";
import { call, formatError, onForbidden, Problem, toSignIn } from "./api.ts";
import { onRefused } from "./live-socket.ts";
import { readShown } from "./resource.ts";
import { onAccess } from "./workspaces.ts";

/** Undefined until known, null if no user is signed in. */
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

// Before any page reads what was kept: a page that comes with its person may be another's than the last.
const came = cameValue<User>("GET", "/users/me");
if (came) keepFor(came.id);

/** They must set up a second factor before anything else is theirs. */
export const mustEnrol = signal(false);

/** What was kept is theirs from now on; a page that has shown something of someone else starts over. */
const takePlace = ({ id }: User): void => {
  if (keepFor(id)) location.reload();
};

/** Asks once, alongside the first lists. */
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
      mustEnrol.value = true;
      const user = await call("GET /users/me");
      takePlace(user);
      me.value = user;
    } else throw error;
  }
};

/** What one may do here; an organization in which one has no role says nothing of it. */
const roles = (): string =>
  JSON.stringify([me.value?.roles, Object.entries(organizationRoles.value).filter(([, names]) => names.length > 0)]);
/** Where one belongs, and what one sees of other places. */
const places = (): string =>
  JSON.stringify([Object.keys(organizationRoles.value), organizations.value.map(({ id }) => id)]);
/** Several requests of a page can be refused; permissions are reloaded once for all of them. */
const REST_MS = 5_000;

/**
 * Roles and memberships that were given or taken while one looks at a page count immediately: the live list tells of them, and so does a
 * refusal. Leads to the sign-in page, and back here, when the session has ended elsewhere: in another tab immediately, otherwise with the first
 * stream that is refused.
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
    // A call without a valid session redirects there on its own.
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
        // Something came while it was read.
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

/** Someone else has signed in here, in another tab or while the browser kept this page asleep: this page is no longer theirs to see. */
const lookWhose = (): void => {
  if (me.value && keptOwner() !== me.value.id) location.reload();
};

/** Throws when the server has not heard of it: one is signed in still. */
export const signOut = async (): Promise<void> => {
  const { forgetPushed } = await import("./web-push.ts");
  await forgetPushed();
  const answer = await call("POST /users/logout").catch((error: unknown) => {
    if (!(error instanceof Problem && error.status === 401))
      throw new Error(`You are still signed in. ${formatError(error)}`);
  });
  // Notifies other tabs that the user signed out.
  forgetPerson();
  location.assign(answer?.sign_out_url ?? "/login");
};
