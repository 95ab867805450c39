// Usage of templates: distinct users in total and by interval, and their apps. For the insights reports.
import { AppFigures } from "./apps.ts";
import { hasBitIn } from "./block.ts";
import { Intervals } from "./intervals.ts";
import type { ReportPart } from "./parts.ts";
import type { Group } from "./walk.ts";

export class TemplateUse implements ReportPart {
  readonly #intervals: Intervals;
  /** Absent if only intervals are requested. */
  readonly #apps: AppFigures | undefined;
  readonly #users = new Set<number>();
  readonly #templates = new Set<number>();

  constructor(intervals: Intervals, apps: AppFigures | undefined) {
    this.#intervals = intervals;
    this.#apps = apps;
  }

  get weight(): number {
    return this.#intervals.weight + (this.#apps?.weight ?? 0) + this.#users.size * 32;
  }

  add(group: Group): void {
    this.#intervals.add(group);
    if (!this.#apps) return;
    let used = false;
    for (const { digest, template } of group.rows) {
      if (!hasBitIn(digest.bits, group.low, group.high)) continue;
      used = true;
      this.#templates.add(template);
    }
    if (!used) return;
    this.#users.add(group.user);
    this.#apps.add(group);
  }

  /** Joins consecutive parts. */
  static joinParts(parts: readonly TemplateUse[]) {
    const [users, templates] = [new Set<number>(), new Set<number>()];
    for (const part of parts) {
      for (const user of part.#users) users.add(user);
      for (const template of part.#templates) templates.add(template);
    }
    return {
      users: users.size,
      templates,
      intervals: Intervals.joinParts(parts.map((part) => part.#intervals)),
      apps: AppFigures.joinParts(parts.flatMap((part) => part.#apps ?? [])),
    };
  }
}
