// Defines a row of a settings table. The flag, the environment variable and the file key are derived from its key, so they always agree
// (rule CF-1).
import type { Kind } from "./kinds.ts";

export interface Setting<T> {
  readonly kind: Kind<Exclude<T, undefined>>;
  /** Heading in the help, the example file and docs/configuration.md. */
  readonly group: string;
  /** One or two sentences of description. */
  readonly help: string;
  readonly default: T;
  /** What happens without a value, if `default` is undefined. */
  readonly absent?: string;
  /** Never shown in messages or listings. */
  readonly secret?: true;
  /** Another program's variable, such as DOCKER_HOST, that is read when the setting is set nowhere else, including the file. */
  readonly otherVariable?: string;
  /** False: not allowed in the settings file. */
  readonly file?: false;
}

type SettingDescription = Pick<Setting<unknown>, "group" | "help" | "absent" | "secret" | "file" | "otherVariable">;

export type SettingsTable = Readonly<Record<string, Setting<unknown>>>;

/** The typed result of reading a table. */
export type Values<T extends SettingsTable> = {
  readonly [K in keyof T]: T[K] extends Setting<infer V> ? V : never;
};

/** Returns a setting that always has a value. */
export const setting = <T>(kind: Kind<T>, fallback: T, description: SettingDescription): Setting<T> =>
  // T never includes undefined: every kind parses to a value.
  ({ ...description, kind: kind as Kind<Exclude<T, undefined>>, default: fallback });

/** Returns an optional setting; `absent` describes what happens without it. */
export const optional = <T>(
  kind: Kind<T>,
  description: SettingDescription & { absent: string },
): Setting<T | undefined> => ({
  ...description,
  kind: kind as Kind<Exclude<T, undefined>>,
  default: undefined,
});

/** `data_dir` -> `--data-dir`. */
export const toFlag = (key: string): string => `--${key.replaceAll("_", "-")}`;

/** `data_dir` -> `SLIPWAY_DATA_DIR`. */
export const toVariableName = (key: string, prefix = "SLIPWAY_"): string => prefix + key.toUpperCase();

/** Returns the default as text, for listings. */
export const formatDefault = (row: Setting<unknown>): string =>
  row.default === undefined ? (row.absent ?? "none") : row.kind.print(row.default) || "none";
