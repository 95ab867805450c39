// The form that creates a workspace from a repository link: what the server found there, the remaining choices, and one button.

import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { CREDENTIALS_PROBLEM, hasCredentials, parseRepositoryAddress } from "#base/links/repository-address.ts";
import type { RepositoryAsked, RepositoryFound, RepositoryPlan } from "#schema/templates/repository.ts";
import type { DeployKey } from "#schema/users/deploy-key.ts";
import { call, formatError, Problem } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Button } from "../../parts/button.tsx";
import { Failed } from "../../parts/empty.tsx";
import { NameField, Options, Select, Switch } from "../../parts/field.tsx";
import { capitalize } from "../../parts/form-texts.ts";
import { submitWith, writeTo } from "../../parts/handlers.ts";
import { Icon } from "../../parts/icon.tsx";
import { LinkAccount } from "../../parts/link-account.tsx";
import { RepositoryFields, toRepository } from "../../parts/repository-fields.tsx";
import { Secret } from "../../parts/secret.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { Frame } from "../../shell/frame.tsx";
import { onKeys } from "../../shell/keys.ts";
import { showError } from "../../shell/toasts.tsx";
import { findFreeName } from "./free-name.ts";
import { toRepositoryUrl } from "./link.ts";

const CRUMBS = [{ label: "Workspaces", href: "/workspaces" }];

type RepositoryProps = { readonly repository: RepositoryAsked; readonly name?: string | undefined };

export const OpenRepository = ({ repository: asked, name }: RepositoryProps) => {
  const typedRepository = useSignal(asked);
  const address = parseRepositoryAddress(asked.url);
  if (!address) {
    return (
      <Frame title="Open a repository" crumbs={CRUMBS}>
        <div class="page narrow stack loose">
          <RepositoryField
            value={typedRepository}
            error={
              asked.url === ""
                ? undefined
                : "This is not a link to a Git repository, such as https://github.com/acme/app."
            }
          />
        </div>
      </Frame>
    );
  }
  return <RepositoryForm key={JSON.stringify(asked)} repository={asked} name={name ?? findFreeName(address.name)} />;
};

type FieldProps = { readonly value: Signal<RepositoryAsked>; readonly error?: string | undefined };

/** Asks for a repository and branch, and opens its page. */
export const RepositoryField = ({ value, error }: FieldProps) => {
  const { route } = useLocation();
  const linkProblem = useSignal("");
  const shownError = linkProblem.value || error;
  return (
    <form
      class="stack"
      aria-label="Open a repository"
      onSubmit={submitWith(() => {
        const repository = toRepository(value.value);
        // The link would be stored in the browser's history.
        linkProblem.value = repository && hasCredentials(repository.url) ? `The link ${CREDENTIALS_PROBLEM}.` : "";
        if (repository && linkProblem.value === "") route(toRepositoryUrl(repository));
      })}
    >
      <RepositoryFields
        value={value}
        hint="A link to a repository, a branch, a pull request or a folder on GitHub, GitLab, Gitea or Bitbucket. Slipway sets up what the repository asks for."
        problems={shownError ? { repository: shownError } : {}}
      />
      <div class="line">
        <Button type="submit">Open repository</Button>
      </div>
    </form>
  );
};

