/** The command that forwards deliveries to a local server. */
import { useQuery } from "@tanstack/react-query";
import type { Receiver } from "../../../protocol/schemas/webhooks.ts";
import { receiversQuery } from "../../api/receivers.ts";
import { formatAgentCommand } from "../../ui/text/agent-command.ts";
import { Command } from "../../ui/copy.tsx";
import { quoteForShell } from "../../ui/text/shell.ts";

/** The command names the receiver, or has its id if another receiver has the same name. */
export function ForwardCommand({ receiver: { id, name } }: { receiver: Receiver }) {
  const { data = [] } = useQuery(receiversQuery);
  const isUnique = data.filter((other) => other.name === name).length === 1;
  const target = isUnique ? quoteForShell(name) : id;
  return <Command>{formatAgentCommand(`webhooks ${target} --forward 3000/hook`)}</Command>;
}
