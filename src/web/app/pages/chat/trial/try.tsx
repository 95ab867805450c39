// The dialog that starts a trial: the number of ways, their prompts, their models, and the check command.
import { signal, useSignal } from "@preact/signals";
import type { Chat } from "#schema/chats/chat.ts";
import type { CreateTrialWay } from "#schema/chats/trial.ts";
import { call } from "../../../data/api.ts";
import { Area, Field, Select, Switch } from "../../../parts/field.tsx";
import { FormDialog } from "../../../parts/form-dialog.tsx";
import { into, sets, textInto } from "../../../parts/handlers.ts";
import { showToast } from "../../../shell/toasts.tsx";
import { useAgents, useModels } from "../choices.tsx";

/** The maximum comes from src/schema/chats/trial.ts. */
const COUNTS = ["2", "3", "4", "5", "6", "7", "8"].map((value) => ({ value, label: `${value} ways` }));
const [MODEL, AGENT] = ["model ", "agent "];

const opened = signal<Chat | undefined>(undefined);

/** Opens the dialog. The page must render TryDialog. */
export const openTry = (chat: Chat): void => {
  opened.value = chat;
};

/** Renders nothing until the dialog is opened. */
export const TryDialog = () => (opened.value ? <OpenDialog key={opened.value.id} chat={opened.value} /> : null);

const OpenDialog = ({ chat }: { chat: Chat }) => {
  const count = useSignal("3");
  const prompt = useSignal("");
  const check = useSignal("");
  const minutes = useSignal("10");
  const hasOwnPrompts = useSignal(false);
  const hasOwnModels = useSignal(false);
  const prompts = useSignal<readonly string[]>([]);
  const chosen = useSignal<readonly string[]>([]);
  const ways = Array.from({ length: Number(count.value) }, (_, at) => at);
  const choices = useChoices();
  const replaceAt = (list: readonly string[], at: number, value: string): string[] =>
    ways.map((one) => (one === at ? value : (list[one] ?? "")));
  const toTrialWay = (at: number): CreateTrialWay => {
    const pick = hasOwnModels.value ? (chosen.value[at] ?? "") : "";
    const text = hasOwnPrompts.value ? (prompts.value[at] ?? "").trim() : "";
    const model = pick.startsWith(MODEL) ? { model_config_id: pick.slice(MODEL.length), coding_agent: null } : {};
    const agent = pick.startsWith(AGENT) ? { coding_agent: pick.slice(AGENT.length) } : {};
    return Object.assign({}, text === "" ? {} : { prompt: text }, model, agent);
  };
  const start = async (): Promise<void> => {
    const body = { prompt: prompt.value, ways: ways.map(toTrialWay), ...toCheck(check.value, minutes.value) };
    await call("POST /chats/:chat/trials", { path: { chat: chat.id }, body });
    showToast(`Trying ${ways.length} ways`);
  };
  return (
    <FormDialog
      title="Try several ways"
      submit={`Try ${count.value} ways`}
      onClose={sets(opened, undefined)}
      act={start}
    >
      {(problems) => (
        <>
          <p class="mut">
            Each way works in a fork of the workspace, with a copy of this chat. Afterwards, keep one; the others are
            moved to the trash.
          </p>
          <Select label="Ways" value={count.value} choices={COUNTS} onPick={into(count)} />
          <Area
            label="Prompt"
            name="prompt"
            value={prompt.value}
            onInput={textInto(prompt)}
            required={!hasOwnPrompts.value}
            {...(problems.prompt ? { error: problems.prompt } : {})}
          />
          <Switch label="Different prompt for each way" checked={hasOwnPrompts.value} onSwitch={into(hasOwnPrompts)} />
          {hasOwnPrompts.value &&
            ways.map((at) => (
              <Area
                key={at}
                label={`Prompt of way ${at + 1}`}
                rows={2}
                value={prompts.value[at] ?? ""}
                onInput={({ currentTarget }) => {
                  prompts.value = replaceAt(prompts.value, at, currentTarget.value);
                }}
                hint={at === 0 ? "Leave empty to use the prompt above." : undefined}
                {...(problems[`ways.${at}.prompt`] ? { error: problems[`ways.${at}.prompt`] ?? "" } : {})}
              />
            ))}
          <Switch label="Different model for each way" checked={hasOwnModels.value} onSwitch={into(hasOwnModels)} />
          {hasOwnModels.value &&
            ways.map((at) => (
              <Select
                key={at}
                label={`Model of way ${at + 1}`}
                value={chosen.value[at] ?? ""}
                choices={choices}
                onPick={(value) => {
                  chosen.value = replaceAt(chosen.value, at, value);
                }}
              />
            ))}
          <Field
            label="Check command"
            name="check_command"
            class="input mono"
            placeholder="npm test"
            value={check.value}
            onInput={textInto(check)}
            hint="Runs in each fork when the turn ends. The way passes if the exit code is 0."
            autocapitalize="none"
            spellcheck={false}
            {...(problems.check_command ? { error: problems.check_command } : {})}
          />
          {check.value.trim() !== "" && (
            <Field
              label="Time limit (minutes)"
              name="check_minutes"
              type="number"
              min={1}
              max={60}
              required
              value={minutes.value}
              onInput={textInto(minutes)}
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
    ...models.map(({ id, display_name }) => ({ value: `${MODEL}${id}`, label: display_name })),
    ...agents.map(({ name, display_name }) => ({ value: `${AGENT}${name}`, label: `${display_name} (coding agent)` })),
  ];
};
