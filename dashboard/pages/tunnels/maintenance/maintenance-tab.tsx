/** The tab with the maintenance of a tunnel: on or off, the message, and the page that visitors get. */
import { useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
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
  const canChange = useHasRole("member");
  const [message, setMessage] = useState("");
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
          {canChange && (
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
                maxLength={MESSAGE_MAX_CHARS}
                value={message}
                onChange={(event) => setMessage(event.currentTarget.value)}
                placeholder="We are back at 14:00 UTC."
                hint={
                  isOn
                    ? "It replaces the current message, which can't be shown here. Leave empty for the default message."
                    : "Leave empty for the default message."
                }
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
  /** The message in force, if this page has set it: the API does not return it. */
  const knownMessage = useRef<string>(undefined);
  const path = `/tunnels/${id}/maintenance`;

  async function set(typed: string): Promise<void> {
    const message = typed.trim();
    await call("PUT", path, message === "" ? {} : { message });
    knownMessage.current = message;
    await updateCachedTunnel(queries, id, { maintenance: true });
  }

  async function change(message: string): Promise<void> {
    await set(message);
    notify("Visitors get the new message.", undefined, path);
  }

  async function start(message: string): Promise<void> {
    await set(message);
    const undo = () => void end().catch(notifyOfError);
    notify("Visitors get the maintenance page.", { label: "Undo", act: undo }, path);
  }

  async function end(): Promise<void> {
    const message = knownMessage.current;
    await call("DELETE", path);
    await updateCachedTunnel(queries, id, { maintenance: false });
    const act = () => void start(message ?? "").catch(notifyOfError);
    const undo = message === undefined ? undefined : { label: "Undo", act };
    notify("Visitors reach the tunnel again.", undo, path);
  }
  return { change, start, end };
}
