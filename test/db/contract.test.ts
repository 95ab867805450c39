// The contract suite, with SQLite in this process, and with another process behind a bad network.
import { storeContract } from "./contract.ts";
import { localDeployment, proxyDeployment } from "./deployments.ts";

const SEED = Number(Bun.env.SLIPWAY_TEST_SEED ?? 20261121);

storeContract("LocalStore", localDeployment);
storeContract("ProxyStore", () => proxyDeployment(SEED, {}));
storeContract(`ProxyStore with delays, lost answers, duplicates and refusals (seed ${SEED})`, () =>
  proxyDeployment(SEED, { delay: 0.3, lost: 0.25, twice: 0.25, refused: 0.2 }),
);
