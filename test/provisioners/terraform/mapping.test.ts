// Mapping plans, states and graphs of Terraform 1.11.4 to Slipway's resources: each template of templates/ results in its expected.json. Also
// addresses and names that could be misread.
import { describe, expect, test } from "bun:test";
import { toParameter, toPreset, toResources } from "#src/provisioners/terraform/manifest.ts";
import { getModule, toLabel } from "#src/provisioners/terraform/mapping/address.ts";
import type { PlanDocument, StateDocument } from "#src/provisioners/terraform/mapping/document.ts";
import { Graph } from "#src/provisioners/terraform/mapping/graph.ts";
import { mapPlan, mapState } from "#src/provisioners/terraform/mapping/map.ts";
import { toParameters } from "#src/provisioners/terraform/mapping/questions.ts";
import { mapResources } from "#src/provisioners/terraform/mapping/resources.ts";
import {
  loadExpected,
  loadRecorded,
  loadRecordedText,
  normalizeParameters,
  normalizeResources,
  TEMPLATES,
} from "./comparison.ts";

for (const name of TEMPLATES) {
  describe(`the template ${name}`, () => {
    for (const transition of ["start", "stop"] as const) {
      test(`[TF-1] maps its plan of a ${transition} to the expected result`, async () => {
        const expected = await loadExpected(name);
        const plan = await loadRecorded<PlanDocument>(name, `plan-${transition}.json`);
        const mapped = mapPlan(plan, await loadRecordedText(name, "graph.dot"));
        const { resources, daily_cost } = mapped;
        expect({ resources: normalizeResources(resources, ""), daily_cost }).toEqual(expected.planned[transition]);
        if (transition === "stop") return;
        expect(normalizeParameters(mapped.parameters)).toEqual(expected.parameters);
        expect<unknown>(mapped.presets).toEqual(expected.presets);
        expect<unknown>(mapped.external_auth).toEqual(expected.external_auth);
        expect<unknown>(mapped.tags).toEqual(expected.tags ?? {});
        expect(mapped.has_ai_task).toBe(expected.has_ai_task);
        expect(mapped.has_external_agent).toBe(expected.has_external_agent);
      });

      test(`[TF-1] maps its state after a ${transition} to the expected result`, async () => {
        const expected = await loadExpected(name);
        const state = await loadRecorded<StateDocument>(name, `state-${transition}.json`);
        const { resources } = mapState(state, await loadRecordedText(name, "graph.dot"));
        expect(normalizeResources(resources, "<from state>")).toEqual(expected.built[transition]);
      });
    }
  });
}

test("[TF-2] a manifest has tokens and app IDs from the state, and cron expressions with seconds", async () => {
  const state = await loadRecorded<StateDocument>("apps-and-scripts", "state-start.json");
  const resources = toResources(mapState(state, await loadRecordedText("apps-and-scripts", "graph.dot")).resources);
  const [agent] = resources.flatMap(({ agents = [] }) => agents);
  expect(agent?.token).toMatch(/^[0-9a-f-]{36}$/);
  expect(agent?.api_key_scope).toBe("no_user_data");
  // Apps are sorted by order, then by name. The app with an explicit order comes last.
  expect(agent?.apps?.map(({ slug }) => slug)).toEqual(["docs", "each-one", "each-two", "htop", "web"]);
  expect(agent?.apps?.every(({ id }) => /^[0-9a-f-]{36}$/.test(id ?? ""))).toBe(true);
  expect(agent?.scripts?.map(({ cron }) => cron)).toEqual([undefined, undefined, undefined, "0 0 3 * * *", undefined]);
  expect(agent?.metadata?.map(({ key }) => key)).toEqual(["disk", "cpu"]);
});

