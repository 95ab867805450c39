// What an agent lets people choose in a session, in one form: its modes, and those of its configuration options that have a list of values. Pure.
import type { SessionConfigOption, SessionModeState } from "@agentclientprotocol/sdk";
import type { AgentOption } from "#schema/chats/agent-option.ts";

/** `mode`: set by `session/set_mode`; `config`: by `session/set_config_option`. */
export type SessionOption = AgentOption & { readonly via: "mode" | "config" };

const MODE = "mode";
const MAX_OPTIONS = 20;
const MAX_CHOICES = 200;
const MAX_WORDS = 200;

export const isModeOption = ({ id, category }: Pick<AgentOption, "id" | "category">): boolean =>
  id === MODE || category === MODE;

/** Returns the options of a session. Agents that have modes in both forms have the older one, which all of them understand. */
export const readOptions = (
  modes: SessionModeState | null | undefined,
  config: readonly SessionConfigOption[] | null | undefined,
): SessionOption[] => {
  const others = (config ?? []).flatMap((one) => selectIn(one));
  if (!modes || modes.availableModes.length === 0) return others.slice(0, MAX_OPTIONS);
  const mode: SessionOption = {
    id: MODE,
    name: "Mode",
    category: MODE,
    via: "mode",
    current: modes.currentModeId,
    choices: modes.availableModes.slice(0, MAX_CHOICES).map((one) => toChoice(one.id, one.name, one.description)),
  };
  return [mode, ...others.filter((one) => !isModeOption(one))].slice(0, MAX_OPTIONS);
};

/** Returns the options after the agent has changed its configuration: modes of the older form stay. */
export const withConfig = (
  known: readonly SessionOption[],
  config: readonly SessionConfigOption[],
): SessionOption[] => {
  const modes = known.filter(({ via }) => via === "mode");
  const others = readOptions(undefined, config);
  return modes.length === 0 ? others : [...modes, ...others.filter((one) => !isModeOption(one))];
};

/** Returns the options with another current choice of one. */
export const withCurrent = (known: readonly SessionOption[], id: string, current: string): SessionOption[] =>
  known.map((one) => (one.id === id ? { ...one, current } : one));

/** As callers see them. */
export const toAgentOptions = (options: readonly SessionOption[]): AgentOption[] =>
  options.map(({ via: _, ...shown }) => shown);

const selectIn = (option: SessionConfigOption): SessionOption[] => {
  if (option.type !== "select") return [];
  const choices = option.options.flatMap((one) => ("options" in one ? one.options : [one]));
  return [
    {
      id: option.id,
      name: cut(option.name),
      category: option.category ?? "",
      via: "config",
      current: option.currentValue,
      choices: choices.slice(0, MAX_CHOICES).map((one) => toChoice(one.value, one.name, one.description)),
    },
  ];
};

const toChoice = (id: string, name: string, description: string | null | undefined) => ({
  id,
  name: cut(name),
  description: cut(description ?? ""),
});

const cut = (text: string): string => text.slice(0, MAX_WORDS);
