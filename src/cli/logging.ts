// Configures logging from the settings. Logs go to standard error: standard output is for the command's result.
import { configureLogging, type LogLevels, type LogOptions } from "#base/log.ts";
import type { VerbInput } from "./verb.ts";

export const startLogging = (
  settings: { log_level: LogLevels; log_format: "auto" | LogOptions["format"] },
  { isTerminal, printError }: VerbInput,
): void => {
  const auto = isTerminal ? "text" : "json";
  const format = settings.log_format === "auto" ? auto : settings.log_format;
  configureLogging({ level: settings.log_level, format, write: printError });
};
