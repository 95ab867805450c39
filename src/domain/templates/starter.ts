// The built-in templates of a fresh install. Each is created once, in the same steps as any template (upload, version, import, template),
// and only where its workspaces can and may run (docs/spec/design.md 8): `docker` waits until a Docker Engine responds. Deleted ones are
// not created again (rules TP-21, TP-22, TP-29).
import type { Directory } from "#actors/runtime/directory.ts";
import type { Events } from "#actors/runtime/events.ts";
import type { TemplateVersionActor } from "#actors/template-version/actor.ts";
import type { Clock, Timer } from "#base/clock.ts";
import { uuid } from "#base/ids.ts";
import { log } from "#base/log.ts";
import type { Topics } from "#base/topics.ts";
import type { Blobs } from "#db/blobs.ts";
import type { Store } from "#db/engine/store.ts";
import { findSetting, insertSetting } from "#db/settings.ts";
import { findTemplateByName } from "#db/templates/templates.ts";
import { findDefaultOrganization, type OrganizationRow } from "#db/users/organizations.ts";
import { findJob } from "#db/workspaces/jobs.ts";
import { toJobStatus } from "#schema/workspaces/job.ts";
import type { Provisioner } from "#src/provisioners/provisioner.ts";
import { DOCKER, EXAMPLES, type Example, LOCAL } from "#src/starter/examples.ts";
import { createLocalId, type Location } from "../location.ts";
import { storeArchive } from "../template-versions/create.ts";
import { PREBUILDS_USER_ID } from "../users/first-user.ts";
import { makeTemplate } from "./change.ts";

type Deps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly blobs: Blobs;
  readonly topics: Topics<Events>;
  readonly versions: Directory<TemplateVersionActor>;
  readonly location: Pick<Location, "isHere">;
  readonly provisioners: ReadonlyMap<string, Provisioner>;
};

/** Milliseconds between checks for an engine that does not respond yet. */
const CHECK_INTERVAL_MS = 15_000;

export class ReadyTemplates {
  readonly #deps: Deps;
  #timer: Timer | undefined;
  #checking: Promise<void> = Promise.resolve();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Creates the templates that can be used now, and keeps checking for the others until `stop`. Never rejects. */
  async start(): Promise<void> {
    for (const name of [LOCAL, DOCKER]) await this.#create(name);
    if (await this.#isCreated(DOCKER)) return;
    const { clock, provisioners } = this.#deps;
    if (!provisioners.has(DOCKER)) return;
    this.#timer = clock.every(CHECK_INTERVAL_MS, () => {
      this.#checking = this.#checking.then(() => this.#create(DOCKER));
    });
  }

  /** Stops checking, and waits for templates that are being created. */
  async stop(): Promise<void> {
    this.#timer?.cancel();
    await this.#checking;
  }

  /** Creates a template if it can be used now. A failure is logged and retried at the next start. */
  async #create(name: string): Promise<void> {
    const provisioner = this.#deps.provisioners.get(name);
    try {
      if (!provisioner) return;
      if (!(await this.#isCreated(name))) {
        if ((await provisioner.findProblem?.()) !== undefined) return;
        const example = EXAMPLES.get(name);
        if (example) await createBuiltInTemplate(this.#deps, name, example);
      }
    } catch (error) {
      log("templates").error("cannot create the built-in template {name}: {error}", { name, error });
    }
    if (name === DOCKER) this.#timer?.cancel();
  }

  async #isCreated(name: string): Promise<boolean> {
    return (await this.#deps.store.get(findSetting({ key: toCreatedKey(name) }))) !== undefined;
  }
}

/** Returns the key of the setting that records that the template was created: in the default organization, or in another one. */
export const toCreatedKey = (name: string, { id, is_default }: StarterPlace = { id: "", is_default: true }): string =>
  is_default ? `starter_${name}` : `starter_${name} ${id}`;

type StarterPlace = Pick<OrganizationRow, "id" | "is_default">;

/** The content of a built-in template. */
type ReadyExample = Pick<Example, "display_name" | "description" | "icon" | "archive">;

/** Creates the template with its first version, unless the name is taken; in the default organization by default. */
export const createBuiltInTemplate = async (
  deps: Omit<Deps, "provisioners">,
  name: string,
  example: ReadyExample,
  givenOrganization?: OrganizationRow,
): Promise<void> => {
  const { store, versions } = deps;
  const organization = givenOrganization ?? (await store.get(findDefaultOrganization()));
  if (!organization) return;
  const organization_id = organization.id;
  if (!(await store.get(findTemplateByName({ organization_id, name })))) {
    const { display_name, description, icon } = example;
    // Must be imported on this node, because only it learns how the import ends.
    const id = createLocalId(deps.location);
    const job_id = uuid();
    const importEnded = waitForJob(deps, job_id);
    versions.expect(id, id);
    await versions.ask(id, "create", {
      job_id,
      organization_id,
      template_id: null,
      name: "v1",
      message: "Comes with Slipway.",
      file_id: await storeArchive(deps, example.archive(), PREBUILDS_USER_ID),
      tags: { scope: "organization", owner: "" },
      sealed_variable_values: "",
      created_by: PREBUILDS_USER_ID,
    });
    await importEnded;
    const job = await store.get(findJob({ id: job_id }));
    if (!job || toJobStatus(job) !== "succeeded") throw new Error(`its import has not succeeded: ${job?.error}`);
    const body = { name, template_version_id: id, display_name, description, icon };
    await makeTemplate(deps, organization, PREBUILDS_USER_ID, body);
  }
  await store.commit([insertSetting({ key: toCreatedKey(name, organization), value: "1" })]);
};

const waitForJob = ({ topics }: Pick<Deps, "topics">, job_id: string): Promise<void> =>
  new Promise((resolve) => {
    const unsubscribe = topics.subscribe("job", job_id, ({ done }) => {
      if (!done) return;
      unsubscribe();
      resolve();
    });
  });
