/** `underpass networks`: the organization's private networks, from the terminal. */
import type { PrivateNetwork } from "../../../protocol/schemas/networks.ts";
import { getOnlyArgument, rejectExtraArguments } from "../../options.ts";
import { getTerminalWidth, Table } from "../../output/format/table.ts";
import { printJson, printLine } from "../../output/output.ts";
import { openNetworkApi } from "../../vpn/open-network-api.ts";
import { confirm } from "./confirm.ts";
import type { Input } from "../command.ts";
import type { NETWORKS, NETWORKS_DELETE } from "../table/management/networks.ts";
import { PROGRAM } from "../../program.ts";

const COLUMNS = [
  { header: "NAME", isCutLast: true },
  { header: "ADDRESSES" },
  { header: "ENDPOINT" },
  { header: "AGENT" },
  { header: "ID", isCutLast: true, omissionOrder: 1 },
];

export async function listNetworks({
  values,
  positionals,
}: Input<typeof NETWORKS.options>): Promise<number> {
  rejectExtraArguments(positionals);
  const api = await openNetworkApi(values);
  const networks = await api.list(new AbortController().signal);
  if (values.json) networks.forEach(printJson);
  else if (networks.length === 0)
    process.stderr.write(
      `There are no private networks. Create one with: ${PROGRAM} vpn office --setup --cidr 10.88.0.0/24\n`,
    );
  else new Table(COLUMNS, getTerminalWidth()).format(networks.map(formatRow)).forEach(printLine);
  return 0;
}

function formatRow({ name, cidr, public_endpoint: endpoint, relay, id }: PrivateNetwork): string[] {
  const agent = relay.state === "offline" ? "-" : `connected over ${relay.state}`;
  return [name, cidr, endpoint ?? "-", agent, id];
}

export async function deleteNetwork({
  values,
  positionals,
}: Input<typeof NETWORKS_DELETE.options>): Promise<number> {
  const example = `${PROGRAM} networks delete office`;
  const api = await openNetworkApi(values);
  const { signal } = new AbortController();
  const network = await api.get(getOnlyArgument(positionals, "the network", example), signal);
  const { name } = network;
  if (!(await confirm(`Delete the private network ${name} with its devices?`, values.yes)))
    return 1;
  await api.delete(network.id, signal);
  if (values.json) printJson({ id: network.id, name: network.name, deleted: true });
  else
    printLine(
      `${name} is deleted. The WireGuard server on its machine still runs; to stop it: ip link delete <interface>`,
    );
  return 0;
}
