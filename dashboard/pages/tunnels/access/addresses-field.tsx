/** The addresses of an IP allowlist. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { sessionsQuery } from "../../../api/session-list.ts";
import { Button } from "../../../ui/button.tsx";
import { TextAreaField } from "../../../ui/forms/fields.tsx";
import { parseLines } from "../../../ui/forms/lines.ts";

export function AddressesField({ cidrs }: { cidrs: readonly string[] }) {
  const [text, setText] = useState(cidrs.join("\n"));
  const own = useOwnAddress();
  const add = (address: string) => setText([...parseLines(text), address].join("\n"));
  return (
    <>
      <TextAreaField
        name="cidrs"
        label="Allowed addresses"
        className="code-area"
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
        placeholder={"203.0.113.0/24\n2001:db8::/32"}
        spellCheck={false}
        hint="One address or block per line, IPv4 or IPv6, at most 100."
      />
      {own !== undefined && !isListed(own, parseLines(text)) && (
        <Button onClick={() => add(own)}>Add your address, {own}</Button>
      )}
    </>
  );
}

/** Whether the list has the address itself, or a block of this address alone. */
function isListed(address: string, cidrs: readonly string[]): boolean {
  return [address, `${address}/32`, `${address}/128`].some((entry) => cidrs.includes(entry));
}

/** The address from which this browser reached the server within the last minute. */
function useOwnAddress(): string | undefined {
  const { data } = useQuery(sessionsQuery);
  return data?.sessions.find(({ current }) => current)?.ip;
}
