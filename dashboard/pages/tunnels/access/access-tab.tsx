/** The tab with the gates of a tunnel: who may visit it. */
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import { CommandLine, type ApiRequest } from "../../../ui/command-line.tsx";
import { IpAllowlistSection } from "./ip-allowlist-section.tsx";
import { PasswordSection } from "./password-section.tsx";
import { SignInSection } from "./sign-in-section.tsx";
import { VisitorTokenSection } from "./visitor-token-section.tsx";

/** In the order in which a request meets the gates. */
export function AccessTab({ tunnel }: { tunnel: Tunnel }) {
  const isHttp = tunnel.protocol !== "tcp";
  return (
    <>
      <p className="hint">
        {isHttp && "A visitor must pass every gate that is on. "}
        Changes apply from the next {isHttp ? "request" : "connection"}; open connections continue.
      </p>
      <IpAllowlistSection tunnel={tunnel} />
      {isHttp && (
        <>
          <PasswordSection tunnel={tunnel} />
          <SignInSection tunnel={tunnel} />
          <VisitorTokenSection tunnel={tunnel} />
        </>
      )}
      <CommandLine requests={getRequests(tunnel)} />
    </>
  );
}

function getRequests({ id, protocol }: Tunnel): ApiRequest[] {
  const allowlist: ApiRequest = {
    label: "Set the IP allowlist",
    method: "PUT",
    path: `/tunnels/${id}/ip-allowlist`,
    body: { cidrs: ["203.0.113.0/24"] },
  };
  if (protocol === "tcp") return [allowlist];
  return [
    allowlist,
    {
      label: "Set the password",
      method: "PUT",
      path: `/tunnels/${id}/auth`,
      body: { username: "visitor", password: "PASSWORD" },
    },
    {
      label: "Require a sign-in",
      method: "PUT",
      path: `/tunnels/${id}/edge-auth`,
      body: { allowed_domains: ["example.com"], allowed_emails: [] },
    },
    {
      label: "Mint a token for a visitor",
      method: "POST",
      path: `/tunnels/${id}/visitor-tokens`,
      body: { subject: "ann" },
    },
  ];
}
