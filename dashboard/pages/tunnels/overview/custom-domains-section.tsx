/** The custom domains that lead to a tunnel. */
import { Link } from "@tanstack/react-router";
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import { useHasRole } from "../../../app/roles.ts";
import { CopyButton } from "../../../ui/copy.tsx";
import { Row, Rows, Section } from "../../../ui/section.tsx";

export function CustomDomainsSection({ tunnel: { customDomains } }: { tunnel: Tunnel }) {
  const canChange = useHasRole("member");
  return (
    <Section
      title="Custom domains"
      actions={
        <Link to="/domains" className="button">
          {canChange ? "Manage domains" : "All domains"}
        </Link>
      }
    >
      {customDomains.length === 0 ? (
        <p>No custom domain leads to this tunnel.</p>
      ) : (
        <Rows>
          {customDomains.map((domain) => (
            <Row
              key={domain}
              actions={
                <CopyButton text={`https://${domain}`} label={`Copy the address of ${domain}`} />
              }
            >
              <a href={`https://${domain}`} target="_blank" rel="noreferrer">
                {domain}
              </a>
            </Row>
          ))}
        </Rows>
      )}
    </Section>
  );
}
