// What is asked for when a user is added, gets roles or a password.
import { useSignal } from "@preact/signals";
import type { User } from "#schema/users/user.ts";
import { call } from "../../data/api.ts";
import { Field, NameField, NewPassword, Select } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { into } from "../../parts/handlers.ts";
import { say } from "../../shell/toasts.tsx";

const ROLES = [
  { value: "owner", label: "Owner", note: "everything" },
  { value: "user-admin", label: "User administrator", note: "people and organizations" },
  { value: "template-admin", label: "Template administrator", note: "templates and what is made from them" },
  { value: "auditor", label: "Auditor", note: "reads the audit log" },
];

export const AddUser = ({ onClose }: { onClose: () => void }) => {
  const kind = useSignal("none");
  const isPerson = kind.value === "password";
  return (
    <FormDialog
      title="Add user"
      submit="Add user"
      onClose={onClose}
      act={async ({ username = "", email = "", name = "", password = "" }) => {
        const body = isPerson
          ? { username, email, name, password }
          : { username, name, service_account: true, login_type: "none" as const };
        await call("POST /users", { body });
        say(`${username} is added`);
      }}
    >
      {(problems) => (
        <>
          <Select
            label="Who"
            value={kind.value}
            choices={[
              { value: "none", label: "A service account, for programs" },
              { value: "password", label: "A person, with a password that you choose" },
            ]}
            onPick={into(kind)}
          />
          <NameField label="Username" name="username" maxLength={32} error={problems.username} />
          {isPerson && <Field label="E-mail" name="email" type="email" required error={problems.email} />}
          <Field
            label="Name"
            name="name"
            maxLength={128}
            hint="What people call them. Optional."
            error={problems.name}
          />
          {isPerson && (
            <NewPassword
              label="Password"
              hint="Better invite people: then only they know it."
              error={problems.password}
            />
          )}
        </>
      )}
    </FormDialog>
  );
};

export const Roles = ({ user, onClose }: { user: User; onClose: () => void }) => {
  const held = user.roles.map(({ name }) => name);
  return (
    <FormDialog
      title={`Roles of ${user.username}`}
      thing={user.username}
      submit="Set roles"
      onClose={onClose}
      act={async (values) => {
        const roles = ROLES.flatMap(({ value }) => (values[value] === "on" ? [value] : []));
        await call("PUT /users/:user/roles", { path: { user: user.id }, body: { roles } });
        say(`${user.username} has other roles now`);
      }}
    >
      {() => (
        <>
          {ROLES.map(({ value, label, note }) => (
            <label key={value} class="line">
              <input type="checkbox" name={value} defaultChecked={held.includes(value)} />
              <span>
                <span class="med">{label}</span> <span class="small mut">{note}</span>
              </span>
            </label>
          ))}
          <p class="small mut">Everybody is a member: they see their own and what is shared with them.</p>
        </>
      )}
    </FormDialog>
  );
};

export const Password = ({ user, onClose }: { user: User; onClose: () => void }) => (
  <FormDialog
    title={`Password of ${user.username}`}
    thing={user.username}
    submit="Set password"
    onClose={onClose}
    act={async ({ password = "" }) => {
      await call("PUT /users/:user/password", { path: { user: user.id }, body: { password } });
      say(`${user.username} signs in with the new password`);
    }}
  >
    {(problems) => <NewPassword label="New password" hint="Their sessions end." error={problems.password} />}
  </FormDialog>
);
