// Converts the options of an agent's session to one form: the modes, and the configuration options with a list of values. Pure.
import type { SessionConfigOption, SessionModeState } from "@agentclientprotocol/sdk";
import type { AgentOption } from "#schema/chats/agent-option.ts";

/** `mode`: set by `session/set_mode`; `config`: by `session/set_config_option`. */
export type SessionOption = AgentOption & { readonly via: "mode" | "config" };

const MODE = "mode";
const MAX_OPTIONS = 20;
const MAX_CHOICES = 200;
const MAX_TEXT_LENGTH = 200;
/** Maximum lengths of IDs. Options with longer IDs cannot be selected (`ChosenOptions`). */
const MAX_OPTION_ID_LENGTH = 256;
const MAX_CHOICE_ID_LENGTH = 1_024;

export const isModeOption = ({ id, category }: Pick<AgentOption, "id" | "category">): boolean =>
  id === MODE || category === MODE;

/** Returns the options of a session. If an agent offers modes in both forms, the older form is used, because all agents support it. */
export const readOptions = (
  modes: SessionModeState | null | undefined,
  config: readonly SessionConfigOption[] | null | undefined,
): SessionOption[] => {
  const others = (config ?? []).flatMap((one) => toSelectOption(one));
  if (!modes || modes.availableModes.length === 0) return others.slice(0, MAX_OPTIONS);
  const mode: SessionOption = {
    id: MODE,
    name: "Mode",
    category: MODE,
    via: "mode",
    current: truncateId(modes.currentModeId),
    choices: toChoices(modes.availableModes),
  };
  return [mode, ...others.filter((one) => !isModeOption(one))].slice(0, MAX_OPTIONS);
};

/**
 * Returns the options after a configuration change by the agent. Modes in the older form are kept. Without a configuration, the options are
 * unchanged.
 */
export const applyConfig = (
  options: readonly SessionOption[],
  config: readonly SessionConfigOption[] | null | undefined,
): readonly SessionOption[] => {
  if (!config) return options;
  const modes = options.filter(({ via }) => via === "mode");
  const others = readOptions(undefined, config);
  return modes.length === 0 ? others : [...modes, ...others.filter((one) => !isModeOption(one))];
};

/** Returns the options with another current choice for one of them. */
export const selectChoice = (options: readonly SessionOption[], id: string, current: string): SessionOption[] =>
  options.map((one) => (one.id === id ? { ...one, current: truncateId(current) } : one));

/** Converts the options to the API's form. */
export const toAgentOptions = (options: readonly SessionOption[]): AgentOption[] =>
  options.map(({ via: _, ...option }) => option);

const toSelectOption = (option: SessionConfigOption): SessionOption[] => {
  if (option.type !== "select" || option.id.length > MAX_OPTION_ID_LENGTH) return [];
  const choices = option.options.flatMap((one) => ("options" in one ? one.options : [one]));
  return [
    {
      id: option.id,
      name: truncateText(option.name),
      category: truncateText(option.category ?? ""),
      via: "config",
      current: truncateId(option.currentValue),
      choices: toChoices(choices.map(({ value, name, description }) => ({ id: value, name, description }))),
    },
  ];
};

type OfferedChoice = { readonly id: string; readonly name: string; readonly description?: string | null | undefined };

const toChoices = (offered: readonly OfferedChoice[]): AgentOption["choices"] =>
  offered
    .filter(({ id }) => id.length <= MAX_CHOICE_ID_LENGTH)
    .slice(0, MAX_CHOICES)
    .map(({ id, name, description }) => ({
      id,
      name: truncateText(name),
      description: truncateText(description ?? ""),
    }));

const truncateText = (text: string): string => text.slice(0, MAX_TEXT_LENGTH);
const truncateId = (id: string): string => id.slice(0, MAX_CHOICE_ID_LENGTH);
