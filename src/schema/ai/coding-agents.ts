// Wire shapes of coding agents: programs other than Slipway's own loop that can run a chat, as configured by administrators.
import { type Static, Type as t } from "@sinclair/typebox";
import { oneOf } from "../one-of.ts";
import { namedObject } from "../shape-names.ts";
import { strictObject } from "../strict.ts";
import { iconText, lineText } from "../text.ts";

export const AGENT_DIALECTS = ["anthropic", "openai", "google"] as const;

/** A path segment other than `.` and `..`. Has no lookahead, because some readers of the API document, such as Go's, do not support it. */
const SEGMENT = "([^/.\\n\\r]|\\.[^/.\\n\\r]|\\.\\.[^/\\n\\r])[^/\\n\\r]*";

/** A relative path below a home directory. */
const homePath = (description: string) =>
  t.String({ maxLength: 256, pattern: `^(${SEGMENT}(/${SEGMENT})*/?)?$`, description });

const fields = {
  display_name: lineText({ minLength: 1, maxLength: 64, description: "The display name of the agent." }),
  icon: iconText({
    maxLength: 2_048,
    description: "The URL or path of the agent's icon. If empty, a default icon is used.",
  }),
  enabled: t.Boolean({ description: "Whether users can start chats with the agent. Existing chats keep it." }),
  command: lineText({
    minLength: 1,
    maxLength: 4_096,
    description: "The command that starts the agent, which uses the Agent Client Protocol over stdio.",
  }),
  arguments: t.Array(t.String({ maxLength: 10_000 }), {
    maxItems: 100,
    description: "The arguments of the command. `$NAME` refers to an environment variable of the workspace.",
  }),
  variables: t.Record(
    t.String({ pattern: "^[A-Za-z_][A-Za-z0-9_]*$", maxLength: 256 }),
    t.String({ maxLength: 10_000 }),
    {
      maxProperties: 100,
      additionalProperties: false,
      description:
        "The agent's environment variables, readable by administrators and by the workspace. `$NAME` refers to a variable of the workspace, such as `$OPENAI_BASE_URL`.",
    },
  ),
  install_script: t.String({
    maxLength: 20_000,
    description:
      "A script that `sh` runs once in each workspace, and again after the script changes. Programs that it installs into `$SLIPWAY_INSTALL_DIR/bin` or `$SLIPWAY_INSTALL_DIR/node_modules/.bin` are on the agent's PATH.",
  }),
  dialect: oneOf(AGENT_DIALECTS, "The API that the agent uses to call models."),
  auth_method: t.String({
    maxLength: 256,
    description: "The `authenticate` method that is sent before a session starts; empty if none is.",
  }),
  mode: t.String({
    maxLength: 256,
    description: "The mode in which the agent's sessions start. If empty, the agent's default.",
  }),
  instructions_file: t.Optional(
    homePath(
      "The file in the home directory that the agent reads instructions from, such as `.codex/AGENTS.md`. Slipway writes the chat's instructions to it. If empty, they are part of the first prompt.",
    ),
  ),
  skills_folder: t.Optional(
    homePath(
      "The folder in the home directory where the agent looks for skills, such as `.claude/skills`. If empty, skills are listed in the instructions.",
    ),
  ),
  own_instructions: t.Optional(
    t.Array(t.String({ minLength: 1, maxLength: 256, pattern: "^[^/]+$" }), {
      maxItems: 20,
      description: "Files in the workspace's folder that the agent reads on its own. Slipway doesn't send them again.",
    }),
  ),
  starts_workspace: t.Optional(
    t.Boolean({ description: "Whether a message starts the chat's workspace if it is stopped; default true." }),
  ),
};

export const CODING_AGENT_NAME = "^[a-z0-9]+(-[a-z0-9]+)*$";
export const codingAgentName = (description?: string) =>
  t.String({ pattern: CODING_AGENT_NAME, maxLength: 64, ...(description === undefined ? {} : { description }) });

export const CodingAgentInput = strictObject(fields);
export type CodingAgentInput = Static<typeof CodingAgentInput>;

export const CodingAgent = namedObject("CodingAgent", {
  name: codingAgentName("The name of the agent. Chats and tasks send it as `coding_agent`."),
  is_preset: t.Boolean({
    description: "Whether the agent ships with Slipway. Deleting a preset restores its original settings.",
  }),
  ...fields,
});
export type CodingAgent = Static<typeof CodingAgent>;

export const CodingAgents = namedObject("CodingAgents", { agents: t.Array(CodingAgent) });
export type CodingAgents = Static<typeof CodingAgents>;

/** The default coding agent of a template for new chats and tasks. */
export const DefaultAgent = namedObject("DefaultCodingAgent", {
  name: t.String({ description: "The name to send as `coding_agent`." }),
  display_name: t.String({ description: "The agent's display name, or its name if it doesn't exist." }),
  problem: t.String({ description: "Why the agent can't be selected now, as a sentence; empty if it can." }),
});
export type DefaultAgent = Static<typeof DefaultAgent>;

/** The public data of an available coding agent. */
export const AvailableAgents = namedObject("AvailableCodingAgents", {
  agents: t.Array(
    t.Object({
      name: t.String({ description: "The name to send as `coding_agent`." }),
      display_name: t.String(),
      icon: fields.icon,
      dialect: fields.dialect,
    }),
    { description: "The enabled agents." },
  ),
  default_agent: t.Optional({
    ...DefaultAgent,
    description:
      "The default of the requested template, or of the template of the requested workspace; absent if it has none.",
  }),
});
export type AvailableAgents = Static<typeof AvailableAgents>;
