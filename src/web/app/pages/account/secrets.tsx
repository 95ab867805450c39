// Secrets: values that the user's workspaces receive as environment variables or files. A value is typed once and never shown again.
import { useSignal } from "@preact/signals";
import type { UserSecret } from "#schema/users/user-secret.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Button } from "../../parts/button.tsx";
import { confirmAction } from "../../parts/dialog.tsx";
import { Empty, Failed } from "../../parts/empty.tsx";
import { Area, Field } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { setTo } from "../../parts/handlers.ts";
import { Menu } from "../../parts/menu.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { Time } from "../../parts/time.tsx";
import { showToast } from "../../shell/toasts.tsx";

export const Secrets = () => {
  const { state, reload } = useResource("secrets", () => call("GET /users/:user/secrets", { path: { user: "me" } }));
  const openForm = useSignal<{ readonly secret?: UserSecret } | undefined>(undefined);
  const { data, error } = state.value;
  if (error) return <Failed title="Can't load your secrets" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={6} />;
  const confirmDelete = ({ name }: UserSecret): void =>
    confirmAction({
      title: `Delete ${name}`,
      text: "Running programs keep the value until they exit. Files that contain it are removed unless they were changed.",
      confirmLabel: "Delete secret",
      cancelLabel: "Keep it",
      isDanger: true,
      act: async () => {
        await call("DELETE /users/:user/secrets/:secret", { path: { user: "me", secret: name } });
        await reload();
        showToast(`${name} deleted`);
      },
    });
  const addButton = (
    <Button look="primary" icon="plus" onPress={setTo(openForm, {})}>
      Add secret
    </Button>
  );
  return (
    <section class="stack" aria-labelledby="secrets">
      <div class="head">
        <h2 id="secrets">Your secrets</h2>
        {data.length > 0 && <span class="push">{addButton}</span>}
      </div>
      {data.length === 0 ? (
        <Empty
          icon="key"
          title="No secrets yet"
          text="Your workspaces get each secret as an environment variable or a file. Anyone who can use one of your workspaces can read it."
        >
          {addButton}
        </Empty>
      ) : (
        <ul class="panel list">
          {data.map((secret) => (
            <li key={secret.id} class="item">
              <span class="med clip mono">{secret.name}</span>
              <Menu
                label={`More for ${secret.name}`}
                small
                items={() => [
                  { icon: "pen", label: "Edit…", act: setTo(openForm, { secret }) },
                  { icon: "trash", label: "Delete…", isDanger: true, act: () => confirmDelete(secret) },
                ]}
              />
              <span class="small mut">
                {formatTargets(secret)} {secret.description} Changed <Time at={secret.updated_at} ago />.
              </span>
            </li>
          ))}
        </ul>
      )}
      {openForm.value && (
        <SecretForm
          secret={openForm.value.secret}
          onClose={() => {
            openForm.value = undefined;
            void reload();
          }}
        />
      )}
    </section>
  );
};

const formatTargets = ({ env_name, file_path }: UserSecret): string => {
  const targets = [env_name && `$${env_name}`, file_path].filter(Boolean);
  return targets.length === 0 ? "Not available in workspaces." : `Available as ${targets.join(" and ")}.`;
};

const SecretForm = ({ secret, onClose }: { secret: UserSecret | undefined; onClose: () => void }) => (
  <FormDialog
    title={secret ? `Edit ${secret.name}` : "Add secret"}
    thing={secret?.name}
    submitLabel={secret ? "Save secret" : "Add secret"}
    onClose={onClose}
    act={async ({ name = "", value = "", ...fields }) => {
      const { env_name = "", file_path = "", description = "" } = fields;
      const details = { env_name, file_path, description };
      if (secret) {
        const path = { user: "me", secret: secret.name };
        await call("PATCH /users/:user/secrets/:secret", {
          path,
          body: { ...details, ...(value === "" ? {} : { value }) },
        });
      } else await call("POST /users/:user/secrets", { path: { user: "me" }, body: { name, value, ...details } });
      showToast(`${secret?.name ?? name} saved`);
    }}
  >
    {(problems) => (
      <>
        {!secret && (
          <Field
            label="Name"
            name="name"
            required
            maxLength={64}
            spellcheck={false}
            autocapitalize="none"
            placeholder="registry"
            error={problems.name}
          />
        )}
        <Area
          label="Value"
          name="value"
          rows={3}
          required={!secret}
          spellcheck={false}
          autocomplete="off"
          hint={secret ? "Leave empty to keep the current value." : "You won't be able to see it again."}
          error={problems.value}
        />
        <Field
          label="Variable"
          name="env_name"
          maxLength={128}
          spellcheck={false}
          autocapitalize="none"
          placeholder="REGISTRY_TOKEN"
          defaultValue={secret?.env_name}
          error={problems.env_name}
        />
        <Field
          label="File"
          name="file_path"
          maxLength={1024}
          spellcheck={false}
          autocapitalize="none"
          placeholder="~/.config/registry/token"
          defaultValue={secret?.file_path}
          hint="An absolute path, or one that starts with ~/."
          error={problems.file_path}
        />
        <Field
          label="Description"
          name="description"
          maxLength={1024}
          defaultValue={secret?.description}
          error={problems.description}
        />
      </>
    )}
  </FormDialog>
);
