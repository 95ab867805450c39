// The AI gateway: its status, its model aliases, and its usage by programs and chats.
import { useSignal } from "@preact/signals";
import { formatSize } from "#base/format-size.ts";
import type { GatewayName, GatewaySettings } from "#schema/ai/gateway.ts";
import type { ModelConfig } from "#schema/chats/model-config.ts";
import type { ModelProvider } from "#schema/chats/model-provider.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Button, IconButton } from "../../parts/button.tsx";
import { Empty, Failed } from "../../parts/empty.tsx";
import { Field, NameField, Select, Switch } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { setTo, writeTo } from "../../parts/handlers.ts";
import { Skeleton } from "../../parts/skeleton.tsx";
import { showError, showToast } from "../../shell/toasts.tsx";

const loadGateway = async () => {
  const [settings, providers, models] = await Promise.all([
    call("GET /ai/settings"),
    call("GET /chats/providers"),
    call("GET /chats/model-configs"),
  ]);
  return { settings, models, providers: providers.filter(({ provider }) => provider !== "demo") };
};

export const AiGatewayPage = () => {
  const { state, reload } = useResource("ai gateway", loadGateway);
  const { data, error } = state.value;
  if (error) return <Failed title="Can't load the AI gateway" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={8} />;
  const { settings, providers, models } = data;
  if (providers.length === 0 && !settings.enabled) {
    return (
      <Empty
        icon="spark"
        title="No model provider yet"
        text="The AI gateway lets coding agents and SDKs use your models without the providers' keys. Add a provider first."
      >
        <a class="btn primary" href="/admin/models">
          Add provider
        </a>
      </Empty>
    );
  }
  const save = async (change: Partial<GatewaySettings>, message: string): Promise<void> => {
    await call("PUT /ai/settings", { body: { ...settings, ...change } });
    await reload();
    showToast(message);
  };
  return (
    <>
      <AccessPanel settings={settings} save={save} />
      <DefaultModels settings={settings} models={models} save={save} />
      <ModelNames settings={settings} providers={providers} save={save} />
      <Recording settings={settings} save={save} />
      <p class="small mut">
        <a href="/insights/ai-usage">AI usage</a> shows what calls cost, by person, group, template, model and day.
      </p>
    </>
  );
};

type SaveSettings = (change: Partial<GatewaySettings>, message: string) => Promise<void>;

const AccessPanel = ({ settings, save }: { settings: GatewaySettings; save: SaveSettings }) => {
  const baseUrl = `${location.origin}/api/v2/ai`;
  return (
    <section class="panel" aria-labelledby="access">
      <header>
        <h2 id="access">Access</h2>
      </header>
      <div class="body stack">
        <Switch
          label="Enable the AI gateway"
          note="Coding agents and SDKs call your models with a Slipway token. The providers' keys stay on the server."
          checked={settings.enabled}
          onSwitch={(enabled) =>
            void save({ enabled }, enabled ? "AI gateway enabled" : "AI gateway disabled").catch(showError)
          }
        />
        <Switch
          label="Set up workspaces"
          note="Sets environment variables that point programs to the gateway. Applies when a workspace starts."
          checked={settings.in_workspaces}
          disabled={!settings.enabled}
          onSwitch={(in_workspaces) =>
            void save({ in_workspaces }, in_workspaces ? "Workspace setup enabled" : "Workspace setup disabled").catch(
              showError,
            )
          }
        />
        <dl class="kv small">
          <dt>Anthropic</dt>
          <dd class="mono">{baseUrl}/anthropic</dd>
          <dt>OpenAI</dt>
          <dd class="mono">{baseUrl}/openai/v1</dd>
          <dt>Google</dt>
          <dd class="mono">{baseUrl}/google</dd>
        </dl>
        <p class="small mut">
          Outside of workspaces, use a token with the scope <code>ai:use</code> as the API key. Create one under{" "}
          <a href="/account/tokens">API tokens</a>. <a href="/admin/budgets">Budgets</a> apply to the gateway, too.
        </p>
      </div>
    </section>
  );
};

const DIALECTS = [
  { dialect: "anthropic", label: "Anthropic (Claude Code)", kinds: ["anthropic"] },
  { dialect: "openai", label: "OpenAI (Codex, opencode)", kinds: ["openai", "openai-compat"] },
  { dialect: "google", label: "Google (Gemini CLI)", kinds: ["google"] },
] as const;

type DefaultsProps = { settings: GatewaySettings; models: readonly ModelConfig[]; save: SaveSettings };

/** Coding agents request models by names that the deployment may not offer. */
const DefaultModels = ({ settings, models, save }: DefaultsProps) => {
  const { default_names, names } = settings;
  const plainNames = names.filter(({ name }) => !name.includes("*")).map(({ name }) => name);
  return (
    <section class="panel" aria-labelledby="defaults">
      <header>
        <h2 id="defaults">Default models</h2>
      </header>
      <div class="body stack">
        <p class="mut small">
          Coding agents may request models that you don't offer. The default model answers those requests.
        </p>
        {DIALECTS.map(({ dialect, label, kinds }) => {
          const currentName = default_names[dialect] ?? "";
          const dialectModels = models.filter(
            ({ enabled, provider }) => enabled && kinds.some((kind) => kind === provider),
          );
          const offeredNames = [
            ...new Set([...dialectModels.map(({ model }) => model), ...plainNames, currentName]),
          ].filter((one) => one !== "");
          return (
            <Select
              key={dialect}
              label={label}
              value={currentName}
              choices={[{ value: "", label: "None" }, ...offeredNames.map((one) => ({ value: one, label: one }))]}
              onPick={(model) => {
                const { [dialect]: _, ...others } = default_names;
                const next = model === "" ? others : { ...others, [dialect]: model };
                void save({ default_names: next }, "Default model saved").catch(showError);
              }}
            />
          );
        })}
      </div>
    </section>
  );
};

