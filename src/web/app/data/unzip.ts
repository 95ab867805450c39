// What unpacks archives, in a chunk of its own.
export { unzipSync } from "fflate";
