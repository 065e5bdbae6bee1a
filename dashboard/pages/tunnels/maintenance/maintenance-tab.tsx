/** The tab with the maintenance of a tunnel: on or off, the message, and the page that visitors get. */
import { queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { z } from "zod";
import { MAINTENANCE_MESSAGE_MAX_CHARS } from "../../../../protocol/limits.ts";
import type { MaintenanceState } from "../../../../protocol/schemas/access/maintenance.ts";
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import { call, load } from "../../../api/session.ts";
import { updateCachedTunnel } from "../../../api/tunnels.ts";
import { useHasRole } from "../../../app/roles.ts";
import { ActionButton } from "../../../ui/button.tsx";
import { CommandLine } from "../../../ui/command-line.tsx";
import { notify, notifyOfError } from "../../../ui/feedback/notifications.tsx";
import { TextAreaField } from "../../../ui/forms/fields.tsx";
import { Form } from "../../../ui/forms/form.tsx";
import { Badge, Section } from "../../../ui/section.tsx";
import { MaintenancePreview } from "./maintenance-preview.tsx";

type Maintenance = z.infer<typeof MaintenanceState>;

const maintenanceQuery = (id: string) =>
  queryOptions({
    queryKey: ["maintenance", id],
    queryFn: ({ signal }) => load<Maintenance>(`/tunnels/${id}/maintenance`, signal),
  });

export function MaintenanceTab({ tunnel }: { tunnel: Tunnel }) {
  const { id, maintenance: isOn, publicUrl } = tunnel;
  const canChange = useHasRole("member");
  const current = useQuery({ ...maintenanceQuery(id), enabled: isOn });
  const [typed, setTyped] = useState<string>();
  const message = typed ?? (isOn ? current.data?.message : null) ?? "";
  const maintenance = useMaintenance(id);
  return (
    <>
      <div className="columns">
        <Section
          title="Maintenance"
          actions={<Badge tone={isOn ? "warning" : "neutral"}>{isOn ? "On" : "Off"}</Badge>}
        >
          <p className="hint">
            Visitors get 503 and a page with your message, and are asked to try again after 30
            seconds. Maintenance ends when you end it, or when the last agent disconnects.
          </p>
          {canChange && !(isOn && current.isPending) && (
            <Form
              submit={isOn ? "Change the message" : "Start maintenance"}
              kind={isOn ? "plain" : "primary"}
              beside={
                isOn && (
                  <ActionButton kind="primary" action={() => maintenance.end()}>
                    End maintenance
                  </ActionButton>
                )
              }
              onSubmit={() => (isOn ? maintenance.change(message) : maintenance.start(message))}
            >
              <TextAreaField
                name="message"
                label="Message to visitors"
                required={false}
                maxLength={MAINTENANCE_MESSAGE_MAX_CHARS}
                value={message}
                onChange={(event) => setTyped(event.currentTarget.value)}
                placeholder="We are back at 14:00 UTC."
                hint="Leave empty for the default message."
              />
            </Form>
          )}
        </Section>
        <MaintenancePreview address={publicUrl} message={message.trim()} />
      </div>
      <CommandLine
        requests={[
          {
            label: "Start maintenance",
            method: "PUT",
            path: `/tunnels/${id}/maintenance`,
            body: message.trim() === "" ? {} : { message: message.trim() },
          },
          { label: "End it", method: "DELETE", path: `/tunnels/${id}/maintenance` },
        ]}
      />
    </>
  );
}

function useMaintenance(id: string) {
  const queries = useQueryClient();
  const path = `/tunnels/${id}/maintenance`;

  async function set(method: "PUT" | "DELETE", body?: { message?: string }): Promise<void> {
    const saved = await call<Maintenance>(method, path, body);
    await queries.cancelQueries(maintenanceQuery(id));
    queries.setQueryData(maintenanceQuery(id).queryKey, saved);
    await updateCachedTunnel(queries, id, { maintenance: saved.maintenance });
  }

  async function change(typed: string): Promise<void> {
    const message = typed.trim();
    await set("PUT", message === "" ? {} : { message });
    notify("Visitors get the new message.", undefined, path);
  }

  async function start(typed: string): Promise<void> {
    const message = typed.trim();
    await set("PUT", message === "" ? {} : { message });
    const undo = () => void end().catch(notifyOfError);
    notify("Visitors get the maintenance page.", { label: "Undo", act: undo }, path);
  }

  async function end(): Promise<void> {
    const previous = queries.getQueryData(maintenanceQuery(id).queryKey);
    await set("DELETE");
    const act = () => void start(previous?.message ?? "").catch(notifyOfError);
    notify("Visitors reach the tunnel again.", previous && { label: "Undo", act }, path);
  }
  return { change, start, end };
}
