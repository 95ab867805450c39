// Administrators' settings of the model gateway: one value of the table `settings`.
import type { GatewaySettings } from "#schema/ai/gateway.ts";
import type { Statement } from "../engine/sql.ts";
import type { Store } from "../engine/store.ts";
import { findSetting, putSetting } from "../settings.ts";

const KEY = "ai_gateway";

type Recording = Required<NonNullable<GatewaySettings["recording"]>>;

/** The settings with all optional members set. */
export type WholeGatewaySettings = Required<GatewaySettings> & { readonly recording: Recording };

const DEFAULTS: WholeGatewaySettings = {
  enabled: false,
  in_workspaces: true,
  names: [],
  default_names: {},
  recording: { enabled: false, days: 30, max_mib: 1_024 },
};

export const readGatewaySettings = async (store: Pick<Store, "get">): Promise<WholeGatewaySettings> => {
  const row = await store.get(findSetting({ key: KEY }));
  if (!row) return DEFAULTS;
  const stored = JSON.parse(row.value) as GatewaySettings;
  return Object.assign({}, DEFAULTS, stored, { recording: Object.assign({}, DEFAULTS.recording, stored.recording) });
};

export const putGatewaySettings = (settings: GatewaySettings): Statement =>
  putSetting({ key: KEY, value: JSON.stringify(settings) });
