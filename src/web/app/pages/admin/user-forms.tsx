// The forms for adding a user, changing roles and setting a password.
import { useSignal } from "@preact/signals";
import type { User } from "#schema/users/user.ts";
import { call } from "../../data/api.ts";
import { Field, NameField, NewPassword, Select } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { writeTo } from "../../parts/handlers.ts";
import { showToast } from "../../shell/toasts.tsx";

const ROLES = [
  { value: "owner", label: "Owner", note: "everything" },
  { value: "user-admin", label: "User administrator", note: "people and organizations" },
  { value: "template-admin", label: "Template administrator", note: "templates and workspaces created from them" },
  { value: "auditor", label: "Auditor", note: "reads the audit log" },
];

export const AddUser = ({ onClose }: { onClose: () => void }) => {
  const kind = useSignal("none");
  const isPerson = kind.value === "password";
  return (
    <FormDialog
      title="Add user"
      submitLabel="Add user"
      onClose={onClose}
      act={async ({ username = "", email = "", name = "", password = "" }) => {
        const body = isPerson
          ? { username, email, name, password }
          : { username, name, service_account: true, login_type: "none" as const };
        await call("POST /users", { body });
        showToast(`${username} added`);
      }}
    >
      {(problems) => (
        <>
          <Select
            label="Type"
            value={kind.value}
            choices={[
              { value: "none", label: "Service account" },
              { value: "password", label: "User with a password you choose" },
            ]}
            onPick={writeTo(kind)}
          />
          <NameField label="Username" name="username" maxLength={32} error={problems.username} />
          {isPerson && <Field label="Email" name="email" type="email" required error={problems.email} />}
          <Field label="Name" name="name" maxLength={128} hint="Optional." error={problems.name} />
          {isPerson && (
            <NewPassword
              label="Password"
              hint="Invite people instead, so that only they know their password."
              error={problems.password}
            />
          )}
        </>
      )}
    </FormDialog>
  );
};

export const Roles = ({ user, onClose }: { user: User; onClose: () => void }) => {
  const currentRoles = user.roles.map(({ name }) => name);
  return (
    <FormDialog
      title={`Roles of ${user.username}`}
      thing={user.username}
      submitLabel="Set roles"
      onClose={onClose}
      act={async (values) => {
        const roles = ROLES.flatMap(({ value }) => (values[value] === "on" ? [value] : []));
        await call("PUT /users/:user/roles", { path: { user: user.id }, body: { roles } });
        showToast(`Changed the roles of ${user.username}`);
      }}
    >
      {() => (
        <>
          {ROLES.map(({ value, label, note }) => (
            <label key={value} class="line">
              <input type="checkbox" name={value} defaultChecked={currentRoles.includes(value)} />
              <span>
                <span class="med">{label}</span> <span class="small mut">{note}</span>
              </span>
            </label>
          ))}
          <p class="small mut">Every user is a member and sees their own resources and those shared with them.</p>
        </>
      )}
    </FormDialog>
  );
};

export const Password = ({ user, onClose }: { user: User; onClose: () => void }) => (
  <FormDialog
    title={`Password of ${user.username}`}
    thing={user.username}
    submitLabel="Set password"
    onClose={onClose}
    act={async ({ password = "" }) => {
      await call("PUT /users/:user/password", { path: { user: user.id }, body: { password } });
      showToast(`Changed the password of ${user.username}`);
    }}
  >
    {(problems) => <NewPassword label="New password" hint="Their sessions are revoked." error={problems.password} />}
  </FormDialog>
);
