/** The tab with the maintenance of a tunnel: on or off, the message, and the page that visitors get. */
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import { call } from "../../../api/session.ts";
import { updateCachedTunnel } from "../../../api/tunnels.ts";
import { useHasRole } from "../../../app/roles.ts";
import { ActionButton } from "../../../ui/button.tsx";
import { CommandLine } from "../../../ui/command-line.tsx";
import { notify, notifyOfError } from "../../../ui/feedback/notifications.tsx";
import { TextAreaField } from "../../../ui/forms/fields.tsx";
import { Form } from "../../../ui/forms/form.tsx";
import { Badge, Section } from "../../../ui/section.tsx";
import { MaintenancePreview } from "./maintenance-preview.tsx";

/** As the API accepts. */
const MESSAGE_MAX_CHARS = 500;

export function MaintenanceTab({ tunnel }: { tunnel: Tunnel }) {
  const { id, maintenance: isOn, publicUrl } = tunnel;
  const canWrite = useHasRole("member");
  const [message, setMessage] = useState("");
  const change = useMaintenance(id);
  const end = () =>
    change.end({
      label: "Start it again",
      act: () => void change.start(message).catch(notifyOfError),
    });
  return (
    <div className="columns">
      <Section
        title="Maintenance"
        actions={<Badge tone={isOn ? "warning" : "neutral"}>{isOn ? "On" : "Off"}</Badge>}
      >
        <p className="hint">
          Visitors get 503 and a page with your message, and are asked to try again after 30
          seconds. It ends when you end it, or when the last agent disconnects.
        </p>
        {canWrite && (
          <Form
            submit={isOn ? "Change the message" : "Start maintenance"}
            kind={isOn ? "plain" : "primary"}
            beside={
              isOn && (
                <ActionButton kind="primary" action={end}>
                  End maintenance
                </ActionButton>
              )
            }
            onSubmit={() => change.start(message)}
          >
            <TextAreaField
              name="message"
              label="Message to visitors"
              required={false}
              maxLength={MESSAGE_MAX_CHARS}
              value={message}
              onChange={(event) => setMessage(event.currentTarget.value)}
              placeholder="We are back at 14:00 UTC."
              hint={
                isOn
                  ? "It replaces the current message, which can't be shown here. Empty: the default message."
                  : "Empty: the default message."
              }
            />
          </Form>
        )}
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
      </Section>
      <MaintenancePreview address={publicUrl} message={message.trim()} />
    </div>
  );
}

function useMaintenance(id: string) {
  const queries = useQueryClient();
  const path = `/tunnels/${id}/maintenance`;

  async function end(undo?: { label: string; act: () => void }): Promise<void> {
    await call("DELETE", path);
    await updateCachedTunnel(queries, id, { maintenance: false });
    notify("Maintenance has ended. Visitors reach the tunnel again.", undo);
  }

  async function start(typed: string): Promise<void> {
    const message = typed.trim();
    await call("PUT", path, message === "" ? {} : { message });
    await updateCachedTunnel(queries, id, { maintenance: true });
    notify("Visitors get the maintenance page.", {
      label: "End maintenance",
      act: () => void end().catch(notifyOfError),
    });
  }
  return { start, end };
}
