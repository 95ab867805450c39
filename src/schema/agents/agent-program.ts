// Wire shapes of the server's requests to the daemon to run a coding agent for a chat: its program, and its input and output.
import { type Static, Type as t } from "@sinclair/typebox";

const Word = t.String({ maxLength: 100_000 });

/** A path relative to the home directory. The schema checks only its length. */
const HomePath = t.String({ minLength: 1, maxLength: 1_024 });

export const StartAgentProgram = t.Object({
  /** The ID of the program. A program with this ID that already exists is not started again. */
  id: t.String({ pattern: "^[0-9a-f-]{36}$" }),
  /** The chat of the program. A chat has its own home folder and runs one program at a time. */
  chat_id: t.String({ pattern: "^[0-9a-f-]{36}$" }),
  /** The program and its arguments. `$NAME` is replaced by the workspace's environment variable of that name. */
  command: t.String({ minLength: 1, maxLength: 4_096 }),
  arguments: t.Array(Word, { maxItems: 100 }),
  /** Environment variables. `$NAME` in values is replaced by the workspace's environment variable of that name. */
  variables: t.Record(t.String({ minLength: 1, maxLength: 256 }), Word),
  /** Variables whose value is the workspace's model token get the chat's token instead, so that calls are charged to the chat. */
  model_tokens: t.Optional(t.Object({ of_workspace: t.String({ minLength: 1 }), of_chat: t.String({ minLength: 1 }) })),
  /** A script that `sh` runs before the first start in this workspace, and again when the script has changed; empty if none is needed. */
  install_script: t.String({ maxLength: 100_000 }),
  /** The token of the MCP server on the loopback interface; without it, the program gets no MCP server. */
  mcp_token: t.Optional(t.String({ minLength: 32, maxLength: 256 })),
  /** Files in the program's home, by path. Files of the last start that are not listed are removed. */
  home_files: t.Optional(
    t.Array(t.Object({ path: HomePath, text: t.String({ maxLength: 1_000_000 }) }), { maxItems: 1_000 }),
  ),
  /** Symbolic links in the program's home to folders of the workspace. */
  home_links: t.Optional(
    t.Array(t.Object({ path: HomePath, target: t.String({ maxLength: 4_096 }) }), { maxItems: 1_000 }),
  ),
});
export type StartAgentProgram = Static<typeof StartAgentProgram>;
export type HomeFiles = Pick<StartAgentProgram, "home_files" | "home_links">;
export type ModelTokens = NonNullable<StartAgentProgram["model_tokens"]>;

/** `ended` after `installing`: the installation failed. */
export type AgentProgramState = "installing" | "running" | "ended";

/** A JSON-RPC request of an MCP client, unmodified. */
export type AgentMcpRequest = { readonly number: number; readonly message: string };

/** The output from the requested offset. `next` is the offset at which to continue; requesting it acknowledges the output before it. */
export type AgentProgramOutput = {
  state: AgentProgramState;
  /** The program's working directory. */
  directory: string;
  output: string;
  next: number;
  /** Set only once the program has ended. */
  exit_code: number | null;
  /** The end of the program's error output, or of the installation's. */
  error_output: string;
  /** URL of the program's MCP server. */
  mcp_url?: string;
  /** The program's MCP requests after the given number. */
  mcp_requests?: AgentMcpRequest[];
};
