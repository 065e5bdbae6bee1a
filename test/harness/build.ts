/** Before any test of the node project: the bundles that the tests serve and run are of today's sources. */
import { build } from "../../self-host/build.ts";

export async function setup(): Promise<void> {
  await build();
}
