// The built-in coding agents. None is part of Slipway: each is installed into the workspace by its script, under its own license. All are
// disabled until an administrator enables them.
import type { CodingAgent, CodingAgentInput } from "#schema/ai/coding-agents.ts";

/** Installs npm packages unless the workspace's image already has the program. */
const toNpmScript = (program: string, packages: string): string =>
  `command -v ${program} >/dev/null 2>&1 && exit 0
command -v npm >/dev/null 2>&1 || { echo "Install Node.js with npm in the workspace's image, or ${program} itself."; exit 1; }
npm install --prefix "$SLIPWAY_INSTALL_DIR" --no-audit --no-fund --save-exact ${packages}
`;

const preset = (name: string, input: Omit<CodingAgentInput, "enabled" | "icon">): CodingAgent => ({
  name,
  is_preset: true,
  enabled: false,
  icon: "",
  ...input,
});

const OPENCODE_CONFIG = JSON.stringify({
  $schema: "https://opencode.ai/config.json",
  autoupdate: false,
  share: "disabled",
  permission: { edit: "ask", bash: "ask" },
  model: "slipway/default",
  small_model: "slipway/default",
  provider: {
    slipway: {
      npm: "@ai-sdk/openai-compatible",
      name: "Slipway",
      options: { baseURL: "{env:OPENAI_BASE_URL}", apiKey: "{env:OPENAI_API_KEY}" },
      models: { default: { name: "Default", tool_call: true } },
    },
  },
});

export const PRESETS: readonly CodingAgent[] = [
  preset("claude-code", {
    display_name: "Claude Code",
    command: "claude-agent-acp",
    arguments: [],
    variables: { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", DISABLE_AUTOUPDATER: "1" },
    install_script: toNpmScript("claude-agent-acp", "@agentclientprotocol/claude-agent-acp@0.49.0"),
    dialect: "anthropic",
    auth_method: "",
    mode: "",
    instructions_file: ".claude/CLAUDE.md",
    skills_folder: ".claude/skills",
    own_instructions: ["CLAUDE.md"],
  }),
  preset("codex", {
    display_name: "Codex",
    command: "codex-acp",
    arguments: [
      ...["-c", 'model_provider="slipway"'],
      ...["-c", 'model_providers.slipway.name="Slipway"'],
      ...["-c", 'model_providers.slipway.base_url="$OPENAI_BASE_URL"'],
      ...["-c", 'model_providers.slipway.env_key="OPENAI_API_KEY"'],
      ...["-c", 'model_providers.slipway.wire_api="responses"'],
      // Codex asks before each command that may change something. Its sandbox is off, because it requires programs that few images have.
      ...["-c", 'approval_policy="untrusted"'],
      ...["-c", 'sandbox_mode="danger-full-access"'],
    ],
    variables: {},
    install_script: toNpmScript("codex-acp", "@zed-industries/codex-acp@0.16.0"),
    dialect: "openai",
    auth_method: "",
    mode: "",
    instructions_file: ".codex/AGENTS.md",
    skills_folder: ".codex/skills",
    own_instructions: ["AGENTS.md"],
  }),
  preset("opencode", {
    display_name: "opencode",
    command: "opencode",
    arguments: ["acp"],
    variables: {
      OPENCODE_CONFIG_CONTENT: OPENCODE_CONFIG,
      OPENCODE_DISABLE_AUTOUPDATE: "1",
      OPENCODE_DISABLE_MODELS_FETCH: "1",
      OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
      OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
    },
    install_script: toNpmScript("opencode", "opencode-ai@1.18.33"),
    dialect: "openai",
    auth_method: "",
    mode: "",
    instructions_file: ".config/opencode/AGENTS.md",
    skills_folder: ".claude/skills",
    own_instructions: ["AGENTS.md"],
  }),
  preset("gemini", {
    display_name: "Gemini CLI",
    command: "gemini",
    arguments: ["--acp"],
    // In an untrusted folder, Gemini ignores all MCP servers, including Slipway's.
    variables: { GEMINI_CLI_NO_RELAUNCH: "1", GEMINI_CLI_TRUST_WORKSPACE: "true" },
    install_script: toNpmScript("gemini", "@google/gemini-cli@0.61.0"),
    dialect: "google",
    auth_method: "gemini-api-key",
    mode: "",
    instructions_file: ".gemini/GEMINI.md",
    skills_folder: ".gemini/skills",
    own_instructions: ["GEMINI.md"],
  }),
];

const findPreset = (name: string): CodingAgent | undefined => PRESETS.find((preset) => preset.name === name);

/**
 * Returns the agent with this name: the one that administrators stored, or else the preset. A changed preset keeps the locations of
 * instructions and skills, unless administrators set others.
 */
export const resolveProfile = (name: string, stored: CodingAgent | undefined): CodingAgent | undefined => {
  const preset = findPreset(name);
  if (!stored || !preset) return stored ?? preset;
  const { instructions_file = "", skills_folder = "", own_instructions = [] } = preset;
  return Object.assign({ instructions_file, skills_folder, own_instructions }, stored);
};

/** Returns the presets and the administrators' agents, by name. */
export const mergePresets = (stored: readonly CodingAgent[]): readonly CodingAgent[] => {
  const agentsByName = new Map(stored.map((agent) => [agent.name, agent]));
  const names = new Set([...PRESETS, ...stored].map(({ name }) => name));
  return [...names].flatMap((name) => resolveProfile(name, agentsByName.get(name)) ?? []);
};
