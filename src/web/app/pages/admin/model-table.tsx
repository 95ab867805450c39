// The table of models: the default, the price of each, and whether it answers.
import { useSignal } from "@preact/signals";
import type { ModelConfig } from "#schema/chats/model-config.ts";
import { call } from "../../data/api.ts";
import { Button } from "../../parts/button.tsx";
import { confirmAction } from "../../parts/dialog.tsx";
import { formatDuration } from "../../parts/format-time.ts";
import { setTo } from "../../parts/handlers.ts";
import { Icon } from "../../parts/icon.tsx";
import { Menu } from "../../parts/menu.tsx";
import { showError, showToast } from "../../shell/toasts.tsx";
import { PriceForm } from "./price-form.tsx";
import { FEATURES, UnsupportedForm } from "./unsupported-form.tsx";

/** Sends the model a test prompt and shows the result in a toast. */
export const testModel = async ({ id, display_name }: Pick<ModelConfig, "id" | "display_name">): Promise<void> => {
  try {
    const result = await call("POST /chats/model-configs/:model_config/try", { path: { model_config: id } });
    if (result.works)
      showToast(
        `${display_name} responded: “${result.answer.trim()}” First token after ${formatDuration(result.first_ms)}.`,
      );
    else showError(new Error(`${display_name} is not responding. ${result.problem ?? ""}`));
  } catch (error) {
    showError(error);
  }
};

const formatThousands = (tokens: number): string => `${Math.round(tokens / 1000)}k`;
const formatPrice = (micros: number | undefined): string => (micros === undefined ? "?" : (micros / 1e6).toFixed(2));

export const ModelTable = ({ models, reload }: { models: readonly ModelConfig[]; reload: () => Promise<void> }) => {
  const pricedModel = useSignal<ModelConfig | undefined>(undefined);
  const limitedModel = useSignal<ModelConfig | undefined>(undefined);
  return (
    <section class="panel" aria-labelledby="models">
      <header>
        <h2 id="models">Models</h2>
      </header>
      {!models.some((one) => one.is_default && one.enabled) && (
        <div class="body">
          <p class="banner box attn">
            <Icon name="warn" />
            <span>
              No default model. New chats use the first enabled model, which may not respond. Choose Make default in the
              menu of a model that responds.
            </span>
          </p>
        </div>
      )}
      <section class="body scroll" tabIndex={0} aria-label="Model list">
        <table class="table">
          <thead>
            <tr>
              <th>Name</th>
              <th class="desk">Use</th>
              <th class="desk r">Context</th>
              <th class="desk r">In / out, per million</th>
              <th class="r">Enabled</th>
              <td />
            </tr>
          </thead>
          <tbody>
            {models.map((model) => (
              <ModelRow
                key={model.id}
                model={model}
                reload={reload}
                setPrice={setTo(pricedModel, model)}
                setUnsupported={setTo(limitedModel, model)}
              />
            ))}
          </tbody>
        </table>
      </section>
      {limitedModel.value && (
        <UnsupportedForm
          model={limitedModel.value}
          onClose={() => {
            limitedModel.value = undefined;
            void reload();
          }}
        />
      )}
      {pricedModel.value && (
        <PriceForm
          model={pricedModel.value}
          onClose={() => {
            pricedModel.value = undefined;
            void reload();
          }}
        />
      )}
    </section>
  );
};

type RowProps = {
  readonly model: ModelConfig;
  readonly reload: () => Promise<void>;
  readonly setPrice: () => void;
  readonly setUnsupported: () => void;
};

/** Names the parameters that requests to the model omit; empty if none exist. */
const formatUnsupported = ({ model_config }: ModelConfig): string =>
  FEATURES.filter(({ name }) => model_config.unsupported?.includes(name))
    .map(({ label }) => label.toLowerCase())
    .join(", ");

const ModelRow = ({ model, reload, setPrice, setUnsupported }: RowProps) => {
  const unsupported = formatUnsupported(model);
  const path = { model_config: model.id };
  const changeModel = async (body: { enabled?: boolean; is_default?: boolean }): Promise<void> => {
    await call("PATCH /chats/model-configs/:model_config", { path, body });
    await reload();
  };
  const confirmRemove = (): void =>
    confirmAction({
      title: `Remove ${model.display_name}`,
      text: model.is_default
        ? "Chats that use it switch to another model with their next message. The oldest enabled model that responds becomes the default."
        : "Chats that use it switch to another model with their next message.",
      confirmLabel: "Remove model",
      cancelLabel: "Keep it",
      isDanger: true,
      act: async () => {
        await call("DELETE /chats/model-configs/:model_config", { path });
        await reload();
      },
    });
  return (
    <tr>
      <td class="med model">
        {model.display_name} {model.is_default && <span class="badge accent phone">Default</span>}
        {unsupported !== "" && (
          <>
            <br />
            <span class="small mut">Without {unsupported}</span>
          </>
        )}
      </td>
      <td class="desk">{model.is_default && <span class="badge accent">Default</span>}</td>
      <td class="desk r num">{formatThousands(model.context_limit)}</td>
      <td class="desk r num">
        {model.price ? `${formatPrice(model.price.input)} / ${formatPrice(model.price.output)}` : "unknown"}
      </td>
      <td class="r">
        <span class="tap">
          <input
            class="switch"
            type="checkbox"
            role="switch"
            aria-label={`${model.display_name} on`}
            checked={model.enabled}
            onChange={(event) => void changeModel({ enabled: event.currentTarget.checked }).catch(showError)}
          />
        </span>
      </td>
      <td class="r">
        <span class="line">
          <Button small disabled={!model.enabled} onPress={() => testModel(model)}>
            Try it
          </Button>
          <Menu
            label={`More for ${model.display_name}`}
            small
            items={() => [
              ...(model.is_default
                ? []
                : [{ icon: "check" as const, label: "Make default", act: () => changeModel({ is_default: true }) }]),
              {
                icon: "pen",
                label: "Price…",
                act: setPrice,
              },
              { icon: "cols", label: "Requests…", act: setUnsupported },
              { icon: "trash", label: "Remove…", isDanger: true, act: confirmRemove },
            ]}
          />
        </span>
      </td>
    </tr>
  );
};
