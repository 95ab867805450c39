// Resources that a workspace can run out of, as reported by its agent: the disk space of its home, and memory.
import { type Static, Type as t } from "@sinclair/typebox";
import { time } from "../fields.ts";
import { named, namedObject } from "../shape-names.ts";

export const SPACE_LEVELS = ["ok", "low", "full"] as const;
export type SpaceLevel = (typeof SPACE_LEVELS)[number];

const MIB = 1024 * 1024;
const LOW_BYTES = 1024 * MIB;
const FULL_BYTES = 64 * MIB;
const LOW_SHARE = 0.1;
const FULL_SHARE = 0.01;
/** A level is cleared only when the free space exceeds its limit by this factor, so that the level does not flap. */
const CLEAR_FACTOR = 1.5;

/** Returns the level of the free space. `previous` is the level of the last report. */
export const findSpaceLevel = (
  { used, total }: { readonly used: number; readonly total: number },
  previous: SpaceLevel = "ok",
): SpaceLevel => {
  const free = total - used;
  const isBelow = (limit: number, wasBelow: boolean): boolean => free < limit * (wasBelow ? CLEAR_FACTOR : 1);
  if (isBelow(Math.min(FULL_BYTES, total * FULL_SHARE), previous === "full")) return "full";
  return isBelow(Math.min(LOW_BYTES, total * LOW_SHARE), previous !== "ok") ? "low" : "ok";
};

/** Maximum number of killed processes in a report. */
export const MAX_MEMORY_KILLS = 5;

const bytes = (description: string) => t.Integer({ minimum: 0, description });

export const AgentResources = namedObject("AgentResources", {
  home: t.Optional(
    named(
      "AgentHome",
      t.Object({
        path: t.String({ description: "The path of the home directory." }),
        used_bytes: bytes("The used space of the file system that contains the home directory, in bytes."),
        total_bytes: bytes("The used space plus the space that the workspace's user can still use, in bytes."),
        level: t.Unsafe<SpaceLevel>(
          t.Union(
            SPACE_LEVELS.map((level) => t.Literal(level)),
            {
              description:
                "`low`: less than 1 GiB or 10% is free, whichever is less. `full`: less than 64 MiB or 1% is free, whichever is less.",
            },
          ),
        ),
      }),
    ),
  ),
  memory: t.Optional(
    named(
      "AgentMemory",
      t.Object({
        used_bytes: bytes("The used memory in bytes, excluding the file cache."),
        total_bytes: bytes("The memory limit of the workspace, or the memory of its machine, in bytes."),
      }),
    ),
  ),
  memory_kills: t.Array(
    named(
      "MemoryKill",
      t.Object({
        process: t.String({ description: "The beginning of the process's command; empty if unknown." }),
        killed_at: time("When the process was killed."),
      }),
    ),
    {
      description:
        "The processes that the kernel most recently killed because the workspace ran out of memory, newest first; at most 5.",
    },
  ),
  reported_at: time("When the agent measured the values."),
});
export type AgentResources = Static<typeof AgentResources>;
