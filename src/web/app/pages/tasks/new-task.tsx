// The form for a new task: the prompt, and the template of its workspace.
import { type Signal, useSignal } from "@preact/signals";
import type { RepositoryAsked } from "#schema/templates/repository.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Area, Field, Select } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { NO_REPOSITORY, RepositoryFields, toRepository } from "../../parts/repository-fields.tsx";
import { showToast } from "../../shell/toasts.tsx";
import { useAgents, useDefaultAgent, useModels } from "../chat/choices.tsx";

const AGENT_PREFIX = "agent ";
const MODEL_PREFIX = "model ";

/** Converts the choice to the fields of the request; empty for the default. */
const toEngineFields = (value: string) => {
  if (value.startsWith(AGENT_PREFIX)) return { coding_agent: value.slice(AGENT_PREFIX.length) };
  return value.startsWith(MODEL_PREFIX) ? { model_config_id: value.slice(MODEL_PREFIX.length) } : {};
};

type EngineFieldProps = {
  readonly value: Signal<string>;
  /** Undefined if the server chooses the template. */
  readonly template_id: string | undefined;
  readonly error: string | undefined;
};

/** Selects the agent or model of the task, or the template's default. */
const EngineField = ({ value, template_id, error }: EngineFieldProps) => {
  const agents = useAgents(true);
  const models = useModels().filter(({ isAvailable }) => isAvailable);
  const defaultAgent = useDefaultAgent(template_id === undefined ? undefined : { template_id });
  if (agents.length + models.length < 2 && !defaultAgent) return null;
  const model = models.find(({ is_default }) => is_default);
  const defaultEngine = defaultAgent ?? model;
  const choices = [
    ...agents.map(({ name, display_name }) => ({ value: AGENT_PREFIX + name, label: display_name })),
    ...models.map(({ id, display_name }) => ({ value: MODEL_PREFIX + id, label: display_name })),
  ];
  const isDefault = !choices.some((one) => one.value === value.value);
  return (
    <Select
      label="Agent or model"
      value={isDefault ? "" : value.value}
      choices={[
        {
          value: "",
          label: template_id && defaultEngine ? `Default (${defaultEngine.display_name})` : "Template default",
        },
        ...choices,
      ]}
      onPick={(one) => {
        value.value = one;
      }}
      hint={isDefault && defaultAgent?.problem ? `${defaultAgent.problem} Choose another agent or a model.` : undefined}
      error={error}
    />
  );
};

export const NewTask = ({ onClose }: { onClose: () => void }) => {
  const { state } = useResource("task templates", () => call("GET /templates", { query: { q: "deprecated:false" } }));
  const templates = state.value.data ?? [];
  const pickedTemplateId = useSignal("");
  const repository = useSignal<RepositoryAsked>(NO_REPOSITORY);
  const chosenRepository = toRepository(repository.value);
  // A repository determines its own template unless the user picks another.
  const template =
    templates.find(({ id }) => id === pickedTemplateId.value) ?? (chosenRepository ? undefined : templates[0]);
  const presets = useResource(template?.active_version_id, () =>
    template
      ? call("GET /templateversions/:templateversion/presets", {
          path: { templateversion: template.active_version_id },
        })
      : Promise.resolve([]),
  ).state.value.data;
  const presetId = useSignal("");
  const engine = useSignal("");
  const hasPreset = presets?.some(({ id }) => id === presetId.value) === true;
  return (
    <FormDialog
      title="New task"
      submitLabel="Start task"
      onClose={onClose}
      act={async ({ input = "", name = "" }) => {
        const version =
          hasPreset && template
            ? { template_version_id: template.active_version_id, template_version_preset_id: presetId.value }
            : template
              ? { template_id: template.id }
              : {};
        const task = await call("POST /tasks/:user", {
          path: { user: "me" },
          body: {
            input,
            ...version,
            ...(chosenRepository ? { repository: chosenRepository } : {}),
            ...(name === "" ? {} : { name }),
            ...toEngineFields(engine.value),
          },
        });
        showToast(`${task.name} starts when its workspace is running`);
      }}
    >
      {(problems) => (
        <>
          <Area
            label="What would you like to work on?"
            name="input"
            rows={6}
            required
            placeholder="Fix the login page: it is slow on phones."
            error={problems.input}
          />
          <RepositoryFields value={repository} hint="Cloned into the task's workspace. Optional." problems={problems} />
          <Select
            label="Template"
            value={template?.id ?? ""}
            choices={[
              ...(chosenRepository ? [{ value: "", label: "Detect from repository" }] : []),
              ...templates.map((one) => ({ value: one.id, label: one.display_name || one.name })),
            ]}
            onPick={(id) => {
              pickedTemplateId.value = id;
            }}
            hint={!chosenRepository && templates.length === 0 && !state.value.loading ? "No templates yet." : undefined}
            error={problems.template_id}
          />
          {presets && presets.length > 0 && (
            <Select
              label="Preset"
              value={hasPreset ? presetId.value : ""}
              choices={[
                { value: "", label: "Template defaults" },
                ...presets.map(({ id, name }) => ({ value: id, label: name })),
              ]}
              onPick={(id) => {
                presetId.value = id;
              }}
            />
          )}
          <EngineField
            value={engine}
            template_id={template?.id}
            error={problems.coding_agent ?? problems.model_config_id}
          />
          <Field
            label="Name"
            name="name"
            maxLength={32}
            spellcheck={false}
            autocapitalize="none"
            hint="The workspace's name. Defaults to the first words of the task."
            error={problems.name}
          />
        </>
      )}
    </FormDialog>
  );
};
