// The account's dotfiles: a repository that all of the user's workspaces install at each start.
import { useSignal } from "@preact/signals";
import type { Dotfiles as Chosen } from "#schema/users/dotfiles.ts";
import { call, formatError, Problem } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Button } from "../../parts/button.tsx";
import { Failed } from "../../parts/empty.tsx";
import { Field } from "../../parts/field.tsx";
import { submitWith } from "../../parts/handlers.ts";
import { Skeleton } from "../../parts/skeleton.tsx";
import { showError, showToast } from "../../shell/toasts.tsx";

const path = { user: "me" };

export const Dotfiles = () => {
  const { state, reload } = useResource("dotfiles", () => call("GET /users/:user/dotfiles", { path }));
  const { data, error } = state.value;
  if (error) return <Failed title="Can't load your dotfiles" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={5} />;
  return (
    <section class="panel" aria-labelledby="dotfiles">
      <header>
        <h2 id="dotfiles">Dotfiles</h2>
      </header>
      <div class="body stack">
        <p>
          Your workspaces clone this repository and install it before their start scripts. Changes apply from the next
          start. A template can turn this off for its workspaces.
        </p>
        <DotfilesForm key={JSON.stringify(data)} dotfiles={data} reload={reload} />
      </div>
    </section>
  );
};

const FIELDS = ["url", "branch", "install_command"] as const;
type Problems = Partial<Record<(typeof FIELDS)[number] | "other", string>>;

const toProblems = (error: unknown): Problems => {
  const validations = error instanceof Problem ? (error.body.validations ?? []) : [];
  const problems = Object.fromEntries(validations.map(({ field, detail }) => [field, detail])) as Problems;
  return FIELDS.some((name) => problems[name]) ? problems : { other: formatError(error) };
};

const DotfilesForm = ({ dotfiles, reload }: { dotfiles: Chosen; reload: () => Promise<void> }) => {
  const problems = useSignal<Problems>({});
  const save = async (form: HTMLFormElement): Promise<void> => {
    const {
      url = "",
      branch = "",
      install_command = "",
    } = Object.fromEntries(new FormData(form)) as Record<string, string>;
    try {
      await call("PUT /users/:user/dotfiles", { path, body: { url, branch, install_command } });
      problems.value = {};
      await reload();
      showToast("Dotfiles saved");
    } catch (error) {
      problems.value = toProblems(error);
    }
  };
  const remove = async (): Promise<void> => {
    try {
      await call("DELETE /users/:user/dotfiles", { path });
      await reload();
      showToast("Dotfiles removed. Files in your workspaces stay.");
    } catch (error) {
      showError(error);
    }
  };
  return (
    <form class="stack" aria-label="Dotfiles" onSubmit={submitWith(save)}>
      <Field
        label="Repository"
        name="url"
        required
        maxLength={2_048}
        spellcheck={false}
        autocapitalize="none"
        placeholder="https://github.com/ada/dotfiles"
        defaultValue={dotfiles.url}
        hint="For a private repository, link your account at the host, or use the SSH address and add your Git key there."
        error={problems.value.url}
      />
      <Field
        label="Branch"
        name="branch"
        maxLength={255}
        spellcheck={false}
        autocapitalize="none"
        defaultValue={dotfiles.branch}
        hint="Leave empty for the default branch."
        error={problems.value.branch}
      />
      <Field
        label="Install command"
        name="install_command"
        maxLength={1_024}
        spellcheck={false}
        autocapitalize="none"
        defaultValue={dotfiles.install_command}
        hint={
          <>
            Leave empty to run the repository's <code>install.sh</code>, <code>bootstrap.sh</code> or{" "}
            <code>setup.sh</code>, or to link its dotfiles into your home directory.
          </>
        }
        error={problems.value.install_command}
      />
      {problems.value.other && (
        <p class="t-bad" role="alert">
          {problems.value.other}
        </p>
      )}
      <div class="line wrap">
        <Button look="primary" type="submit">
          Save dotfiles
        </Button>
        {dotfiles.url !== "" && <Button onPress={remove}>Remove dotfiles</Button>}
      </div>
    </form>
  );
};
