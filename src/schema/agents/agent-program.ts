// What the server asks of the daemon to run a coding agent for a chat: its program, and the bytes that go in and out of it.
import { type Static, Type as t } from "@sinclair/typebox";

const Word = t.String({ maxLength: 100_000 });

/** Below the home, through no hidden way out of it. */
const HomePath = t.String({ minLength: 1, maxLength: 1_024 });

export const StartAgentProgram = t.Object({
  /** What it will be called. One that is known already is not started again. */
  id: t.String({ pattern: "^[0-9a-f-]{36}$" }),
  /** The chat that it works for: it has a home folder of its own, and one program at a time. */
  chat_id: t.String({ pattern: "^[0-9a-f-]{36}$" }),
  /** The program, and its arguments. `$NAME` stands for a variable of the workspace. */
  command: t.String({ minLength: 1, maxLength: 4_096 }),
  arguments: t.Array(Word, { maxItems: 100 }),
  /** `$NAME` in values stands for a variable of the workspace. */
  variables: t.Record(t.String({ minLength: 1, maxLength: 256 }), Word),
  /** Variables whose value is the workspace's token for models have the chat's instead, so that the calls count for the chat. */
  model_tokens: t.Optional(t.Object({ of_workspace: t.String({ minLength: 1 }), of_chat: t.String({ minLength: 1 }) })),
  /** Run by `sh` before the first start in this workspace, and again when it has changed; empty: nothing is to be installed. */
  install_script: t.String({ maxLength: 100_000 }),
  /** The token of the MCP server that the program finds on the loopback interface; absent: it finds none. */
  mcp_token: t.Optional(t.String({ minLength: 32, maxLength: 256 })),
  /** Files in the program's home, by their paths in it; those of the last start that are not among them are removed. */
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

/** A JSON-RPC request of an MCP client, as it came. */
export type AgentMcpRequest = { readonly number: number; readonly message: string };

/** The output from the offset that was asked for on; `next` is where to go on, which also says that what came before has arrived. */
export type AgentProgramOutput = {
  state: AgentProgramState;
  /** The folder in which it works. */
  directory: string;
  output: string;
  next: number;
  /** Only when it has ended. */
  exit_code: number | null;
  /** The last of its error output, or of that of the installation. */
  error_output: string;
  /** Where the program finds its MCP server. */
  mcp_url?: string;
  /** What it has asked there since the request with the number that was named. */
  mcp_requests?: AgentMcpRequest[];
};