const RepositoryForm = ({ repository, name: initialName }: { repository: RepositoryAsked; name: string }) => {
  const { route } = useLocation();
  const typedRepository = useSignal(repository);
  const name = useSignal(initialName);
  const full_history = useSignal(repository.full_history ?? false);
  const template = useSignal("");
  const problem = useSignal("");
  const nameProblem = useSignal("");
  const { state, reload } = useResource(`repository ${JSON.stringify(repository)}`, () =>
    call("POST /repositories/read", { body: { repository } }),
  );
  const { data: result, error, loading } = state.value;
  const canCreate = result?.plan !== undefined && result.provisioner !== undefined;
  const isCreating = useRef(false);
  const create = async (): Promise<void> => {
    if (!canCreate || isCreating.current) return;
    isCreating.current = true;
    problem.value = "";
    nameProblem.value = "";
    try {
      const requested = { ...repository, full_history: full_history.value };
      const template_id = template.value;
      const body = { name: name.value.trim(), repository: requested, ...(template_id ? { template_id } : {}) };
      const created = await call("POST /users/:user/workspaces", { path: { user: "me" }, body });
      route(`/workspaces/${created.id}`);
    } catch (failure) {
      const violations = failure instanceof Problem ? (failure.body.validations ?? []) : [];
      const nameViolation = violations.find(({ field }) => field === "name");
      if (nameViolation) nameProblem.value = capitalize(nameViolation.detail);
      else problem.value = formatError(failure);
    } finally {
      isCreating.current = false;
    }
  };
  useEffect(() => onKeys("mod+enter", () => void create()), [canCreate]);
  return (
    <Frame
      title="Open a repository"
      crumbs={CRUMBS}
      actions={
        <Button look="primary" disabled={!canCreate} keys="Ctrl ⏎" onPress={create}>
          Create workspace
        </Button>
      }
    >
      <div class="page narrow stack loose">
        <RepositoryField value={typedRepository} />
        {error !== undefined && !result && <Failed title="Can't read the repository" error={error} reload={reload} />}
        {loading && !result && <Skeleton lines={5} />}
        {result && result.problem !== "" && <AccessRefused result={result} url={repository.url} reload={reload} />}
        {result?.plan && (
          <form class="split" onSubmit={submitWith(create)}>
            <div class="stack loose">
              {problem.value && <Warning text={problem.value} />}
              {!result.provisioner && (
                <Warning text="This server can't open repositories: Docker isn't reachable, and local workspaces are turned off. Ask an administrator to set docker_host." />
              )}
              <NameField
                label="Name"
                value={name.value}
                maxLength={32}
                hint="Letters, digits and hyphens."
                error={nameProblem.value}
                onInput={(event) => {
                  name.value = event.currentTarget.value;
                  nameProblem.value = "";
                }}
              />
              {result.templates.length > 0 && (
                <Options
                  label="Open with"
                  value={template.value}
                  choices={[
                    { value: "", label: "The repository's own setup" },
                    ...result.templates.map(({ id, display_name }) => ({ value: id, label: display_name })),
                  ]}
                  onPick={writeTo(template)}
                />
              )}
              {result.plan.choices.length > 1 && (
                <Select
                  label="Configuration"
                  value={result.plan.configuration ?? ""}
                  choices={result.plan.choices.map((path) => ({ value: path, label: path }))}
                  hint="This repository has several configurations."
                  onPick={(configuration) => route(toRepositoryUrl({ ...repository, configuration }))}
                />
              )}
              <Switch
                label="Full history"
                note="Clone all commits instead of only the latest."
                checked={full_history.value}
                onSwitch={(isOn) => {
                  full_history.value = isOn;
                }}
              />
              <MissingSecrets result={result} />
              <IgnoredSettings result={result} />
            </div>
            <PlanSummary plan={result.plan} provisioner={result.provisioner} />
          </form>
        )}
      </div>
    </Frame>
  );
};

const Warning = ({ text }: { text: string }) => (
  <p class="banner box bad" role="alert">
    <Icon name="warn" />
    <span>{text}</span>
  </p>
);

type AccessRefusedProps = {
  readonly result: RepositoryFound;
  readonly url: string;
  readonly reload: () => Promise<void>;
};

const AccessRefused = ({ result, url, reload }: AccessRefusedProps) => {
  const createDeployKey = async (): Promise<void> => {
    try {
      await call("POST /users/:user/deploy-keys", { path: { user: "me" }, body: { url } });
      await reload();
    } catch (error) {
      showError(error);
    }
  };
  const { account, deploy_key } = result;
  return (
    <div class="stack">
      <Warning text={result.problem} />
      <div class="line wrap">
        {account && !account.linked && (
          <LinkAccount id={account.id} name={account.display_name} onLinked={reload}>
            Link {account.display_name}
          </LinkAccount>
        )}
        {result.may_create_deploy_key && <Button onPress={createDeployKey}>Create deploy key</Button>}
      </div>
      {deploy_key && <NewDeployKey deployKey={deploy_key} reload={reload} />}
    </div>
  );
};

const MissingSecrets = ({ result }: { result: RepositoryFound }) =>
  result.missing_secrets.length === 0 ? null : (
    <p class="banner box attn" role="status">
      <Icon name="key" />
      <span>
        The repository needs secrets that you don't have: {result.missing_secrets.join(", ")}. Add them under{" "}
        <a href="/account/secrets">Secrets</a>, or later.
      </span>
    </p>
  );

const IgnoredSettings = ({ result }: { result: RepositoryFound }) =>
  result.notes.length === 0 ? null : (
    <section class="panel">
      <header>
        <h2>Ignored settings</h2>
      </header>
      <div class="body">
        <dl class="kv small">
          {result.notes.map(({ property, reason }) => [
            <dt key={`${property} ${reason}`} class="mono">
              {property}
            </dt>,
            <dd key={`${property} ${reason} why`}>{reason}</dd>,
          ])}
        </dl>
      </div>
    </section>
  );

