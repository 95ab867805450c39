// A schema for the chart's Kubernetes objects with exactly the members it uses: a member that is misspelled, misplaced or of the wrong type
// is a problem. Names and types are those of the API reference of Kubernetes 1.30.
import { type TProperties, type TSchema, Type as t } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";

const exactObject = <P extends TProperties>(properties: P) => t.Object(properties, { additionalProperties: false });
const optionalList = <S extends TSchema>(items: S) => t.Optional(t.Array(items, { minItems: 1 }));

const Name = t.String({ pattern: "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$" });
const Texts = t.Record(t.String(), t.String());
const Port = t.Integer({ minimum: 1, maximum: 65_535 });
const PortOrName = t.Union([Port, Name]);
const Quantity = t.String({ pattern: "^[0-9]+(\\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$" });
const Metadata = exactObject({ name: Name, labels: Texts, annotations: t.Optional(Texts) });
const Selector = exactObject({ matchLabels: Texts });

const Variable = exactObject({
  name: t.String({ pattern: "^[A-Z_][A-Z0-9_]*$" }),
  value: t.Optional(t.String()),
  valueFrom: t.Optional(
    exactObject({
      fieldRef: t.Optional(exactObject({ fieldPath: t.String() })),
      secretKeyRef: t.Optional(exactObject({ name: t.String(), key: t.String() })),
    }),
  ),
});

const Probe = exactObject({
  httpGet: exactObject({
    path: t.String({ pattern: "^/" }),
    port: PortOrName,
    httpHeaders: optionalList(exactObject({ name: t.String(), value: t.String() })),
  }),
  periodSeconds: t.Optional(t.Integer({ minimum: 1 })),
  timeoutSeconds: t.Optional(t.Integer({ minimum: 1 })),
  failureThreshold: t.Optional(t.Integer({ minimum: 1 })),
});

const Container = exactObject({
  name: Name,
  image: t.String({ pattern: "^[^\\s:]+(:[0-9]+/[^\\s:]+)?:[\\w.-]+$" }),
  imagePullPolicy: t.Union([t.Literal("Always"), t.Literal("IfNotPresent"), t.Literal("Never")]),
  env: t.Array(Variable),
  ports: t.Array(exactObject({ name: Name, containerPort: Port })),
  startupProbe: Probe,
  livenessProbe: Probe,
  readinessProbe: Probe,
  securityContext: exactObject({
    allowPrivilegeEscalation: t.Boolean(),
    readOnlyRootFilesystem: t.Boolean(),
    capabilities: exactObject({ drop: t.Array(t.String()) }),
  }),
  resources: exactObject({
    requests: t.Optional(t.Record(t.String(), Quantity)),
    limits: t.Optional(t.Record(t.String(), Quantity)),
  }),
  volumeMounts: t.Array(
    exactObject({ name: Name, mountPath: t.String({ pattern: "^/" }), readOnly: t.Optional(t.Boolean()) }),
  ),
});

const Volume = exactObject({
  name: Name,
  emptyDir: t.Optional(exactObject({ sizeLimit: t.Optional(Quantity) })),
  secret: t.Optional(
    exactObject({
      secretName: t.String(),
      defaultMode: t.Integer({ minimum: 0, maximum: 0o777 }),
      items: t.Array(exactObject({ key: t.String(), path: t.String() })),
    }),
  ),
});

const Pod = exactObject({
  enableServiceLinks: t.Boolean(),
  automountServiceAccountToken: t.Boolean(),
  terminationGracePeriodSeconds: t.Integer({ minimum: 1 }),
  securityContext: exactObject({
    runAsNonRoot: t.Boolean(),
    runAsUser: t.Integer(),
    runAsGroup: t.Integer(),
    fsGroup: t.Integer(),
    seccompProfile: exactObject({ type: t.String() }),
  }),
  imagePullSecrets: optionalList(exactObject({ name: t.String() })),
  containers: t.Array(Container, { minItems: 1 }),
  volumes: t.Array(Volume),
  topologySpreadConstraints: optionalList(
    exactObject({
      maxSkew: t.Integer({ minimum: 1 }),
      topologyKey: t.String(),
      whenUnsatisfiable: t.Union([t.Literal("DoNotSchedule"), t.Literal("ScheduleAnyway")]),
      labelSelector: Selector,
    }),
  ),
  nodeSelector: t.Optional(Texts),
  tolerations: optionalList(
    exactObject({
      key: t.Optional(t.String()),
      operator: t.Optional(t.String()),
      value: t.Optional(t.String()),
      effect: t.Optional(t.String()),
    }),
  ),
});

const kind = <P extends TProperties>(apiVersion: string, name: string, spec: P) =>
  exactObject({
    apiVersion: t.Literal(apiVersion),
    kind: t.Literal(name),
    metadata: Metadata,
    spec: exactObject(spec),
  });

const KINDS: Readonly<Record<string, TSchema>> = {
  StatefulSet: kind("apps/v1", "StatefulSet", {
    replicas: t.Integer({ minimum: 1 }),
    serviceName: Name,
    podManagementPolicy: t.Union([t.Literal("Parallel"), t.Literal("OrderedReady")]),
    updateStrategy: exactObject({ type: t.Union([t.Literal("RollingUpdate"), t.Literal("OnDelete")]) }),
    selector: Selector,
    template: exactObject({ metadata: exactObject({ labels: Texts }), spec: Pod }),
  }),
  Service: kind("v1", "Service", {
    type: t.Optional(t.Union([t.Literal("ClusterIP"), t.Literal("NodePort"), t.Literal("LoadBalancer")])),
    clusterIP: t.Optional(t.Literal("None")),
    publishNotReadyAddresses: t.Optional(t.Boolean()),
    selector: Texts,
    ports: t.Array(exactObject({ name: Name, port: Port, targetPort: PortOrName }), { minItems: 1 }),
  }),
  PodDisruptionBudget: kind("policy/v1", "PodDisruptionBudget", {
    maxUnavailable: t.Integer({ minimum: 0 }),
    selector: Selector,
  }),
  Ingress: kind("networking.k8s.io/v1", "Ingress", {
    ingressClassName: t.Optional(t.String()),
    rules: t.Array(
      exactObject({
        host: t.String(),
        http: exactObject({
          paths: t.Array(
            exactObject({
              path: t.String({ pattern: "^/" }),
              pathType: t.Union([t.Literal("Prefix"), t.Literal("Exact"), t.Literal("ImplementationSpecific")]),
              backend: exactObject({
                service: exactObject({
                  name: Name,
                  port: exactObject({ name: t.Optional(Name), number: t.Optional(Port) }),
                }),
              }),
            }),
          ),
        }),
      }),
    ),
    tls: optionalList(exactObject({ hosts: t.Array(t.String()), secretName: t.String() })),
  }),
};

/** Returns the problems of an object; empty if none. */
export const findObjectProblems = (object: unknown): string[] => {
  const name = String((object as { kind?: unknown }).kind);
  const schema = KINDS[name];
  if (!schema) return [`${name} is not a kind that the chart creates`];
  return [...Value.Errors(schema, object)].map(({ path, message }) => `${name}${path}: ${message}`);
};
