// Applications that may ask people for access: made here with their secrets, or registered by themselves; deleted with all they were granted.
import { useSignal } from "@preact/signals";
import type { OAuth2App } from "#schema/oauth2/app.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Button } from "../../parts/button.tsx";
import { ask } from "../../parts/dialog.tsx";
import { Empty, Failed } from "../../parts/empty.tsx";
import { Field } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { sets } from "../../parts/handlers.ts";
import { Menu } from "../../parts/menu.tsx";
import { Secret } from "../../parts/secret.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { Time } from "../../parts/time.tsx";
import { say } from "../../shell/toasts.tsx";

type Made = { readonly app: OAuth2App; readonly secret: string };

const makeSecret = async (app: OAuth2App): Promise<Made> => {
  const path = { oauth2_app: app.id };
  const { client_secret_full } = await call("POST /oauth2-provider/apps/:oauth2_app/secrets", { path });
  return { app, secret: client_secret_full };
};

export const Applications = () => {
  const { state, again } = useResource("applications", () => call("GET /oauth2-provider/apps"));
  const isMaking = useSignal(false);
  const made = useSignal<Made | undefined>(undefined);
  const { data, error } = state.value;
  if (error) return <Failed what="The applications cannot be read" error={error} again={again} />;
  if (!data) return <Skeleton lines={6} />;
  const remove = (app: OAuth2App): void =>
    ask({
      title: `Delete ${app.name}`,
      text: "Everybody who has allowed it something takes that back with it, and what it has open ends.",
      yes: "Delete application",
      no: "Keep it",
      isDanger: true,
      act: async () => {
        await call("DELETE /oauth2-provider/apps/:oauth2_app", { path: { oauth2_app: app.id } });
        made.value = undefined;
        await again();
        say(`${app.name} is deleted`);
      },
    });
  const another = async (app: OAuth2App): Promise<void> => {
    made.value = await makeSecret(app);
  };
  const add = (
    <Button look="primary" icon="plus" onPress={sets(isMaking, true)}>
      Add application
    </Button>
  );
  return (
    <section class="stack" aria-labelledby="applications">
      <div class="head">
        <h2 id="applications">Applications</h2>
        {data.length > 0 && <span class="push">{add}</span>}
      </div>
      {made.value && <NewSecret made={made.value} />}
      {data.length === 0 ? (
        <Empty
          icon="shield"
          title="No applications"
          text="Programs that ask people for access. They can where the setting oauth2_provider is on."
        >
          {add}
        </Empty>
      ) : (
        <ul class="panel list">
          {data.map((app) => (
            <Row key={app.id} app={app} another={another} remove={remove} />
          ))}
        </ul>
      )}
      {isMaking.value && (
        <NewApplication
          onClose={sets(isMaking, false)}
          onMade={async (one) => {
            made.value = one;
            await again();
          }}
        />
      )}
    </section>
  );
};

const NewSecret = ({ made: { app, secret } }: { made: Made }) => (
  <div class="panel stack pad" role="status">
    <p>
      The secret of {app.name}, for the client id <code>{app.id}</code>. Copy it now: it is shown only this once.
    </p>
    <Secret label="Client secret" text={secret} />
  </div>
);

type RowProps = {
  readonly app: OAuth2App;
  readonly another: (app: OAuth2App) => Promise<void>;
  readonly remove: (app: OAuth2App) => void;
};

const Row = ({ app, another, remove }: RowProps) => (
  <li class="item">
    <span class="med clip">{app.name}</span>
    <Menu
      label={`More for ${app.name}`}
      small
      items={() => [
        ...(app.token_endpoint_auth_method === "none"
          ? []
          : [{ icon: "key" as const, label: "New secret", act: () => another(app) }]),
        { icon: "trash", label: "Delete…", isDanger: true, act: () => remove(app) },
      ]}
    />
    <span class="small mut">
      {app.self_registered ? "Registered itself" : "Made here"}, sends people back to {app.redirect_uris.join(", ")},
      used <Time at={app.updated_at} />
    </span>
  </li>
);

type NewProps = { readonly onClose: () => void; readonly onMade: (made: Made) => Promise<void> };

const NewApplication = ({ onClose, onMade }: NewProps) => (
  <FormDialog
    title="Add application"
    submit="Add application"
    onClose={onClose}
    act={async ({ name = "", callback_url = "" }) => {
      const app = await call("POST /oauth2-provider/apps", { body: { name, callback_url } });
      await onMade(await makeSecret(app));
    }}
  >
    {(problems) => (
      <>
        <Field label="Name" name="name" required maxLength={64} error={problems.name} />
        <Field
          label="Callback URL"
          name="callback_url"
          required
          maxLength={1024}
          spellcheck={false}
          autocapitalize="none"
          placeholder="https://reviews.example.com/callback"
          hint="Where people are sent back to: https, or http on their own machine."
          error={problems.callback_url}
        />
      </>
    )}
  </FormDialog>
);
