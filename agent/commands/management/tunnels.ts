/** `underpass tunnels`: the organization's tunnels, from the terminal. */
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { findTunnel } from "../../management/find-tunnel.ts";
import { openManagementApi } from "../../management/open-management-api.ts";
import { getOnlyArgument, rejectExtraArguments } from "../../options.ts";
import { printJson, printLine } from "../../output/output.ts";
import { formatTunnel, formatTunnelRow, newTunnelTable } from "../../output/management/tunnels.ts";
import { stripControl } from "../../output/terminal-view.ts";
import { confirm } from "./confirm.ts";
import type { Input } from "../command.ts";
import type {
  TUNNELS,
  TUNNELS_DELETE,
  TUNNELS_SHOW,
  TUNNELS_START,
  TUNNELS_STOP,
} from "../table/management/tunnels.ts";

export async function listTunnels(input: Input<typeof TUNNELS.options>): Promise<number> {
  const { values, positionals } = input;
  rejectExtraArguments(positionals);
  const api = await openManagementApi(values);
  const table = newTunnelTable();
  let shown = 0;
  for await (const page of api.listTunnels()) {
    const { state } = values;
    const rows = state === undefined ? page : page.filter(({ status }) => status === state);
    if (values.json) rows.forEach((tunnel) => printJson(tunnel));
    else if (rows.length > 0) table.format(rows.map(formatTunnelRow)).forEach(printLine);
    shown += rows.length;
  }
  if (shown === 0 && !values.json) {
    const which = values.state === undefined ? "" : ` that are ${values.state}`;
    process.stderr.write(`There are no tunnels${which}. Open one with: underpass http 3000\n`);
  }
  return 0;
}

export async function showTunnel(input: Input<typeof TUNNELS_SHOW.options>): Promise<number> {
  const { tunnel } = await findNamed(input, "show");
  if (input.values.json) printJson(tunnel);
  else formatTunnel(tunnel).forEach(printLine);
  return 0;
}

export async function stopTunnel(input: Input<typeof TUNNELS_STOP.options>): Promise<number> {
  const { api, tunnel } = await findNamed(input, "stop");
  const { status } = await api.stopTunnel(tunnel.id);
  printChange(
    input,
    tunnel,
    { status },
    "is stopped: its agent is disconnected, and visitors get an error until you start it",
  );
  return 0;
}

export async function startTunnel(input: Input<typeof TUNNELS_START.options>): Promise<number> {
  const { api, tunnel } = await findNamed(input, "start");
  const { status } = await api.startTunnel(tunnel.id);
  printChange(input, tunnel, { status }, "is started: its agent reconnects within seconds");
  return 0;
}

export async function deleteTunnel(input: Input<typeof TUNNELS_DELETE.options>): Promise<number> {
  const { yes } = input.values;
  const { api, tunnel } = await findNamed(input, "delete");
  const what = `Delete ${stripControl(tunnel.subdomain)} (${tunnel.publicUrl}) with its settings and captured requests`;
  if (!(await confirm(what, yes))) return 1;
  await api.deleteTunnel(tunnel.id);
  printChange(input, tunnel, { deleted: true }, "is deleted");
  return 0;
}

async function findNamed(input: Input<typeof TUNNELS_SHOW.options>, subcommand: string) {
  const missing = `the tunnel is missing; for example: underpass tunnels ${subcommand} shop`;
  const name = getOnlyArgument(input.positionals, missing);
  const api = await openManagementApi(input.values);
  return { api, tunnel: await findTunnel(api, name) };
}

/** @param effect continues the name of the tunnel. */
function printChange(
  { values }: Input<typeof TUNNELS_SHOW.options>,
  { id, subdomain }: Tunnel,
  change: object,
  effect: string,
): void {
  if (values.json) printJson({ id, subdomain, ...change });
  else printLine(`${stripControl(subdomain)} ${effect}.`);
}
