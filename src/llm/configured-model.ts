// Providers and models as administrators have set them up.
import type { CallConfig } from "#schema/chats/model-config.ts";
import type { ProviderKind } from "#schema/chats/model-provider.ts";

export type ConfiguredProvider = {
  readonly id: string;
  readonly provider: ProviderKind;
  readonly display_name: string;
  /** Empty: the provider's own address. */
  readonly base_url: string;
  readonly enabled: boolean;
  readonly has_api_key: boolean;
  /** The key in the clear, empty without one; read for each new connection and kept nowhere. Throws when it cannot be unsealed. */
  readonly key: () => string;
};

export type ConfiguredModel = {
  readonly id: string;
  readonly provider_id: string;
  /** The provider's name for it. */
  readonly model: string;
  readonly display_name: string;
  readonly enabled: boolean;
  readonly is_default: boolean;
  readonly context_limit: number;
  readonly compression_threshold: number | null;
  readonly model_config: CallConfig;
};
