// Wire shapes of coding agents: programs other than Slipway's own loop that can run a chat, as configured by administrators.
import { type Static, Type as t } from "@sinclair/typebox";
import { oneOf } from "../one-of.ts";
import { namedObject } from "../shape-names.ts";
import { strictObject } from "../strict.ts";
import { iconText, lineText } from "../text.ts";

export const AGENT_DIALECTS = ["anthropic", "openai", "google"] as const;

/** A path segment other than `.` and `..`, written without lookahead because readers of the document such as Go's do not support it. */
const SEGMENT = "([^/.\\n\\r]|\\.[^/.\\n\\r]|\\.\\.[^/\\n\\r])[^/\\n\\r]*";

/** A relative path that stays below a home. */
const homePath = (description: string) =>
  t.String({ maxLength: 256, pattern: `^(${SEGMENT}(/${SEGMENT})*/?)?$`, description });

const fields = {
  display_name: lineText({ minLength: 1, maxLength: 64, description: "The display name." }),
  icon: iconText({ maxLength: 2_048, description: "URL or path of an image; empty: a default icon." }),
  enabled: t.Boolean({ description: "Whether people can start chats with it. Existing chats keep it." }),
  command: lineText({
    minLength: 1,
    maxLength: 4_096,
    description: "The program that speaks the Agent Client Protocol on stdio.",
  }),
  arguments: t.Array(t.String({ maxLength: 10_000 }), { maxItems: 100 }),
  variables: t.Record(
    t.String({ pattern: "^[A-Za-z_][A-Za-z0-9_]*$", maxLength: 256 }),
    t.String({ maxLength: 10_000 }),
    {
      maxProperties: 100,
      additionalProperties: false,
      description:
        "Environment variables, readable by administrators and by the workspace. `$NAME` refers to a variable of the workspace, such as `$OPENAI_BASE_URL`.",
    },
  ),
  install_script: t.String({
    maxLength: 20_000,
    description:
      "Run by `sh` once in each workspace, and again after it changes. Programs that it puts into `$SLIPWAY_INSTALL_DIR/bin` or `$SLIPWAY_INSTALL_DIR/node_modules/.bin` are on the agent's PATH.",
  }),
  dialect: oneOf(AGENT_DIALECTS, "The API that it uses to call models."),
  auth_method: t.String({
    maxLength: 256,
    description: "The method of `authenticate` to send before a session; empty: none.",
  }),
  mode: t.String({ maxLength: 256, description: "The mode in which its sessions start; empty: the agent's default." }),
  instructions_file: t.Optional(
    homePath(
      "A file in the home directory that the agent reads as instructions, such as `.codex/AGENTS.md`. Slipway writes the chat's instructions to it. Empty: they are part of the first prompt.",
    ),
  ),
  skills_folder: t.Optional(
    homePath(
      "A folder in the home directory where the agent looks for skills, such as `.claude/skills`. Empty: skills are listed in the instructions.",
    ),
  ),
  own_instructions: t.Optional(
    t.Array(t.String({ minLength: 1, maxLength: 256, pattern: "^[^/]+$" }), {
      maxItems: 20,
      description:
        "Files in the workspace's folder that the agent reads on its own, so Slipway doesn't send them again.",
    }),
  ),
  starts_workspace: t.Optional(
    t.Boolean({ description: "Whether a message starts the chat's workspace when it is stopped. Absent: yes." }),
  ),
};

export const CODING_AGENT_NAME = "^[a-z0-9]+(-[a-z0-9]+)*$";
export const codingAgentName = (description?: string) =>
  t.String({ pattern: CODING_AGENT_NAME, maxLength: 64, ...(description === undefined ? {} : { description }) });

export const CodingAgentInput = strictObject(fields);
export type CodingAgentInput = Static<typeof CodingAgentInput>;

export const CodingAgent = namedObject("CodingAgent", {
  name: codingAgentName(),
  is_preset: t.Boolean({ description: "Ships with Slipway. Deleting it restores its original settings." }),
  ...fields,
});
export type CodingAgent = Static<typeof CodingAgent>;

export const CodingAgents = namedObject("CodingAgents", { agents: t.Array(CodingAgent) });
export type CodingAgents = Static<typeof CodingAgents>;

/** The default coding agent of a template for new chats and tasks. */
export const DefaultAgent = namedObject("DefaultCodingAgent", {
  name: t.String(),
  display_name: t.String({ description: "Its name if the agent doesn't exist." }),
  problem: t.String({ description: "Why it can't be chosen now, in a sentence; empty when it can." }),
});
export type DefaultAgent = Static<typeof DefaultAgent>;

/** The public data of an available coding agent. */
export const AvailableAgents = namedObject("AvailableCodingAgents", {
  agents: t.Array(
    t.Object({ name: t.String(), display_name: t.String(), icon: t.String(), dialect: oneOf(AGENT_DIALECTS) }),
  ),
  default_agent: t.Optional(DefaultAgent),
});
export type AvailableAgents = Static<typeof AvailableAgents>;
