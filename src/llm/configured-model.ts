// Providers and models as configured by administrators.
import type { CallConfig } from "#schema/chats/model-config.ts";
import type { ProviderKind } from "#schema/chats/model-provider.ts";

export type ConfiguredProvider = {
  readonly id: string;
  readonly provider: ProviderKind;
  readonly display_name: string;
  /** Empty for the provider's default address. */
  readonly base_url: string;
  readonly enabled: boolean;
  readonly has_api_key: boolean;
  /** Returns the key in plain text, or an empty string; called for each connection and never cached. Throws if it cannot be decrypted. */
  readonly key: () => string;
};

export type ConfiguredModel = {
  readonly id: string;
  readonly provider_id: string;
  /** The provider's name for the model. */
  readonly model: string;
  readonly display_name: string;
  readonly enabled: boolean;
  readonly is_default: boolean;
  readonly context_limit: number;
  readonly compression_threshold: number | null;
  readonly model_config: CallConfig;
};
