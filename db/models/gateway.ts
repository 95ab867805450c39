// What administrators set for the model gateway: one value of the table `settings`.
import type { GatewaySettings } from "#schema/ai/gateway.ts";
import type { Statement } from "../engine/sql.ts";
import type { Store } from "../engine/store.ts";
import { findSetting, putSetting } from "../settings.ts";

const KEY = "ai_gateway";

const DEFAULTS: GatewaySettings = { enabled: false, in_workspaces: true, names: [], default_names: {} };

export const readGatewaySettings = async (store: Pick<Store, "get">): Promise<GatewaySettings> => {
  const row = await store.get(findSetting({ key: KEY }));
  return row ? (JSON.parse(row.value) as GatewaySettings) : DEFAULTS;
};

export const putGatewaySettings = (settings: GatewaySettings): Statement =>
  putSetting({ key: KEY, value: JSON.stringify(settings) });
