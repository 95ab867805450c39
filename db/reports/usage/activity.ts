// Counts the minutes in which each user used any app, and the templates that they used. Parallel use counts once, and a bucket has at most
// 30 minutes (facts/platform 6.2). For the insights reports.
import { ANY_APP, MAX_BUCKET_MINUTES } from "./block.ts";
import type { ReportPart } from "./parts.ts";
import type { Group } from "./walk.ts";

export type UserActivity = { minutes: number; readonly templates: Set<number> };

export class Activity implements ReportPart {
  readonly #users = new Map<number, UserActivity>();

  get weight(): number {
    return this.#users.size * 300;
  }

  add(group: Group): void {
    const { user, low, high, rows } = group;
    let minutes = 0;
    const usedTemplates: number[] = [];
    const sums = group.hasSeparateTemplates ? undefined : new Uint16Array(high);
    for (const { digest, detail, template } of rows) {
      let templateMinutes = 0;
      if (group.coversBlock && !sums) templateMinutes = digest.minutes;
      else {
        detail().eachBucket(ANY_APP, low, high, (i, bucketMinutes) => {
          templateMinutes += bucketMinutes;
          if (sums) sums[i] = (sums[i] as number) + bucketMinutes;
        });
      }
      if (templateMinutes > 0) usedTemplates.push(template);
      minutes += templateMinutes;
    }
    if (sums) minutes = sums.reduce((sum, one) => sum + Math.min(MAX_BUCKET_MINUTES, one), 0);
    if (minutes > 0) this.#count(user, minutes, usedTemplates);
  }

  #count(user: number, minutes: number, templates: Iterable<number>): void {
    let row = this.#users.get(user);
    if (!row) {
      row = { minutes: 0, templates: new Set() };
      this.#users.set(user, row);
    }
    row.minutes += minutes;
    for (const template of templates) row.templates.add(template);
  }

  static joinParts(parts: readonly Activity[]): ReadonlyMap<number, UserActivity> {
    const all = new Activity();
    for (const part of parts) {
      for (const [user, { minutes, templates }] of part.#users) all.#count(user, minutes, templates);
    }
    return all.#users;
  }
}
