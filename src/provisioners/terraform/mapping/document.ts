// Reads the output of `show -json`. An absent, null or unknown value counts as the empty value of its type (facts/terraform 3.12). Pure.

export type Values = Readonly<Record<string, unknown>>;

/** One instance of a resource or data source. */
export type Instance = {
  /** `module.a[0].terraform_data.x["k"]` */
  readonly address: string;
  readonly mode: "managed" | "data";
  readonly type: string;
  readonly name: string;
  readonly index?: string | number;
  readonly values: Values;
};

export type Module = {
  readonly address?: string;
  /** `values` is absent if no value is known before the instance is created. */
  readonly resources?: readonly (Omit<Instance, "values"> & { readonly values?: Values })[];
  readonly child_modules?: readonly Module[];
};

type Root = { readonly root_module?: Module };

/** A `variables` entry of a plan's configuration. */
export type ConfiguredVariable = {
  readonly default?: unknown;
  readonly description?: string;
  readonly sensitive?: boolean;
};

/** A module of a plan's configuration, which contains the references of each expression. */
export type ConfiguredModule = {
  readonly resources?: readonly (Values & { readonly mode?: string; readonly type?: string; readonly name?: string })[];
  readonly module_calls?: Readonly<Record<string, Values & { readonly module?: ConfiguredModule }>>;
  readonly variables?: Readonly<Record<string, ConfiguredVariable>>;
};

/** `terraform show -json FILE` of a plan. */
export type PlanDocument = {
  readonly terraform_version?: string;
  readonly errored?: boolean;
  readonly planned_values?: Root;
  readonly prior_state?: { readonly values?: Root };
  readonly configuration?: { readonly root_module?: ConfiguredModule };
  readonly resource_changes?: readonly {
    readonly address: string;
    /** `replace_paths`: attributes that cannot be changed in place. */
    readonly change: {
      readonly actions: readonly string[];
      readonly replace_paths?: readonly (readonly (string | number)[])[];
    };
  }[];
};

/** `terraform show -json` of a state; `values` is absent after everything was destroyed. */
export type StateDocument = { readonly terraform_version?: string; readonly values?: Root };

/** Returns every instance in a module and its child modules. */
const listInstances = (module: Module | undefined): Instance[] =>
  module
    ? [
        ...(module.resources ?? []).map((resource) => ({ ...resource, values: resource.values ?? {} })),
        ...(module.child_modules ?? []).flatMap(listInstances),
      ]
    : [];

const compareAddresses = (a: Instance, b: Instance): number =>
  a.address < b.address ? -1 : a.address > b.address ? 1 : 0;

/** Returns all planned instances, and the data sources that Terraform read before planning (facts/terraform 3.1). */
export const listPlanInstances = ({ prior_state, planned_values }: PlanDocument): Instance[] => {
  const planned = listInstances(planned_values?.root_module);
  const plannedAddresses = new Set(planned.map(({ address }) => address));
  const dataSources = listInstances(prior_state?.values?.root_module).filter(
    ({ mode, address }) => mode === "data" && !plannedAddresses.has(address),
  );
  return [...dataSources, ...planned].sort(compareAddresses);
};

export const listStateInstances = ({ values }: StateDocument): Instance[] =>
  listInstances(values?.root_module).sort(compareAddresses);

export const toText = (value: unknown): string => (typeof value === "string" ? value : "");
export const toFlag = (value: unknown): boolean => value === true;
export const toNumber = (value: unknown, fallback = 0): number =>
  typeof value === "number" && Number.isFinite(value) ? value : fallback;

/** Returns all blocks of a repeatable block type. */
export const toBlocks = (value: unknown): readonly Values[] =>
  Array.isArray(value) ? value.filter((one): one is Values => typeof one === "object" && one !== null) : [];

/** Returns a map of strings, without values of other types. An unknown value is null. */
export const toTexts = (value: unknown): Record<string, string> =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? Object.fromEntries(
        Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
      )
    : {};
