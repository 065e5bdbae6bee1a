/** Why a replay was refused, and who can allow it. */
import { Link } from "@tanstack/react-router";

export function ReplayDisabledNotice({ tunnelId }: { tunnelId: string }) {
  return (
    <div className="notice warning" role="alert">
      <p>
        Replays are switched off. The tunnel must allow them in its{" "}
        <Link to="/tunnels/$id" params={{ id: tunnelId }} search={{ tab: "capturing" }}>
          capture settings
        </Link>
        , and the server must run with <code>ALLOW_REPLAY=true</code>.
      </p>
    </div>
  );
}
