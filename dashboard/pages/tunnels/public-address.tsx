/** Where visitors reach a tunnel. */
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { getAddress } from "./agent-command.ts";
import { CopyButton } from "../../ui/copy.tsx";

/** A link for HTTP. Browsers can't open the address of a TCP tunnel. */
export function PublicAddress({ tunnel }: { tunnel: Tunnel }) {
  const { publicUrl, protocol } = tunnel;
  const text = getAddress(tunnel).replace(/^(https?|tcp):\/\//, "");
  return (
    <span className="public-address">
      {protocol === "tcp" ? (
        <code title={text}>{text}</code>
      ) : (
        <a href={publicUrl} target="_blank" rel="noreferrer" title={text}>
          {text}
        </a>
      )}
      <CopyButton
        text={protocol === "tcp" ? text : publicUrl}
        label={`Copy the address ${text}`}
        kind="quiet"
      />
    </span>
  );
}
