// The ready template `local` of a fresh install: made once, on the same way as every template (upload, version, import, template). It
// is not made where its workspaces may not run (DESIGN section 8), and not again when somebody has deleted it (rules TP-21, TP-22).
import type { Directory } from "#actors/directory.ts";
import type { Events } from "#actors/events.ts";
import type { TemplateVersionActor } from "#actors/template-version/template-version-actor.ts";
import type { Clock } from "#base/clock.ts";
import { uuid } from "#base/ids.ts";
import { log } from "#base/log.ts";
import type { Topics } from "#base/topics.ts";
import type { Blobs } from "#db/blobs.ts";
import { findJob } from "#db/jobs.ts";
import { findDefaultOrganization } from "#db/organizations.ts";
import { findSetting, insertSetting } from "#db/settings.ts";
import type { Store } from "#db/store.ts";
import { findTemplateByName } from "#db/templates.ts";
import { jobStatus } from "#schema/job.ts";
import { EXAMPLES, LOCAL } from "#src/starter/examples.ts";
import { storeExample } from "../template-versions/create.ts";
import { PREBUILDS_USER_ID } from "../users/first-user.ts";
import { makeTemplate } from "./change.ts";

type Parts = {
  readonly store: Store;
  readonly clock: Clock;
  readonly blobs: Blobs;
  readonly topics: Topics<Events>;
  readonly versions: Directory<TemplateVersionActor>;
};

/** The row that remembers that the template was made once. */
const MADE = "starter_local";

/** Makes the template unless it was made before. Resolves when it is there; a failure is logged and tried again at the next start. */
export const prepareStarter = async (parts: Parts): Promise<void> => {
  const { store, versions } = parts;
  try {
    const organization = await store.get(findDefaultOrganization());
    if (!organization || (await store.get(findSetting({ key: MADE })))) return;
    const place = { organization_id: organization.id, name: LOCAL };
    if (!(await store.get(findTemplateByName(place)))) {
      const { display_name = LOCAL, description = "" } = EXAMPLES.get(LOCAL) ?? {};
      const id = uuid();
      const job_id = uuid();
      const ended = endOf(parts, job_id);
      await versions.ask(id, "create", {
        job_id,
        organization_id: organization.id,
        template_id: null,
        name: "v1",
        message: "Comes with Slipway.",
        file_id: await storeExample(parts, LOCAL, PREBUILDS_USER_ID),
        tags: { scope: "organization", owner: "" },
        variable_values: {},
        created_by: PREBUILDS_USER_ID,
      });
      await ended;
      const job = await store.get(findJob({ id: job_id }));
      if (!job || jobStatus(job) !== "succeeded") throw new Error(`its import has not succeeded: ${job?.error}`);
      const body = { name: LOCAL, template_version_id: id, display_name, description };
      await makeTemplate(parts, organization, PREBUILDS_USER_ID, body);
    }
    await store.commit([insertSetting({ key: MADE, value: "1" })]);
  } catch (error) {
    log("templates").error("the ready template could not be made: {error}", { error });
  }
};

const endOf = ({ topics }: Parts, job_id: string): Promise<void> =>
  new Promise((resolve) => {
    const leave = topics.subscribe("job", job_id, ({ done }) => {
      if (!done) return;
      leave();
      resolve();
    });
  });
