/** The settings to enter at the vendor, how the receiver checks signatures, and how deliveries reach a local server. */
import type { ReceiverState } from "../../../../protocol/schemas/webhooks.ts";
import { Command } from "../../../ui/copy.tsx";
import { Fact, Facts } from "../../../ui/facts.tsx";
import { Section } from "../../../ui/section.tsx";
import { ForwardCommand } from "../forward-command.tsx";
import { VENDORS } from "../vendors.tsx";

export function SetupTab({ receiver }: { receiver: ReceiverState }) {
  const vendor = VENDORS[receiver.validator];
  const isGeneric = receiver.validator === "generic_hmac_sha256";
  return (
    <>
      <Section title={isGeneric ? "At the sender" : `At ${vendor.name}`}>
        <p>{vendor.setup}</p>
        <Command>{receiver.url}</Command>
      </Section>
      <Section title="To your local server">
        <p>
          Deliveries are stored until your server has them. This command sends them to port 3000,
          including those that arrived while your machine was off:
        </p>
        <ForwardCommand receiver={receiver} />
      </Section>
      <Section title="How signatures are checked">
        <Facts>
          <Fact name={vendor.headers.length > 1 ? "Headers" : "Header"}>
            {vendor.headers.map((header) => (
              <div key={header}>
                <code>{header}</code>
              </div>
            ))}
          </Fact>
          <Fact name="Algorithm">HMAC-SHA256, keyed by the secret, in hexadecimal</Fact>
          <Fact name="Signed text">{vendor.signedText}</Fact>
          {vendor.hasTimestamp && (
            <Fact name="Timestamp">at most 5 minutes from the server's clock</Fact>
          )}
          <Fact name="ID of a delivery">{vendor.deliveryId}</Fact>
        </Facts>
        <p className="receiver-note">
          The bytes of the body are signed as they are sent: JSON that is parsed and serialized
          again has a different signature. The tab Test has a script that computes one.
        </p>
      </Section>
    </>
  );
}
