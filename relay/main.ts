/** `npm run relay`: public TCP and UDP ports for agents that have none of their own (docs/protocols/relay-protocol.md). */
import { lookup } from "node:dns/promises";
import { getErrorMessage } from "../shared/error-message.ts";
import { createLog } from "./log.ts";
import { Relay } from "./relay.ts";
import { readSettings, type RelaySettings, SettingsError } from "./settings.ts";

const log = createLog(process.stdout);

async function main(settings: RelaySettings): Promise<void> {
  const stopped = waitUntilStopped();
  const relay = new Relay({ ...settings, bind: await resolveBind(settings.bind) }, log);
  await relay.start();
  await stopped;
  await relay.stop();
}

/** Resolves a host name of this machine to its address. */
async function resolveBind(bind: string): Promise<string> {
  try {
    return (await lookup(bind)).address;
  } catch (error) {
    throw new Error(
      `RELAY_BIND: ${bind} is not an address or a name of this machine: ${getErrorMessage(error)}`,
      { cause: error },
    );
  }
}

/** Resolves with the first signal; SIGHUP: its terminal was closed. */
async function waitUntilStopped(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.on(signal, () => resolve());
  await promise;
}

try {
  await main(readSettings(process.env));
  process.exit(0);
} catch (error) {
  if (error instanceof SettingsError) process.stderr.write(`relay: ${error.message}\n`);
  else log.error(getErrorMessage(error));
  process.exit(1);
}
