/** The completions for arguments that name something on the server. */
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import type { OptionSpecs } from "../../options.ts";

const loadCompletion = () => import("../../management/completion.ts");

export async function listTunnelArguments(args: string[], specs: OptionSpecs): Promise<string[]> {
  return (await loadCompletion()).completeTunnels(args, specs);
}

export async function listTcpTunnelArguments(
  args: string[],
  specs: OptionSpecs,
): Promise<string[]> {
  const isTcp = ({ protocol }: Tunnel): boolean => protocol === "tcp";
  return (await loadCompletion()).completeTunnels(args, specs, isTcp);
}

export async function listTokenArguments(args: string[], specs: OptionSpecs): Promise<string[]> {
  return (await loadCompletion()).completeTokens(args, specs);
}