const RETENTION_DAYS = [1, 7, 30, 90, 365];
const SIZES_MIB = [256, 1_024, 5_120, 20_480, 102_400];

const Recording = ({ settings, save }: { settings: GatewaySettings; save: SaveSettings }) => {
  const { enabled = false, days = 30, max_mib = 1_024 } = settings.recording ?? {};
  const saveRecording = (changes: Partial<NonNullable<GatewaySettings["recording"]>>, message: string): void =>
    void save({ recording: { enabled, days, max_mib, ...changes } }, message).catch(showError);
  const sortUnique = (values: readonly number[]) => [...new Set(values)].sort((one, other) => one - other);
  return (
    <section class="panel" aria-labelledby="recording">
      <header>
        <h2 id="recording">Recording</h2>
      </header>
      <div class="body stack">
        <Switch
          label="Record prompts and answers"
          note="Stored encrypted. Only owners of the deployment can read them, and the audit log names each reader. People see in their AI usage which of their calls are recorded."
          checked={enabled}
          onSwitch={(next) => saveRecording({ enabled: next }, next ? "Recording enabled" : "Recording disabled")}
        />
        <Select
          label="Delete recordings after"
          value={String(days)}
          choices={sortUnique([...RETENTION_DAYS, days]).map((one) => ({
            value: String(one),
            label: one === 1 ? "1 day" : `${one} days`,
          }))}
          onPick={(value) => saveRecording({ days: Number(value) }, "Saved")}
        />
        <Select
          label="Maximum size of all recordings"
          value={String(max_mib)}
          choices={sortUnique([...SIZES_MIB, max_mib]).map((one) => ({
            value: String(one),
            label: formatSize(one * 1024 ** 2),
          }))}
          onPick={(value) => saveRecording({ max_mib: Number(value) }, "Saved")}
        />
      </div>
    </section>
  );
};

type NamesProps = { settings: GatewaySettings; providers: readonly ModelProvider[]; save: SaveSettings };

const ModelNames = ({ settings, providers, save }: NamesProps) => {
  const isAdding = useSignal(false);
  const { names } = settings;
  const getProviderName = (id: string): string =>
    providers.find((one) => one.id === id)?.display_name ?? "removed provider";
  return (
    <section class="stack" aria-labelledby="names">
      <div class="head">
        <h2 id="names">Model names</h2>
        <span class="push">
          <Button icon="plus" onPress={setTo(isAdding, true)}>
            Add name
          </Button>
        </span>
      </div>
      <p class="mut small">
        Programs can call enabled models by their own names. Add a name to map it to another model or to add a fallback.
      </p>
      {names.length > 0 && (
        <ul class="panel list">
          {names.map((one) => (
            <li key={one.name} class="item">
              <span class="med clip mono">{one.name}</span>
              <span class="line">
                {(one.group_ids ?? one.template_ids) && <span class="small mut">Restricted</span>}
                <IconButton
                  icon="trash"
                  small
                  label={`Remove name ${one.name}`}
                  onPress={() => save({ names: names.filter(({ name }) => name !== one.name) }, "Name removed")}
                />
              </span>
              <span class="sub clip">
                {one.targets
                  .map(({ provider_id, model }) => `${getProviderName(provider_id)}: ${model ?? "same name"}`)
                  .join(", then ")}
              </span>
            </li>
          ))}
        </ul>
      )}
      {isAdding.value && (
        <AddName
          providers={providers}
          onClose={setTo(isAdding, false)}
          addName={(name) => save({ names: [...names.filter((one) => one.name !== name.name), name] }, "Name added")}
        />
      )}
    </section>
  );
};

type AddNameProps = {
  readonly providers: readonly ModelProvider[];
  readonly onClose: () => void;
  readonly addName: (name: GatewayName) => Promise<void>;
};

const NO_FALLBACK = "";

const AddName = ({ providers, onClose, addName }: AddNameProps) => {
  const choices = providers.map(({ id, display_name }) => ({ value: id, label: display_name }));
  const provider = useSignal(choices[0]?.value ?? "");
  const fallback = useSignal(NO_FALLBACK);
  const toTarget = (provider_id: string, model = "") => ({
    provider_id,
    ...(model.trim() === "" ? {} : { model: model.trim() }),
  });
  return (
    <FormDialog
      title="Add name"
      submitLabel="Add name"
      onClose={onClose}
      act={({ name = "", model, fallback_model }) =>
        addName({
          name: name.trim(),
          targets: [
            toTarget(provider.value, model),
            ...(fallback.value === NO_FALLBACK ? [] : [toTarget(fallback.value, fallback_model)]),
          ],
        })
      }
    >
      {(problems) => (
        <>
          <NameField
            label="Name"
            name="name"
            placeholder="claude-opus-*"
            hint="* matches any text."
            error={problems.name}
          />
          <Select label="Provider" value={provider.value} choices={choices} onPick={writeTo(provider)} />
          <Field
            label="Model"
            name="model"
            autocomplete="off"
            spellcheck={false}
            hint="Leave empty to keep the requested name."
          />
          <Select
            label="Fallback"
            value={fallback.value}
            choices={[{ value: NO_FALLBACK, label: "None" }, ...choices]}
            hint="Used when the provider is overloaded, rate-limits requests or can't be reached."
            onPick={writeTo(fallback)}
          />
          {fallback.value !== NO_FALLBACK && (
            <Field label="Fallback model" name="fallback_model" autocomplete="off" spellcheck={false} />
          )}
        </>
      )}
    </FormDialog>
  );
};
