// Model providers and their models: added in two steps and tested immediately.
import { useSignal } from "@preact/signals";
import type { ModelConfig } from "#schema/chats/model-config.ts";
import type { ModelProvider } from "#schema/chats/model-provider.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Button } from "../../parts/button.tsx";
import { confirmAction } from "../../parts/dialog.tsx";
import { Empty, Failed } from "../../parts/empty.tsx";
import { setTo } from "../../parts/handlers.ts";
import { Menu } from "../../parts/menu.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { State } from "../../parts/state.tsx";
import { showToast } from "../../shell/toasts.tsx";
import { LocalModels, listUsableServers } from "./local-models.tsx";
import { AddModel, AddProvider, EditProvider, ReplaceKey } from "./model-forms.tsx";
import { KINDS } from "./model-kinds.ts";
import { ModelTable } from "./model-table.tsx";

type FormState =
  | { readonly form: "provider" }
  | { readonly form: "model" | "key" | "edit"; readonly provider: ModelProvider }
  | undefined;

const loadModels = async (): Promise<{ providers: ModelProvider[]; models: ModelConfig[] }> => {
  const [providers, models] = await Promise.all([call("GET /chats/providers"), call("GET /chats/model-configs")]);
  return { providers, models };
};

export const Models = () => {
  const { state, reload } = useResource("models", loadModels);
  const localServers = useResource("local models", () => call("GET /chats/providers/local"));
  const openForm = useSignal<FormState>(undefined);
  const close = (): void => {
    openForm.value = undefined;
    void reload();
  };
  const { data, error } = state.value;
  if (error) return <Failed title="Can't load the models" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={6} />;
  const { providers, models } = data;
  const addButton = (
    <Button look="primary" icon="plus" onPress={setTo(openForm, { form: "provider" })}>
      Add provider
    </Button>
  );
  const reloadAll = async (): Promise<void> => void (await Promise.all([reload(), localServers.reload()]));
  const usableServers = listUsableServers(localServers.state.value.data?.servers ?? []);
  return (
    <>
      {usableServers.map((server) => (
        <LocalModels key={server.base_url} server={server} reload={reloadAll} />
      ))}
      {providers.length === 0 && usableServers.length > 0 ? (
        <div>
          <Button icon="plus" onPress={setTo(openForm, { form: "provider" })}>
            Add another provider
          </Button>
        </div>
      ) : providers.length === 0 ? (
        <Empty
          icon="spark"
          title="No models yet"
          text="Add a provider such as Anthropic or OpenAI with an API key, or your own server such as Ollama. Until then, the built-in demo answers chats."
        >
          {addButton}
        </Empty>
      ) : (
        <>
          <section class="stack" aria-labelledby="providers">
            <div class="head">
              <h2 id="providers">Providers</h2>
              <span class="push">{addButton}</span>
            </div>
            <ul class="panel list">
              {providers.map((one) => (
                <Provider
                  key={one.id}
                  provider={one}
                  modelCount={models.filter(({ provider_id }) => provider_id === one.id).length}
                  reload={reload}
                  onEdit={(form) => {
                    openForm.value = { form, provider: one };
                  }}
                />
              ))}
            </ul>
          </section>
          {models.length > 0 && <ModelTable models={models} reload={reload} />}
        </>
      )}
      {openForm.value?.form === "provider" && (
        <AddProvider
          onClose={close}
          onAdded={(provider) => {
            void reload();
            openForm.value = { form: "model", provider };
          }}
        />
      )}
      {openForm.value?.form === "model" && <AddModel provider={openForm.value.provider} onClose={close} />}
      {openForm.value?.form === "edit" && (
        <EditProvider
          provider={openForm.value.provider}
          testedModel={
            models.find((one) => one.is_default && one.provider_id === getProvider(openForm.value)?.id)?.model
          }
          onClose={close}
        />
      )}
      {openForm.value?.form === "key" && <ReplaceKey provider={openForm.value.provider} onClose={close} />}
    </>
  );
};

const getProvider = (form: FormState): ModelProvider | undefined =>
  form && "provider" in form ? form.provider : undefined;

type ProviderProps = {
  readonly provider: ModelProvider;
  readonly modelCount: number;
  readonly reload: () => Promise<void>;
  readonly onEdit: (form: "model" | "key" | "edit") => void;
};

const Provider = ({ provider, modelCount, reload, onEdit }: ProviderProps) => {
  const kind = KINDS.find(({ value }) => value === provider.provider);
  const lacksKey = kind?.needsKey && !provider.has_api_key;
  const path = { provider: provider.id };
  const toggle = async (): Promise<void> => {
    await call("PATCH /chats/providers/:provider", { path, body: { enabled: !provider.enabled } });
    await reload();
  };
  const confirmRemove = (): void =>
    confirmAction({
      title: `Remove ${provider.display_name}`,
      text: "Its models are removed too. Chats that use them need another model.",
      confirmLabel: "Remove provider",
      cancelLabel: "Keep it",
      isDanger: true,
      act: async () => {
        await call("DELETE /chats/providers/:provider", { path });
        showToast(`${provider.display_name} removed`);
        await reload();
      },
    });
  return (
    <li class="item prov">
      <State kind={lacksKey ? "failed" : provider.enabled ? "running" : "stopped"}>
        <span class="med clip">{provider.display_name}</span>
      </State>
      <span class="line">
        <span class="num small mut desk">{modelCount === 1 ? "1 model" : `${modelCount} models`}</span>
        <Button small onPress={() => onEdit("model")}>
          Add model
        </Button>
        <Menu
          label={`More for ${provider.display_name}`}
          small
          items={() => [
            { icon: "pen", label: "Edit…", act: () => onEdit("edit") },
            { icon: "key", label: "Replace key…", act: () => onEdit("key") },
            { icon: provider.enabled ? "stop" : "play", label: provider.enabled ? "Disable" : "Enable", act: toggle },
            { icon: "trash", label: "Remove…", isDanger: true, act: confirmRemove },
          ]}
        />
      </span>
      <span class={lacksKey ? "sub clip t-bad" : "sub clip"}>
        {lacksKey ? "No API key" : provider.base_url || kind?.label}
        {!provider.enabled && ", disabled"}
      </span>
    </li>
  );
};
