// The archive unpacker, in its own chunk.
export { unzipSync } from "fflate";
