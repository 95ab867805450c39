// Wire shapes of coding agents: programs other than Slipway's own loop that a chat can be led with, as administrators set them up.
import { type Static, Type as t } from "@sinclair/typebox";
import { namedObject } from "../named.ts";
import { oneOf } from "../one-of.ts";
import { strictObject } from "../strict.ts";
import { iconText, lineText } from "../text.ts";

export const AGENT_DIALECTS = ["anthropic", "openai", "google"] as const;

/** A segment of a path that is neither `.` nor `..`, written without looking ahead: readers of the document such as Go's have no such thing. */
const SEGMENT = "([^/.\\n\\r]|\\.[^/.\\n\\r]|\\.\\.[^/\\n\\r])[^/\\n\\r]*";

/** Below a home: no way up, and not absolute. */
const homePath = (description: string) =>
  t.String({ maxLength: 256, pattern: `^(${SEGMENT}(/${SEGMENT})*/?)?$`, description });

const fields = {
  display_name: lineText({ minLength: 1, maxLength: 64, description: "What people see in the picker." }),
  icon: iconText({ maxLength: 2_048, description: "URL or path of a picture; empty: the picker's own." }),
  enabled: t.Boolean({ description: "Whether people can begin chats with it. Existing chats keep it." }),
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
        "Environment variables, readable by administrators and by the workspace. `$NAME` stands for a variable of the workspace, such as `$OPENAI_BASE_URL`.",
    },
  ),
  install_script: t.String({
    maxLength: 20_000,
    description:
      "Run by `sh` once in each workspace, and again after it has changed. What it puts into `$SLIPWAY_INSTALL_DIR/bin` or `$SLIPWAY_INSTALL_DIR/node_modules/.bin` is on the agent's path.",
  }),
  dialect: oneOf(AGENT_DIALECTS, "The API by which it calls models."),
  auth_method: t.String({
    maxLength: 256,
    description: "The method of `authenticate` that the agent must be sent before a session; empty: none.",
  }),
  mode: t.String({ maxLength: 256, description: "The mode in which its sessions begin; empty: the agent's default." }),
  instructions_file: t.Optional(
    homePath(
      "A file in the agent's home that it reads as instructions, such as `.codex/AGENTS.md`. Slipway writes there what the chat's instructions are. Empty: they are in the first prompt.",
    ),
  ),
  skills_folder: t.Optional(
    homePath(
      "A folder in the agent's home in which it looks for skills, such as `.claude/skills`. Empty: skills are listed in the instructions.",
    ),
  ),
  own_instructions: t.Optional(
    t.Array(t.String({ minLength: 1, maxLength: 256, pattern: "^[^/]+$" }), {
      maxItems: 20,
      description:
        "Names of files in the workspace's folder that the agent reads by itself: Slipway does not repeat them.",
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
  is_preset: t.Boolean({ description: "Ships with Slipway. Deleting it brings its original settings back." }),
  ...fields,
});
export type CodingAgent = Static<typeof CodingAgent>;

export const CodingAgents = namedObject("CodingAgents", { agents: t.Array(CodingAgent) });
export type CodingAgents = Static<typeof CodingAgents>;

/** The agent that a template names for new chats and tasks. */
export const DefaultAgent = namedObject("DefaultCodingAgent", {
  name: t.String(),
  display_name: t.String({ description: "The name, where there is no such agent." }),
  problem: t.String({ description: "Why it can't be chosen now, in a sentence; empty when it can." }),
});
export type DefaultAgent = Static<typeof DefaultAgent>;

/** What everyone may know of an agent that can be chosen. */
export const AvailableAgents = namedObject("AvailableCodingAgents", {
  agents: t.Array(
    t.Object({ name: t.String(), display_name: t.String(), icon: t.String(), dialect: oneOf(AGENT_DIALECTS) }),
  ),
  default_agent: t.Optional(DefaultAgent),
});
export type AvailableAgents = Static<typeof AvailableAgents>;
