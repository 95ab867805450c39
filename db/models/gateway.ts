// Administrators' settings of the model gateway: one value of the table `settings`.
import type { GatewaySettings } from "#schema/ai/gateway.ts";
import type { Statement } from "../engine/sql.ts";
import type { Store } from "../engine/store.ts";
import { findSetting, upsertSetting } from "../settings.ts";

const KEY = "ai_gateway";

type Recording = Required<NonNullable<GatewaySettings["recording"]>>;

/** The settings, in which all optional members are set. */
export type CompleteGatewaySettings = Required<GatewaySettings> & { readonly recording: Recording };

const DEFAULTS: CompleteGatewaySettings = {
  enabled: false,
  in_workspaces: true,
  names: [],
  default_names: {},
  recording: { enabled: false, days: 30, max_mib: 1_024 },
};

export const readGatewaySettings = async (store: Pick<Store, "get">): Promise<CompleteGatewaySettings> => {
  const row = await store.get(findSetting({ key: KEY }));
  if (!row) return DEFAULTS;
  const stored = JSON.parse(row.value) as GatewaySettings;
  return Object.assign({}, DEFAULTS, stored, { recording: Object.assign({}, DEFAULTS.recording, stored.recording) });
};

export const upsertGatewaySettings = (settings: GatewaySettings): Statement =>
  upsertSetting({ key: KEY, value: JSON.stringify(settings) });
