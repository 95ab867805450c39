// Writes log lines about the repository of a workspace.
import { parsePlan } from "#schema/templates/repository.ts";
import type { ProvisionRequest, Report } from "../provisioner.ts";
import { collectNotes } from "./apply-plan.ts";

/** Reports which configuration was found, and which of its settings are ignored. */
export const reportRepositories = ({ manifest }: ProvisionRequest, report: Report, stage: string): void => {
  for (const { agents = [], docker } of manifest.resources) {
    for (const { repository } of agents) {
      const plan = repository === undefined ? undefined : parsePlan(repository);
      if (!plan) continue;
      const configuration = plan.configuration ?? "no configuration file; the image follows from the language";
      report.log("info", stage, `Repository ${plan.url} at ${plan.commit.slice(0, 12)}: ${configuration}.`);
      for (const { property, reason } of collectNotes(plan, docker !== undefined)) {
        report.log("warn", stage, `Ignored in the repository's configuration: ${property}. ${reason}`);
      }
    }
  }
};
