// What one row of a settings table is. From the key come the flag, the environment variable and the place in the file, so the
// three can never disagree (rule CF-1).
import type { Kind } from "./kinds.ts";

export interface Setting<T> {
  readonly kind: Kind<Exclude<T, undefined>>;
  /** Heading under which help, example file and docs/configuration.md list it. */
  readonly group: string;
  /** One or two sentences for people. */
  readonly help: string;
  readonly default: T;
  /** What happens without a value, in words, where `default` is undefined. */
  readonly absent?: string;
  /** Never shown, neither in messages nor in listings. */
  readonly secret?: true;
  /** Another program's variable, such as DOCKER_HOST, that is read where the setting is given nowhere, not in the file either. */
  readonly otherVariable?: string;
  /** False: cannot stand in the settings file. */
  readonly file?: false;
}

type Described = Pick<Setting<unknown>, "group" | "help" | "absent" | "secret" | "file" | "otherVariable">;

export type SettingsTable = Readonly<Record<string, Setting<unknown>>>;

/** The typed result of reading a table. */
export type Values<T extends SettingsTable> = {
  readonly [K in keyof T]: T[K] extends Setting<infer V> ? V : never;
};

/** A setting that always has a value. */
export const setting = <T>(kind: Kind<T>, fallback: T, rest: Described): Setting<T> =>
  // T never includes undefined: every kind parses to a value.
  ({ ...rest, kind: kind as Kind<Exclude<T, undefined>>, default: fallback });

/** A setting that may be missing; `absent` says what then happens. */
export const optional = <T>(kind: Kind<T>, rest: Described & { absent: string }): Setting<T | undefined> => ({
  ...rest,
  kind: kind as Kind<Exclude<T, undefined>>,
  default: undefined,
});

/** `data_dir` -> `--data-dir`. */
export const toFlag = (key: string): string => `--${key.replaceAll("_", "-")}`;

/** `data_dir` -> `SLIPWAY_DATA_DIR`. */
export const toVariableName = (key: string, prefix = "SLIPWAY_"): string => prefix + key.toUpperCase();

/** The default in words, for listings. */
export const formatDefault = (one: Setting<unknown>): string =>
  one.default === undefined ? (one.absent ?? "none") : one.kind.print(one.default) || "none";
