// Actors of other nodes: where they are, by the part of their id, and how they are asked. The other side of it answers for those that this
// node has.
import type { Actor } from "#actors/runtime/actor.ts";
import type { Directory } from "#actors/runtime/directory.ts";
import type { ActorPlace, Elsewhere } from "#actors/runtime/far-asks.ts";
import { NotBegun } from "#base/errors.ts";
import type { OtherNode, Parts } from "#base/parts.ts";
import type { PartIndex } from "#db/part-index.ts";
import type { Parted } from "#db/part-of.ts";
import type { NodeLinks } from "#src/cluster/node-link.ts";

/** Actors by what their ids name: a dry run is a job. */
export type ActorKind = Extract<Parted, "agent" | "chat" | "job" | "template_version" | "workspace">;

const SERVICE = "actor";

/** A message to an actor of another node. Its part goes along, because what is about to be made cannot be looked up there. */
type FarMessage = {
  readonly kind: ActorKind;
  readonly id: string;
  readonly part: number;
  readonly message: string;
  readonly args: unknown;
};

/** What a node has to do with the others. */
export type Far = {
  readonly parts: Parts;
  readonly index: PartIndex;
  readonly links: Pick<NodeLinks, "call" | "serve">;
};

/** For the `Directory` of these actors. */
export const farActors = ({ parts, index, links }: Far, kind: ActorKind): Elsewhere => {
  const placeOf = (part: number | undefined): ActorPlace =>
    part === undefined || parts.has(part) ? "here" : (parts.nodeOf(part) ?? "nobody");
  const send = (node: OtherNode, message: FarMessage) => links.call(node, SERVICE, message);
  return {
    placeOf(id) {
      const part = index.of(kind, id);
      return part instanceof Promise ? part.then(placeOf) : placeOf(part);
    },
    ask(node, id, message, args) {
      const part = index.of(kind, id);
      // Known, since a place was found by it; let go in between only when a hundred thousand others were asked for.
      if (part instanceof Promise || part === undefined) return Promise.reject(new NotBegun("It is looked for again."));
      return send(node, { kind, id, part, message, args });
    },
    expect: (id, part) => index.note(kind, id, part),
  };
};

// biome-ignore lint/suspicious/noExplicitAny: messages come by their names
type AnyDirectory = Pick<Directory<Actor<any> & Record<string, any>>, "askHere" | "isStopping">;

/** Answers the messages of other nodes to the actors of this one. What has gone to another node in the meantime is not begun, and not passed on. */
export const answerFarActors = (
  { parts, index, links }: Far,
  directories: Readonly<Record<ActorKind, AnyDirectory>>,
): void =>
  links.serve(SERVICE, async (asked) => {
    const { kind, id, part, message, args } = asked as FarMessage;
    const actors = directories[kind];
    if (!parts.has(part) || actors.isStopping) throw new NotBegun("The node does not have this part.");
    index.note(kind, id, part);
    return actors.askHere(id, message, args);
  });
