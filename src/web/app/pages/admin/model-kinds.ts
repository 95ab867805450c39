// The kinds of providers and the settings that each needs. Pure.

export type Kind = {
  readonly value: string;
  readonly label: string;
  readonly needsKey: boolean;
  /** The usual address of a self-hosted server. */
  readonly address?: string;
  readonly example: string;
};

export const KINDS: readonly Kind[] = [
  { value: "anthropic", label: "Anthropic", needsKey: true, example: "claude-sonnet-4-5" },
  { value: "openai", label: "OpenAI", needsKey: true, example: "gpt-5.1" },
  { value: "google", label: "Google", needsKey: true, example: "gemini-2.5-pro" },
  {
    value: "openai-compat",
    label: "OpenAI-compatible server",
    needsKey: false,
    address: "http://127.0.0.1:11434/v1",
    example: "qwen3-coder:30b",
  },
  { value: "demo", label: "Built-in demo, not a real model", needsKey: false, example: "demo" },
];
