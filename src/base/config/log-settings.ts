// Log settings shared by server, daemon and worker.
import { choice } from "./kinds.ts";
import { logLevels } from "./log-levels.ts";
import { setting } from "./setting.ts";

/** `help` describes the setting log_level of the program. */
export const logSettings = (help: string) => ({
  log_level: setting(logLevels, { level: "info", areas: {} }, { group: "Logs", help }),
  log_format: setting(choice("auto", "text", "json"), "auto", {
    group: "Logs",
    help: "The format of log lines on standard error. `auto` writes text to a terminal and JSON lines elsewhere.",
  }),
});
