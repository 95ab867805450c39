// The price of a model. Without a custom price, the provider's public list price applies if there is one.
import type { ModelConfig } from "#schema/chats/model-config.ts";
import { call } from "../../data/api.ts";
import { Field } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { showToast } from "../../shell/toasts.tsx";

const MICROS_PER_DOLLAR = 1_000_000;
const PRICE_FIELDS = [
  { name: "input", label: "Input, per million tokens", required: true },
  { name: "output", label: "Output, per million tokens", required: true },
  { name: "cache_read", label: "Cache read, per million tokens", required: false },
  { name: "cache_write", label: "Cache write, per million tokens", required: false },
] as const;

export const PriceForm = ({ model, onClose }: { model: ModelConfig; onClose: () => void }) => {
  const { price } = model;
  return (
    <FormDialog
      title={`Price of ${model.display_name}`}
      thing={model.display_name}
      submitLabel="Save price"
      onClose={onClose}
      act={async (values) => {
        const prices = PRICE_FIELDS.flatMap(({ name }) =>
          values[name]?.trim() ? [[name, Math.round(Number(values[name]) * MICROS_PER_DOLLAR)] as const] : [],
        );
        const cost = Object.fromEntries(prices) as { input: number; output: number };
        const body = { model_config: { ...model.model_config, cost } };
        await call("PATCH /chats/model-configs/:model_config", { path: { model_config: model.id }, body });
        showToast(`Saved the price of ${model.display_name}. It applies from the next call.`);
      }}
    >
      {(problems) => (
        <>
          <p class="small mut">
            In US dollars.{" "}
            {price?.source === "list" && `This is the list price${price.as_of ? ` as of ${price.as_of}` : ""}. `}
            Earlier calls keep their price.
          </p>
          {PRICE_FIELDS.map(({ name, label, required }) => (
            <Field
              key={name}
              label={label}
              name={name}
              type="number"
              min={0}
              step="0.000001"
              required={required}
              defaultValue={price?.[name] === undefined ? "" : String(price[name] / MICROS_PER_DOLLAR)}
              hint={required ? undefined : "Defaults to the input price."}
              error={problems[`model_config.cost.${name}`]}
            />
          ))}
        </>
      )}
    </FormDialog>
  );
};