const SOURCES: Readonly<Record<RepositoryPlan["source"], string>> = {
  devcontainer: "devcontainer.json",
  dockerfile: "Dockerfile",
  gitpod: ".gitpod.yml",
  devfile: "devfile.yaml",
  language: "Detected language",
};

const REF_LABELS: Readonly<Record<RepositoryPlan["ref_kind"], string>> = {
  default: "Default branch",
  branch: "Branch",
  tag: "Tag",
  commit: "Commit",
  pull_request: "Pull request",
};

const PlanSummary = ({ plan, provisioner }: { plan: RepositoryPlan; provisioner: RepositoryFound["provisioner"] }) => {
  const { lifecycle, ports, features, hints, wanted } = plan;
  const commands = Object.values(lifecycle).flat(2);
  const shortRef = plan.ref
    .replace(/^refs\/(?:heads|tags|pull|merge-requests|pull-requests)\//, "")
    .replace(/\/(?:head|from)$/, "");
  return (
    <aside class="stack loose" aria-label="Detected configuration">
      <section class="panel">
        <header>
          <h2>Detected configuration</h2>
        </header>
        <div class="body">
          <dl class="kv small">
            <dt>Repository</dt>
            <dd class="clip">{plan.url}</dd>
            <dt>{REF_LABELS[plan.ref_kind]}</dt>
            <dd>
              {plan.ref_kind === "default" ? "" : `${shortRef.slice(0, 40)} `}
              <span class="mono">{plan.commit.slice(0, 10)}</span>
            </dd>
            {plan.path && (
              <>
                <dt>Folder</dt>
                <dd class="mono">{plan.path}</dd>
              </>
            )}
            <dt>Source</dt>
            <dd>{plan.configuration ?? SOURCES[plan.source]}</dd>
            <dt>Runs as</dt>
            <dd>{provisioner === "docker" ? "a container" : "a process on the server's machine"}</dd>
            {provisioner === "docker" && (
              <>
                <dt>Image</dt>
                <dd class="mono">{plan.build ? `built from ${plan.build.dockerfile}` : plan.image}</dd>
              </>
            )}
            {features.length > 0 && (
              <>
                <dt>Features</dt>
                <dd class="mono">{features.map(({ id }) => id).join(", ")}</dd>
              </>
            )}
            {ports.length > 0 && (
              <>
                <dt>Ports</dt>
                <dd>{ports.map(({ port, label }) => `${label} (${port})`).join(", ")}</dd>
              </>
            )}
            {(wanted.cpus !== undefined || wanted.memory !== undefined) && (
              <>
                <dt>Requirements</dt>
                <dd>{[wanted.cpus && `${wanted.cpus} CPUs`, wanted.memory].filter(Boolean).join(", ")}</dd>
              </>
            )}
            {plan.extensions.length > 0 && (
              <>
                <dt>VS Code extensions</dt>
                <dd class="mono">{plan.extensions.join(", ")}</dd>
              </>
            )}
            {commands.length > 0 && (
              <>
                <dt>Commands</dt>
                <dd>
                  {commands.slice(0, 8).map(({ run }) => {
                    const line = typeof run === "string" ? run : run.join(" ");
                    return (
                      <div key={line} class="mono clip" title={line}>
                        {line}
                      </div>
                    );
                  })}
                </dd>
              </>
            )}
          </dl>
          {hints.map((hint) => (
            <p key={hint} class="small dim">
              {hint}
            </p>
          ))}
        </div>
      </section>
    </aside>
  );
};

// A deploy key that is not registered at the host yet: its public key, where to add it, and a retry button.
type NewDeployKeyProps = { readonly deployKey: DeployKey; readonly reload: () => Promise<void> };

const NewDeployKey = ({ deployKey: { url, settings_url, public_key }, reload }: NewDeployKeyProps) => (
  <section class="panel" aria-labelledby="deploy-key">
    <header>
      <h2 id="deploy-key">Deploy key</h2>
    </header>
    <div class="body stack">
      <p>
        Add this public key to the deploy keys{" "}
        {settings_url ? (
          <>
            in{" "}
            <a href={settings_url} target="_blank" rel="noreferrer">
              the repository's settings
            </a>
          </>
        ) : (
          <>
            in the settings of <span class="mono">{url}</span>
          </>
        )}
        , then try again. Give it write access if you want to push from workspaces.
      </p>
      <Secret label="Public key" text={public_key} />
    </div>
    <footer>
      <Button look="primary" onPress={reload}>
        Try again
      </Button>
    </footer>
  </section>
);
