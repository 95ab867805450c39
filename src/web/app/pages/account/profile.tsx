// The user's public profile, and their appearance settings.
import { useSignal } from "@preact/signals";
import { call, formatError, Problem } from "../../data/api.ts";
import { chooseTerminalFont, chooseTheme, type TerminalFont, terminalFont } from "../../data/looks.ts";
import { me } from "../../data/session.ts";
import { Button } from "../../parts/button.tsx";
import { Field, Options, Select } from "../../parts/field.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { Time } from "../../parts/time.tsx";
import { type Theme, theme } from "../../shell/theme.ts";
import { showError, showToast } from "../../shell/toasts.tsx";

const THEMES = [
  { value: "system", label: "System" },
  { value: "light", label: "Light" },
  { value: "dark", label: "Dark" },
];

const FONTS: readonly { readonly value: TerminalFont; readonly label: string }[] = [
  { value: "", label: "System font" },
  { value: "fira-code", label: "Fira Code" },
  { value: "geist-mono", label: "Geist Mono" },
  { value: "ibm-plex-mono", label: "IBM Plex Mono" },
  { value: "jetbrains-mono", label: "JetBrains Mono" },
  { value: "source-code-pro", label: "Source Code Pro" },
];

export const Profile = () => {
  const problems = useSignal<Readonly<Record<string, string>>>({});
  const user = me.value;
  if (!user) return <Skeleton lines={4} />;
  const save = async (form: HTMLFormElement): Promise<void> => {
    const { username = "", name = "" } = Object.fromEntries(new FormData(form)) as Record<string, string>;
    try {
      me.value = await call("PUT /users/me/profile", { body: { username, name } });
      problems.value = {};
      showToast("Profile saved");
    } catch (error) {
      const fields = error instanceof Problem ? (error.body.validations ?? []) : [];
      problems.value =
        fields.length > 0
          ? Object.fromEntries(fields.map(({ field, detail }) => [field, detail]))
          : { form: formatError(error) };
    }
  };
  return (
    <>
      <section class="panel" aria-labelledby="profile">
        <header>
          <h2 id="profile">Profile</h2>
        </header>
        <form
          class="body stack"
          onSubmit={(event) => {
            event.preventDefault();
            void save(event.currentTarget);
          }}
        >
          <Field
            label="Name"
            name="name"
            maxLength={128}
            defaultValue={user.name}
            autocomplete="name"
            hint="Optional."
            error={problems.value.name}
          />
          <Field
            label="Username"
            name="username"
            required
            maxLength={32}
            defaultValue={user.username}
            autocomplete="username"
            autocapitalize="none"
            spellcheck={false}
            hint="Used in workspace addresses."
            error={problems.value.username}
          />
          {problems.value.form && (
            <p class="t-bad" role="alert">
              {problems.value.form}
            </p>
          )}
          <div>
            <Button look="primary" type="submit">
              Save profile
            </Button>
          </div>
        </form>
      </section>
      <dl class="kv">
        {user.email && (
          <>
            <dt>Email</dt>
            <dd class="clip">{user.email}</dd>
          </>
        )}
        <dt>Roles</dt>
        <dd>{["Member", ...user.roles.map(({ display_name }) => display_name)].join(", ")}</dd>
        <dt>Joined</dt>
        <dd>
          <Time at={user.created_at} ago />
        </dd>
      </dl>
      <Options
        label="Theme"
        value={theme.value}
        choices={THEMES}
        hint="On all devices."
        onPick={(value) => void chooseTheme(value as Theme).catch(showError)}
      />
      <Select
        label="Terminal font"
        value={terminalFont.value}
        choices={FONTS}
        onPick={(value) => void chooseTerminalFont(value as TerminalFont).catch(showError)}
      />
    </>
  );
};