test("[TF-2] parameters keep names with spaces and effective limits, and distinguish an empty default from a missing one", async () => {
  const plan = await loadRecorded<PlanDocument>("parameters", "plan-start.json");
  const { parameters } = mapPlan(plan, await loadRecordedText("parameters", "graph.dot"));
  const byName = new Map(parameters.map((parameter) => [parameter.name, toParameter(parameter)]));
  expect(byName.get("Zones of interest")?.default).toBe('["a","b"]');
  expect(byName.get("notes")).toMatchObject({ default: "", styling: { placeholder: "anything" } });
  expect(byName.get("required_one")?.default).toBeUndefined();
  expect(byName.get("cpus")?.validation).toEqual({
    min: 1,
    max: 16,
    monotonic: "increasing",
    error: "{value} is not between {min} and {max}",
  });
  expect(byName.get("project")?.validation).toEqual({
    regex: "^[a-z0-9-]+$",
    error: "small letters, digits and hyphens",
  });
});

test("[TF-2] prebuilds of presets keep their expiry and their schedule", async () => {
  const plan = await loadRecorded<PlanDocument>("presets-prebuilds", "plan-start.json");
  const { presets } = mapPlan(plan, await loadRecordedText("presets-prebuilds", "graph.dot"));
  const [large, small] = presets.map(toPreset);
  expect(large).toEqual({ name: "Large", parameters: { region: "us", cpus: "8" } });
  expect(small?.prebuilds).toEqual({
    instances: 1,
    ttl_ms: 86_400_000,
    schedule: { timezone: "Europe/Berlin", entries: [{ cron: "* 8-17 * * 1-5", instances: 3 }] },
  });
});

