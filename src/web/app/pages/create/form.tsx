// The form below the template cards.

import { type Signal, useComputed, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { parseRepositoryAddress } from "#base/links/repository-address.ts";
import type { RepositoryAsked } from "#schema/templates/repository.ts";
import type { Template } from "#schema/templates/template.ts";
import type { Preset } from "#schema/templates/template-version.ts";
import type { WorkspaceSummary } from "#schema/workspaces/workspace-watch.ts";
import { call, formatError, Problem } from "../../data/api.ts";
import { FormSocket, type Values } from "../../data/form-socket.ts";
import { setName } from "../../data/names.ts";
import { useResource } from "../../data/resource.ts";
import { formatRunsOn } from "../../data/runs-on.ts";
import { me } from "../../data/session.ts";
import { workspaces } from "../../data/workspaces.ts";
import { copyText } from "../../parts/as-command.tsx";
import { Button, IconButton } from "../../parts/button.tsx";
import { DryRun } from "../../parts/dry-run.tsx";
import { NameField, Options } from "../../parts/field.tsx";
import { capitalize } from "../../parts/form-texts.ts";
import { formatDuration } from "../../parts/format-time.ts";
import { submitWith } from "../../parts/handlers.ts";
import { Icon } from "../../parts/icon.tsx";
import { Inline } from "../../parts/inline/inline.tsx";
import { LinkAccount } from "../../parts/link-account.tsx";
import { Parameter } from "../../parts/parameter.tsx";
import { NO_REPOSITORY, RepositoryFields, toRepository } from "../../parts/repository-fields.tsx";
import { Frame } from "../../shell/frame.tsx";
import { onKeys } from "../../shell/keys.ts";
import { findFreeName } from "./free-name.ts";
import { formatLink, type PrefilledForm, toRepositoryUrl } from "./link.ts";
import { describeReplaced, findReplaced } from "./preset-values.ts";

type FormProps = {
  readonly template: Template | undefined;
  readonly prefilled: PrefilledForm;
  /** The name that was typed or given in the link. */
  readonly typedName: Signal<string | undefined>;
  readonly crumbs: readonly { label: string; href: string }[];
  /** A separate form above this one. */
  readonly formAbove?: ComponentChildren;
  /** The repository field. A link there takes precedence over the template. */
  readonly repositoryToOpen?: Signal<RepositoryAsked>;
  /** The template selection. */
  readonly children: ComponentChildren;
};

/** Returns the user's workspace of this name and template from the live list. */
const findOwnWorkspace = (name: string, { id }: Template): WorkspaceSummary | undefined =>
  [...workspaces.value.values()].find(
    (one) => one.name === name && one.template_id === id && one.owner_id === me.value?.id,
  );

export const CreateForm = ({
  template,
  prefilled,
  typedName,
  crumbs,
  formAbove,
  repositoryToOpen,
  children,
}: FormProps) => {
  const { route } = useLocation();
  const name = useSignal(typedName.value ?? (template ? findFreeName(template.name) : ""));
  const values = useSignal<Values>(
    !prefilled.template || prefilled.template === template?.name || prefilled.template === template?.id
      ? prefilled.parameters
      : {},
  );
  const touchedNames = useSignal<ReadonlySet<string>>(new Set());
  const preset = useSignal<Preset | undefined>(undefined);
  /** The values the user has entered, kept even if a preset overrides them. */
  const userValues = useSignal<Values>(values.value);
  /** The value of the template's repository parameter. */
  const repository = useSignal<RepositoryAsked>(NO_REPOSITORY);
  const repositoryProblems = useSignal<Readonly<Record<string, string>>>({});
  const problem = useSignal("");
  const nameProblem = useSignal("");
  /** Number of dry runs requested. Each is shown as a new one. */
  const dryRunCount = useSignal(0);
  const version = template?.active_version_id;
  const form = useMemo(() => (version ? new FormSocket(version, values.value) : undefined), [version]);
  useEffect(() => () => form?.end(), [form]);
  const path = { templateversion: version ?? "" };
  const presets = useResource(version && `presets ${version}`, () =>
    call("GET /templateversions/:templateversion/presets", { path }),
  );
  const accounts = useResource(version && `accounts ${version}`, () =>
    call("GET /templateversions/:templateversion/external-auth", { path }),
  );
  const changeValues = (next: Values): void => {
    values.value = next;
    form?.sendValues(next);
  };
  const pickPreset = (id: string): void => {
    preset.value = presets.state.value.data?.find((one) => one.id === id);
    const presetValues = Object.fromEntries((preset.value?.parameters ?? []).map((one) => [one.name, one.value]));
    // When a preset is deselected, its values are kept.
    changeValues(preset.value ? { ...userValues.value, ...presetValues } : { ...values.value, ...userValues.value });
  };
  useEffect(() => {
    const allPresets = presets.state.value.data ?? [];
    const initialPreset =
      allPresets.find((one) => one.name === prefilled.preset) ??
      allPresets.find((one) => one.default && !prefilled.preset);
    if (initialPreset && !preset.value) pickPreset(initialPreset.id);
  }, [presets.state.value.data]);
  const replacedNote = useComputed(() =>
    preset.value ? describeReplaced(preset.value.name, findReplaced(preset.value, userValues.value)) : "",
  );
  const parameters = useComputed(() => form?.answer.value?.parameters.filter(({ ephemeral }) => !ephemeral) ?? []);
  const isRepository = (one: { readonly form_type: string }): boolean => one.form_type === "repository";
  const getCurrentValue = (one: { name: string; value: { value: string; valid: boolean } }): string =>
    values.value[one.name] ?? (one.value.valid ? one.value.value : "");
  const unlinkedAccounts = (accounts.state.value.data ?? []).filter((one) => !one.authenticated && !one.optional);

  const hasRepository = repositoryToOpen !== undefined && toRepository(repositoryToOpen.value) !== undefined;
  const canCreate =
    template !== undefined && unlinkedAccounts.length === 0 && (template.unavailable === "" || hasRepository);

  // Button, Enter and keyboard shortcut may submit concurrently; only one request is sent at a time.
  const isCreating = useRef(false);
  /** The name of a request that was never answered: the workspace may exist. */
  const unansweredName = useRef("");
  const create = async (): Promise<void> => {
    if (!template || isCreating.current) return;
    const openedRepository = repositoryToOpen && toRepository(repositoryToOpen.value);
    if (openedRepository) return route(toRepositoryUrl(openedRepository));
    if (template.unavailable !== "") return;
    isCreating.current = true;
    await sendRequest(template).finally(() => {
      isCreating.current = false;
    });
  };
  const sendRequest = async (template: Template): Promise<void> => {
    const workspaceName = name.value.trim();
    problem.value = "";
    nameProblem.value = "";
    touchedNames.value = new Set(parameters.value.map((one) => one.name));
    setName(template.id, template.name);
    repositoryProblems.value = {};
    const repositoryToClone = toRepository(repository.value);
    const sentParameters = parameters.value.filter(
      (one) => values.value[one.name] !== undefined && !(repositoryToClone && isRepository(one)),
    );
    try {
      const created = await call("POST /users/:user/workspaces", {
        path: { user: "me" },
        body: {
          name: workspaceName,
          template_id: template.id,
          ...(preset.value ? { template_version_preset_id: preset.value.id } : {}),
          rich_parameter_values: sentParameters.map((one) => ({ name: one.name, value: getCurrentValue(one) })),
          ...(repositoryToClone ? { repository: repositoryToClone } : {}),
        },
      });
      route(`/workspaces/${created.id}`);
    } catch (error) {
      const created =
        error instanceof Problem &&
        error.status === 409 &&
        unansweredName.current === workspaceName &&
        findOwnWorkspace(workspaceName, template);
      if (created) return route(`/workspaces/${created.id}`);
      if (error instanceof Problem && (error.status === 0 || error.status >= 500))
        unansweredName.current = workspaceName;
      const violations = error instanceof Problem ? (error.body.validations ?? []) : [];
      const repositoryViolations = violations.filter(({ field }) => field.startsWith("repository"));
      const nameViolation = violations.find(({ field }) => field === "name");
      if (nameViolation) nameProblem.value = capitalize(nameViolation.detail);
      else if (repositoryViolations.length > 0)
        repositoryProblems.value = Object.fromEntries(repositoryViolations.map(({ field, detail }) => [field, detail]));
      else problem.value = formatError(error);
    }
  };
  useEffect(() => {
    const repositoryName = parseRepositoryAddress(repository.value.url)?.name;
    if (typedName.value === undefined && template) name.value = findFreeName(repositoryName ?? template.name);
  }, [repository.value.url]);
  useEffect(() => onKeys("mod+enter", () => void create()), [template]);
  return (
    <Frame
      title="New workspace"
      crumbs={crumbs}
      actions={
        <>
          <Button
            class="desk"
            look="ghost"
            disabled={!template}
            onPress={() => {
              dryRunCount.value += 1;
            }}
          >
            Dry run
          </Button>
          <Button look="primary" disabled={!canCreate} keys="Ctrl ⏎" onPress={create}>
            Create
          </Button>
        </>
      }
    >
      <div class="page narrow">
        {formAbove}
        <form class="stack loose wide-gap" onSubmit={submitWith(create)}>
          {children}
          {template && (
            <div class="split">
              <div class="stack loose">
                {template.unavailable !== "" && (
                  <p class="banner box attn" role="status">
                    <Icon name="warn" />
                    <span>Workspaces of this template can't start. {template.unavailable}</span>
                  </p>
                )}
                {problem.value && (
                  <p class="banner box bad" role="alert">
                    <Icon name="warn" />
                    <span>{problem.value}</span>
                  </p>
                )}
                {dryRunCount.value > 0 && version && (
                  <DryRun
                    key={dryRunCount.value}
                    version_id={version}
                    body={{
                      ...(preset.value ? { template_version_preset_id: preset.value.id } : {}),
                      rich_parameter_values: parameters.value
                        .filter((one) => values.value[one.name] !== undefined)
                        .map((one) => ({ name: one.name, value: getCurrentValue(one) })),
                    }}
                  />
                )}
                <NameField
                  label="Name"
                  maxLength={32}
                  value={name.value}
                  error={nameProblem.value}
                  hint="Letters, digits and hyphens."
                  onInput={(event) => {
                    name.value = event.currentTarget.value;
                    typedName.value = name.value;
                    nameProblem.value = "";
                  }}
                />
                {(presets.state.value.data?.length ?? 0) > 0 && (
                  <Options
                    label="Preset"
                    value={preset.value?.id ?? ""}
                    choices={[
                      ...(presets.state.value.data ?? []).map((one) => ({ value: one.id, label: one.name })),
                      { value: "", label: "Custom" },
                    ]}
                    hint={preset.value?.description ? <Inline text={preset.value.description} /> : undefined}
                    onPick={pickPreset}
                  />
                )}
                {replacedNote.value && (
                  <p class="t-attn" role="status">
                    {replacedNote.value}
                  </p>
                )}
                {(accounts.state.value.data ?? []).map((one) => (
                  <Account key={one.id} account={one} reload={accounts.reload} />
                ))}
                {parameters.value.some((one) => isRepository(one) && !values.value[one.name]) && (
                  <RepositoryFields
                    value={repository}
                    hint="Cloned into the workspace. You can also paste a link to a branch or a pull request. Optional."
                    problems={repositoryProblems.value}
                  />
                )}
                {parameters.value
                  .filter((one) => !isRepository(one) || values.value[one.name])
                  .map((one) => (
                    <Parameter
                      key={one.name}
                      parameter={one}
                      value={getCurrentValue(one)}
                      isTouched={touchedNames.value.has(one.name)}
                      fixedReason={
                        preset.value?.parameters.some(({ name }) => name === one.name)
                          ? "Set by the preset."
                          : undefined
                      }
                      onValue={(value) => {
                        touchedNames.value = new Set(touchedNames.value).add(one.name);
                        userValues.value = { ...userValues.value, [one.name]: value };
                        changeValues({ ...values.value, [one.name]: value });
                      }}
                    />
                  ))}
                {form?.answer.value?.diagnostics.map((one) => (
                  <p key={one.summary} class={one.severity === "error" ? "t-bad" : "t-attn"} role="status">
                    {[one.summary, one.detail].filter(Boolean).join(": ")}
                  </p>
                ))}
              </div>
              <Summary
                template={template}
                link={formatLink({ template: template.name, preset: preset.value?.name, parameters: values.value })}
              />
            </div>
          )}
        </form>
      </div>
    </Frame>
  );
};

type RequiredAccount = { id: string; display_name: string; authenticated: boolean; optional: boolean };

/** An external account that the template requires. */
const Account = ({ account, reload }: { account: RequiredAccount; reload: () => Promise<void> }) => (
  <div class="line wrap">
    <Icon name={account.authenticated ? "check" : "key"} />
    <span>
      {account.display_name}{" "}
      {account.authenticated ? "is linked" : account.optional ? "can be linked" : "must be linked"}
    </span>
    {!account.authenticated && (
      <LinkAccount small id={account.id} name={account.display_name} onLinked={reload}>
        Link {account.display_name}
      </LinkAccount>
    )}
  </div>
);

const Summary = ({ template, link }: { template: Template; link: string }) => {
  const usualStartMs = template.build_time_stats.start.P50;
  return (
    <aside class="stack loose" aria-label="Summary">
      <section class="panel">
        <header>
          <h2>Summary</h2>
        </header>
        <div class="body">
          <dl class="kv small">
            <dt>Template</dt>
            <dd>{template.display_name || template.name}</dd>
            <dt>Runs on</dt>
            <dd>{formatRunsOn(template)}</dd>
            {usualStartMs !== null && (
              <>
                <dt>Usual start time</dt>
                <dd>about {formatDuration(usualStartMs)}</dd>
              </>
            )}
            <dt>Autostop</dt>
            <dd>{template.default_ttl_ms > 0 ? `after ${formatDuration(template.default_ttl_ms)}` : "Off"}</dd>
            <dt>Organization</dt>
            <dd>{template.organization_display_name || template.organization_name}</dd>
          </dl>
        </div>
      </section>
      <section class="panel">
        <header>
          <h2>Share as a link</h2>
          <span class="push">
            <IconButton icon="copy" small label="Copy link" onPress={() => copyText(location.origin + link)} />
          </span>
        </header>
        <div class="body small">
          <pre class="cmd mono" tabIndex={0}>
            {link}
          </pre>
        </div>
      </section>
    </aside>
  );
};
