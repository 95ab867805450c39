// Wire shapes of the options that a coding agent offers in a chat: modes, models, and other settings with a list of values.
import { type Static, Type as t } from "@sinclair/typebox";
import { namedObject } from "../shape-names.ts";

export const AgentOption = namedObject("ChatAgentOption", {
  id: t.String({
    description: "The ID of the option, assigned by the coding agent. Used as the key in `agent_options` of an update.",
  }),
  name: t.String({ description: "The display name of the option." }),
  category: t.String({
    description:
      "The category of the option, as named by the agent, such as `mode`, `model` or `thought_level`; may be empty.",
  }),
  current: t.String({
    description: "The ID of the selected choice. It applies now or from the next message.",
  }),
  choices: t.Array(
    t.Object({
      id: t.String({ description: "The ID of the choice. Used as the value in `agent_options` of an update." }),
      name: t.String({ description: "The display name of the choice." }),
      description: t.String({ description: "The coding agent's explanation of the choice; may be empty." }),
    }),
  ),
});
export type AgentOption = Static<typeof AgentOption>;

/** The IDs of the chosen values, by the ID of the option. */
export const ChosenOptions = t.Record(t.String({ maxLength: 256 }), t.String({ maxLength: 1_024 }), {
  maxProperties: 50,
  description:
    "The selected options of the coding agent, by the IDs of `agent_options`. They apply from the next message. Omitted options are unchanged.",
});
export type ChosenOptions = Static<typeof ChosenOptions>;

/** The session of a chat's coding agent. */
export type AgentSessionState = {
  readonly session_id: string;
  /** The last message sent to the agent. */
  readonly through: number;
  readonly options?: readonly AgentOption[];
  readonly chosen?: ChosenOptions;
};
