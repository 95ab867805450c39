// The form for creating or changing an application.
import type { OAuth2App } from "#schema/oauth2/app.ts";
import { call } from "../../../data/api.ts";
import { Field } from "../../../parts/field.tsx";
import { FormDialog } from "../../../parts/form-dialog.tsx";

type FormProps = {
  /** Undefined for a new application. */
  readonly app: OAuth2App | undefined;
  readonly onSaved: (app: OAuth2App) => Promise<void>;
  readonly onClose: () => void;
};

export const ApplicationForm = ({ app, onSaved, onClose }: FormProps) => (
  <FormDialog
    title={app ? `Edit ${app.name}` : "Add application"}
    thing={app?.name}
    submitLabel={app ? "Save application" : "Add application"}
    onClose={onClose}
    act={async ({ name = "", callback_url = "", icon = "" }) => {
      const body = { name, callback_url, icon };
      await onSaved(
        app
          ? await call("PUT /oauth2-provider/apps/:oauth2_app", { path: { oauth2_app: app.id }, body })
          : await call("POST /oauth2-provider/apps", { body }),
      );
    }}
  >
    {(problems) => (
      <>
        <Field label="Name" name="name" required maxLength={64} defaultValue={app?.name} error={problems.name} />
        <Field
          label="Callback URL"
          name="callback_url"
          required
          maxLength={1024}
          spellcheck={false}
          autocapitalize="none"
          placeholder="https://reviews.example.com/callback"
          defaultValue={app?.callback_url}
          hint="Redirect URI: https, or http on a loopback address."
          error={problems.callback_url}
        />
        <Field
          label="Icon"
          name="icon"
          maxLength={8192}
          spellcheck={false}
          autocapitalize="none"
          defaultValue={app?.icon}
          hint="Image URL, shown on the consent page. Optional."
          error={problems.icon}
        />
      </>
    )}
  </FormDialog>
);
