// The forms for adding a provider or a model, or replacing a key.
import { useSignal } from "@preact/signals";
import type { ModelProvider } from "#schema/chats/model-provider.ts";
import { call, Problem } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Field, Select } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { showToast } from "../../shell/toasts.tsx";
import { KINDS, type Kind } from "./model-kinds.ts";
import { testModel } from "./model-table.tsx";

type AddProviderProps = { readonly onClose: () => void; readonly onAdded: (provider: ModelProvider) => void };

export const AddProvider = ({ onClose, onAdded }: AddProviderProps) => {
  const kind = useSignal<Kind>(KINDS[0] as Kind);
  const { value: provider, needsKey, address } = kind.value;
  return (
    <FormDialog
      title="Add provider"
      submitLabel="Add provider"
      // A successful add opens the next form instead of closing.
      onClose={onClose}
      act={async ({ display_name = "", base_url = "", api_key = "" }) => {
        const created = await call("POST /chats/providers", {
          body: {
            provider,
            enabled: true,
            ...(display_name ? { display_name } : {}),
            ...(base_url ? { base_url } : {}),
            ...(api_key ? { api_key } : {}),
          },
        });
        setTimeout(() => onAdded(created));
      }}
    >
      {(problems) => (
        <>
          <Select
            label="Provider"
            value={provider}
            choices={KINDS}
            onPick={(value) => {
              kind.value = KINDS.find((one) => one.value === value) ?? kind.value;
            }}
          />
          {provider === "openai-compat" && (
            <>
              <Field
                label="Name"
                name="display_name"
                maxLength={128}
                placeholder="Ollama"
                error={problems.display_name}
              />
              <Field
                label="Address"
                name="base_url"
                type="url"
                required
                defaultValue={address}
                hint="Base URL of the API. The default is Ollama on this machine."
                error={problems.base_url}
              />
            </>
          )}
          {provider !== "demo" && (
            <Field
              label="Key"
              name="api_key"
              type="password"
              required={needsKey}
              autocomplete="off"
              hint={needsKey ? "Stored encrypted and never shown again." : "Only if the server requires one."}
              error={problems.api_key}
            />
          )}
        </>
      )}
    </FormDialog>
  );
};

/** The server refuses a disabled provider and a deleted one in the same way. */
const rethrowAsNotFound =
  ({ id }: ModelProvider) =>
  async (error: unknown): Promise<never> => {
    const providers = await call("GET /chats/providers");
    throw error instanceof Problem && providers.every((one) => one.id !== id) ? new Problem(404, error.body) : error;
  };

type ProviderTest = {
  readonly provider_id: string;
  readonly base_url?: string;
  readonly api_key?: string;
  readonly model?: string;
};

/** Throws if the provider does not work, so that nothing is saved. */
const requireWorking = async (body: ProviderTest): Promise<void> => {
  const { works, problem } = await call("POST /chats/providers/try", { body });
  if (!works) throw new Error(`${problem ?? "It is not responding."} No changes were saved.`);
};

/** `testedModel`: the default model, if it belongs to this provider. It must also answer with the new address and key. */
export const EditProvider = ({
  provider,
  testedModel,
  onClose,
}: {
  provider: ModelProvider;
  testedModel: string | undefined;
  onClose: () => void;
}) => {
  const isSelfHosted = provider.provider === "openai-compat";
  return (
    <FormDialog
      title={`Edit ${provider.display_name}`}
      thing={provider.display_name}
      submitLabel="Test and save"
      onClose={onClose}
      act={async ({ display_name = "", base_url = "", api_key = "" }) => {
        const endpoint = { base_url, ...(api_key === "" ? {} : { api_key }) };
        await requireWorking({
          provider_id: provider.id,
          ...endpoint,
          ...(testedModel === undefined ? {} : { model: testedModel }),
        });
        const path = { provider: provider.id };
        await call("PATCH /chats/providers/:provider", { path, body: { display_name, ...endpoint } });
        showToast(`${display_name} saved`);
      }}
    >
      {(problems) => (
        <>
          <Field
            label="Name"
            name="display_name"
            maxLength={128}
            required
            defaultValue={provider.display_name}
            error={problems.display_name}
          />
          <Field
            label="Address"
            name="base_url"
            type="url"
            required={isSelfHosted}
            defaultValue={provider.base_url}
            hint={isSelfHosted ? "Base URL of the API." : "Leave empty for the provider's default."}
            error={problems.base_url}
          />
          <Field
            label="Key"
            name="api_key"
            type="password"
            autocomplete="off"
            hint="Leave empty to keep the key. If you change the address, enter the key again."
            error={problems.api_key}
          />
        </>
      )}
    </FormDialog>
  );
};

export const AddModel = ({ provider, onClose }: { provider: ModelProvider; onClose: () => void }) => {
  const kind = KINDS.find(({ value }) => value === provider.provider);
  const availableModels = useResource(`models of ${provider.id}`, () =>
    call("POST /chats/providers/try", { body: { provider_id: provider.id } }),
  );
  const offeredModels = availableModels.state.value.data?.models ?? [];
  return (
    <FormDialog
      title={`Add a model from ${provider.display_name}`}
      thing={provider.display_name}
      submitLabel="Test and add model"
      onClose={onClose}
      act={async ({ model = "", display_name = "", context_limit = "" }) => {
        const created = await call("POST /chats/model-configs", {
          body: {
            provider_id: provider.id,
            model,
            ...(display_name ? { display_name } : {}),
            ...(context_limit ? { context_limit: Number(context_limit) } : {}),
          },
        }).catch(rethrowAsNotFound(provider));
        void testModel(created);
      }}
    >
      {(problems) => (
        <>
          <Field
            label="Model"
            name="model"
            required
            spellcheck={false}
            maxLength={256}
            placeholder={kind?.example}
            list="models-of-provider"
            hint={
              offeredModels.length > 0
                ? `The provider's name for the model. ${offeredModels.length} are available.`
                : "The provider's name for the model."
            }
            error={problems.model}
          />
          <datalist id="models-of-provider">
            {offeredModels.map((one) => (
              <option key={one} value={one} />
            ))}
          </datalist>
          <Field label="Name" name="display_name" maxLength={128} hint="Shown to users. Optional." />
          <Field
            label="Context"
            name="context_limit"
            type="number"
            min={1}
            placeholder="128000"
            hint="Maximum number of tokens in the history."
            error={problems.context_limit}
          />
        </>
      )}
    </FormDialog>
  );
};

export const ReplaceKey = ({ provider, onClose }: { provider: ModelProvider; onClose: () => void }) => (
  <FormDialog
    title={`Key of ${provider.display_name}`}
    thing={provider.display_name}
    submitLabel="Replace key"
    onClose={onClose}
    act={async ({ api_key = "" }) => {
      await call("PATCH /chats/providers/:provider", { path: { provider: provider.id }, body: { api_key } });
      showToast("Key replaced");
    }}
  >
    {(problems) => (
      <Field
        label="New key"
        name="api_key"
        type="password"
        autocomplete="off"
        hint="Stored encrypted and never shown again. Leave empty to remove the current key."
        error={problems.api_key}
      />
    )}
  </FormDialog>
);
