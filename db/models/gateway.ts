// What administrators set for the model gateway: one value of the table `settings`.
import type { GatewaySettings } from "#schema/ai/gateway.ts";
import type { Statement } from "../engine/sql.ts";
import type { Store } from "../engine/store.ts";
import { findSetting, putSetting } from "../settings.ts";

const KEY = "ai_gateway";

const DEFAULTS: Required<GatewaySettings> = {
  enabled: false,
  in_workspaces: true,
  names: [],
  default_names: {},
  recording: { enabled: false, days: 30 },
};

export const readGatewaySettings = async (store: Pick<Store, "get">): Promise<Required<GatewaySettings>> => {
  const row = await store.get(findSetting({ key: KEY }));
  return row ? Object.assign({}, DEFAULTS, JSON.parse(row.value) as GatewaySettings) : DEFAULTS;
};

export const putGatewaySettings = (settings: GatewaySettings): Statement =>
  putSetting({ key: KEY, value: JSON.stringify(settings) });
