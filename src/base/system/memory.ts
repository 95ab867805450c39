// The memory of this process, for limits that depend on it.

/** Returns a share of the memory that the control group, or else the machine, allows this process, in bytes. */
export const shareOfMemory = (share: number): number => Math.floor(process.constrainedMemory() * share);
