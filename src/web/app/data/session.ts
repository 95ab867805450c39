// Who is signed in here.
import { computed, signal } from "@preact/signals";
import type { Organization } from "#schema/users/organization.ts";
import type { User } from "#schema/users/user.ts";
import { say } from "../shell/toasts.tsx";
import { call, onForbidden, Problem, toSignIn } from "./api.ts";
import { onRefused } from "./live-socket.ts";
import { readShown } from "./resource.ts";

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

/** What one may do here. */
const rights = (): string => JSON.stringify([me.value?.roles, organizationRoles.value]);
/** A page may ask for much that is refused; what one may do is looked at once for all of it. */
const REST_MS = 5_000;

/** Roles that were given or taken while one looks at a page count at once, when something was refused. Leads to the sign-in page, and back here, when the session has ended elsewhere: in another tab at once, else with the first stream that is refused. */
export const watchSession = (): (() => void) => {
  let isAsking = false;
  let asked = 0;
  const look = (): void => {
    if (isAsking || !me.value || Date.now() - asked < REST_MS) return;
    isAsking = true;
    asked = Date.now();
    const before = rights();
    // A call that finds that nobody is signed in leads there by itself.
    void readSession()
      .then(() => {
        if (!me.value || rights() === before) return;
        say("Your roles are others now");
        readShown();
      })
      .catch(() => undefined)
      .finally(() => {
        isAsking = false;
      });
  };
  const stored = ({ key, newValue }: StorageEvent): void => {
    if (key === HINT && newValue === null) toSignIn();
  };
  addEventListener("storage", stored);
  const stops = [onRefused(look), onForbidden(look)];
  return () => {
    removeEventListener("storage", stored);
    for (const stop of stops) stop();
  };
};

export const signOut = async (): Promise<void> => {
  const { turnPushOff } = await import("./web-push.ts");
  await turnPushOff().catch(() => {});
  await call("POST /users/logout").catch(() => {});
  // Other tabs hear of this one: by now nobody is signed in.
  localStorage.removeItem(HINT);
  location.assign("/login");
};
