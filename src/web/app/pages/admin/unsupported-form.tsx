// The parameters that requests to a model omit because its server refuses them: detected from refusals, or set here.
import type { ModelConfig } from "#schema/chats/model-config.ts";
import type { ModelFeature } from "#schema/chats/model-feature.ts";
import { call } from "../../data/api.ts";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { showToast } from "../../shell/toasts.tsx";

export const FEATURES: readonly { readonly name: ModelFeature; readonly label: string; readonly note: string }[] = [
  { name: "tools", label: "Tools", note: "The model can't call tools. Earlier tool calls are sent as text." },
  { name: "parallel_tool_calls", label: "Parallel tool calls", note: "parallel_tool_calls" },
  { name: "tool_streaming", label: "Tool call streaming", note: "eager_input_streaming" },
  { name: "images", label: "Images", note: "Only the names of images and documents are sent." },
  { name: "documents", label: "Documents", note: "Only the names of PDF files are sent." },
  { name: "system_role", label: "System message", note: "Instructions are sent in the first message." },
  { name: "stream_options", label: "Token counts in streams", note: "stream_options" },
  { name: "reasoning_effort", label: "Reasoning effort", note: "The model chooses its reasoning effort." },
  { name: "max_output_tokens", label: "Output limit", note: "max_output_tokens" },
  { name: "temperature", label: "Temperature", note: "temperature" },
  { name: "top_p", label: "Nucleus sampling", note: "top_p" },
  { name: "top_k", label: "Top-k sampling", note: "top_k" },
  { name: "presence_penalty", label: "Presence penalty", note: "presence_penalty" },
  { name: "frequency_penalty", label: "Frequency penalty", note: "frequency_penalty" },
  { name: "long_tool_call_ids", label: "Long tool call IDs", note: "IDs are shortened to nine letters and digits." },
  {
    name: "user_after_tool",
    label: "Messages after tool results",
    note: "An assistant message is inserted between them.",
  },
];

type Props = { readonly model: ModelConfig; readonly onClose: () => void };

export const UnsupportedForm = ({ model, onClose }: Props) => {
  const { unsupported = [] } = model.model_config;
  return (
    <FormDialog
      title={`Requests to ${model.display_name}`}
      thing={model.display_name}
      submitLabel="Save"
      onClose={onClose}
      act={async (values) => {
        const chosen = FEATURES.flatMap(({ name }) => (values[name] === "on" ? [name] : []));
        const body = { model_config: { ...model.model_config, unsupported: chosen } };
        await call("PATCH /chats/model-configs/:model_config", { path: { model_config: model.id }, body });
        showToast(`Requests to ${model.display_name} saved`);
      }}
    >
      {() => (
        <>
          <p class="small mut">
            Slipway doesn't send the selected features to this model. A feature is selected automatically when the
            model's server rejects it. Clear it to try again.
          </p>
          {FEATURES.map(({ name, label, note }) => (
            <label key={name} class="line">
              <input type="checkbox" name={name} defaultChecked={unsupported.includes(name)} />
              <span>
                <span class="med">{label}</span> <span class="small mut">{note}</span>
              </span>
            </label>
          ))}
        </>
      )}
    </FormDialog>
  );
};
