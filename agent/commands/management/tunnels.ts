/** `underpass tunnels`: the organization's tunnels, from the terminal. */
import type { TunnelAgent } from "../../../protocol/schemas/tunnels/connections.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { findTunnel, findTunnels } from "../../management/find-tunnel.ts";
import type { ManagementApi } from "../../management/management-api.ts";
import { openManagementApi } from "../../management/open-management-api.ts";
import { getOnlyArgument, rejectExtraArguments, UsageError } from "../../options.ts";
import { printJson, printLine } from "../../output/output.ts";
import {
  formatTunnel,
  formatTunnelRow,
  formatUrl,
  getTunnelState,
  createTunnelTable,
} from "../../output/management/tunnels.ts";
import { escapeControls } from "../../../shared/text/escape-controls.ts";
import { RejectionError } from "../../rejection-error.ts";
import { confirm } from "./confirm.ts";
import type { Input } from "../command.ts";
import type {
  TUNNELS,
  TUNNELS_DELETE,
  TUNNELS_SHOW,
  TUNNELS_START,
  TUNNELS_STOP,
} from "../table/management/tunnels.ts";
import { PROGRAM } from "../../program.ts";

export async function listTunnels(input: Input<typeof TUNNELS.options>): Promise<number> {
  const { values, positionals } = input;
  rejectExtraArguments(positionals);
  const api = await openManagementApi(values);
  const table = createTunnelTable();
  let shown = 0;
  let stopped: Tunnel | undefined;
  for await (const page of api.listTunnels()) {
    const { state } = values;
    const rows =
      state === undefined ? page : page.filter((tunnel) => getTunnelState(tunnel) === state);
    if (values.json) rows.forEach((tunnel) => printJson(tunnel));
    else if (rows.length > 0) table.format(rows.map(formatTunnelRow)).forEach(printLine);
    shown += rows.length;
    stopped ??= rows.find((tunnel) => getTunnelState(tunnel) === "stopped");
  }
  if (stopped && !values.json) {
    const command = `${PROGRAM} tunnels start ${escapeControls(stopped.subdomain)}`;
    process.stderr.write(
      `A stopped tunnel refuses agents and visitors. Start it with: ${command}\n`,
    );
  }
  if (shown === 0 && !values.json) {
    const which = values.state === undefined ? "" : ` that are ${values.state}`;
    process.stderr.write(`There are no tunnels${which}. Open one with: ${PROGRAM} http 3000\n`);
  }
  return 0;
}

export async function showTunnel(input: Input<typeof TUNNELS_SHOW.options>): Promise<number> {
  const name = getOnlyArgument(input.positionals, "the tunnel", `${PROGRAM} tunnels show shop`);
  const api = await openManagementApi(input.values);
  const tunnel = await findTunnel(api, name);
  const agents = tunnel.agentConnected ? await listAgents(api, tunnel) : [];
  if (input.values.json) printJson({ ...tunnel, agents });
  else formatTunnel(tunnel, agents).forEach(printLine);
  return 0;
}

/** A server of an earlier version does not list them. */
async function listAgents(api: ManagementApi, { id }: Tunnel): Promise<TunnelAgent[]> {
  try {
    return await api.listAgents(id);
  } catch (error) {
    if (error instanceof RejectionError && error.reason === "not_found") return [];
    throw error;
  }
}

export async function stopTunnels(input: Input<typeof TUNNELS_STOP.options>): Promise<number> {
  const { api, tunnels } = await findNamed(input, "stop");
  for (const tunnel of tunnels) {
    const { id: _, ...change } = await api.stopTunnel(tunnel.id);
    printChange(input, tunnel, change, describeStop(tunnel));
  }
  return 0;
}

/** @param tunnel before the stop. */
function describeStop({ stoppedAt, agentConnected }: Tunnel): string {
  if (stoppedAt !== null) return `was already stopped, at ${stoppedAt}`;
  const agent = agentConnected ? "its agent is disconnected" : "it has no agent";
  return `is stopped: ${agent}, and visitors get an error until you start it`;
}

/** @param tunnel before the start. No one knows which agents wait for a stopped tunnel: each of them asks again. */
function describeStart({ stoppedAt, agentConnected }: Tunnel): string {
  const howToServe = "start the agent on the machine with the local server";
  if (stoppedAt !== null)
    return `is started: an agent that waits for it connects within seconds; if none does, ${howToServe}`;
  return agentConnected
    ? "was not stopped: its agent serves it"
    : `was not stopped, but has no agent: ${howToServe}`;
}

export async function startTunnels(input: Input<typeof TUNNELS_START.options>): Promise<number> {
  const { api, tunnels } = await findNamed(input, "start");
  for (const tunnel of tunnels) {
    const { id: _, ...change } = await api.startTunnel(tunnel.id);
    printChange(input, tunnel, change, describeStart(tunnel));
  }
  return 0;
}

export async function deleteTunnels(input: Input<typeof TUNNELS_DELETE.options>): Promise<number> {
  const { api, tunnels } = await findNamed(input, "delete");
  if (!(await confirm(askToDelete(tunnels), input.values.yes))) return 1;
  for (const tunnel of tunnels) {
    await api.deleteTunnel(tunnel.id);
    printChange(input, tunnel, { deleted: true }, "is deleted");
  }
  return 0;
}

function askToDelete(tunnels: Tunnel[]): string {
  const names = tunnels.map((tunnel) => `${tunnel.subdomain} (${formatUrl(tunnel)})`);
  return names.length === 1
    ? `Delete ${names[0]} with its settings and captured requests?`
    : `Delete these ${names.length} tunnels with their settings and captured requests?\n  ${names.join("\n  ")}\n`;
}

/** Finds all tunnels before the first one is changed: a wrong name changes nothing. */
async function findNamed(
  { values, positionals }: Input<typeof TUNNELS_START.options>,
  subcommand: string,
) {
  if (positionals.length === 0)
    throw new UsageError(
      `the tunnel is missing; for example: ${PROGRAM} tunnels ${subcommand} shop`,
    );
  const api = await openManagementApi(values);
  return { api, tunnels: await findTunnels(api, positionals) };
}

/** @param effect continues the name of the tunnel. */
function printChange(
  { values }: Input<typeof TUNNELS_SHOW.options>,
  { id, subdomain }: Tunnel,
  change: object,
  effect: string,
): void {
  if (values.json) printJson({ id, subdomain, ...change });
  else printLine(`${subdomain} ${effect}.`);
}