describe("misleading names and addresses", () => {
  const makeManaged = (address: string, values: Record<string, unknown> = {}) => {
    const label = toLabel(address).split(".");
    const [type = "", name = ""] = label.slice(-2);
    return { address, mode: "managed" as const, type, name, values };
  };
  const makeGraph = (edges: readonly (readonly [string, string])[]): Graph => {
    const labels = [...new Set(edges.flat())];
    const node = (label: string): string => `"[root] ${label} (expand)"`;
    return new Graph(
      [
        ...labels.map((label) => `\t\t${node(label)} [label = "${label}", shape = "box"]`),
        ...edges.map(([from, to]) => `\t\t${node(from)} -> ${node(to)}`),
      ].join("\n"),
    );
  };
  const agent = { os: "linux", arch: "amd64" };

  test("[TF-3] removes an index from any position of an address, including one with dots and brackets", () => {
    expect(toLabel('module.a["x.y]z"].module.b[0].t.n["k\\"]"]')).toBe("module.a.module.b.t.n");
    expect(getModule('module.a["x.y"].t.n[0]')).toBe('module.a["x.y"]');
    expect(getModule("t.n[0]")).toBe("");
  });

  test("[TF-3] in a module with several instances, each agent runs on the machine of its own instance", () => {
    const graph = makeGraph([["module.box.terraform_data.machine", "module.box.coder_agent.main"]]);
    const mapped = mapResources(
      [makeManaged("module.box[0].terraform_data.machine"), makeManaged("module.box[0].coder_agent.main", agent)],
      graph,
    );
    expect(mapped.resources.map(({ module_path, agents }) => [module_path, agents.length])).toEqual([
      ["module.box[0]", 1],
    ]);
  });

  test("[TF-3] an agent of a machine with `count` exists once, on the first instance", () => {
    const graph = makeGraph([["terraform_data.machine", "coder_agent.main"]]);
    const { resources } = mapResources(
      [
        makeManaged("coder_agent.main", agent),
        makeManaged("terraform_data.machine[0]"),
        makeManaged("terraform_data.machine[1]"),
      ],
      graph,
    );
    expect(resources.map(({ agents }) => agents.length)).toEqual([1, 0]);
  });

  test("[TF-3] omits an agent without a machine; an external agent belongs to its own resource", () => {
    const graph = makeGraph([["coder_external_agent.it", "coder_agent.away"]]);
    const { resources } = mapResources(
      [
        makeManaged("coder_agent.away", agent),
        makeManaged("coder_agent.lost", agent),
        makeManaged("coder_external_agent.it"),
      ],
      graph,
    );
    expect(resources.map(({ type, agents }) => [type, agents.map(({ name }) => name)])).toEqual([
      ["coder_external_agent", ["away"]],
    ]);
  });

  test("[TF-4] refuses duplicate agent names, names with an underscore, and two metadata of a resource", () => {
    const graph = makeGraph([
      ["terraform_data.a", "coder_agent.one"],
      ["terraform_data.b", "module.m.coder_agent.One"],
      ["coder_metadata.x", "terraform_data.a"],
      ["coder_metadata.y", "terraform_data.a"],
      ["terraform_data.c", "coder_agent.not_good"],
    ]);
    const agentAndMachine = [makeManaged("coder_agent.one", agent), makeManaged("terraform_data.a")];
    expect(() =>
      mapResources(
        [...agentAndMachine, makeManaged("module.m.coder_agent.One", agent), makeManaged("terraform_data.b")],
        graph,
      ),
    ).toThrow("two agents named one");
    expect(() =>
      mapResources([...agentAndMachine, makeManaged("coder_metadata.x"), makeManaged("coder_metadata.y")], graph),
    ).toThrow("two coder_metadata");
    expect(() =>
      mapResources([makeManaged("coder_agent.not_good", agent), makeManaged("terraform_data.c")], graph),
    ).toThrow("underscore");
  });

  test("[TF-3] assigns metadata to a resource's instances by number in a plan, and by ID in a state", () => {
    const graph = makeGraph([
      ["coder_metadata.x", "terraform_data.a"],
      ["coder_metadata.y", "terraform_data.a"],
    ]);
    const mapById = (id: (index: number) => string | undefined) =>
      mapResources(
        [
          ...[0, 1, 2].map((index) => makeManaged(`terraform_data.a[${index}]`, { id: id(index) })),
          makeManaged("coder_metadata.x", { resource_id: id(2), icon: "x" }),
          makeManaged("coder_metadata.y", { resource_id: id(1), icon: "y" }),
        ],
        graph,
      ).resources.map(({ icon }) => icon);
    expect(mapById(() => undefined)).toEqual(["x", "y", ""]);
    expect(mapById((index) => `id-${index}`)).toEqual(["", "y", "x"]);
  });

  test("[TF-4] refuses a parameter named __proto__, because values are stored by name", () => {
    const parameter = { ...makeManaged("data.coder_parameter.one", { name: "__proto__" }), mode: "data" as const };
    expect(() => toParameters([parameter])).toThrow("cannot be named __proto__");
    expect(toParameters([{ ...parameter, values: { name: "constructor" } }]).length).toBe(1);
  });

  test("[TF-4] merges variables by their strategy, and refuses a duplicate with the strategy `error`", () => {
    const graph = makeGraph([
      ["terraform_data.a", "coder_agent.one"],
      ["coder_env.a", "coder_agent.one"],
      ["coder_env.b", "coder_agent.one"],
    ]);
    const mapWithStrategy = (merge_strategy: string): ReturnType<typeof mapResources> =>
      mapResources(
        [
          makeManaged("coder_agent.one", agent),
          makeManaged("terraform_data.a"),
          makeManaged("coder_env.a", { name: "PATHS", value: "/a" }),
          makeManaged("coder_env.b", { name: "PATHS", value: "/b", merge_strategy }),
        ],
        graph,
      );
    const getPaths = (merge: string): unknown =>
      mapWithStrategy(merge).resources.flatMap(({ agents }) => agents)[0]?.env.PATHS;
    expect([getPaths("append"), getPaths("prepend"), getPaths("replace")]).toEqual(["/a:/b", "/b:/a", "/b"]);
    expect(() => mapWithStrategy("error")).toThrow("PATHS");
  });
});
