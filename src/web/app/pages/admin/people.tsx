// The users of the server: invite, give roles, suspend, set a password, delete.
import { useSignal } from "@preact/signals";
import type { Invited } from "#schema/users/invitation.ts";
import type { User } from "#schema/users/user.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { isSiteOwner, me } from "../../data/session.ts";
import { Button } from "../../parts/button.tsx";
import { confirmAction } from "../../parts/dialog.tsx";
import { Empty, Failed } from "../../parts/empty.tsx";
import { setTo, writeTextTo, writeTo } from "../../parts/handlers.ts";
import { Menu, type MenuItem } from "../../parts/menu.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { State } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";
import { showToast } from "../../shell/toasts.tsx";
import { loadInvitations, PendingInvitations } from "./invitations.tsx";
import { Invite, InviteResult } from "./invite.tsx";
import { AddUser, Password, Roles } from "./user-forms.tsx";

const MAX_PEOPLE = 500;

export const People = () => {
  const search = useSignal("");
  const { state, reload } = useResource("users", () => call("GET /users", { query: { limit: MAX_PEOPLE } }));
  const openForm = useSignal<{ readonly form: "add" | "roles" | "password"; readonly user?: User } | undefined>(
    undefined,
  );
  const invitations = useResource("invitations", loadInvitations);
  const isInviting = useSignal(false);
  const inviteResult = useSignal<Invited | undefined>(undefined);
  const close = (): void => {
    openForm.value = undefined;
    void reload();
  };
  const { data, error } = state.value;
  if (error) return <Failed title="Can't load the people" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={6} />;
  const words = search.value.toLowerCase();
  const matching = data.users.filter(({ username, name, email }) =>
    [username, name, email].some((text) => text.toLowerCase().includes(words)),
  );
  const { form, user } = openForm.value ?? {};
  return (
    <section class="stack" aria-label="People">
      <div class="line">
        <search class="search">
          <input
            aria-label="Find people"
            placeholder="Name or email"
            value={search.value}
            onInput={writeTextTo(search)}
          />
        </search>
        <span class="push line">
          <Button look="primary" icon="plus" onPress={setTo(isInviting, true)}>
            Invite people
          </Button>
          <Menu
            label="Other ways to add users"
            items={() => [{ icon: "user", label: "Add user…", act: setTo(openForm, { form: "add" }) }]}
          />
        </span>
      </div>
      <PendingInvitations list={invitations} onInvited={writeTo(inviteResult)} />
      {matching.length === 0 ? (
        <Empty icon="user" title="No matching people" text="No username, name or email address matches." />
      ) : (
        <ul class="panel list">
          {matching.map((one) => (
            <Person
              key={one.id}
              user={one}
              reload={reload}
              onEdit={(form) => {
                openForm.value = { form, user: one };
              }}
            />
          ))}
        </ul>
      )}
      {isInviting.value && (
        <Invite
          byEmail={invitations.state.value.data?.by_email ?? false}
          onClose={setTo(isInviting, false)}
          onInvited={(created) => {
            inviteResult.value = created;
            void invitations.reload();
          }}
        />
      )}
      {inviteResult.value && <InviteResult result={inviteResult.value} onClose={setTo(inviteResult, undefined)} />}
      {form === "add" && <AddUser onClose={close} />}
      {form === "roles" && user && <Roles user={user} onClose={close} />}
      {form === "password" && user && <Password user={user} onClose={close} />}
    </section>
  );
};

type PersonProps = {
  readonly user: User;
  readonly reload: () => Promise<void>;
  readonly onEdit: (form: "roles" | "password") => void;
};

const Person = ({ user, reload, onEdit }: PersonProps) => {
  const isMe = user.id === me.value?.id;
  return (
    <li class="item">
      <State kind={user.status === "suspended" ? "failed" : user.status === "active" ? "running" : "stopped"}>
        <span class="med clip">{user.name || user.username}</span>
      </State>
      <span class="line">
        {user.roles.map(({ name, display_name }) => (
          <span key={name} class="badge">
            {display_name}
          </span>
        ))}
        {user.is_service_account && <span class="badge">Service account</span>}
        {user.status === "suspended" && <span class="badge">Suspended</span>}
        {!isMe && <Menu label={`More for ${user.username}`} small items={() => listItems(user, reload, onEdit)} />}
      </span>
      <span class="sub clip">
        {[user.username, user.email].filter(Boolean).join(", ")}
        {user.last_seen_at ? (
          <>
            , last seen <Time at={user.last_seen_at} ago />
          </>
        ) : (
          ", never signed in"
        )}
      </span>
    </li>
  );
};

const listItems = (user: User, reload: () => Promise<void>, onEdit: PersonProps["onEdit"]): MenuItem[] => [
  ...(isSiteOwner.value ? [{ icon: "shield" as const, label: "Roles…", act: () => onEdit("roles") }] : []),
  ...(user.login_type === "password"
    ? [
        { icon: "key" as const, label: "Set password…", act: () => onEdit("password") },
        { icon: "restart" as const, label: "Reset second factor", act: () => resetFactors(user) },
      ]
    : []),
  ...(user.login_type === "oidc"
    ? [{ icon: "key" as const, label: "Remove sign-in link", act: () => removeLinks(user) }]
    : []),
  user.status === "suspended"
    ? { icon: "play", label: "Activate", act: () => setStatus(user, "activate", reload) }
    : { icon: "stop", label: "Suspend", act: () => setStatus(user, "suspend", reload) },
  { icon: "trash", label: "Delete…", isDanger: true, act: () => confirmDelete(user, reload) },
];

const setStatus = async (user: User, status: "activate" | "suspend", reload: () => Promise<void>): Promise<void> => {
  await call("PUT /users/:user/status/:status", { path: { user: user.id, status } });
  showToast(status === "suspend" ? `${user.username} suspended` : `${user.username} activated`);
  await reload();
};

const resetFactors = async (user: User): Promise<void> => {
  await call("DELETE /users/:user/factors", { path: { user: user.id } });
  showToast(`${user.username} can now sign in with only a password`);
};

const removeLinks = async (user: User): Promise<void> => {
  await call("DELETE /users/:user/oidc-links", { path: { user: user.id } });
  showToast(`The next verified sign-in as ${user.email} is linked to this account`);
};

const confirmDelete = async (user: User, reload: () => Promise<void>): Promise<void> =>
  confirmAction({
    title: `Delete ${user.username}`,
    text: "Their tokens and sessions are revoked immediately. The audit log keeps their activity.",
    confirmLabel: "Delete user",
    cancelLabel: "Keep them",
    isDanger: true,
    act: async () => {
      await call("DELETE /users/:user", { path: { user: user.id } });
      showToast(`${user.username} deleted`);
      await reload();
    },
  });
