/** `underpass webhooks <receiver> --forward URL`: forwards a receiver's deliveries to a local server. */
import { canShowScreen } from "../screen/terminal.ts";
import { printWebhooksJson, printWebhooksLines, showWebhooksScreen } from "../output/webhooks.ts";
import type { Output } from "../output/output.ts";
import { getOnlyArgument, UsageError } from "../options.ts";
import { findServerAccess } from "../server-access.ts";
import { RejectionError } from "../rejection-error.ts";
import { Forwarder } from "../webhooks/forwarder.ts";
import { DeliveryClient } from "../webhooks/delivery-client.ts";
import { ReceiverApi } from "../webhooks/receiver-api.ts";
import { watchForStop } from "./watch-for-stop.ts";
import type { Input } from "./command.ts";
import type { WEBHOOKS } from "./table/webhooks.ts";
import { PROGRAM } from "../program.ts";

export async function run({
  values,
  positionals,
}: Input<typeof WEBHOOKS.options>): Promise<number> {
  const example = `${PROGRAM} webhooks shop --forward 3000/hook`;
  const receiver = getOnlyArgument(positionals, "the receiver", example);
  const { forward: target, since } = values;
  if (target === undefined) throw new UsageError(`--forward is missing; for example: ${example}`);
  const access = await findServerAccess(values);
  const local = new DeliveryClient(target, { insecureUpstream: values["insecure-upstream"] });
  const forwarder = new Forwarder(new ReceiverApi(access), local, { receiver, since });
  const { json, "log-level": level } = values;
  const startOutput = (): Output => {
    if (json) return printWebhooksJson(forwarder, target.url);
    if (level === undefined && canShowScreen()) return showWebhooksScreen(forwarder, target.url);
    return printWebhooksLines(forwarder, target.url, level ?? "info");
  };
  const output = startOutput();

  const endWatch = watchForStop(() => forwarder.stop());
  try {
    await forwarder.run();
    output.end();
    return 0;
  } catch (error) {
    if (!(error instanceof RejectionError)) throw error;
    output.end(error);
    return 1;
  } finally {
    endWatch();
    await local.close();
  }
}
