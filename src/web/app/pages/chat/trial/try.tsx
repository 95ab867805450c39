// The dialog that starts a trial: the number of ways, their prompts, their models, and the check command.
import { signal, useSignal } from "@preact/signals";
import type { Chat } from "#schema/chats/chat.ts";
import type { CreateTrialWay } from "#schema/chats/trial.ts";
import { call } from "../../../data/api.ts";
import { Area, Field, Select, Switch } from "../../../parts/field.tsx";
import { FormDialog } from "../../../parts/form-dialog.tsx";
import { setTo, writeTextTo, writeTo } from "../../../parts/handlers.ts";
import { showToast } from "../../../shell/toasts.tsx";
import { useAgents, useModels } from "../choices.tsx";

/** The maximum comes from src/schema/chats/trial.ts. */
const COUNTS = ["2", "3", "4", "5", "6", "7", "8"].map((value) => ({ value, label: `${value} ways` }));
const [MODEL_PREFIX, AGENT_PREFIX] = ["model ", "agent "];

const openChat = signal<Chat | undefined>(undefined);

/** Opens the dialog. The page must render TryDialog. */
export const openTry = (chat: Chat): void => {
  openChat.value = chat;
};

/** Renders nothing until the dialog is opened. */
export const TryDialog = () => (openChat.value ? <TryForm key={openChat.value.id} chat={openChat.value} /> : null);

const TryForm = ({ chat }: { chat: Chat }) => {
  const count = useSignal("3");
  const prompt = useSignal("");
  const checkCommand = useSignal("");
  const checkMinutes = useSignal("10");
  const hasOwnPrompts = useSignal(false);
  const hasOwnModels = useSignal(false);
  const prompts = useSignal<readonly string[]>([]);
  const chosenModels = useSignal<readonly string[]>([]);
  const wayIndexes = Array.from({ length: Number(count.value) }, (_, at) => at);
  const choices = useChoices();
  const replaceAt = (list: readonly string[], index: number, value: string): string[] =>
    wayIndexes.map((wayIndex) => (wayIndex === index ? value : (list[wayIndex] ?? "")));
  const toTrialWay = (index: number): CreateTrialWay => {
    const choice = hasOwnModels.value ? (chosenModels.value[index] ?? "") : "";
    const text = hasOwnPrompts.value ? (prompts.value[index] ?? "").trim() : "";
    const model = choice.startsWith(MODEL_PREFIX)
      ? { model_config_id: choice.slice(MODEL_PREFIX.length), coding_agent: null }
      : {};
    const agent = choice.startsWith(AGENT_PREFIX) ? { coding_agent: choice.slice(AGENT_PREFIX.length) } : {};
    return Object.assign({}, text === "" ? {} : { prompt: text }, model, agent);
  };
  const start = async (): Promise<void> => {
    const body = {
      prompt: prompt.value,
      ways: wayIndexes.map(toTrialWay),
      ...toCheck(checkCommand.value, checkMinutes.value),
    };
    await call("POST /chats/:chat/trials", { path: { chat: chat.id }, body });
    showToast(`Trying ${wayIndexes.length} ways`);
  };
  return (
    <FormDialog
      title="Try several ways"
      submitLabel={`Try ${count.value} ways`}
      onClose={setTo(openChat, undefined)}
      act={start}
    >
      {(problems) => (
        <>
          <p class="mut">
            Each way works in a fork of the workspace, with a copy of this chat. Afterwards, keep one; the others are
            moved to the trash.
          </p>
          <Select label="Ways" value={count.value} choices={COUNTS} onPick={writeTo(count)} />
          <Area
            label="Prompt"
            name="prompt"
            value={prompt.value}
            onInput={writeTextTo(prompt)}
            required={!hasOwnPrompts.value}
            {...(problems.prompt ? { error: problems.prompt } : {})}
          />
          <Switch
            label="Different prompt for each way"
            checked={hasOwnPrompts.value}
            onSwitch={writeTo(hasOwnPrompts)}
          />
          {hasOwnPrompts.value &&
            wayIndexes.map((index) => (
              <Area
                key={index}
                label={`Prompt of way ${index + 1}`}
                rows={2}
                value={prompts.value[index] ?? ""}
                onInput={({ currentTarget }) => {
                  prompts.value = replaceAt(prompts.value, index, currentTarget.value);
                }}
                hint={index === 0 ? "Leave empty to use the prompt above." : undefined}
                {...(problems[`ways.${index}.prompt`] ? { error: problems[`ways.${index}.prompt`] ?? "" } : {})}
              />
            ))}
          <Switch label="Different model for each way" checked={hasOwnModels.value} onSwitch={writeTo(hasOwnModels)} />
          {hasOwnModels.value &&
            wayIndexes.map((index) => (
              <Select
                key={index}
                label={`Model of way ${index + 1}`}
                value={chosenModels.value[index] ?? ""}
                choices={choices}
                onPick={(value) => {
                  chosenModels.value = replaceAt(chosenModels.value, index, value);
                }}
              />
            ))}
          <Field
            label="Check command"
            name="check_command"
            class="input mono"
            placeholder="npm test"
            value={checkCommand.value}
            onInput={writeTextTo(checkCommand)}
            hint="Runs in each fork when the turn ends. The way passes if the exit code is 0."
            autocapitalize="none"
            spellcheck={false}
            {...(problems.check_command ? { error: problems.check_command } : {})}
          />
          {checkCommand.value.trim() !== "" && (
            <Field
              label="Time limit (minutes)"
              name="check_minutes"
              type="number"
              min={1}
              max={60}
              required
              value={checkMinutes.value}
              onInput={writeTextTo(checkMinutes)}
              {...(problems.check_timeout_seconds ? { error: problems.check_timeout_seconds } : {})}
            />
          )}
        </>
      )}
    </FormDialog>
  );
};

const toCheck = (command: string, minutes: string) =>
  command.trim() === "" ? {} : { check_command: command, check_timeout_seconds: Math.round(Number(minutes) * 60) };

const useChoices = () => {
  const models = useModels().filter(({ isAvailable }) => isAvailable);
  const agents = useAgents(true);
  return [
    { value: "", label: "Same as this chat" },
    ...models.map(({ id, display_name }) => ({ value: `${MODEL_PREFIX}${id}`, label: display_name })),
    ...agents.map(({ name, display_name }) => ({
      value: `${AGENT_PREFIX}${name}`,
      label: `${display_name} (coding agent)`,
    })),
  ];
};
