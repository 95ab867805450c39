// Sets the time limit of every test and hook in a plain `bun test FILE`, which loads this file by bunfig.toml. Bun applies the limit only to
// the first file of a process (https://github.com/oven-sh/bun/issues/43787), so test/run.ts also passes it as `--timeout`.
import { setDefaultTimeout } from "bun:test";
import { scaleTimeout, TEST_TIMEOUT_MS } from "./pace.ts";

setDefaultTimeout(scaleTimeout(TEST_TIMEOUT_MS));
