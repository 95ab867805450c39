// The contract suite, with SQLite in this process, and with another process behind a bad network.
import { describeStoreContract } from "./contract.ts";
import { localDeployment, proxyDeployment } from "./deployments.ts";

const SEED = Number(Bun.env.SLIPWAY_TEST_SEED ?? 20261121);

describeStoreContract("LocalStore", localDeployment);
describeStoreContract("ProxyStore", () => proxyDeployment(SEED, {}));
describeStoreContract(`ProxyStore with delays, lost answers, duplicates and refusals (seed ${SEED})`, () =>
  proxyDeployment(SEED, { delay: 0.3, lost: 0.25, twice: 0.25, refused: 0.2 }),
);
