/** The dialog that creates a network: its name, and a block of addresses that is free. */
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import type { PrivateNetwork } from "../../../protocol/schemas/networks.ts";
import { networksQuery } from "../../api/networks.ts";
import { call } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { DialogButton } from "../../ui/forms/dialog.tsx";
import { TextField } from "../../ui/forms/fields.tsx";

/** Blocks of the private ranges (RFC 1918) and of the shared range (RFC 6598) that few routers and clouds use by default. */
const SUGGESTED_BLOCKS = [
  "10.88.0.0/24",
  "10.199.0.0/24",
  "172.27.0.0/24",
  "192.168.88.0/24",
  "100.96.0.0/24",
];

export function NewNetworkButton({ networks }: { networks: readonly PrivateNetwork[] }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  return (
    <DialogButton
      button={{ children: "New network", kind: "primary" }}
      title="New network"
      submit="Create"
      onSubmit={async (value) => {
        const body = { name: value("name"), cidr: value("cidr") };
        const { id } = await call<PrivateNetwork>("POST", "/private-networks", body);
        await queries.invalidateQueries(networksQuery);
        await navigate({ to: "/networks/$id", params: { id } });
      }}
    >
      <TextField name="name" label="Name" placeholder="office" autoComplete="off" />
      <AddressesField networks={networks} />
    </DialogButton>
  );
}

function AddressesField({ networks }: { networks: readonly PrivateNetwork[] }) {
  const used = new Set(networks.map(({ cidr }) => cidr));
  const free = SUGGESTED_BLOCKS.filter((block) => !used.has(block));
  const [block, setBlock] = useState(free[0] ?? "");
  return (
    <>
      <TextField
        name="cidr"
        label="Addresses"
        value={block}
        onChange={(event) => setBlock(event.currentTarget.value)}
        autoComplete="off"
        spellCheck={false}
        hint="A private IPv4 block, /16 to /30. Choose one that neither the office nor the networks of your devices use."
      />
      <div className="block-suggestions" role="group" aria-label="Suggested blocks">
        {free.map((suggested) => (
          <Button
            key={suggested}
            aria-pressed={suggested === block}
            onClick={() => setBlock(suggested)}
          >
            {suggested}
          </Button>
        ))}
      </div>
    </>
  );
}
