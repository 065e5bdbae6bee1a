/** A record to publish in the DNS, each of its parts with a button to copy it. */
import { CopyButton } from "../../ui/copy.tsx";

interface DnsRecordProps {
  type: "TXT" | "CNAME";
  name: string;
  value: string;
}

export function DnsRecord({ type, name, value }: DnsRecordProps) {
  return (
    <dl className="dns-record">
      <dt>Type</dt>
      <dd>
        <code>{type}</code>
      </dd>
      <dt>Name</dt>
      <dd>
        <code>{name}</code>
        <CopyButton text={name} label={`Copy the name of the ${type} record`} kind="quiet" />
      </dd>
      <dt>Value</dt>
      <dd>
        <code>{value}</code>
        <CopyButton text={value} label={`Copy the value of the ${type} record`} kind="quiet" />
      </dd>
    </dl>
  );
}
